"""Shared set-up of the lowering tests: a model goes all the way once, for all tests."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
import tvm
from torch import nn
from torch.utils import _pytree as pytree
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator

from lowerscope.core.build.build import register_library
from lowerscope.core.build.targets import make_target
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.lowering.translator import lower
from lowerscope.core.lowering.types import LoweredModel
from lowerscope.core.model.recipe import Override
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.execution import to_torch, to_tvm, virtual_machine
from lowerscope.core.schedule.replay import Replays
from lowerscope.core.schedule.whole_model import WholeModel
from lowerscope.core.tracing.tracing import TracedModel, trace
from tests.core.quick_code import quick_code


@dataclass(frozen=True)
class Outcome:
    """A model that went all the way, with torch's outputs and the compiled module's.

    ``counts`` are the numbers of tensors in each member of a list that the model returns.
    """

    traced: TracedModel
    lowered: LoweredModel
    expected: list[torch.Tensor]
    actual: list[torch.Tensor]
    counts: list[int]


_LAST: list[tuple[nn.Module, str, TracedModel]] = []


def _traced(model: nn.Module, inputs: tuple[torch.Tensor, ...], tracer: str) -> TracedModel:
    """Trace a model; the next strategy of the same model needs no other graph."""
    if not _LAST or _LAST[0][0] is not model or _LAST[0][1] != tracer:
        _LAST[:] = [(model, tracer, trace(model, inputs, tracer))]  # type: ignore[arg-type]
    return _LAST[0][2]


def lower_model(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    tracer: str,
    strategy: str,
    overrides: tuple[Override, ...] = (),
) -> tuple[TracedModel, LoweredModel]:
    traced = _traced(model, inputs, tracer)
    specs = [
        (f"input_{index}", tuple(value.shape), str(value.dtype).removeprefix("torch."))
        for index, value in enumerate(inputs)
    ]
    return traced, lower(traced, specs, strategy, overrides)  # type: ignore[arg-type]


def run_all_the_way(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    tracer: str,
    strategy: str,
    overrides: tuple[Override, ...] = (),
) -> Outcome:
    traced, lowered = lower_model(model, inputs, tracer, strategy, overrides)
    register_library(lowered.library)
    return _outcome(model, inputs, traced, lowered, built(lowered.module), "main")


def built(module: tvm.IRModule) -> relax.VirtualMachine:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return virtual_machine(quick_code(module, tvm.target.Target("llvm")))


def built_by_preset(module: tvm.IRModule, preset: str) -> relax.VirtualMachine:
    """Compile a module for this processor after the steps of a preset, none of which may fail."""
    target = make_target("native", 2)
    scheduled = WholeModel((), Replays(), target, lambda: None)
    steps = find_pipeline(preset).steps
    transformed = transform(module, steps, target=target, rules=scheduled.apply_rules)
    transformed.check()
    return virtual_machine(quick_code(transformed.module, target))


def _outcome(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    traced: TracedModel,
    lowered: LoweredModel,
    machine: relax.VirtualMachine,
    name: str,
) -> Outcome:
    result = machine[name](*(to_tvm(value) for value in inputs))
    actual = [to_torch(each) for each in _flat(result)]
    with torch.no_grad(), warnings.catch_warnings():
        # torch warns of paddings that it has to copy for.
        warnings.simplefilter("ignore")
        reference = model(*(value.clone() for value in inputs))
    expected = [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(reference) if leaf is not None]
    counts = (
        [len(pytree.tree_leaves(each)) for each in reference] if isinstance(reference, list) else []
    )
    return Outcome(traced, lowered, expected, actual, counts)


@dataclass(frozen=True)
class Way:
    """A model and how it is lowered."""

    model: nn.Module
    inputs: tuple[torch.Tensor, ...]
    tracer: str
    strategy: str
    overrides: tuple[Override, ...] = ()


def _lower(way: Way) -> tuple[TracedModel, LoweredModel]:
    return lower_model(way.model, way.inputs, way.tracer, way.strategy, way.overrides)


def run_together(ways: Sequence[Way]) -> list[Outcome]:
    """Take models all the way, compiled as one module.

    Strategies come to the same TensorIR functions for the most part, and machine code is what
    takes the time: of equal functions it is made once. Library functions have the same names in
    each module, and are registered by them, so a model that calls torch is compiled alone.
    """
    all_lowered = [_lower(way) for way in ways]
    modules = {
        f"way{index}": lowered.module
        for index, (_, lowered) in enumerate(all_lowered)
        if not lowered.library
    }
    shared = built(together(modules)) if modules else None
    outcomes = []
    for index, (way, (traced, lowered)) in enumerate(zip(ways, all_lowered, strict=True)):
        name, machine = f"way{index}", shared
        if name not in modules:
            register_library(lowered.library)
            name, machine = "main", built(lowered.module)
        outcomes.append(_outcome(way.model, way.inputs, traced, lowered, machine, name))
    return outcomes


def run_by_preset(preset: str, ways: Sequence[Way]) -> list[Outcome]:
    """Take models all the way by the steps of a preset, each by itself."""
    outcomes = []
    for way in ways:
        traced, lowered = _lower(way)
        register_library(lowered.library)
        machine = built_by_preset(lowered.module, preset)
        outcomes.append(_outcome(way.model, way.inputs, traced, lowered, machine, "main"))
    return outcomes


def together(modules: Mapping[str, tvm.IRModule]) -> tvm.IRModule:
    """Return one module with the ``main`` of each under the name that it has in `modules`."""
    builder = relax.BlockBuilder()
    for name, module in modules.items():
        functions = dict(module.functions_items())
        # The builder gives equal functions the same name.
        names = {
            variable.name_hint: builder.add_func(function, variable.name_hint)
            for variable, function in functions.items()
            if isinstance(function, tvm.tirx.PrimFunc)
        }
        assert len(names) == len(functions) - 1, "main is the only Relax function"
        main = _Renamed(names).visit_expr(module["main"])
        builder.add_func(main.with_attr("global_symbol", name), name)
    return builder.get()


@mutator  # type: ignore[misc]
class _Renamed(PyExprMutator):  # type: ignore[misc]
    """Calls functions by other names."""

    def __init__(self, names: Mapping[str, tvm.ir.GlobalVar]) -> None:
        super().__init__()
        self.names = names

    def visit_global_var_(self, op: tvm.ir.GlobalVar) -> tvm.ir.GlobalVar:
        return self.names[op.name_hint]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tvm.runtime.Tensor):
        return [result]
    return [leaf for each in result for leaf in _flat(each)]


def assert_close(actual: torch.Tensor, expected: torch.Tensor, rtol: float = 1e-4) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=1e-5, equal_nan=True)


class Bench:
    """Runs models, each combination once.

    Parameters
    ----------
    preset
        The passes that `run_together` applies; empty for those of TVM's own build alone.
    """

    lower = staticmethod(lower_model)
    run = staticmethod(run_all_the_way)
    assert_close = staticmethod(assert_close)

    def __init__(self, preset: str = "") -> None:
        self.run_together = partial(run_by_preset, preset) if preset else run_together
        self._outcomes: dict[tuple[Any, ...], tuple[Any, Outcome]] = {}

    def outcome(
        self,
        model: nn.Module,
        inputs: tuple[torch.Tensor, ...],
        tracer: str,
        strategy: str,
        overrides: tuple[Override, ...] = (),
    ) -> Outcome:
        """Take a model all the way, once."""
        key = (id(model), tracer, strategy, overrides)
        if key not in self._outcomes:
            # The model is kept as well: its id is only its own while it lives.
            self._outcomes[key] = (
                model,
                run_all_the_way(model, inputs, tracer, strategy, overrides),
            )
        return self._outcomes[key][1]

    def check(
        self,
        model: nn.Module,
        inputs: tuple[torch.Tensor, ...],
        tracer: str,
        strategy: str,
        overrides: tuple[Override, ...] = (),
    ) -> Outcome:
        """Assert that the compiled model gives what torch does."""
        outcome = self.outcome(model, inputs, tracer, strategy, overrides)
        assert len(outcome.actual) == len(outcome.expected)
        for actual, expected in zip(outcome.actual, outcome.expected, strict=True):
            assert_close(actual, expected)
        return outcome


@pytest.fixture(scope="session")
def bench() -> Bench:
    """Return what runs models, and keeps their outcomes for all tests."""
    return Bench()

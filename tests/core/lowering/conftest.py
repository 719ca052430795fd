"""What the lowering tests share: a model goes all the way once, for all tests."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import tvm
from torch import nn
from torch.utils import _pytree as pytree

from lowerscope.core.execution.building import register_library
from lowerscope.core.execution.running import to_torch, to_tvm, virtual_machine
from lowerscope.core.lowering.translator import LoweredModel, lower
from lowerscope.core.recipe import Override
from lowerscope.core.tracing.tracing import TracedModel, trace


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Unoptimised machine code is made in a third of the time.
        target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
        executable = tvm.compile(lowered.module, target)
    machine = virtual_machine(executable)
    result = machine["main"](*(to_tvm(value) for value in inputs))
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


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tvm.runtime.Tensor):
        return [result]
    return [leaf for each in result for leaf in _flat(each)]


def assert_close(actual: torch.Tensor, expected: torch.Tensor, rtol: float = 1e-4) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=1e-5, equal_nan=True)


class Bench:
    """Runs models, each combination once."""

    lower = staticmethod(lower_model)
    run = staticmethod(run_all_the_way)
    assert_close = staticmethod(assert_close)

    def __init__(self) -> None:
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

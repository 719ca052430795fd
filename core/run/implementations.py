"""Implementations compared in a run at one size of each named dimension, and their timing."""

from __future__ import annotations

import contextlib
import gc
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import torch
from torch import fx

from lowerscope.core.build.build import RecordedBuild, check_registered
from lowerscope.core.build.targets import ProcessorUse, threads_of_tvm
from lowerscope.core.model.dimensions import Sizes, doing_at, runs_of, traced_sizes
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import (
    BUDGET,
    LEAST,
    MEASURING,
    REPEATS,
    Measuring,
    RunTimes,
    side_times,
)
from lowerscope.core.model.texts import _
from lowerscope.core.run.compare.verdicts import PreciseRun, Verdict, judge
from lowerscope.core.run.execution import Execution, Reference, number_in
from lowerscope.core.run.float64 import dtypes_computed_in, longest_sums, precise_run
from lowerscope.core.sources.inputs import drawn_at
from lowerscope.core.sources.onnx_models import OnnxModel, side_of
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.sources.pytree import CallSpec, leaves, mapped
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.example_run import dtypes_of


def inputs_at(sizes: Sizes, stages: Stages, recipe: Recipe) -> tuple[torch.Tensor, ...]:
    """Return the inputs at these sizes of the named dimensions."""
    inputs = stages.loaded.inputs
    if sizes != traced_sizes(recipe):
        inputs = drawn_at(inputs, sizes, recipe.seed)
    return tuple(each.value for each in inputs)


def reference_of(
    loaded: LoadedModel, values: tuple[torch.Tensor, ...], seed: int
) -> tuple[str, Reference | None]:
    """Return the reference of the outputs, and its name."""
    if loaded.model is not None:
        side = side_of(loaded.model)
        return side, Reference(loaded.model, values, seed, loaded.calling, side)
    if loaded.reference is not None:
        numpy = NumpyReference(loaded.reference)
        return "NumPy", Reference(numpy, values, seed, loaded.calling, "NumPy")
    return "torch", None


def precise_of(
    stages: Stages,
    values: tuple[torch.Tensor, ...],
    seed: int,
    expected: Sequence[torch.Tensor] | None,
    build: RecordedBuild | None = None,
) -> Callable[[], PreciseRun | None] | None:
    """Return a run of the model in float64, for `judge`.

    ``None`` if it has no narrower floats, and for a source without torch.

    Args:
        build: The build that was run; by default, that of the stages.
    """
    loaded = stages.loaded
    model = loaded.model
    if model is None:
        return None
    coarsest = coarsest_of(stages, (*values, *(expected or ())))
    if coarsest is torch.float64:
        return None

    def run() -> PreciseRun | None:
        found = precise_run(model, values, seed, loaded.calling)
        if found is None:
            return None
        sums = longest_sums((build or stages.recorded).tensorir, found.coarsest)
        return replace(found, sums=sums)

    return run


def coarsest_of(stages: Stages, values: Sequence[torch.Tensor]) -> torch.dtype:
    """Return the coarsest dtype of floats in a torch model, its nodes, and some values."""
    model, traced = stages.loaded.model, stages.traced
    assert model is not None
    parts = (*model.parameters(), *model.buffers(), *values)
    dtypes = {str(each.dtype).removeprefix("torch.") for each in parts}
    if traced is not None:
        dtypes.update(each for info in traced.values.values() for each in dtypes_of(info))
    known = (torch.bfloat16, torch.float16, torch.float32)
    return next(
        (each for each in known if str(each).removeprefix("torch.") in dtypes), torch.float64
    )


def judge_run(
    stages: Stages,
    recipe: Recipe,
    values: tuple[torch.Tensor, ...],
    actual: tuple[torch.Tensor, ...],
    named: Sequence[tuple[str, torch.Tensor]] | None,
    build: RecordedBuild | None = None,
    *,
    drew_the_same: bool = False,
) -> tuple[Verdict, tuple[torch.Tensor, ...] | None]:
    """Return the verdict on the outputs of a run, and the outputs of its reference.

    Args:
        build: As of `precise_of`.
        drew_the_same: Whether both sides are known to have drawn the same random numbers.
    """
    expected = None if named is None else tuple(value for _other, value in named)
    if expected is not None and len(expected) == len(actual):
        # A model may return a number for some inputs and a tensor for others.
        pairs = zip(actual, expected, strict=True)
        expected = tuple(number_in(ours.dtype, theirs) for ours, theirs in pairs)
    if expected is not None and stages.loaded.model is None:
        expected = in_dtype_of(expected, actual)
    random = () if stages.lowered is None else stages.lowered.random
    names = [name for name, _other in named or ()]
    precise = precise_of(stages, values, recipe.seed, expected, build)
    verdict = judge(
        actual,
        expected,
        recipe.tolerances,
        random,
        names,
        precise,
        drew_the_same=drew_the_same,
        computed_in=_outputs_computed_in(stages, len(actual)),
    )
    return verdict, expected


def _outputs_computed_in(stages: Stages, count: int) -> list[torch.dtype | None]:
    """Return the coarsest dtype that each output is computed in; ``None`` if that is not known."""
    traced = stages.traced
    if traced is None:
        return [None] * count
    found = dtypes_computed_in(traced)
    (output,) = (each for each in traced.graph_module.graph.nodes if each.op == "output")
    given = [each for _path, each in leaves(output.args[0])]
    if len(given) != count:
        return [None] * count
    return [found.get(each.name) if isinstance(each, fx.Node) else None for each in given]


def check_callable(stages: Stages) -> None:
    """Raise a `LowerscopeError` unless all functions that the model calls are registered."""
    library = () if stages.lowered is None else stages.lowered.library
    module = stages.completed
    with stages.running():
        check_registered(module, library)


def measure_by_turns(
    stages: Sequence[Stages],
    recipe: Recipe,
    sizes: Sizes,
    executions: Sequence[Execution],
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> tuple[RunTimes, ...]:
    """Time executables of one source by turns, all beside the same reference.

    Args:
        recipe: That of the first; of the others, source, inputs and sizes are the same.
    """
    others, compiled = _reference_sides(stages[0], recipe, sizes, reference, measuring, progress)
    doing = doing_at(MEASURING, sizes)
    progress.report(doing)
    # Side effects of a function occur once a call.
    pure = all(each.transformed.module["main"].is_pure for each in stages)
    ours = [Implementation("TVM", each.call, threads_of_tvm()) for each in executions]
    budget = BUDGET * len(ours) / len(runs_of(recipe))
    report, most = partial(progress.report, doing), REPEATS if pure else 0
    found = measure([*ours, *others], measuring, progress.check, most, budget, report)
    beside = found.sides[len(ours) :]
    return tuple(
        msgspec.structs.replace(
            found,
            sides=(each, *beside),
            compile_ms=compiled.milliseconds,
            compile_problem=compiled.problem,
        )
        for each in found.sides[: len(ours)]
    )


def measure_reference(
    stages: Stages,
    recipe: Recipe,
    sizes: Sizes,
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> RunTimes:
    """Time the reference and, if requested, ``torch.compile``, on their own."""
    others, compiled = _reference_sides(stages, recipe, sizes, reference, measuring, progress)
    if not others:
        return RunTimes(sides=(), warm_up=measuring.warm_up)
    progress.report(MEASURING)
    found = measure(others, measuring, progress.check, REPEATS, BUDGET / len(runs_of(recipe)))
    return msgspec.structs.replace(
        found, compile_ms=compiled.milliseconds, compile_problem=compiled.problem
    )


def _reference_sides(
    stages: Stages,
    recipe: Recipe,
    sizes: Sizes,
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> tuple[list[Implementation], CompiledTorch]:
    """Return the references timed beside an executable, and the outcome of ``torch.compile``."""
    loaded, threads = stages.loaded, torch.get_num_threads()
    others = []
    if reference is not None:
        known = threads if reference.side != "NumPy" else None
        others.append(_torch_side(reference, known))
    compiled = CompiledTorch(None)
    wanted = measuring.torch_compile and sizes == runs_of(recipe)[0]
    if wanted and reference is not None and isinstance(loaded.model, OnnxModel):
        problem = _("it compiles models of torch, and {side} runs this one", side=reference.side)
        compiled = CompiledTorch(None, problem=problem)
    elif wanted and loaded.model is not None:
        progress.report(_("Compiling with torch.compile"))
        values = inputs_at(sizes, stages, recipe)
        compiled = compile_torch(loaded.model, values, recipe.seed, loaded.calling)
        if compiled.reference is not None:
            others.append(_torch_side(compiled.reference, threads))
    return others, compiled


def _torch_side(reference: Reference, threads: int | None) -> Implementation:
    return Implementation(
        reference.side, reference.infer, threads, reference.refresh, reference.mode
    )


TURN = 10
"""Most measured calls in a turn."""

TURN_SECONDS = 0.02
"""Time limit of the calls of one turn in total, in seconds; at least one call is made."""

SETTLE = 0.003
"""Pause before each turn, in seconds.

The threads of the other implementation spin for a while before they sleep, and block processors
meanwhile.
"""

LONG = 0.05
"""Time of a long call, in seconds; for a shorter one, each turn starts with a warm-up call.

The first call finds the caches as the other implementation has left them, and its threads asleep:
torch took twice as long for a small model.
"""


@dataclass(frozen=True)
class Implementation:
    """An implementation to be timed."""

    name: str
    call: Callable[[], Any]
    threads: int | None  # how many it may use; ``None`` if unknown
    before: Callable[[], None] = lambda: None  # called before each call, and not timed
    within: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext


def measure(
    sides: Sequence[Implementation],
    measuring: Measuring,
    check: Callable[[], None],
    most: int = REPEATS,
    budget: float = BUDGET,
    report: Callable[[float], object] = lambda _share: None,
) -> RunTimes:
    """Time the implementations by turns, so that system noise affects all of them.

    Unless it is given, the number of repeats follows from the last warm-up call, and is at least
    `LEAST`.

    Args:
        most: Repeats at most, if they are `LEAST` or more: few for a function with side effects.
        budget: Seconds that all measurements together should take.
        report: Called with the share that is done, between long calls.
    """
    once = [max(_calls(side, measuring.warm_up, check)[-1], 1e-6) for side in sides]
    turn = max(1, min(TURN, int(TURN_SECONDS / max(once))))
    ahead = [int(each < LONG and most >= LEAST) for each in once]
    costs = sum(each * (1 + more / turn) for each, more in zip(once, ahead, strict=True))
    repeats = measuring.repeats or max(LEAST, min(most, int(budget / costs)))
    seconds: list[list[float]] = [[] for _other in sides]
    collects = gc.isenabled()
    gc.disable()
    use = ProcessorUse()
    try:
        while (left := repeats - len(seconds[0])) > 0:
            if max(once) >= LONG:
                report(len(seconds[0]) / repeats)
            for side, more, found in zip(sides, ahead, seconds, strict=True):
                time.sleep(SETTLE)
                found += _calls(side, more + min(turn, left), check)[more:]
    finally:
        if collects:
            gc.enable()
    return RunTimes(
        sides=tuple(
            side_times(side.name, found, side.threads)
            for side, found in zip(sides, seconds, strict=True)
        ),
        warm_up=measuring.warm_up,
        processors=use.processors,
        others=use.by_others(),
    )


def _calls(side: Implementation, count: int, check: Callable[[], None]) -> list[float]:
    """Call an implementation `count` times, and return the time of each call in seconds."""
    taken = []
    for _turn in range(count):
        with side.within():
            side.before()
            start = time.perf_counter()
            side.call()
            taken.append(time.perf_counter() - start)
        check()
    return taken


_UNHELPFUL = "Set TORCHDYNAMO_VERBOSE"
"""Prefix of dynamo's own advice, which is the last line of its errors."""


@dataclass(frozen=True)
class CompiledTorch:
    """The compiled model and its compile time, or the reason why there is none."""

    reference: Reference | None
    milliseconds: float | None = None
    problem: str = ""


def compile_torch(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], seed: int, calling: CallSpec | None
) -> CompiledTorch:
    """Compile a copy of the model for these inputs, and call it once."""
    from torch._inductor import config

    # Each call compiles another copy: after some of them, dynamo would silently not compile.
    torch._dynamo.reset()
    start = time.perf_counter()
    # The process pool would outlive a worker that is killed.
    with config.patch(compile_threads=1), warnings.catch_warnings():
        # Torch's own parts use deprecated ones.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            reference = Reference(model, inputs, seed, calling, "torch.compile")
            reference.compile()
            reference.call()
        except LowerscopeError as error:
            return CompiledTorch(None, problem=_reason(error))
    return CompiledTorch(reference, (time.perf_counter() - start) * 1000)


def _reason(error: LowerscopeError) -> str:
    """Return why the model could not be compiled, in one line."""
    cause: BaseException = error.__cause__ or error
    # Dynamo wraps the exceptions of a backend.
    cause = getattr(cause, "inner_exception", None) or cause
    if type(cause).__name__ == "InvalidCxxCompiler":
        return _("it needs a C++ compiler, and there is none (g++, or what CXX names)")
    lines = [each.strip() for each in str(cause).splitlines() if each.strip()]
    told = [each for each in lines if not each.startswith(_UNHELPFUL)]
    return f"{type(cause).__name__}: {told[0]}" if told else type(cause).__name__


WIDER = torch.float64
"""Default dtype of NumPy's computation."""


class NumpyReference(torch.nn.Module):
    """A function of arrays, called with tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return the function's results as tensors."""
        # NumPy does not have bfloat16; float32 represents all its values.
        arrays = [(x.float() if x.dtype is torch.bfloat16 else x).numpy() for x in inputs]
        return mapped(
            self._function(*arrays),
            lambda leaf: (
                torch.from_numpy(np.array(leaf))
                if isinstance(leaf, np.ndarray | np.generic)
                else leaf
            ),
        )


def in_dtype_of(
    expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Return NumPy's results rounded to the requested dtypes."""
    rounded = [
        one.to(other.dtype) if one.dtype is WIDER and other.dtype.is_floating_point else one
        for one, other in zip(expected, actual, strict=False)
    ]
    return (*rounded, *expected[len(rounded) :])

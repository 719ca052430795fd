"""The runs of one executable: at each size of the named dimensions, compared with torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import torch
import tvm

from lowerscope.core.dimensions import Sizes, runs_of, sizes_text, traced_sizes
from lowerscope.core.execution.building import BuiltModel
from lowerscope.core.execution.calling import check_registered
from lowerscope.core.execution.comparing import Verdict, judge
from lowerscope.core.execution.numpy_reference import NumpyReference, in_dtype_of
from lowerscope.core.execution.prediction import predict
from lowerscope.core.execution.running import (
    BUDGET,
    REPEATS,
    Execution,
    Reference,
    Times,
    measure,
)
from lowerscope.core.hand_overs import with_hand_overs
from lowerscope.core.making import making_of
from lowerscope.core.memory_plan import planned_memory
from lowerscope.core.node_runs import REPEATS as WATCHED
from lowerscope.core.node_runs import node_runs
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import Making, Prediction, RunRecord, SizeRecord, first_difference
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.inputs import drawn_at
from lowerscope.core.sources.loading import LoadedModel
from lowerscope.core.stages import Stages

_WORST = ("differ", "not-comparable", "no-reference", "match")


@dataclass(frozen=True)
class _Run:
    """One run, at one size of each named dimension; ``side`` is what it is compared with."""

    sizes: Sizes
    side: str
    verdict: Verdict
    times: Times
    prediction: Prediction | None


def run_all(
    stages: Stages, recipe: Recipe, progress: Progress, *, quick: bool = False
) -> RunRecord:
    """Build once, run at each size, compare with torch, and time both.

    Without named dimensions it runs once.

    Parameters
    ----------
    quick
        Measure no more often than it takes to have times at all.

    Raises
    ------
    LowerscopeError
        If a function is missing, the build or a run fails, or a size is out of range: that before
        anything is built.
    """
    sizes = runs_of(recipe)
    lowered, module = stages.lowered, stages.completed
    with stages.running():
        check_registered(module, () if lowered is None else lowered.library)
    built = stages.built
    # What the files import late, or register, has to be there while the model runs.
    with stages.running():
        budget = 0.0 if quick else BUDGET / len(sizes)
        runs = [_run_at(each, budget, stages, recipe, built, progress) for each in sizes]
        # Last, and apart: what was measured has not been watched.
        inputs = _inputs_at(sizes[0], stages, recipe)
        values = tuple(each.value for each in inputs)
        watched = node_runs(stages, recipe, values, progress, repeats=1 if quick else WATCHED)
        calls = with_hand_overs(stages, values, watched.calls)
    record = _record(runs, stages, built)
    # What a run only passes by, such as a state that nothing reads, is no difference of it.
    first = first_difference(watched.nodes) if record.verdict == "differ" else ""
    return msgspec.structs.replace(
        record,
        nodes=watched.nodes,
        calls=calls,
        first_difference=first,
        first_made=making_of(stages, recipe, first) if first else Making(),
        memory=planned_memory(stages.recorded),
    )


def _run_at(
    sizes: Sizes,
    budget: float,
    stages: Stages,
    recipe: Recipe,
    built: BuiltModel,
    progress: Progress,
) -> _Run:
    loaded, lowered = stages.loaded, stages.lowered
    at = f" at {sizes_text(sizes)}" if sizes else ""
    progress.report(f"Running{at}")
    values = tuple(each.value for each in _inputs_at(sizes, stages, recipe))
    side, reference = reference_of(loaded, values, recipe.seed)
    # Before TVM, which would read beyond its memory where an index is out of range: the model may
    # have been traced with other values.
    named = None if reference is None else reference.named_outputs()
    execution = Execution(built.executable, "main", stages.arguments(values))
    actual = execution.outputs()
    progress.report(f"Comparing with {side}{at}")
    expected = None if named is None else tuple(value for _, value in named)
    if expected is not None and loaded.model is None:
        expected = in_dtype_of(expected, actual)
    names = [name for name, _ in named or ()]
    random = () if lowered is None else lowered.random
    verdict = judge(actual, expected, recipe.tolerances, random, names)
    progress.report(f"Measuring{at}")
    # What a function prints or counts, it does once a call.
    most = REPEATS if stages.transformed.module["main"].is_pure else 0
    times = measure(execution, reference, progress.check, most, budget)
    return _Run(sizes, side, verdict, times, predict(loaded.classes, actual, expected))


def _inputs_at(sizes: Sizes, stages: Stages, recipe: Recipe) -> tuple[ExampleInput, ...]:
    inputs = stages.loaded.inputs
    return inputs if sizes == traced_sizes(recipe) else drawn_at(inputs, sizes, recipe.seed)


def reference_of(
    loaded: LoadedModel, values: tuple[torch.Tensor, ...], seed: int
) -> tuple[str, Reference | None]:
    """Return what the outputs are compared with, and its name."""
    if loaded.model is not None:
        return "torch", Reference(loaded.model, values, seed, loaded.calling)
    if loaded.reference is not None:
        numpy = NumpyReference(loaded.reference)
        return "NumPy", Reference(numpy, values, seed, loaded.calling, "NumPy")
    return "torch", None


def _record(runs: Sequence[_Run], stages: Stages, built: BuiltModel) -> RunRecord:
    """Return the record over all runs: the worst verdict, with the outputs of the first such."""
    worst = min(runs, key=lambda run: _WORST.index(run.verdict.verdict))
    verdict = worst.verdict
    at = f"{sizes_text(worst.sizes)}: " if worst.sizes and verdict.reason else ""
    module = stages.transformed.module
    return RunRecord(
        verdict=verdict.verdict,
        reason=f"{at}{verdict.reason}",
        max_abs_error=_largest([run.verdict.max_abs for run in runs]),
        max_rel_error=_largest([run.verdict.max_rel for run in runs]),
        rtol=verdict.tolerance.rtol,
        atol=verdict.tolerance.atol,
        torch_ms=runs[0].times.torch_ms,
        tvm_ms=runs[0].times.tvm_ms,
        build_ms=built.milliseconds,
        functions=sum(
            isinstance(function, tvm.tirx.PrimFunc) for function in module.functions.values()
        ),
        outputs=verdict.outputs,
        prediction=runs[0].prediction,
        tracer="" if stages.traced is None else stages.traced.tracer,
        key=stages.run_key,
        reference=runs[0].side,
        sizes=tuple(_size_record(run) for run in runs if run.sizes),
    )


def _size_record(run: _Run) -> SizeRecord:
    return SizeRecord(
        sizes=dict(run.sizes),
        verdict=run.verdict.verdict,
        reason=run.verdict.reason,
        max_abs_error=run.verdict.max_abs,
        max_rel_error=run.verdict.max_rel,
        torch_ms=run.times.torch_ms,
        tvm_ms=run.times.tvm_ms,
    )


def _largest(errors: Sequence[float | None]) -> float | None:
    return max((each for each in errors if each is not None), default=None)

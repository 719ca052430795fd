"""Runs of one executable at each size of the named dimensions, compared with torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import tvm

from lowerscope.core.comparing.numpy_reference import in_dtype_of
from lowerscope.core.comparing.prediction import predict
from lowerscope.core.comparing.verdicts import Verdict, judge
from lowerscope.core.dimensions import Sizes, runs_of, sizes_text
from lowerscope.core.execution.building import BuiltModel
from lowerscope.core.execution.calling import check_registered
from lowerscope.core.execution.running import Execution
from lowerscope.core.lowering.lowered import LoweredModel
from lowerscope.core.making import making_of
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import (
    FAILING,
    KEEP,
    Making,
    NodeRun,
    Prediction,
    RunRecord,
    SizeRecord,
    first_difference,
    time_fields,
    with_times,
)
from lowerscope.core.records.times import RunTimes
from lowerscope.core.running.followed_runs import (
    NamedCalls,
    calls_told,
    followed_outputs,
    named_calls,
)
from lowerscope.core.running.hand_overs import with_hand_overs
from lowerscope.core.running.kept_run import KeptRun
from lowerscope.core.running.memory_plan import planned_memory
from lowerscope.core.running.node_runs import REPEATS as WATCHED
from lowerscope.core.running.node_runs import NodeRuns, node_runs
from lowerscope.core.running.sides import inputs_at, measure_run, precise_of, reference_of
from lowerscope.core.stages import Stages
from lowerscope.core.target_catalogue import check_runs_here

SLOW_MS = 200.0
"""Time above which a quick run omits the run by node, in milliseconds."""

_WORST = (*FAILING, "not-comparable", "no-reference", "match")


@dataclass(frozen=True)
class SizedRun:
    """One run, at one size of each named dimension; ``side`` is its reference."""

    sizes: Sizes
    side: str
    verdict: Verdict
    times: RunTimes
    prediction: Prediction | None


def run_all(
    stages: Stages,
    recipe: Recipe,
    progress: Progress,
    before: RunRecord | None = None,
    *,
    quick: bool = False,
    keep: int = KEEP,
) -> tuple[RunRecord, KeptRun | None]:
    """Build once, run at each size, compare with torch, and time both.

    Without named dimensions it runs once.

    Parameters
    ----------
    before
        An earlier run of the same module, whose times are reused: nothing is measured.
    quick
        Measure one call of each implementation, and omit the run by node for a slow model.
    keep
        Bytes of the values of the run that are cached.

    Returns
    -------
    tuple
        The record, and the cached values; ``None`` if the calls of the run are unknown.

    Raises
    ------
    LowerscopeError
        If a function is missing, the build or a run fails, or a size is out of range, which is
        checked before the build.
    """
    check_runs_here(stages.target)
    sizes = runs_of(recipe)
    lowered, module = stages.lowered, stages.completed
    with stages.running():
        check_registered(module, () if lowered is None else lowered.library)
    built = stages.built
    named = named_calls(stages)
    # The files' late imports and registrations must exist while the model runs.
    with stages.running(), calls_told(named, progress):
        runs = [
            _run_at(each, stages, recipe, named, known, progress, quick=quick)
            for each, known in zip(sizes, times_of(before, len(sizes)), strict=True)
        ]
        # Separate and last: the timed runs must not be instrumented ones.
        inputs = inputs_at(sizes[0], stages, recipe)
        values = tuple(each.value for each in inputs)
        if quick and runs[0].times.sides[0].milliseconds > SLOW_MS:
            watched = NodeRuns()
        else:
            repeats = 1 if quick else WATCHED
            watched = node_runs(stages, recipe, values, progress, repeats=repeats, keep=keep)
        calls = with_hand_overs(stages, values, watched.calls)
    record = record_of(runs, stages, built)
    # A node off the path to the outputs, such as an unread state, is no difference of the run.
    first = first_difference(watched.nodes) if record.verdict in FAILING else ""
    kept = None if watched.kept is None else watched.kept.values
    record = msgspec.structs.replace(
        record,
        nodes=_with_strategies(watched.nodes, lowered),
        calls=calls,
        quick=quick if before is None else before.quick,
        first_difference=first,
        first_made=making_of(stages, recipe, first) if first else Making(),
        memory=planned_memory(stages.recorded),
        kept_bytes=0 if kept is None else kept.size,
        kept_budget=keep,
        kept_calls=0 if kept is None else kept.complete_calls,
    )
    return record, watched.kept


def _with_strategies(nodes: Sequence[NodeRun], lowered: LoweredModel | None) -> tuple[NodeRun, ...]:
    """Return the records of nodes and bindings with the strategy of each node."""
    known = {} if lowered is None else lowered.nodes
    strategies = {f"fx:{name}": node.strategy for name, node in known.items()}
    return tuple(
        msgspec.structs.replace(each, strategy=strategies.get(each.id, "")) for each in nodes
    )


def measure_again(
    stages: Stages, recipe: Recipe, before: RunRecord, progress: Progress
) -> RunRecord:
    """Return an earlier run of the same module with its times measured again.

    Raises
    ------
    LowerscopeError
        If a run fails.
    """
    times = []
    with stages.running():
        for sizes in runs_of(recipe):
            values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
            _, reference = reference_of(stages.loaded, values, recipe.seed)
            execution = Execution(stages.built.executable, "main", stages.arguments(values))
            times.append(measure_run(stages, recipe, sizes, execution, reference, progress))
    return msgspec.structs.replace(with_times(before, times), quick=False)


def times_of(record: RunRecord | None, count: int) -> Sequence[RunTimes | None]:
    """Return the times of each run in a record."""
    if record is None or (record.sizes and len(record.sizes) != count):
        return [None] * count
    return [each.times for each in record.sizes] or [record.times]


def _run_at(
    sizes: Sizes,
    stages: Stages,
    recipe: Recipe,
    calls: NamedCalls,
    before: RunTimes | None,
    progress: Progress,
    *,
    quick: bool,
) -> SizedRun:
    loaded, lowered = stages.loaded, stages.lowered
    at = f" at {sizes_text(sizes)}" if sizes else ""
    values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
    side, reference = reference_of(loaded, values, recipe.seed)
    # Before TVM, which would read out of bounds for an invalid index: the model may have been
    # traced with other values.
    named = None
    if reference is not None:
        progress.report(f"Running {side}{at}")
        named = reference.named_outputs()
    progress.report(f"Running{at}")
    execution = Execution(stages.built.executable, "main", stages.arguments(values))
    actual = followed_outputs(execution, calls, progress)
    progress.report(f"Comparing with {side}{at}")
    expected = None if named is None else tuple(value for _, value in named)
    if expected is not None and loaded.model is None:
        expected = in_dtype_of(expected, actual)
    names = [name for name, _ in named or ()]
    random = () if lowered is None else lowered.random
    precise = precise_of(stages, values, recipe.seed, expected)
    verdict = judge(actual, expected, recipe.tolerances, random, names, precise)
    if before is None:
        # A new one: after instrumentation, each call of a machine goes through Python.
        execution = Execution(stages.built.executable, "main", stages.arguments(values))
    times = before or measure_run(
        stages, recipe, sizes, execution, reference, progress, quick=quick
    )
    return SizedRun(sizes, side, verdict, times, predict(loaded.classes, actual, expected))


def record_of(runs: Sequence[SizedRun], stages: Stages, built: BuiltModel) -> RunRecord:
    """Return the record over all runs: the worst verdict, with the outputs of such a run.

    Of several, it is the one with the most non-finite elements.
    """
    worst = min(runs, key=lambda run: _badness(run.verdict))
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
        **time_fields(runs[0].times, runs[0].side),
        build_ms=built.milliseconds,
        functions=sum(
            isinstance(function, tvm.tirx.PrimFunc) for function in module.functions.values()
        ),
        outputs=verdict.outputs,
        not_finite_count=verdict.not_finite_count,
        prediction=runs[0].prediction,
        tracer="" if stages.traced is None else stages.traced.tracer,
        key=stages.run_key,
        reference=runs[0].side,
        sizes=tuple(_size_record(run) for run in runs if run.sizes),
    )


def _size_record(run: SizedRun) -> SizeRecord:
    return SizeRecord(
        sizes=dict(run.sizes),
        verdict=run.verdict.verdict,
        reason=run.verdict.reason,
        max_abs_error=run.verdict.max_abs,
        max_rel_error=run.verdict.max_rel,
        not_finite_count=run.verdict.not_finite_count,
        **time_fields(run.times, run.side),
    )


def _badness(verdict: Verdict) -> tuple[int, int]:
    return _WORST.index(verdict.verdict), -verdict.not_finite_count


def _largest(errors: Sequence[float | None]) -> float | None:
    return max((each for each in errors if each is not None), default=None)

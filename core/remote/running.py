"""Runs on another machine: built here, run and timed there, and compared with torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from lowerscope.core.dimensions import Sizes, runs_of, sizes_text
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.building import external_functions, is_registered
from lowerscope.core.execution.running import Reference
from lowerscope.core.execution.threads import use_threads
from lowerscope.core.measuring import Measuring
from lowerscope.core.model.queries import RunQuery, answers
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.remote import Remote, RemoteMachine
from lowerscope.core.records.run import RunPart, RunRecord, with_times
from lowerscope.core.records.times import RunTimes, side_times
from lowerscope.core.relax_bindings import own_function
from lowerscope.core.remote.machine import (
    check_runs_there,
    machine_of_server,
    use_threads_there,
)
from lowerscope.core.remote.session import RemoteExecution, Session, session, ship
from lowerscope.core.remote.tracker import Tracker
from lowerscope.core.running.kept_run import LastRun
from lowerscope.core.running.memory_plan import planned_memory
from lowerscope.core.running.runs import (
    QUICKLY,
    SizedRun,
    measure_again,
    predict,
    record_of,
    run_all,
    times_of,
)
from lowerscope.core.running.sides import (
    inputs_at,
    judge_run,
    measure_reference,
    reference_of,
)
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class _There:
    """A model on a server, and a description of the server."""

    execution: RemoteExecution
    machine: RemoteMachine
    key: str


def run_remotely(
    stages: Stages,
    recipe: Recipe,
    remote: Remote,
    progress: Progress,
    before: RunRecord | None = None,
    part: RunPart = "all",
    *,
    quick: bool = False,
) -> RunRecord:
    """Build here, run on a server at each size, and compare with torch here.

    Raises a `LowerscopeError` if a Python function is called, there is no server, or the build or a
    run fails.
    """
    sizes = runs_of(recipe)
    known = before if part == "verdict" else None
    check_shippable(stages)
    # Connect before the build, which may take long.
    with Tracker(remote) as tracker:
        tracker.check_known(progress)
    built = stages.built
    with session(remote, progress) as opened:
        there = _sent(opened, stages, recipe, progress)
        if before is not None and part == "times":
            times = [_measured(each, stages, recipe, there, progress) for each in sizes]
            return msgspec.structs.replace(with_times(before, times), ran_on=_text(there))
        runs = [
            _run_at(each, stages, recipe, there, earlier, progress, quick=quick)
            for each, earlier in zip(sizes, times_of(known, len(sizes)), strict=True)
        ]
    return msgspec.structs.replace(
        record_of(runs, stages, built),
        quick=quick if known is None else known.quick,
        memory=planned_memory(stages.recorded),
        ran_on=_text(there),
    )


def measure_remotely(
    stages: Sequence[Stages], recipes: Sequence[Recipe], remote: Remote, progress: Progress
) -> tuple[tuple[RunTimes, ...], ...]:
    """Return the times of recipes of one source on one server, each at each of its sizes.

    Raises a `LowerscopeError` if a build or a run fails, or the server is lost.
    """
    found = []
    with session(remote, progress) as opened:
        for each, recipe in zip(stages, recipes, strict=True):
            there = _sent(opened, each, recipe, progress)
            sizes = runs_of(recipe)
            found.append(tuple(_measured(size, each, recipe, there, progress) for size in sizes))
    return tuple(found)


def check_shippable(stages: Stages) -> None:
    """Reject a model that calls functions of this process, which cannot be sent.

    Raises a `LowerscopeError` with the functions, and their callers.
    """
    module = stages.completed
    outside = {
        name: callers
        for name, callers in external_functions(module).items()
        if not name.startswith("vm.builtin.") and own_function(module, name) is None
    }
    library = {} if stages.lowered is None else stages.lowered.library
    # TVM's own functions may exist on the server as well; functions loaded from a file do not.
    python = [
        name
        for name in outside
        if name in library or not is_registered(name) or not name.startswith(_OF_TVM)
    ]
    if python:
        name = python[0]
        more = f" and {len(python) - 1} more" if len(python) > 1 else ""
        raise LowerscopeError(
            f"{name}{more} is a Python function of this machine, and is not there",
            where=", ".join(outside[name]),
            todo="Lower these nodes as High-level or TE: only what TVM compiles is sent",
        )


_OF_TVM = ("tvm.", "runtime.", "vm.")
"""Prefixes of functions that every server of the same version has."""


def _sent(opened: Session, stages: Stages, recipe: Recipe, progress: Progress) -> _There:
    """Send a model, and set it up with the recipe's threads."""
    machine = machine_of_server(opened)
    check_runs_there(stages.target, machine, opened.where)
    threads = use_threads_there(opened, recipe.threads, machine.threads)
    progress.report(f"Sending the model to {opened.remote.title}")
    execution = RemoteExecution(opened, ship(opened, stages.built.executable))
    return _There(execution, msgspec.structs.replace(machine, threads=threads), opened.remote.key)


def _run_at(
    sizes: Sizes,
    stages: Stages,
    recipe: Recipe,
    there: _There,
    before: RunTimes | None,
    progress: Progress,
    *,
    quick: bool,
) -> SizedRun:
    loaded = stages.loaded
    at = f" at {sizes_text(sizes)}" if sizes else ""
    values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
    with stages.running():
        side, reference = reference_of(loaded, values, recipe.seed)
        named = None
        if reference is not None:
            progress.report(f"Running {side} here{at}")
            named = reference.named_outputs()
    progress.report(f"Running on {there.key}{at}")
    there.execution.take(stages.arguments(values))
    actual = there.execution.outputs()
    with stages.running():
        verdict, expected = judge_run(stages, recipe, values, actual, named)
    measuring = QUICKLY if quick else recipe.measuring
    times = before or _timed(sizes, stages, recipe, there, reference, measuring, progress)
    return SizedRun(sizes, side, verdict, times, predict(loaded.classes, actual, expected))


def _measured(
    sizes: Sizes, stages: Stages, recipe: Recipe, there: _There, progress: Progress
) -> RunTimes:
    values = tuple(each.value for each in inputs_at(sizes, stages, recipe))
    with stages.running():
        _, reference = reference_of(stages.loaded, values, recipe.seed)
    there.execution.take(stages.arguments(values))
    there.execution.outputs()
    return _timed(sizes, stages, recipe, there, reference, recipe.measuring, progress)


def _timed(
    sizes: Sizes,
    stages: Stages,
    recipe: Recipe,
    there: _There,
    reference: Reference | None,
    measuring: Measuring,
    progress: Progress,
) -> RunTimes:
    """Time the model there, then the reference here; two machines need no interleaving."""
    progress.report(f"Measuring on {there.key}")
    pure = bool(stages.transformed.module["main"].is_pure)
    share = 1 / len(runs_of(recipe))
    seconds = there.execution.seconds(measuring, share, again=pure)
    ours = side_times("TVM", seconds, there.machine.threads)
    with stages.running():
        found = measure_reference(stages, recipe, sizes, reference, measuring, progress)
    sides = (msgspec.structs.replace(ours, machine=there.key), *found.sides)
    return msgspec.structs.replace(found, sides=sides)


def _text(there: _There) -> str:
    return f"{there.key}, {there.machine.address}"


@answers(RunQuery)
def run(query: RunQuery, pipeline: Pipeline, job: Progress) -> RunRecord:
    """Build, run on the recipe's machine, compare with torch, and time both: see `running.runs`."""
    recipe, part, before = query.recipe, query.part, query.before
    use_threads(recipe.threads)
    stages, last = pipeline.stages(recipe, job), pipeline.part(LastRun)
    known = before if before is not None and before.key == stages.run_key else None
    if recipe.remote is not None:
        last.kept = None
        return run_remotely(stages, recipe, recipe.remote, job, known, part, quick=query.quick)
    if known is not None and part == "times":
        return measure_again(stages, recipe, known, job)
    known = known if part == "verdict" else None
    # Free the values of the last run to make room for this one.
    last.kept = None
    record, last.kept = run_all(stages, recipe, job, known, quick=query.quick, keep=query.keep)
    return record

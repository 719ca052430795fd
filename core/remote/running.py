"""Runs on another machine: built here, run and timed there, and compared with torch here."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
import tvm

from lowerscope.core.build.build import external_functions, is_registered, planned_memory
from lowerscope.core.build.targets import (
    lacks,
    make_target,
    target_json,
    target_records,
    use_threads,
)
from lowerscope.core.ir.relax import own_function
from lowerscope.core.model.dimensions import Sizes, doing_at, runs_of
from lowerscope.core.model.machines import Remote, RemoteMachine, RemoteState, TargetRecord
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import RemoteQuery, RunQuery, TargetsQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import (
    Measuring,
    RunPart,
    RunRecord,
    RunTimes,
    side_times,
    with_times,
)
from lowerscope.core.model.texts import _, _n
from lowerscope.core.remote.session import (
    BUSY,
    SOON,
    RemoteExecution,
    Session,
    Tracker,
    session,
    ship,
)
from lowerscope.core.run.execution import Reference
from lowerscope.core.run.implementations import (
    inputs_at,
    judge_run,
    measure_reference,
    reference_of,
)
from lowerscope.core.run.kept_run import LastRun
from lowerscope.core.run.runs import (
    QUICKLY,
    SizedRun,
    measure_again,
    predict,
    record_of,
    run_all,
    times_of,
)
from lowerscope.core.stages import Pipeline, Stages

# --- State of a tracker, and description of a server's machine ---


def remote_state(remote: Remote, progress: Progress) -> RemoteState:
    """Return the state of a tracker, and the machine behind its key if a server of it is free.

    Raises a `LowerscopeError` if there is no tracker, no server with the key, or the server has
    another version.
    """
    with contextlib.closing(Tracker(remote)) as tracker:
        keys = tracker.keys()
    machine = None
    try:
        with session(remote, progress, SOON) as opened:
            machine = machine_of_server(opened)
    except LowerscopeError as error:
        # A busy server exists.
        if error.problem.code != BUSY:
            raise
    return RemoteState(tracker=remote.tracker, keys=keys, machine=machine)


def machine_of_server(opened: Session) -> RemoteMachine:
    """Return a server's description of its machine; a runtime without LLVM has little."""

    def asked(name: str) -> Any | None:
        function = opened.function(name)
        return None if function is None else opened.call(_("querying {name}", name=name), function)

    threads = asked("runtime.NumThreads")
    triple = str(asked("target.llvm_get_system_triple") or "")
    cpu = str(asked("target.llvm_get_system_cpu") or "")
    count = None if threads is None else int(threads)
    return RemoteMachine(
        address=opened.address,
        threads=count,
        triple=triple,
        cpu=cpu,
        target=target_json(triple, cpu, count) if triple and cpu else "",
    )


def check_runs_there(target: tvm.target.Target, machine: RemoteMachine, where: str) -> None:
    """Reject a target that is not the server's, as far as that is known.

    Raises a `LowerscopeError` with the target to choose.
    """
    if not machine.target:
        return
    reason = lacks(target, make_target(machine.target, 0), machine.triple, _("the server"))
    if reason:
        raise LowerscopeError(
            _("code built for this target cannot run there: {reason}", reason=reason),
            where=where,
            todo=_("Choose its own target: {target}", target=machine.target),
        )


def use_threads_there(opened: Session, wanted: int, most: int | None) -> int | None:
    """Set the number of the server's threads, 0 for all; return the number it uses."""
    configure = opened.function("runtime.config_threadpool")
    if configure is None or most is None or not wanted:
        return most
    count = min(wanted, most)
    opened.call(_("setting the number of threads"), lambda: configure(1, count))
    return count


@answers(RemoteQuery)
def answer_remote(query: RemoteQuery, _pipeline: Pipeline, job: Progress) -> RemoteState:
    """Return the machines of a tracker."""
    return remote_state(query.remote, job)


@answers(TargetsQuery)
def targets(query: TargetsQuery, _pipeline: Pipeline, _job: Progress) -> tuple[TargetRecord, ...]:
    """Return the records of targets."""
    return target_records(query.texts, query.threads)


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
    with contextlib.closing(Tracker(remote)) as tracker:
        tracker.check_known(progress)
    built = stages.built
    with session(remote, progress) as opened:
        there = _There(opened, stages, recipe, progress)
        if before is not None and part == "times":
            times = [there.measured(each) for each in sizes]
            return msgspec.structs.replace(with_times(before, times), ran_on=there.text)
        runs = [
            there.run_at(each, earlier, quick=quick)
            for each, earlier in zip(sizes, times_of(known, len(sizes)), strict=True)
        ]
    return msgspec.structs.replace(
        record_of(runs, stages, built),
        quick=quick if known is None else known.quick,
        memory=planned_memory(stages.recorded),
        ran_on=there.text,
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
            there = _There(opened, each, recipe, progress)
            found.append(tuple(there.measured(size) for size in runs_of(recipe)))
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
        raise LowerscopeError(
            _n(
                "a Python function of this machine is missing there: {names}",
                "Python functions of this machine are missing there: {names}",
                len(python),
                names=listed(python, 3),
            ),
            where=_(", ").join(outside[python[0]]),
            todo=_("Lower these nodes as High-level or TE: only code compiled by TVM is sent"),
        )


_OF_TVM = ("tvm.", "runtime.", "vm.")
"""Prefixes of functions that every server of the same version has."""


class _There:
    """A model on a server, set up with the recipe's threads."""

    def __init__(self, opened: Session, stages: Stages, recipe: Recipe, progress: Progress) -> None:
        self._stages, self._recipe, self._progress = stages, recipe, progress
        machine = machine_of_server(opened)
        check_runs_there(stages.target, machine, opened.where)
        self._threads = use_threads_there(opened, recipe.threads, machine.threads)
        progress.report(_("Sending the model to {title}", title=opened.remote.title))
        self._execution = RemoteExecution(opened, ship(opened, stages.built.executable))
        self._key = opened.remote.key
        self.text = f"{self._key}, {machine.address}"

    def run_at(self, sizes: Sizes, before: RunTimes | None, *, quick: bool) -> SizedRun:
        """Run it once at these sizes, compare, and time it unless its times are known."""
        stages, recipe, report = self._stages, self._recipe, self._progress.report
        loaded = stages.loaded
        values = inputs_at(sizes, stages, recipe)
        with stages.running():
            side, reference = reference_of(loaded, values, recipe.seed)
            named = None
            if reference is not None:
                report(doing_at(_("Running {side} here", side=side), sizes))
                named = reference.named_outputs()
        report(doing_at(_("Running on {key}", key=self._key), sizes))
        actual = self._outputs(values)
        with stages.running():
            verdict, expected = judge_run(stages, recipe, values, actual, named)
        measuring = QUICKLY if quick else recipe.measuring
        times = before or self._timed(sizes, reference, measuring)
        return SizedRun(sizes, side, verdict, times, predict(loaded.classes, actual, expected))

    def measured(self, sizes: Sizes) -> RunTimes:
        """Return its times at these sizes, and those of its reference."""
        values = inputs_at(sizes, self._stages, self._recipe)
        with self._stages.running():
            _other, reference = reference_of(self._stages.loaded, values, self._recipe.seed)
        self._outputs(values)
        return self._timed(sizes, reference, self._recipe.measuring)

    def _outputs(self, values: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        self._execution.take(self._stages.arguments(values))
        return self._execution.outputs()

    def _timed(self, sizes: Sizes, reference: Reference | None, measuring: Measuring) -> RunTimes:
        """Time the model there, then the reference here; two machines need no interleaving."""
        stages, recipe, progress = self._stages, self._recipe, self._progress
        progress.report(_("Measuring on {key}", key=self._key))
        pure = bool(stages.transformed.module["main"].is_pure)
        seconds = self._execution.seconds(measuring, 1 / len(runs_of(recipe)), again=pure)
        ours = side_times("TVM", seconds, self._threads)
        with stages.running():
            found = measure_reference(stages, recipe, sizes, reference, measuring, progress)
        sides = (msgspec.structs.replace(ours, machine=self._key), *found.sides)
        return msgspec.structs.replace(found, sides=sides)


@answers(RunQuery)
def run(query: RunQuery, pipeline: Pipeline, job: Progress) -> RunRecord:
    """Build, run on the recipe's machine, compare with torch, and time both: see `run.runs`."""
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

"""What is measured and checked of the function that is scheduled, and what has been so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.children.requests import REPLACED_MS, UNSEEN_MS
from lowerscope.app.workbench.order import Primitives
from lowerscope.app.workbench.scheduled import Scheduled, done
from lowerscope.core.engine.schedule_params import (
    CheckParams,
    MeasureParams,
    PeaksParams,
    WorkParams,
)
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, without_schedules
from lowerscope.core.records.numbers import Checked, Measured, Peaks, Verdict, Work

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

DEBOUNCE_MS = 400
"""The worker begins when nothing has been applied for so long."""

CHECK_SECONDS = 30.0
"""What a check may take in all."""

MEASURE_MS = 60_000
"""A function that takes longer to measure is given up."""

KEPT = 512
"""So many functions after some steps are remembered."""


Kind = Literal["check", "measure", "peaks"]


@dataclass(frozen=True)
class _Job:
    """Something that the worker is to do."""

    kind: Kind
    of: Scheduled


class Measurements(QObject):
    """The numbers of what is scheduled: asked for after each step, and remembered.

    Signals
    -------
    changed
        There are new numbers, or other ones are under way.

    Attributes
    ----------
    automatic
        Whether each step is checked and measured by itself; one that is unsafe is checked anyway.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._works: dict[Scheduled, Work] = {}
        self._measured: dict[Scheduled, Measured] = {}
        self._checked: dict[Scheduled, Checked] = {}
        self._problems: dict[_Job, Problem] = {}
        self._asked_for: deque[_Job] = deque()
        self._job: _Job | None = None
        self._request: int | None = None
        self._here: Scheduled | None = None
        self._peaks: dict[tuple[str, int], Peaks] = {}
        self.automatic = True
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(DEBOUNCE_MS)
        self._soon.timeout.connect(self._go_on)
        self._limit = QTimer(self)
        self._limit.setSingleShot(True)
        self._limit.setInterval(MEASURE_MS)
        self._limit.timeout.connect(self._give_up)
        workspace.scheduling.changed.connect(self._follow)
        workspace.run_changed.connect(self._make_way)
        workspace.recovering.replayed.connect(self._ask_again)

    def follow_tuning(self, held_back: bool) -> None:
        """Go on where a tuning no longer holds it back."""
        if not held_back:
            self._soon.start()
        self.changed.emit()

    # What there is to see

    @property
    def here(self) -> Scheduled | None:
        """What is looked at; ``None`` where no function is scheduled."""
        return self._here

    @property
    def doing(self) -> Kind | None:
        """What the worker is at."""
        return None if self._job is None else self._job.kind

    @property
    def doing_of(self) -> Scheduled | None:
        """Of which function after which steps."""
        return None if self._job is None else self._job.of

    @property
    def waits(self) -> bool:
        """Whether a run or a tuning has the processors, so that nothing is measured now."""
        return self._workspace.running or self._workspace.tuning.holds_back

    def is_coming(self, kind: Kind, of: Scheduled) -> bool:
        """Whether something is under way, or the next thing that is."""
        return _Job(kind, of) in self._next()

    @property
    def peaks(self) -> Peaks | None:
        """What the machine can do; ``None`` before it was measured."""
        return None if self._here is None else self._peaks.get(_machine(self._here.recipe))

    @property
    def work(self) -> Work | None:
        """What one call of the function does."""
        return None if self._here is None else self._works.get(self._here.unscheduled)

    def measured(self, of: Scheduled) -> Measured | None:
        """Return how fast a function is, if that was measured."""
        return self._measured.get(of)

    def checked(self, of: Scheduled) -> Checked | None:
        """Return whether a function computes the same, if that was checked."""
        return self._checked.get(of) if of.primitives else Checked(verdict="same")

    def verdicts(self) -> dict[str, Verdict]:
        """Return what is known of the function after each step that was applied, by their ids."""
        here, scheduling = self._here, self._workspace.scheduling
        if here is None or scheduling.record is None:
            return {}
        applied = done(scheduling.record, scheduling.primitives)
        found = {
            step.id: self._checked.get(here.after(applied[:count]))
            for count, step in enumerate(applied, start=1)
        }
        return {step: checked.verdict for step, checked in found.items() if checked is not None}

    def problem(self, kind: Kind, of: Scheduled) -> Problem | None:
        """Return why something could not be measured or checked."""
        return self._problems.get(_Job(kind, of))

    @property
    def best(self) -> tuple[Scheduled, Measured] | None:
        """The fastest so far of the function that is looked at; not one that is known as wrong."""
        here = self._here
        if here is None:
            return None
        found = [
            (of, measured)
            for of, measured in self._measured.items()
            if of.unscheduled == here.unscheduled and self._is_right(of)
        ]
        return min(found, key=lambda each: each[1].milliseconds, default=None)

    def _is_right(self, of: Scheduled) -> bool:
        checked = self.checked(of)
        return checked is None or checked.verdict != "differs"

    # What is asked for

    def set_automatic(self, on: bool) -> None:
        """Check and measure each step by itself, or only on demand."""
        self.automatic = on
        self._soon.start()
        self.changed.emit()

    def measure(self) -> None:
        """Check and measure what is looked at, once more if that was done."""
        here = self._here
        if here is not None:
            self._forget(here)
            kinds: tuple[Kind, ...] = ("check", "measure") if here.primitives else ("measure",)
            self._ask(*(_Job(kind, here) for kind in kinds))

    def measure_again(self, scheduled: Sequence[Scheduled]) -> None:
        """Measure once more functions whose times are unreliable."""
        for each in scheduled:
            self._measured.pop(each, None)
        self._ask(*(_Job("measure", each) for each in scheduled))

    def measure_all(self, schedules: tuple[Primitives, ...]) -> None:
        """Measure the function after each of some schedules, as far as that was not done."""
        here = self._here
        if here is not None:
            scheduled = [here.after(each) for each in schedules]
            self._ask(*(_Job(kind, of) for of in scheduled for kind in _KINDS))

    def measure_peaks(self) -> None:
        """Measure once more what the machine can do; the best counts."""
        if self._here is not None:
            self._ask(_Job("peaks", self._here.unscheduled))

    def cancel(self) -> None:
        """Stop what the worker is at, and measure by itself no more."""
        self._asked_for.clear()
        self.automatic = False
        self._stop(0)
        self.changed.emit()

    def _ask(self, *jobs: _Job) -> None:
        self._asked_for.extend(job for job in jobs if job not in self._asked_for)
        self._go_on()

    def _forget(self, of: Scheduled) -> None:
        self._measured.pop(of, None)
        self._checked.pop(of, None)
        for kind in _KINDS:
            self._problems.pop(_Job(kind, of), None)

    # What is done next

    def _follow(self) -> None:
        """Go over to what is looked at now."""
        here = self._looked_at()
        if here is None:
            self._asked_for.clear()
        elif self._here is None or here.unscheduled != self._here.unscheduled:
            self._asked_for.clear()
            self._ask_work(here.unscheduled)
        if here != self._here:
            self._here = here
            if self._job is not None and self._job not in self._next():
                self._stop(UNSEEN_MS)
            self._soon.start()
            self.changed.emit()
            if here is not None and any(each.forced for each in here.primitives):
                # What is unsafe is checked at once, also where nothing is measured by itself.
                self._ask(_Job("check", here))

    def _looked_at(self) -> Scheduled | None:
        scheduling = self._workspace.scheduling
        shown, record = scheduling.shown, scheduling.record
        if shown is None or record is None or scheduling.problem is not None:
            return None
        recipe, function, index = shown
        base = Scheduled(without_schedules(recipe), function, record.structure)
        return base.after(done(record, scheduling.primitives[:index]))

    def _next(self) -> list[_Job]:
        """Return what is to be done, in order."""
        jobs = [job for job in self._asked_for if not self._is_done(job)]
        here = self._here
        if self.automatic and here is not None and self._workspace.scheduling.active:
            own = [*(_Job(kind, here) for kind in _KINDS), _Job("measure", here.unscheduled)]
            jobs += [job for job in own if job not in jobs and not self._is_done(job)]
        return jobs

    def _is_done(self, job: _Job) -> bool:
        if job in self._problems:
            return True
        if job.kind == "peaks":
            return False
        if job.kind == "check":
            return self.checked(job.of) is not None
        if job.of in self._measured:
            return True
        # What hung or crashed when it was checked is not tried again.
        checked = self._checked.get(job.of)
        crashed = self._problems.get(_Job("check", job.of))
        return crashed is not None or (checked is not None and checked.running)

    def _go_on(self) -> None:
        """Let the worker begin with what is next."""
        jobs = self._next()
        if self._job is not None or not jobs or self.waits:
            self.changed.emit()
            return
        job = self._job = jobs[0]
        if job in self._asked_for:
            self._asked_for.remove(job)
        self._request = self._workspace.worker.request(
            job.kind, _params(job), self._take, self._take_problem
        )
        if job.kind == "measure":
            self._limit.start()
        self.changed.emit()

    def _take(self, result: Any) -> None:
        job = self._end()
        if job.kind == "check":
            self._keep(self._checked, job.of, result)
            if result.running:
                # Nothing else stops it, and it would slow down what is measured next.
                self._workspace.worker.restart()
        elif job.kind == "measure":
            self._keep(self._measured, job.of, result)
            self._ask_peaks(job.of)
        else:
            self._peaks[_machine(job.of.recipe)] = result
        self._go_on()

    def _take_problem(self, problem: Problem) -> None:
        too_long = self._job is not None and self._job.kind == "measure"
        too_long = too_long and not self._limit.isActive()
        job = self._end()
        if problem.code != "cancelled":
            self._problems[job] = problem
        elif too_long:
            text = self.tr("It took longer than {0} s to measure").format(MEASURE_MS // 1000)
            self._problems[job] = Problem(what=text)
        self._go_on()

    def _end(self) -> _Job:
        assert self._job is not None
        job, self._job, self._request = self._job, None, None
        self._limit.stop()
        return job

    def _stop(self, grace_ms: int) -> None:
        if self._request is not None:
            self._workspace.worker.cancel(self._request, *((grace_ms,) if grace_ms else ()))

    def _give_up(self) -> None:
        self._stop(0)

    def _make_way(self) -> None:
        """Let a run have the worker, and go on after it."""
        if self._workspace.running:
            self._stop(REPLACED_MS)
        else:
            self._soon.start()

    def _keep(self, kept: dict[Scheduled, Any], of: Scheduled, result: Any) -> None:
        kept[of] = result
        while len(kept) > KEPT:
            del kept[next(iter(kept))]

    # What costs nothing

    def _ask_work(self, of: Scheduled) -> None:
        if of not in self._works:

            def take(work: Work) -> None:
                self._works[of] = work
                self.changed.emit()

            params = WorkParams(recipe=of.recipe, function=of.function)
            self._workspace.engine.request("work", params, take, self._ignore)

    def _ask_again(self) -> None:
        """Ask the next engine for what the one that died was asked for."""
        if self._here is not None:
            self._ask_work(self._here.unscheduled)

    def _ignore(self, problem: Problem) -> None:
        """Show no work: that the function cannot be had is said where it is shown."""

    def _ask_peaks(self, of: Scheduled) -> None:
        """Ask for what the machine can do, which was measured before the function was."""
        if _machine(of.recipe) in self._peaks:
            return

        def take(peaks: Peaks) -> None:
            self._peaks[_machine(of.recipe)] = peaks
            self.changed.emit()

        params = PeaksParams(recipe=of.recipe)
        self._workspace.worker.request("peaks", params, take, self._ignore)


_KINDS: tuple[Kind, ...] = ("check", "measure")


def _machine(recipe: Recipe) -> tuple[str, int]:
    """Return what peaks depend on."""
    return recipe.target, recipe.threads


def _params(job: _Job) -> msgspec.Struct:
    recipe, function = job.of.with_schedule, job.of.function
    if job.kind == "peaks":
        return PeaksParams(recipe=recipe, again=True)
    if job.kind == "measure":
        return MeasureParams(recipe=recipe, function=function)
    return CheckParams(recipe=recipe, function=function, seconds=CHECK_SECONDS)

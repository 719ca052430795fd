"""Measurements and checks of the scheduled function, and a cache of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import HIDDEN_MS, SUPERSEDED_MS, Queries, Slot
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.engine.recovery import Recovering
from lowerscope.app.kit.background import single_shot
from lowerscope.app.panes.schedule.editing import Primitives
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import CheckQuery, MeasureQuery, PeaksQuery, Query, WorkQuery
from lowerscope.core.model.recipe import Recipe, without_schedules
from lowerscope.core.model.schedule import Schedule
from lowerscope.core.model.schedule_records import (
    Checked,
    Measured,
    Peaks,
    ScheduleRecord,
    Work,
)

# --- A function after some primitives: the subject of measurements and checks ---


@dataclass(frozen=True)
class Scheduled:
    """A function after some primitives, the key of its metrics.

    ``recipe`` has no schedules.
    """

    recipe: Recipe
    function: str
    structure: str
    primitives: Primitives = ()

    @property
    def with_schedule(self) -> Recipe:
        """The recipe that has these primitives as the schedule of the function."""
        schedule = Schedule(
            function=self.function, structure=self.structure, primitives=self.primitives
        )
        return msgspec.structs.replace(self.recipe, schedules=(schedule,))

    def after(self, primitives: Primitives) -> Scheduled:
        """Return the same function after other primitives; disabled ones are ignored."""
        applied = tuple(each for each in primitives if each.on)
        return Scheduled(self.recipe, self.function, self.structure, applied)

    @property
    def unscheduled(self) -> Scheduled:
        """The function before all primitives."""
        return self.after(())


def done(record: ScheduleRecord, primitives: Primitives) -> Primitives:
    """Return the primitives that were applied: others have no metrics of their own."""
    applied = {step.id for step in record.steps if step.status == "done"}
    return tuple(each for each in primitives if each.id in applied)


DEBOUNCE_MS = 400
"""Delay after the last applied step before the worker starts."""

CHECK_SECONDS = 30.0
"""Time limit of a check."""

MEASURE_MS = 60_000
"""Time limit of the measurement of a function."""

KEPT = 512
"""Number of cached functions after some steps."""


START = "start"
"""Key of the unscheduled function among those after steps."""

Kind = Literal["check", "measure", "peaks"]


@dataclass(frozen=True)
class _Job:
    """A job for the worker."""

    kind: Kind
    of: Scheduled


class Measurements(QObject):
    """The metrics of the scheduled function: requested after each step, and cached.

    Args:
        is_held_back: Returns whether a tuning uses the processors, or is about to.
    """

    changed = Signal()  # There are new metrics, or others are being measured.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        worker: EngineClient,
        recovering: Recovering,
        scheduling: Scheduling,
        is_held_back: Callable[[], bool],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._queries = queries
        self._worker = worker
        self._scheduling = scheduling
        self._is_held_back = is_held_back
        self._works: dict[Scheduled, Work] = {}
        self._measured: dict[Scheduled, Measured] = {}
        self._checked: dict[Scheduled, Checked] = {}
        self._problems: dict[_Job, Problem] = {}
        self._asked_for: deque[_Job] = deque()
        self._job: _Job | None = None
        self._slot = Slot(queries)
        self._here: Scheduled | None = None
        self._peaks: dict[tuple[str, int], Peaks] = {}
        # Whether each step is checked and measured automatically; unsafe ones are always checked.
        self.automatic = True
        self._next_too = False  # Whether the next step is measured, even if not automatically.
        self._soon = single_shot(self, DEBOUNCE_MS, self._go_on)
        self._limit = single_shot(self, MEASURE_MS, self._give_up)
        scheduling.changed.connect(self._follow)
        document.on(("run", "running"), self._make_way)
        recovering.replayed.connect(self._ask_again)

    def follow_tuning(self, held_back: bool) -> None:
        """Continue once tuning no longer blocks measuring."""
        if not held_back:
            self._soon.start()
        self.changed.emit()

    # State

    @property
    def here(self) -> Scheduled | None:
        """The function after the current step; ``None`` if no function is scheduled."""
        return self._here

    @property
    def doing(self) -> Kind | None:
        """The kind of the worker's current job."""
        return None if self._job is None else self._job.kind

    @property
    def doing_of(self) -> Scheduled | None:
        """The function and steps of the current job."""
        return None if self._job is None else self._job.of

    @property
    def waits(self) -> bool:
        """Return whether a run or a tuning uses the processors, so that nothing is measured."""
        return self._document.running or self._is_held_back()

    def is_coming(self, kind: Kind, of: Scheduled) -> bool:
        """Return whether a job is in progress or next."""
        return _Job(kind, of) in self._next()

    @property
    def peaks(self) -> Peaks | None:
        """The machine's peak rates; ``None`` before they were measured."""
        return None if self._here is None else self._peaks.get(_machine(self._here.recipe))

    @property
    def work(self) -> Work | None:
        """The work of one call of the function."""
        return None if self._here is None else self._works.get(self._here.unscheduled)

    def measured(self, of: Scheduled) -> Measured | None:
        """Return how fast a function is, if measured."""
        return self._measured.get(of)

    def seconds_of(self, recipe: Recipe, schedule: Schedule) -> float | None:
        """Return the measured seconds per call of a function with a schedule; ``None`` if
        unknown.
        """
        base = msgspec.structs.replace(recipe, schedules=())
        of = Scheduled(base, schedule.function, schedule.structure).after(schedule.primitives)
        measured = self.measured(of)
        return None if measured is None else measured.milliseconds / 1000

    def checked(self, of: Scheduled) -> Checked | None:
        """Return the result of a function's check, if there is one."""
        return self._checked.get(of) if of.primitives else Checked(verdict="same")

    def prefixes(self) -> dict[str, Scheduled]:
        """Return the function after each applied step, by the steps' ids; `START` for none."""
        here, scheduling = self._here, self._scheduling
        if here is None or scheduling.record is None:
            return {}
        applied = done(scheduling.record, scheduling.primitives)
        after = {each.id: here.after(applied[:count]) for count, each in enumerate(applied, 1)}
        return {START: here.unscheduled, **after}

    def problem(self, kind: Kind, of: Scheduled) -> Problem | None:
        """Return why something could not be measured or checked."""
        return self._problems.get(_Job(kind, of))

    @property
    def best(self) -> tuple[Scheduled, Measured] | None:
        """The fastest version of the scheduled function so far that is not known to be wrong."""
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

    # Requests

    def set_automatic(self, on: bool) -> None:
        """Set whether each step is checked and measured automatically."""
        self.automatic = on
        self._soon.start()
        self.changed.emit()

    def measure(self) -> None:
        """Check and measure the function at the current step, again if done before."""
        here = self._here
        if here is not None:
            self._forget(here)
            kinds: tuple[Kind, ...] = ("check", "measure") if here.primitives else ("measure",)
            self._ask(*(_Job(kind, here) for kind in kinds))

    def measure_next(self) -> None:
        """Check and measure the function after the primitive that is about to be applied."""
        self._next_too = True

    def measure_again(self, scheduled: Sequence[Scheduled]) -> None:
        """Measure again functions whose times are unreliable."""
        for each in scheduled:
            self._measured.pop(each, None)
        self._ask(*(_Job("measure", each) for each in scheduled))

    def measure_all(self, schedules: tuple[Primitives, ...]) -> None:
        """Measure the function after each of some schedules, unless cached."""
        here = self._here
        if here is not None:
            scheduled = [here.after(each) for each in schedules]
            self._ask(*(_Job(kind, of) for of in scheduled for kind in _KINDS))

    def measure_peaks(self) -> None:
        """Measure the machine's peak rates again; the best count."""
        if self._here is not None:
            self._ask(_Job("peaks", self._here.unscheduled))

    def cancel(self) -> None:
        """Cancel the current job, and stop measuring automatically."""
        self._asked_for.clear()
        self.automatic = False
        self._give_up()
        self.changed.emit()

    def _ask(self, *jobs: _Job) -> None:
        self._asked_for.extend(job for job in jobs if job not in self._asked_for)
        self._go_on()

    def _forget(self, of: Scheduled) -> None:
        self._measured.pop(of, None)
        self._checked.pop(of, None)
        for kind in _KINDS:
            self._problems.pop(_Job(kind, of), None)

    # Scheduling of jobs

    def _follow(self) -> None:
        """Switch to the function at the current step."""
        here = self._looked_at()
        if here is None:
            self._asked_for.clear()
        elif self._here is None or here.unscheduled != self._here.unscheduled:
            self._asked_for.clear()
            self._ask_work(here.unscheduled)
        if here != self._here:
            self._here = here
            if self._job is not None and self._job not in self._next():
                self._slot.cancel(HIDDEN_MS)
            self._soon.start()
            self.changed.emit()
            if here is not None and any(each.forced for each in here.primitives):
                # Unsafe steps are checked at once, even if nothing is measured automatically.
                self._ask(_Job("check", here))
            if here is not None and self._next_too:
                self._next_too = False
                self.measure()

    def _looked_at(self) -> Scheduled | None:
        scheduling = self._scheduling
        shown, record = scheduling.shown, scheduling.record
        if shown is None or record is None or scheduling.problem is not None:
            return None
        base = Scheduled(without_schedules(shown.recipe), shown.function, record.structure)
        return base.after(done(record, scheduling.primitives[: shown.index]))

    def _next(self) -> list[_Job]:
        """Return the pending jobs, in order."""
        jobs = [job for job in self._asked_for if not self._is_done(job)]
        here = self._here
        if self.automatic and here is not None and self._scheduling.active:
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
        # A function that hung or crashed in its check is not tried again.
        checked = self._checked.get(job.of)
        crashed = self._problems.get(_Job("check", job.of))
        return crashed is not None or (checked is not None and checked.running)

    def _go_on(self) -> None:
        """Let the worker start the next job."""
        jobs = self._next()
        if self._job is not None or not jobs or self.waits:
            self.changed.emit()
            return
        job = self._job = jobs[0]
        if job in self._asked_for:
            self._asked_for.remove(job)
        self._slot.ask(_params(job), self._take, self._take_problem)
        if job.kind == "measure":
            self._limit.start()
        self.changed.emit()

    def _take(self, result: Any) -> None:
        job = self._end()
        if job.kind == "check":
            self._keep(self._checked, job.of, result)
            if result.running:
                # Nothing else stops it, and it would slow down the next measurement.
                self._worker.restart()
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
        job, self._job = self._job, None
        self._limit.stop()
        return job

    def _give_up(self) -> None:
        self._slot.cancel()

    def _make_way(self) -> None:
        """Yield the worker to a run, and continue after it."""
        if self._document.running:
            self._slot.cancel(SUPERSEDED_MS)
        else:
            self._soon.start()

    def _keep(self, kept: dict[Scheduled, Any], of: Scheduled, result: Any) -> None:
        kept[of] = result
        while len(kept) > KEPT:
            del kept[next(iter(kept))]

    # Cheap queries

    def _ask_work(self, of: Scheduled) -> None:
        if of not in self._works:

            def take(work: Work) -> None:
                self._works[of] = work
                self.changed.emit()

            params = WorkQuery(recipe=of.recipe, function=of.function)
            self._queries.ask(params, take, self._ignore)

    def _ask_again(self) -> None:
        """Repeat the queries lost with the crashed engine."""
        if self._here is not None:
            self._ask_work(self._here.unscheduled)

    def _ignore(self, problem: Problem) -> None:
        """Show no work: that the function is unavailable is shown elsewhere."""

    def _ask_peaks(self, of: Scheduled) -> None:
        """Query the machine's peak rates, which were measured before the function was."""
        if _machine(of.recipe) in self._peaks:
            return

        def take(peaks: Peaks) -> None:
            self._peaks[_machine(of.recipe)] = peaks
            self.changed.emit()

        params = PeaksQuery(recipe=of.recipe)
        self._queries.ask(params, take, self._ignore)


_KINDS: tuple[Kind, ...] = ("check", "measure")


def _machine(recipe: Recipe) -> tuple[str, int]:
    """Return the parts of a recipe that peak rates depend on."""
    return recipe.target, recipe.threads


def _params(job: _Job) -> Query[Any]:
    recipe, function = job.of.with_schedule, job.of.function
    if job.kind == "peaks":
        return PeaksQuery(recipe=recipe, again=True)
    if job.kind == "measure":
        return MeasureQuery(recipe=recipe, function=function)
    return CheckQuery(recipe=recipe, function=function, seconds=CHECK_SECONDS)

"""Measurements and checks of the scheduled function, and a cache of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import HIDDEN_MS, SUPERSEDED_MS, Queries, Slot
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.kit.background import single_shot
from lowerscope.app.panes.schedule.model import Primitives, Scheduling
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import (
    CheckQuery,
    MeasureQuery,
    PeaksQuery,
    Query,
    ScheduleQuery,
    WorkQuery,
)
from lowerscope.core.model.recipe import Recipe, steps_before_schedules, without_schedules
from lowerscope.core.model.schedule import SCHEDULING, Schedule
from lowerscope.core.model.schedule_records import Checked, Measured, Peaks, ScheduleRecord, Work
from lowerscope.core.model.texts import _

CHECK_SECONDS = 30.0
"""Time limit of a check."""

Job = CheckQuery | MeasureQuery | PeaksQuery
"""A query that the worker is sent while nothing else uses the processors."""


@dataclass(frozen=True)
class Scheduled:
    """A function after some primitives: the subject of measurements and checks.

    ``recipe`` has no schedules, and no step from the first one on that applies some: whether the
    model uses a schedule changes no metric of it.
    """

    recipe: Recipe
    function: str
    structure: str
    primitives: Primitives = ()

    @property
    def check(self) -> CheckQuery:
        """The query whether it computes the same as the unscheduled function."""
        return CheckQuery(self._with_schedule, self.function, seconds=CHECK_SECONDS)

    @property
    def measure(self) -> MeasureQuery:
        """The query of its time."""
        return MeasureQuery(self._with_schedule, self.function)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The queries of all that can be measured of it."""
        return (self.check, self.measure) if self.primitives else (self.measure,)

    @property
    def _with_schedule(self) -> Recipe:
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

MEASURE_MS = 60_000
"""Time limit of the measurement of a function."""

KEPT = 1024
"""Number of cached answers."""

START = "start"
"""Key of the unscheduled function among those after steps."""


class Measurements(QObject):
    """The metrics of the scheduled function: requested after each step, and cached.

    The worker is sent one query at a time: a later one would wait for a measurement, and nothing
    else may use the processors meanwhile.

    Args:
        is_held_back: Returns whether a tuning uses the processors, or is about to.
    """

    changed = Signal()  # There are new metrics, or others are being measured.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        worker: EngineClient,
        scheduling: Scheduling,
        is_held_back: Callable[[], bool],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._worker = worker
        self._scheduling = scheduling
        self._is_held_back = is_held_back
        # The function after the current step; ``None`` if no function is scheduled.
        self.here: Scheduled | None = None
        self._answers: dict[Job, Any] = {}
        self._problems: dict[Job, Problem] = {}
        self._peaks: dict[tuple[str, int], Peaks] = {}
        self._asked_for: deque[Job] = deque()
        self._slot = Slot(queries)
        self.doing: Job | None = None  # The query that the worker answers.
        self._counted: Work | None = None
        self._predicted: float | None = None  # Predicted time of a call of `here`.
        # Whether each step is checked and measured automatically; unsafe ones are always checked.
        self.automatic = True
        self._next_too = False  # Whether the next step is measured, even if not automatically.
        self._counting = queries.watch(self, self._work_query, self._take_work, self._ignore)
        self._pricing = queries.watch(self, self._priced_query, self._take_price, self._ignore)
        self._soon = single_shot(self, DEBOUNCE_MS, self._go_on)
        self._limit = single_shot(self, MEASURE_MS, self._slot.cancel)
        scheduling.changed.connect(self._follow)
        document.on(("run", "running"), self._make_way)

    def follow_tuning(self, held_back: bool) -> None:
        """Continue once tuning no longer blocks measuring."""
        if not held_back:
            self._soon.start()
        self.changed.emit()

    # State

    def named_engine(self, text: str) -> str:
        """Return a text about torch with the name of what runs the open model's nodes."""
        return self._document.named_engine(text)

    @property
    def waits(self) -> bool:
        """Return whether a run or a tuning uses the processors, so that nothing is measured."""
        return self._document.running or self._is_held_back()

    def is_coming(self, job: Job) -> bool:
        """Return whether a query is to be sent."""
        return job in self._next()

    @property
    def peaks(self) -> Peaks | None:
        """The machine's peak rates; ``None`` before they were measured."""
        return None if self.here is None else self._peaks.get(_machine(self.here.recipe))

    @property
    def work(self) -> Work | None:
        """The work of one call of the function."""
        return self._counted if self._counting.shown is not None else None

    def measured(self, of: Scheduled) -> Measured | None:
        """Return how fast a function is, if measured."""
        measured: Measured | None = self._answers.get(of.measure)
        return measured

    def seconds_of(self, recipe: Recipe, schedule: Schedule) -> float | None:
        """Return the measured seconds per call of a function with a schedule; ``None`` if
        unknown.
        """
        base = Scheduled(_unscheduled(recipe), schedule.function, schedule.structure)
        measured = self.measured(base.after(schedule.primitives))
        return None if measured is None else measured.milliseconds / 1000

    def checked(self, of: Scheduled) -> Checked | None:
        """Return the result of a function's check, if there is one."""
        return self._answers.get(of.check) if of.primitives else Checked(verdict="same")

    def prefixes(self) -> dict[str, Scheduled]:
        """Return the function after each applied step, by the steps' ids; `START` for none."""
        here, scheduling = self.here, self._scheduling
        if here is None or scheduling.record is None:
            return {}
        applied = done(scheduling.record, scheduling.primitives)
        after = {each.id: here.after(applied[:count]) for count, each in enumerate(applied, 1)}
        return {START: here.unscheduled, **after}

    def problem(self, job: Job) -> Problem | None:
        """Return why something could not be measured or checked."""
        return self._problems.get(job)

    @property
    def best(self) -> tuple[Scheduled, Measured] | None:
        """The fastest version of the scheduled function so far that is not known to be wrong."""
        right = [each for each in self._versions() if self._is_right(each[0])]
        return min(right, key=lambda each: each[1].milliseconds, default=None)

    @property
    def scale(self) -> float | None:
        """Factor from predictions to times of this machine: by the current function, if measured.

        ``None`` if that has no prediction yet.
        """
        here = self.here
        measured = None if here is None else self.measured(here)
        if measured is None:
            return 1.0
        predicted = self._predicted if self._pricing.is_current else None
        return measured.milliseconds / predicted if predicted else None

    @property
    def torch(self) -> Measured | None:
        """The measurement whose time of torch counts for all versions of the scheduled function.

        Torch runs beside each of them: the shortest reliable time is taken.
        """
        found = (each for _of, each in self._versions() if each.torch_ms)
        return min(found, key=lambda each: (each.disturbed, each.torch_ms), default=None)

    def _versions(self) -> list[tuple[Scheduled, Measured]]:
        """Return the measured versions of the scheduled function."""
        here = self.here
        if here is None:
            return []
        return [
            (here.after(job.recipe.schedules[0].primitives), answer)
            for job, answer in self._answers.items()
            if isinstance(job, MeasureQuery) and _is_of(job, here)
        ]

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
        if self.here is not None:
            self._ask_again(self.here.jobs)

    def measure_next(self) -> None:
        """Check and measure the function after the primitive that is about to be applied."""
        self._next_too = True

    def measure_again(self, scheduled: Sequence[Scheduled]) -> None:
        """Measure again functions whose times are unreliable."""
        self._ask_again(each.measure for each in scheduled)

    def measure_all(self, schedules: tuple[Primitives, ...]) -> None:
        """Measure the function after each of some schedules, unless cached."""
        here = self.here
        if here is not None:
            self._ask(job for each in schedules for job in here.after(each).jobs)

    def measure_peaks(self) -> None:
        """Measure the machine's peak rates again; the best count."""
        if self.here is not None:
            self._ask_again((PeaksQuery(self.here.recipe, again=True),))

    def cancel(self) -> None:
        """Cancel the current query, and stop measuring automatically."""
        self._asked_for.clear()
        self.automatic = False
        self._slot.cancel()
        self.changed.emit()

    def _ask_again(self, jobs: Iterable[Job]) -> None:
        jobs = tuple(jobs)
        for job in jobs:
            self._answers.pop(job, None)
            self._problems.pop(job, None)
        self._ask(jobs)

    def _ask(self, jobs: Iterable[Job]) -> None:
        self._asked_for.extend(job for job in jobs if job not in self._asked_for)
        self._go_on()

    # The queries to the worker, one after the other

    def _follow(self) -> None:
        """Switch to the function at the current step."""
        here = self._current()
        if here is None or self.here is None or here.unscheduled != self.here.unscheduled:
            self._asked_for.clear()
        if here == self.here:
            return
        self.here = here
        self._counting.update()
        self._pricing.update()
        if self.doing is not None and self.doing not in self._next():
            self._slot.cancel(HIDDEN_MS)
        self._soon.start()
        self.changed.emit()
        if here is not None and any(each.forced for each in here.primitives):
            # Unsafe steps are checked at once, even if nothing is measured automatically.
            self._ask((here.check,))
        if here is not None and self._next_too:
            self._next_too = False
            self.measure()

    def _current(self) -> Scheduled | None:
        scheduling = self._scheduling
        shown, record = scheduling.shown, scheduling.record
        if shown is None or record is None or scheduling.problem is not None:
            return None
        base = Scheduled(_unscheduled(shown.recipe), shown.function, record.structure)
        return base.after(done(record, scheduling.primitives[: shown.index]))

    def _next(self) -> list[Job]:
        """Return the queries to send, in order."""
        jobs = list(self._asked_for)
        here = self.here
        if self.automatic and here is not None and self._scheduling.active:
            jobs += [*here.jobs, here.unscheduled.measure]
        return [job for job in dict.fromkeys(jobs) if not self._is_done(job)]

    def _is_done(self, job: Job) -> bool:
        if job in self._problems or job in self._answers:
            return True
        if not isinstance(job, MeasureQuery):
            return False
        # A function that hung or crashed in its check is not tried again.
        check = CheckQuery(job.recipe, job.function, seconds=CHECK_SECONDS)
        checked = self._answers.get(check)
        return check in self._problems or (checked is not None and checked.running)

    def _go_on(self) -> None:
        """Send the next query to the worker."""
        jobs = self._next()
        if self.doing is None and jobs and not self.waits:
            job = self.doing = jobs[0]
            if job in self._asked_for:
                self._asked_for.remove(job)
            query: Query[Any] = job
            self._slot.ask(query, self._take, self._take_problem)
            if isinstance(job, MeasureQuery):
                self._limit.start()
        self.changed.emit()

    def _take(self, answer: Any) -> None:
        job = self._end()
        if isinstance(job, PeaksQuery):
            self._peaks[_machine(job.recipe)] = answer
        else:
            self._keep(job, answer)
            self._pricing.update()
        if isinstance(job, CheckQuery) and answer.running:
            # Nothing else stops it, and it would slow down the next measurement.
            self._worker.restart()
        if isinstance(job, MeasureQuery) and _machine(job.recipe) not in self._peaks:
            # They were measured before the function was.
            self._asked_for.appendleft(PeaksQuery(without_schedules(job.recipe)))
        self._go_on()

    def _take_problem(self, problem: Problem) -> None:
        too_long = isinstance(self.doing, MeasureQuery) and not self._limit.isActive()
        job = self._end()
        if problem.code != "cancelled":
            self._problems[job] = problem
        elif too_long:
            text = _("Measuring took longer than {measure_ms} s", measure_ms=MEASURE_MS // 1000)
            self._problems[job] = Problem(what=text)
        self._go_on()

    def _end(self) -> Job:
        assert self.doing is not None
        job, self.doing = self.doing, None
        self._limit.stop()
        return job

    def _make_way(self) -> None:
        """Yield the worker to a run, and continue after it."""
        if self._document.running:
            self._slot.cancel(SUPERSEDED_MS)
        else:
            self._soon.start()

    def _keep(self, job: Job, answer: Any) -> None:
        self._answers[job] = answer
        while len(self._answers) > KEPT:
            del self._answers[next(iter(self._answers))]

    # The work, which the engine counts

    def _work_query(self) -> WorkQuery | None:
        here = self.here
        return None if here is None else WorkQuery(here.recipe, here.function)

    def _take_work(self, work: Work) -> None:
        self._counted = work
        self.changed.emit()

    def _priced_query(self) -> ScheduleQuery | None:
        """Return the query for the prediction beside a measurement: others are not scaled."""
        here, shown = self.here, self._scheduling.shown
        if here is None or shown is None or self.measured(here) is None:
            return None
        return msgspec.structs.replace(shown, priced=True)

    def _take_price(self, record: ScheduleRecord) -> None:
        self._predicted = record.predicted_ms
        self.changed.emit()

    def _ignore(self, _problem: Problem) -> None:
        """Show nothing: that the function is unavailable is shown elsewhere."""


def _unscheduled(recipe: Recipe) -> Recipe:
    steps = (each for each in steps_before_schedules(recipe) if each.name not in SCHEDULING)
    return msgspec.structs.replace(recipe, schedules=(), steps=tuple(steps))


def _machine(recipe: Recipe) -> tuple[str, int]:
    """Return the parts of a recipe that peak rates depend on."""
    return recipe.target, recipe.threads


def _is_of(job: MeasureQuery, here: Scheduled) -> bool:
    (schedule,) = job.recipe.schedules
    same = (schedule.function, schedule.structure) == (here.function, here.structure)
    return same and without_schedules(job.recipe) == here.recipe

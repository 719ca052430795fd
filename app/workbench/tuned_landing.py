"""Applying tuning results to the recipe, as ordinary schedules and in one undo step."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.workbench import sharing as sharing
from lowerscope.app.workbench.measurements import Measurements
from lowerscope.app.workbench.scheduled import Scheduled
from lowerscope.core.errors import Problem
from lowerscope.core.model.formatting import ratio_text
from lowerscope.core.model.queries import ScheduleQuery
from lowerscope.core.recipe import Recipe, applies_schedules, steps_before_schedules
from lowerscope.core.records.schedule import ScheduleRecord
from lowerscope.core.records.tuning import Tuned, TunedFunction, TuneState
from lowerscope.core.schedules import APPLY_RULES, Schedule, fits

BETTER = 0.98
"""A schedule that takes less than this share of the previous time is better."""


class TunedLanding(QObject):
    """Checks that the functions still exist, and changes the recipe once.

    Signals
    -------
    landed(str, str)
        The outcome in one line, and its role.
    """

    landed = Signal(str, str)

    def __init__(self, document: Document, queries: Queries, measurements: Measurements) -> None:
        super().__init__(document)
        self._document = document
        self._measurements = measurements
        self._tuned = Tuned(state=TuneState())
        self._open: list[Schedule] = []
        self._there: list[Schedule] = []
        self._gone: list[str] = []
        self._slot = Slot(queries)
        self._again = False

    def land(self, tuned: Tuned, of: Recipe) -> None:
        """Apply to the recipe the results that are better than the previous schedules.

        Parameters
        ----------
        of
            The recipe that was tuned; the one shown may be another by now.
        """
        self._tuned, self._open = tuned, list(tuned.schedules)
        self._there, self._gone, self._again = [], [], False
        recipe = self._document.wanted
        if recipe is not None and _functions_of(recipe) == _functions_of(of):
            self._there, self._open = self._open, []
        self._go_on()

    def _go_on(self) -> None:
        recipe = self._document.wanted
        if recipe is None:
            return
        if not self._open:
            self._change(recipe)
            return
        params = ScheduleQuery(recipe=recipe, function=self._open[0].function, index=0)
        self._slot.ask(params, self._take, self._take_problem)

    def _take(self, record: ScheduleRecord) -> None:
        self._again = False
        schedule = self._open.pop(0)
        if fits(schedule, record.function, record.structure):
            self._there.append(schedule)
        else:
            self._gone.append(schedule.function)
        self._go_on()

    def _take_problem(self, problem: Problem) -> None:
        if problem.code in ("cancelled", "crashed") and not self._again:
            # The engine crashed: the query is repeated once.
            self._again = True
        else:
            self._again = False
            self._gone.append(self._open.pop(0).function)
        self._go_on()

    def _change(self, recipe: Recipe) -> None:
        functions = {each.name: each for each in self._tuned.state.functions}
        better: dict[str, float | None] = {}
        worse: list[str] = []
        after = recipe
        for schedule in self._there:
            found = functions[schedule.function]
            before = self._before(recipe, schedule, found)
            if _is_better(found, before):
                after = _with_tuned(after, schedule)
                better[schedule.function] = before and found.best and before / found.best
            else:
                worse.append(schedule.function)
        if after != recipe:
            self._document.change(after)
        text = self._words(better, worse)
        if better and not applies_schedules(after):
            text += self.tr(" Tick “Apply to the model” to run it.")
        self.landed.emit(text, "wrong" if self._gone else "info")

    def _before(self, recipe: Recipe, schedule: Schedule, found: TunedFunction) -> float | None:
        """Return the previous seconds per call; ``None`` if unknown."""
        chosen = sharing.chosen(recipe, schedule.function, schedule.structure)
        if chosen is None or not chosen.primitives:
            ruled = any(step.name == APPLY_RULES and step.on for step in recipe.steps)
            return found.by_rules if ruled and found.by_rules is not None else found.unscheduled
        if chosen.primitives == schedule.primitives:
            return found.best
        base = msgspec.structs.replace(recipe, schedules=())
        of = Scheduled(base, schedule.function, schedule.structure).after(chosen.primitives)
        measured = self._measurements.measured(of)
        return None if measured is None else measured.milliseconds / 1000

    def _words(self, better: dict[str, float | None], worse: list[str]) -> str:
        """Return one line on the functions that became faster, and on the others."""
        parts = []
        times = next(iter(better.values()), None)
        if len(better) == 1 and times is not None:
            text = self.tr(
                "{0} is {1} as fast as it was: the schedule is in its history, undo takes it back."
            )
            parts.append(text.format(*better, ratio_text(times)))
        elif better:
            text = self.tr("What was found is in the history of {0}: undo takes it back.")
            parts.append(text.format(_names(list(better))))
        if worse:
            parts.append(self.tr("What {0} had stays: it is as fast.").format(_names(worse)))
        if self._gone:
            text = self.tr(
                "{0} is not in the model any more: what was found is kept in the database."
            )
            parts.append(text.format(_names(self._gone)))
        return " ".join(parts) or self.tr("Nothing better was found: all stays as it was.")


def _is_better(found: TunedFunction, before: float | None) -> bool:
    return found.best is not None and (before is None or found.best < BETTER * before)


def _with_tuned(recipe: Recipe, schedule: Schedule) -> Recipe:
    """Return `recipe` with a schedule enabled, replacing that of an earlier tuning."""
    function, structure = schedule.function, schedule.structure
    earlier = [
        each
        for each in sharing.variants(recipe, function, structure)
        if each.variant == schedule.variant
    ]
    if not earlier:
        return sharing.with_added(
            recipe, function, structure, schedule.variant, schedule.primitives
        )
    place = next(at for at, each in enumerate(recipe.schedules) if each is earlier[-1])
    after = msgspec.structs.replace(earlier[-1], primitives=schedule.primitives)
    recipe = sharing.with_schedule(recipe, earlier[-1], after)
    return sharing.with_chosen(recipe, function, structure, recipe.schedules[place])


def _functions_of(recipe: Recipe) -> Recipe:
    """Return the parts of a recipe that determine its functions."""
    plain = Recipe(source=recipe.source)
    return msgspec.structs.replace(
        recipe,
        schedules=(),
        steps=steps_before_schedules(recipe),
        tolerances=plain.tolerances,
        measuring=plain.measuring,
    )


def _names(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} others"

"""Variants of a function's schedule, orphaned schedules, and scheduling by rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.panes.schedule.model import Primitives, Scheduling
from lowerscope.core.files.pipelines_and_schedules import load_schedules
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ByRuleQuery, RulesQuery, ScheduleProgramQuery
from lowerscope.core.model.recipe import Recipe, applied_to_model, applies_schedules, ruled_in_model
from lowerscope.core.model.schedule import APPLY_RULES, AUTO_SCHEDULE, Schedule, fits, shown_name
from lowerscope.core.model.schedule_records import ByRule, RuledFunction
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _, _n, sentences


class LeftOver(QObject):
    """The schedules of the recipe that fit no function of the model."""

    changed = Signal()  # `all` changed.

    def __init__(
        self, document: Document, queries: Queries, add_variant: Callable[[str, Primitives], None]
    ) -> None:
        super().__init__(document)
        self._document = document
        self._queries = queries
        self._add_variant = add_variant
        self.all: tuple[Schedule, ...] = ()  # The orphaned schedules, in the order of the recipe.
        document.on(("snapshot",), self._follow)
        document.on(("recipe", "pending"), self._follow)

    def _follow(self) -> None:
        recipe, snapshot = self._document.recipe, self._document.snapshot
        structures = {} if snapshot is None else snapshot.structures
        found = () if recipe is None else sharing.left_over(recipe, structures)
        if found == self.all:
            return
        before, self.all = self.all, found
        if any(each not in before for each in found):
            self._document.notify(self._words(), "wrong")
        self.changed.emit()

    def _words(self) -> str:
        names = _(", ").join(dict.fromkeys(each.function for each in self.all))
        text = _n(
            "{count} schedule no longer fits a function: {names}.",
            "{count} schedules no longer fit a function: {names}.",
            len(self.all),
            names=names,
        )
        where = _("See Orphaned schedules in Schedule.")
        return sentences(text, where)

    def title(self, schedule: Schedule) -> str:
        """Return the name of a schedule and its number of steps."""
        count = len(schedule.primitives)
        return _n(
            "{function} · {name} · 1 step",
            "{function} · {name} · {count} steps",
            count,
            function=schedule.function,
            name=shown_name(schedule.variant),
        )

    def reason(self, schedule: Schedule) -> str:
        """Return why a schedule is not applied."""
        snapshot = self._document.snapshot
        there = snapshot is not None and schedule.function in snapshot.structures
        if there:
            return _("{function} now computes something else", function=schedule.function)
        return _(
            "There is no {function}, and no function of its structure", function=schedule.function
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A note on each, for the user, in one line."""
        todo = _("see Orphaned schedules in Schedule")
        return tuple(
            _(
                "The schedule {title} is not applied. {reason}; {todo}",
                title=self.title(each),
                reason=self.reason(each),
                todo=todo,
            )
            for each in self.all
        )

    def remove(self, schedule: Schedule) -> None:
        """Remove a schedule from the recipe."""
        self._document.change_by(sharing.with_schedule, schedule, None)

    def try_here(self, schedule: Schedule) -> None:
        """Add its steps as a variant of the scheduled function, and enable it."""
        name = schedule.variant or _("from {function}", function=schedule.function)
        self._add_variant(name, schedule.primitives)

    def copy(self, schedule: Schedule) -> None:
        """Copy a schedule to the clipboard as a Python function."""

        def take(text: str) -> None:
            QGuiApplication.clipboard().setText(text)
            self._document.notify(_("Copied as apply_trace(sch)."), "info")

        params = ScheduleProgramQuery(schedule=schedule)
        self._queries.ask(params, take, self._document.report)


# --- Schedules written by a rule for the scheduled function ---


class SchedulingByRule(QObject):
    """Requests the steps from the engine, and adds them as a variant."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        scheduling: Scheduling,
        add_variant: Callable[[str, Primitives], None],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._scheduling = scheduling
        self._add_variant = add_variant
        self._slot = Slot(queries)
        self._function = ""

    def ask(self) -> None:
        """Request a rule's schedule for the scheduled function."""
        scheduling = self._scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return
        self._function = scheduling.function
        params = ByRuleQuery(recipe=scheduling.recipe, function=scheduling.function)
        self._slot.ask(params, self._take, self._document.notify_of)

    def _take(self, ruled: ByRule) -> None:
        document = self._document
        if self._scheduling.function != self._function:
            # Another function is scheduled by now.
            return
        if not ruled.primitives:
            text = _(
                "No rule schedules {function}: {reason}",
                function=self._function,
                reason=ruled.reason,
            )
            document.notify(text, "wrong")
            return
        self._add_variant(AUTO_SCHEDULE, ruled.primitives)
        count = len(ruled.primitives)
        steps = _n("1 step", "{count} steps", count)
        text = _(
            "The rule {rule} wrote {steps}; the comments give the reasons.",
            rule=ruled.rule,
            steps=steps,
        )
        document.notify(text, "info")


# Rule-based scheduling of the whole model: the pipeline's step, and each function's rule.


class RulesInModel(QObject):
    """The rule of each function, queried while it is shown."""

    changed = Signal()  # `functions`, `problem` or `busy` changed.

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document)
        self._document = document
        self._slot = Slot(queries)
        self._of: tuple[Recipe, Snapshot] | None = None
        # Functions of the recipe shown; empty before they were queried.
        self.functions: tuple[RuledFunction, ...] = ()
        self.problem: Problem | None = None  # The problem that prevented them.
        self.busy = ""  # Description of the current work; empty for none.

    @property
    def in_model(self) -> bool:
        """Return whether the model is scheduled by rules."""
        recipe = self._document.wanted
        return recipe is not None and any(
            step.name == APPLY_RULES and step.on for step in recipe.steps
        )

    def set_in_model(self, on: bool) -> None:
        """Add the step that schedules the model by rules to the pipeline's end, or remove it."""
        self._document.change_by(ruled_in_model, on)

    def ask(self) -> None:
        """Query the rules' results for the functions, unless cached for the recipe shown."""
        recipe, snapshot = self._document.recipe, self._document.snapshot
        if recipe is None or snapshot is None:
            return
        # Derived again, the same recipe may have other functions.
        if self._of is not None and self._of[0] == recipe and self._of[1] is snapshot:
            return
        self._of, self.functions, self.problem = (recipe, snapshot), (), None
        self.busy = _("Scheduling by rules")
        self._slot.ask(RulesQuery(recipe=recipe), self._take, self._take_problem)
        self.changed.emit()

    def _take(self, functions: tuple[RuledFunction, ...]) -> None:
        self.busy = ""
        self.functions = functions
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        self.busy = ""
        self._of, self.functions, self.problem = None, (), problem
        self.changed.emit()


class Variants:
    """The schedules of the scheduled function, at most one of which is enabled."""

    def __init__(self, document: Document, queries: Queries, scheduling: Scheduling) -> None:
        self._document = document
        self._scheduling = scheduling
        self.left_over = LeftOver(document, queries, self.add_with)  # The orphaned schedules.
        # Creates one by a rule.
        self.by_rule = SchedulingByRule(document, queries, scheduling, self.add_with)
        self.rules = RulesInModel(document, queries)  # Schedules the whole model by rules.

    @property
    def all(self) -> tuple[Schedule, ...]:
        """All schedules of the function."""
        scheduling = self._scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return ()
        return sharing.variants(scheduling.recipe, scheduling.function, scheduling.structure)

    @property
    def alike(self) -> int:
        """Number of functions that use the enabled schedule."""
        scheduling = self._scheduling
        recipe, record, schedule = scheduling.recipe, scheduling.record, scheduling.schedule
        if recipe is None or record is None or schedule is None:
            return 0
        functions = (record.function, *record.twins)
        return sharing.sharing(recipe, functions, record.structure, schedule)

    def choose(self, variant: str | None) -> None:
        """Enable another one; none for ``None``."""
        schedule = next((each for each in self.all if each.variant == variant), None)
        self._change(sharing.with_chosen, schedule, to_end=True)

    def add(self, name: str, *, copied: bool = False) -> None:
        """Add an empty one, or a copy of the enabled one, and enable it."""
        self.add_with(name, self._scheduling.primitives if copied else ())

    def add_with(self, name: str, primitives: Primitives, *, everywhere: bool = True) -> None:
        """Add one with these steps, and enable it.

        Functions of the same structure share it, if `everywhere` and as long as this one has none
        of its own.
        """
        added = partial(sharing.with_added, everywhere=everywhere)
        self._change(added, name, primitives, to_end=True)

    def rename(self, name: str) -> None:
        """Rename the enabled one."""
        self._change(sharing.with_name, name)

    def remove(self) -> None:
        """Remove the enabled one; the last of the others is then enabled."""
        self._change(sharing.without_chosen, to_end=True)

    def set_everywhere(self, everywhere: bool) -> None:
        """Share the schedule with all functions of this structure, or keep it for this one only."""
        self._change(sharing.with_shared, everywhere)

    def _change(
        self, change: Callable[..., Recipe], *arguments: object, to_end: bool = False
    ) -> None:
        scheduling = self._scheduling
        recipe = scheduling.recipe
        if recipe is None or scheduling.record is None:
            return
        after = change(recipe, scheduling.function, scheduling.structure, *arguments)
        if to_end:
            scheduling.go_to_end()
        scheduling.change(after)

    # The model

    @property
    def in_model(self) -> bool:
        """Return whether schedules are applied to the model."""
        recipe = self._document.wanted
        return recipe is not None and applies_schedules(recipe)

    def set_in_model(self, on: bool) -> None:
        """Add the step that applies the schedules at the end of the pipeline, or remove it."""
        self._document.change_by(applied_to_model, on)

    def notes(self) -> tuple[str, ...]:
        """Return the notes on orphaned schedules.

        While schedules are applied to the model, its own notes cover them.
        """
        return () if self.in_model else self.left_over.notes

    # Files

    def load(self, path: str) -> None:
        """Load a schedule from a file as a variant of the scheduled function, and enable it.

        Of several, one that fits the function is used. One of another function is tried as well:
        its steps show what does not fit.

        Raises:
            LowerscopeError: If the file cannot be read or holds something else: see
                `load_schedules`.
        """
        scheduling = self._scheduling
        function, structure = scheduling.function, scheduling.structure
        loaded = load_schedules(path)
        schedule = next((each for each in loaded if fits(each, function, structure)), loaded[0])
        self.add_with(
            schedule.variant or Path(path).stem, schedule.primitives, everywhere=schedule.everywhere
        )

"""Orphaned schedules: their functions no longer exist after a change of the model."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.panes.schedule import schedule_files as sharing
from lowerscope.app.panes.schedule.editing import Primitives
from lowerscope.core.model.queries import ScheduleProgramQuery
from lowerscope.core.model.schedule import Schedule, shown_name


class LeftOver(QObject):
    """The schedules of the recipe that fit no function of the model."""

    changed = Signal()  # `all` changed.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        add_variant: Callable[[str, Primitives], None],
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
        names = ", ".join(dict.fromkeys(each.function for each in self.all))
        if len(self.all) == 1:
            text = self.tr("A schedule fits no function any more: that of {0}.")
        else:
            text = self.tr("{1} schedules fit no function any more: those of {0}.")
        where = self.tr("See Schedule → Left over.")
        return f"{text.format(names, len(self.all))} {where}"

    def title(self, schedule: Schedule) -> str:
        """Return the name of a schedule and its number of steps."""
        count = len(schedule.primitives)
        words = self.tr("{0} · {1} · 1 step") if count == 1 else self.tr("{0} · {1} · {2} steps")
        return words.format(schedule.function, shown_name(schedule.variant), count)

    def reason(self, schedule: Schedule) -> str:
        """Return why a schedule is not applied."""
        snapshot = self._document.snapshot
        there = snapshot is not None and schedule.function in snapshot.structures
        if there:
            return self.tr("{0} computes something else now").format(schedule.function)
        return self.tr("There is no {0}, and nothing of its structure").format(schedule.function)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note on each, for the user, in one line."""
        todo = self.tr("see Left over in the pane Schedule")
        words = self.tr("The schedule {0} is not applied. {1}; {2}")
        return tuple(words.format(self.title(each), self.reason(each), todo) for each in self.all)

    def remove(self, schedule: Schedule) -> None:
        """Remove a schedule from the recipe."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(sharing.with_schedule(recipe, schedule, None))

    def try_here(self, schedule: Schedule) -> None:
        """Add its steps as a variant of the scheduled function, and enable it."""
        name = schedule.variant or self.tr("from {0}").format(schedule.function)
        self._add_variant(name, schedule.primitives)

    def copy(self, schedule: Schedule) -> None:
        """Copy a schedule to the clipboard as a Python function."""

        def take(text: str) -> None:
            QGuiApplication.clipboard().setText(text)
            self._document.notify(self.tr("Copied as apply_trace(sch)."), "info")

        params = ScheduleProgramQuery(schedule=schedule)
        self._queries.ask(params, take, self._document.report)

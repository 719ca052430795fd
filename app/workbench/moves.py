"""Primitives applicable to the selection in the scheduled function."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.recovering import TWICE
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import MovesQuery
from lowerscope.core.records.schedule import Move
from lowerscope.core.schedules import references_of

if TYPE_CHECKING:
    from lowerscope.app.workbench.scheduling import Scheduling


class Moves(QObject):
    """The primitives offered.

    Signals
    -------
    changed
        `all` changed.

    Attributes
    ----------
    all
        The primitives for the selection, legal or not.
    """

    changed = Signal()

    def __init__(self, document: Document, queries: Queries, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._document = document
        self._scheduling = scheduling
        self._slot = Slot(queries)
        self._asked: MovesQuery | None = None
        self._step = ""
        # Number of crashes by query: an engine may also be killed from outside.
        self._deadly: Counter[MovesQuery] = Counter()
        self.all: tuple[Move, ...] = ()
        document.on(("selection", "snapshot"), self.follow)

    @property
    def are_coming(self) -> bool:
        """Return whether `all` is outdated: a query is pending."""
        return self._slot.is_busy

    def follow(self) -> None:
        """Switch to the primitives for the current selection."""
        scheduling = self._scheduling
        if not scheduling.active or scheduling.shown is None or self._step:
            return
        references = tuple(each.reference for each in scheduling.chosen)
        shown = scheduling.shown
        query = MovesQuery(shown.recipe, shown.function, shown.index, references)
        if self._asked != query:
            self._ask(query)

    @property
    def are_deadly(self) -> bool:
        """Return whether engines crashed on the query for the selection."""
        return self._asked is not None and self._deadly[self._asked] >= TWICE

    def forget(self) -> None:
        """Clear the primitives: there is another function, or another engine."""
        self._drop()
        self._asked = None
        if self.all:
            self.all = ()
            self.changed.emit()

    def ask_again(self) -> None:
        """Repeat the query lost with a crashed engine."""
        self._asked = None
        self.follow()

    def ask_for_step(self, step: str, place: int) -> None:
        """Query the primitives offered where a step is, so that it can be edited."""
        scheduling = self._scheduling
        assert scheduling.recipe is not None
        references = references_of(scheduling.primitives[place])
        self._ask(MovesQuery(scheduling.recipe, scheduling.function, place, references))
        self._step = step

    def _ask(self, query: MovesQuery) -> None:
        self._drop()
        self._asked = query
        if self._deadly[query] >= TWICE:
            self.all = ()
            self.changed.emit()
            return
        self._slot.ask(query, self._take, self._take_problem)
        self.changed.emit()

    def _drop(self) -> None:
        self._step = ""
        self._slot.drop()

    def _take(self, moves: tuple[Move, ...]) -> None:
        if self._asked is not None:
            self._deadly.pop(self._asked, None)
        if self._step:
            step, self._step = self._step, ""
            self._asked = None
            self._scheduling.trying.open_step(step, moves)
            self.follow()
            return
        self.all = moves
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        self._step = ""
        self.all = ()
        if problem.code == "crashed" and self._asked is not None:
            # Retry once on a fresh engine, then give up.
            self._deadly[self._asked] += 1
        self.changed.emit()
        if problem.code not in ("cancelled", "crashed"):
            self._document.notify(problem.line(), "wrong")

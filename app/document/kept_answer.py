"""A long query that the user starts, with its progress and its last answer."""

from __future__ import annotations

from typing import Generic, TypeVar

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document, Of
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import Query
from lowerscope.core.model.recipe import Recipe

A = TypeVar("A")


class KeptAnswer(QObject, Generic[A]):
    """The query in progress, and the last answer, which is shown for the recipes it is for.

    Args:
        of: Owner of the job in the status bar.
    """

    changed = Signal()  # `record`, `running`, `progress` or `problem` changed.

    def __init__(self, document: Document, queries: Queries, of: Of) -> None:
        super().__init__(document)
        self._document = document
        self._slot = Slot(queries)
        self._of = of
        self._asked: Recipe | None = None
        self._outcome: tuple[Recipe, A] | None = None
        # Description of the current work, and the fraction done.
        self.progress: tuple[str, float | None] = ("", None)
        self.problem: Problem | None = None  # The problem that prevented an answer.

    @property
    def running(self) -> bool:
        """Return whether the query is in progress."""
        return self._slot.is_busy

    @property
    def record(self) -> A | None:
        """The answer for the recipe shown."""
        return self.record_of(self._document.recipe)

    def record_of(self, recipe: Recipe | None) -> A | None:
        """Return the answer for a recipe, if it is the last one."""
        if self._outcome is None or recipe is None or self._outcome[0] != self._part_of(recipe):
            return None
        return self._outcome[1]

    def cancel(self) -> None:
        """Cancel the query; a previous answer stays."""
        self._slot.cancel()

    def _part_of(self, recipe: Recipe) -> Recipe:
        """Return a recipe without what the answer does not depend on."""
        return recipe

    def _start(self, recipe: Recipe, query: Query[A], doing: str) -> None:
        self._slot.supersede()
        self._asked, self.problem = self._part_of(recipe), None
        self._tell(doing)
        self._slot.ask(query, self._accept, self._refuse, self._tell)
        self.changed.emit()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self.progress = (text, fraction)
        self._document.say(text, fraction, of=self._of, cancel=self.cancel)
        self.changed.emit()

    def _accept(self, record: A) -> None:
        assert self._asked is not None
        self._outcome = (self._asked, record)
        self._end()

    def _refuse(self, problem: Problem) -> None:
        self.problem = None if problem.code == "cancelled" else problem
        self._end()

    def _end(self) -> None:
        self.progress = ("", None)
        self._document.say("", of=self._of)
        self.changed.emit()

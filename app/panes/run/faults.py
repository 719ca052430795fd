"""Failed runs: their diagnosis, and reverting the recipe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, parts_of_name
from lowerscope.core.model.texts import _


class Faults(QObject):
    """The last run, if it failed, and the last recipe that ran successfully."""

    changed = Signal()  # `failed` or `can_go_back` changed.

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._worked: Recipe | None = None
        self._failed: Problem | None = None
        document.on(("run", "running"), self._note_run)
        document.on(("snapshot",), self.forget)
        document.on(("recipe", "pending"), self.changed)

    @property
    def failed(self) -> Problem | None:
        """The problem that the last run of the recipe shown ended with, if it failed."""
        return self._failed

    @property
    def can_go_back(self) -> bool:
        """Return whether another recipe of the open source has run successfully."""
        wanted, worked = self._document.wanted, self._worked
        return (
            worked is not None
            and wanted is not None
            and worked != wanted
            and worked.source == wanted.source
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the FX nodes of the call that `failed` names, if any."""
        problem = self._failed
        if problem is None:
            return ()
        return problem.choices or (parts_of_name(problem.calls[-1])[1] if problem.calls else ())

    def remedies(self, problem: Problem) -> list[tuple[str, Callable[[], object]]]:
        """Return titles and actions that help with a problem; none if no run ended with it."""
        found: list[tuple[str, Callable[[], object]]] = []
        if problem is self._failed and self.nodes:
            select = partial(self._document.select, self.nodes)
            found.append((_("Select the called function"), select))
        if problem is self._failed and self.can_go_back:
            found.append((_("Back to the last correct state"), self.go_back))
        return found

    def go_back(self) -> None:
        """Return to the last recipe that ran successfully, as one undo step."""
        if self.can_go_back and self._worked is not None:
            self._document.change(self._worked)

    def forget(self) -> None:
        """Forget how the last run ended: another run started, or another recipe is shown."""
        self._failed = None
        self.changed.emit()

    def take(self, problem: Problem) -> None:
        """Show how a run failed."""
        self._failed = problem
        self._document.report(problem)
        self.changed.emit()

    def _note_run(self) -> None:
        document = self._document
        if document.running and self._failed is not None:
            self.forget()
        record = document.run_record
        if record is not None and record.verdict not in FAILING and self._failed is None:
            self._worked = self._document.recipe
            self.changed.emit()

"""The passes of TVM's own build, listed by the worker while they are shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.document.stepping import Stepping
from lowerscope.core.model.module_steps import PassRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import BuildStepsQuery


class BuildSteps(QObject):
    """Requests the passes of the timeline ``"build"`` and puts them into the stepping.

    Args:
        queries: Sends the query.
    """

    changed = Signal()  # `busy` or `problem` changed.

    def __init__(self, document: Document, queries: Queries, stepping: Stepping) -> None:
        super().__init__(document)
        self._document = document
        self._stepping = stepping
        self._looked_at = False
        self._is_built = False
        self._slot = Slot(queries)
        self._problem: Problem | None = None
        stepping.list_changed.connect(self._note_section)
        document.on(("snapshot",), self._take)
        document.on(("run",), self._note_run)

    @property
    def busy(self) -> bool:
        """Return whether the list is being requested."""
        return self._slot.is_busy

    @property
    def problem(self) -> Problem | None:
        """The problem that prevented the list, if any."""
        return self._problem

    def look(self, looked_at: bool) -> None:
        """Set whether the list is shown; while it is, it is updated with the recipe."""
        self._looked_at = looked_at
        self._ask()

    def note_built(self) -> None:
        """Note that the worker has built the recipe for another request, so its list is cached."""
        self._is_built = True
        self._ask()

    def _note_run(self) -> None:
        if self._document.run_record is not None:
            self.note_built()

    def _take(self) -> None:
        """Reset after the recipe changed: its build is another one."""
        self._is_built = False
        self._slot.drop()
        self._problem = None
        self.changed.emit()
        self._ask()

    def _note_section(self) -> None:
        self._ask()

    def _ask(self) -> None:
        recipe = self._document.recipe
        looked_at = self._looked_at or self._is_built or self._stepping.section == "build"
        there = self.busy or self._problem is not None or self._stepping.lines("build")
        if recipe is None or not looked_at or there:
            return
        self._slot.ask(BuildStepsQuery(recipe), self._accept, self._refuse)
        self.changed.emit()

    def _accept(self, records: tuple[PassRecord, ...]) -> None:
        self._stepping.take_build(records)
        self.changed.emit()

    def _refuse(self, problem: Problem) -> None:
        self._problem = problem
        self.changed.emit()

"""Runs on a set of inputs, and the last outcome for the recipe."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.core.model.comparison_records import AgreementRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import AgreementQuery
from lowerscope.core.model.recipe import Recipe


class SetRuns(QObject):
    """The current run on a set of inputs, and its outcome."""

    changed = Signal()  # `record`, `running`, `path`, `progress` or `problem` changed.
    began = Signal()  # A run of a set started.

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document)
        self._document = document
        self._slot = Slot(queries)
        self._asked: Recipe | None = None
        self._outcome: tuple[Recipe, AgreementRecord] | None = None
        self.path = ""  # The set selected last; empty for none.
        # Description of the current work, and the fraction done.
        self.progress: tuple[str, float | None] = ("", None)
        self.problem: Problem | None = None  # The problem that prevented an outcome.
        document.on(("snapshot",), self.changed)

    @property
    def running(self) -> bool:
        """Return whether a set is being run."""
        return self._slot.is_busy

    @property
    def record(self) -> AgreementRecord | None:
        """The outcome for the recipe shown, whatever its inputs are."""
        shown = self._document.recipe
        if self._outcome is None or shown is None:
            return None
        recipe, record = self._outcome
        return record if recipe == _without_inputs(shown) else None

    def run(self, path: str = "") -> None:
        """Run a set of inputs in the worker; without a path, the last one again."""
        document = self._document
        recipe = document.recipe
        if recipe is None or not (path or self.path):
            return
        self._slot.supersede()
        self.path = path or self.path
        self.problem = None
        self.progress = (self.tr("Waiting for the worker"), None)
        document.say(*self.progress, of="set")
        self._asked = _without_inputs(recipe)
        self._slot.ask(
            AgreementQuery(recipe=recipe, path=self.path),
            self._accept,
            self._refuse,
            self._tell,
        )
        self.began.emit()
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the run; a previous outcome stays."""
        self._slot.cancel()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self.progress = (text, fraction)
        self._document.say(text, fraction, of="set")
        self.changed.emit()

    def _accept(self, record: AgreementRecord) -> None:
        assert self._asked is not None
        self._outcome = (self._asked, record)
        self._end()

    def _refuse(self, problem: Problem) -> None:
        self.problem = None if problem.code == "cancelled" else problem
        self._end()

    def _end(self) -> None:
        self.progress = ("", None)
        self._document.say("", of="set")
        self.changed.emit()


def _without_inputs(recipe: Recipe) -> Recipe:
    return msgspec.structs.replace(recipe, inputs=())

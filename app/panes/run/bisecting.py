"""The search for the step that makes the model differ: its state, its section and its commands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import KeptAnswer, Queries
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.files.atomic_write import write_reproduction
from lowerscope.core.model.explanation_records import BisectRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import BisectQuery
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.kit.commands import Host


class Bisecting(KeptAnswer[BisectRecord]):
    """The search in progress, and the answer for the recipe shown."""

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document, queries, "bisect")
        document.on(("recipe", "pending", "run", "running"), self.follow_changes)

    @property
    def can_start(self) -> bool:
        """Return whether the last run differs, and nothing is in progress."""
        document = self._document
        run = document.run_record
        is_wrong = run is not None and run.verdict == "differ"
        return is_wrong and not document.running and not self.running and not document.is_changing

    def start(self) -> None:
        """Look for the step."""
        recipe = self._document.recipe
        if recipe is not None and self.can_start:
            self._outcome = None
            self._start(recipe, BisectQuery(recipe), _("Finding the faulty step"))

    def save(self, folder: Path) -> None:
        """Write the reproduction to a folder.

        Raises a `LowerscopeError` if a file exists, or cannot be written.
        """
        if self.record is not None:
            paths = write_reproduction(folder, self.record.files)
            self._document.notify(_("Reproduction written: {path}", path=paths[0]), "info")

    def _accept(self, record: BisectRecord) -> None:
        self._document.notify(record.text, "info")
        super()._accept(record)

    def _refuse(self, problem: Problem) -> None:
        self._document.report(problem)
        super()._refuse(problem)


class WrongStep(QWidget):
    """The step after which the model differs, below its heading; hidden if the run matches."""

    step_wanted = Signal(object)  # Show the step: the record of the search.
    node_wanted = Signal()  # Show the node that it is of, which is selected.

    def __init__(self, document: Document, bisecting: Bisecting) -> None:
        super().__init__()
        self._document, self._bisecting = document, bisecting
        self.heading = Label(_("Faulty step"), role="quiet-title")
        self.search = push_button(_("Find the faulty step"), act=bisecting.start)
        self.search.setToolTip(
            _(
                "Run the module after each step, name the faulty one, and shrink the model "
                "to a reproduction"
            )
        )
        self.progress = Label(role="quiet", wraps=True)
        self.stop = push_button(_("Stop"), act=bisecting.cancel)
        self.answer = Label(wraps=True)
        self.show_step = push_button(_("Show the step"), look="quiet", act=self._show_step)
        self.show_node = push_button(_("Show the node"), look="quiet", act=self._show_node)
        for button in (self.show_step, self.show_node):
            button.setProperty("align", "left")
        self.save = push_button(_("Save the reproduction…"), act=self._save)
        parts = (self.heading, self.search, self.progress, self.stop, self.answer)
        acts = (self.show_step, self.show_node, self.save)
        self.column: QVBoxLayout = column_of(self, *parts, *acts, margins=(12, 8, 12, 4), spacing=6)
        bisecting.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        bisecting, record = self._bisecting, self._bisecting.record
        self.setVisible(bisecting.running or bisecting.can_start or record is not None)
        self.search.setVisible(not bisecting.running and record is None)
        self.progress.setText(bisecting.progress[0])
        self.progress.setVisible(bisecting.running)
        self.stop.setVisible(bisecting.running)
        self.heading.setVisible(bisecting.running or record is not None)
        self.answer.setVisible(record is not None)
        self.show_step.setVisible(record is not None and record.moment is not None)
        self.show_node.setVisible(record is not None and bool(record.entity))
        self.save.setVisible(record is not None and bool(record.files))
        if record is not None:
            self.answer.setText(record.text)

    def _show_step(self) -> None:
        if self._bisecting.record is not None:
            self.step_wanted.emit(self._bisecting.record)

    def _show_node(self) -> None:
        if self._bisecting.record is not None:
            self._document.select((self._bisecting.record.entity,))
            self.node_wanted.emit()

    def _save(self) -> None:
        save_reproduction(self._document, self._bisecting, self)


def save_reproduction(document: Document, bisecting: Bisecting, parent: QWidget) -> None:
    """Choose a folder in a dialog, and write the reproduction to it."""
    folder = QFileDialog.getExistingDirectory(parent, _("Save the reproduction"))
    if folder:
        with document.reporting():
            bisecting.save(Path(folder))


def bisect_commands(document: Document, bisecting: Bisecting, host: Host) -> tuple[Command, ...]:
    def has_files() -> bool:
        return bisecting.record is not None and bool(bisecting.record.files)

    return (
        Command(
            "bisect",
            _("Find the fa&ulty step"),
            bisecting.start,
            enabled=lambda: bisecting.can_start,
        ),
        Command(
            "save-reproduction",
            _("Save the repro&duction…"),
            partial(save_reproduction, document, bisecting, host.widget),
            enabled=has_files,
        ),
    )

"""The dialog that selects a target: a list with descriptions, and a field to type any other."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.kit.dialogs import Dialog, mark_wrong
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.remote.remote_dialog import Targets
from lowerscope.core.model.machines import TargetRecord, target_line
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _

TYPING_MS = 150
"""Delay between the last key press and the query."""


class TargetDialog(Dialog):
    """A table of targets above a text field, with the effect of the target."""

    def __init__(self, document: Document, targets: Targets, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document, self._targets = document, targets
        recipe = document.wanted
        assert recipe is not None
        self._threads = recipe.threads
        self.setWindowTitle(_("Target"))
        self.table = Table(
            _("Targets"),
            (
                Column(_("for"), width=250),
                Column(_("processor"), width=190),
                Column(
                    _("float32"),
                    numeric=True,
                    tooltip=_("Number of float32 values in a vector register"),
                ),
                Column(_("registers"), numeric=True),
                Column(_("features"), stretch=True, width=180),
                Column(_("here"), width=64),
            ),
        )
        self.table.setMinimumHeight(90)
        self.table.row_clicked.connect(self._choose)
        self.table.row_activated.connect(self._take_row)
        self.line = QLineEdit(recipe.target)
        self.line.setAccessibleName(_("Target"))
        self.line.setPlaceholderText('llvm -mcpu=skylake, {"kind": "llvm", "mcpu": "skylake"}')
        self.line.textChanged.connect(self._type)
        self.about = Label()
        self.about.setWordWrap(True)
        self.about.setMinimumHeight(2 * self.about.fontMetrics().lineSpacing())
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setProperty("primary", True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.accepted.connect(self._take)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        label = Label(_("Target"))
        label.setBuddy(self.line)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(label)
        row.addWidget(self.line, 1)
        column.addWidget(self.table, 1)
        column.addLayout(row)
        column.addWidget(self.about)
        column.addWidget(self.buttons)
        self.resize(1000, 440)
        self._soon = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._soon.timeout.connect(self._look)
        targets.changed.connect(self._show_known)
        targets.ask(self._threads)
        self._look()
        self.line.setFocus()
        self.line.selectAll()
        offer_help(self, "targets")

    def _show_known(self) -> None:
        if not self.table.rows():
            self.table.set_rows([_row(each) for each in self._targets.catalogue])
        typed = self._targets.typed
        ok = self.buttons.button(QDialogButtonBox.StandardButton.Ok)
        ok.setEnabled(isinstance(typed, TargetRecord))
        if typed is not None:
            wrong = isinstance(typed, Problem)
            text = _said(typed) if isinstance(typed, Problem) else target_line(typed)
            mark_wrong(self.line, wrong)
            self.about.setProperty("role", "wrong" if wrong else "quiet")
            self.about.style().polish(self.about)
            self.about.setText(text)

    def _type(self) -> None:
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(False)
        self._soon.start()

    def _look(self) -> None:
        self._targets.look(self.line.text().strip(), self._threads)
        self._show_known()

    def _choose(self, key: str, _modifiers: object) -> None:
        self.line.setText(key)

    def _take_row(self, key: str) -> None:
        self.line.setText(key)
        self.accept()

    def _take(self) -> None:
        recipe = self._document.wanted
        text = self.line.text().strip()
        if recipe is not None and text:
            self._document.change(msgspec.structs.replace(recipe, target=text))


def _said(problem: Problem) -> str:
    """Return the text of a problem, without the option and the command of the command line."""
    todo = "" if "lowerscope " in problem.todo else problem.todo
    return Problem(what=problem.what, todo=todo or _("Choose one from the list")).line()


def _row(record: TargetRecord) -> Row:
    features = ", ".join(record.features) or "–"
    there = _("no") if record.hindrance else _("yes")
    return Row(
        record.text,
        (
            Cell(record.title, bold=True, tooltip=record.text),
            Cell(f"{record.architecture} {record.cpu}", code=True),
            str(record.lanes),
            str(record.registers),
            Cell(features, role="quiet", tooltip=features),
            Cell(there, role="quiet", tooltip=record.hindrance),
        ),
    )

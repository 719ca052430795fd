"""The list of rule and library files: existing, enabled, and in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.plain_text import Label
from lowerscope.core.recipe import Extension
from lowerscope.core.records.snapshot import ExtensionRecord, SourceLine

KINDS = {"rules": "rules", "library": "library", "passes": "passes"}


NAME_WIDTH = 280


class ExtensionsDialog(Dialog):
    """A modeless list of files: changes apply at once, and can be undone.

    Signals
    -------
    file_wanted
        Add a file: ``"rules"``, ``"library"`` or ``"passes"``.
    place_wanted
        Open a file: a `SourceLine`.
    """

    file_wanted = Signal(str)
    place_wanted = Signal(object)

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.setWindowTitle(self.tr("Rules and library files"))
        self.list = QTreeWidget()
        self.list.setAccessibleName(self.tr("Rule and library files"))
        self.list.setRootIsDecorated(False)
        self.list.setHeaderLabels([self.tr("file"), self.tr("kind"), self.tr("holds")])
        header = self.list.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.resizeSection(0, NAME_WIDTH)
        self.empty = EmptyState(
            self.tr("No files yet"),
            self.tr("Add one, or let a node's menu in the FX graph write a rule for it."),
        )
        hint = Label(
            self.tr(
                "Rules go before the built-in ones; library files register functions that a module "
                "calls by name; files of passes add to the catalogue. A later file wins over an "
                "earlier one."
            )
        )
        hint.setWordWrap(True)
        hint.setProperty("role", "quiet")
        self.buttons: dict[str, QPushButton] = {}
        row = QHBoxLayout()
        row.setSpacing(8)
        for key, text, act in (
            ("rules", self.tr("Add rules…"), self._add_rules),
            ("library", self.tr("Add library…"), self._add_library),
            ("passes", self.tr("Add passes…"), self._add_passes),
            ("remove", self.tr("Remove"), self._remove),
            ("up", self.tr("Up"), self._up),
            ("down", self.tr("Down"), self._down),
            ("open", self.tr("Open file"), self._open),
        ):
            row.addWidget(self._button(key, text, act))
            if key == "passes":
                row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(hint)
        column.addWidget(self.empty, 1)
        column.addWidget(self.list, 1)
        column.addLayout(row)
        self.resize(720, 300)
        self.list.itemChanged.connect(self._switch)
        self.list.currentItemChanged.connect(self._enable)
        document.on(("recipe", "pending"), self._show_recipe)
        document.on(("snapshot",), self._show_recipe)
        self._show_recipe()
        offer_help(self, "add-operator-rule")

    def _button(self, key: str, text: str, act: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(act)
        self.buttons[key] = button
        return button

    def _files(self) -> tuple[Extension, ...]:
        recipe = self._document.wanted
        return () if recipe is None else recipe.extensions

    def _show_recipe(self) -> None:
        self.list.setVisible(bool(self._files()))
        self.empty.setVisible(not self._files())
        place = self._place()
        self.list.blockSignals(True)
        self.list.clear()
        snapshot = self._document.snapshot
        held = {each.path: each for each in snapshot.extensions} if snapshot is not None else {}
        for each in self._files():
            holds = _holds(each, held.get(each.path))
            item = QTreeWidgetItem(self.list, [Path(each.path).name, KINDS[each.kind], holds])
            item.setToolTip(0, each.path)
            item.setToolTip(2, _told(held.get(each.path)))
            state = Qt.CheckState.Checked if each.on else Qt.CheckState.Unchecked
            item.setCheckState(0, state)
        self.list.blockSignals(False)
        if place >= 0:
            self._mark(min(place, len(self._files()) - 1))
        self._enable()

    def _place(self) -> int:
        item = self.list.currentItem()
        return -1 if item is None else self.list.indexOfTopLevelItem(item)

    def _mark(self, place: int) -> None:
        item = self.list.topLevelItem(place)
        if item is not None:
            self.list.setCurrentItem(item)

    def _enable(self) -> None:
        place, count = self._place(), len(self._files())
        for key in KINDS:
            self.buttons[key].setEnabled(self._document.wanted is not None)
        for key in ("remove", "open"):
            self.buttons[key].setEnabled(place >= 0)
        self.buttons["up"].setEnabled(place > 0)
        self.buttons["down"].setEnabled(0 <= place < count - 1)

    def _change(self, files: list[Extension]) -> None:
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(msgspec.structs.replace(recipe, extensions=tuple(files)))

    def _switch(self, item: QTreeWidgetItem) -> None:
        place = self.list.indexOfTopLevelItem(item)
        files = list(self._files())
        on = item.checkState(0) == Qt.CheckState.Checked
        files[place] = msgspec.structs.replace(files[place], on=on)
        # The change rebuilds the list while the item is still emitting its signal.
        QTimer.singleShot(0, self, partial(self._change, files))

    def _add_rules(self) -> None:
        self.file_wanted.emit("rules")

    def _add_library(self) -> None:
        self.file_wanted.emit("library")

    def _add_passes(self) -> None:
        self.file_wanted.emit("passes")

    def _remove(self) -> None:
        files = list(self._files())
        del files[self._place()]
        self._change(files)

    def _up(self) -> None:
        self._move(-1)

    def _down(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        place, files = self._place(), list(self._files())
        files.insert(place + step, files.pop(place))
        self._mark(place + step)
        self._change(files)

    def _open(self) -> None:
        self.place_wanted.emit(SourceLine(file=self._files()[self._place()].path, line=1))


def _holds(file: Extension, record: ExtensionRecord | None) -> str:
    if not file.on:
        return "off"
    if file.kind == "passes":
        return "passes of the catalogue"
    if record is None:
        return ""
    parts = []
    if record.rules:
        nodes = len({node for rule in record.rules for node in rule.nodes})
        parts.append(f"{_count(len(record.rules), 'rule')} · {_count(nodes, 'node')}")
    if record.functions:
        parts.append(_count(len(record.functions), "function"))
    return " · ".join(parts) or "nothing"


def _told(record: ExtensionRecord | None) -> str:
    """Return the contents of a file, a line each."""
    if record is None:
        return ""
    lines = [
        f"{rule.name}, line {rule.line.line}: "
        f"{', '.join(rule.keys)} as {', '.join(rule.strategies)}"
        for rule in record.rules
    ]
    return "\n".join([*lines, *record.functions])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

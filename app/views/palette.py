"""The command palette: commands, nodes, functions, passes and lines, found by typing a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QColor, QKeyEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QLabel,
    QLineEdit,
    QStackedWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
)
from shiboken6 import isValid

from lowerscope.app import theme
from lowerscope.app.palette_entries import Entry, PaletteEntries
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.core.errors import Problem
from lowerscope.core.records.passes import PassType

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
SIZE = (720, 480)


def open_palette(window: MainWindow) -> None:
    """Open the palette over the window."""
    palette = Palette(window)
    palette.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    palette.open()


class Palette(Dialog):
    """A line to type in, above what fits it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setWindowTitle(self.tr("All commands"))
        self._entries = PaletteEntries(window)
        self._shown: list[Entry] = []
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("Type a part of a name"))
        self.line.setAccessibleName(self.tr("Find a command, node, function, pass or line"))
        self.line.installEventFilter(self)
        self.list = QTreeWidget()
        self.list.setAccessibleName(self.tr("What fits"))
        self.list.setColumnCount(3)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in (1, 2):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        self.empty = EmptyState(
            self.tr("Nothing fits"), self.tr("Lines are those of the texts that are in view.")
        )
        self._stack = QStackedWidget()
        self._stack.addWidget(self.list)
        self._stack.addWidget(self.empty)
        hint = QLabel(
            self.tr(
                "<b>&gt;</b> commands{0}<b>@</b> nodes{0}<b>#</b> functions{0}<b>%</b> passes{0}"
                "<b>:</b> lines in view, <b>:120</b> by number"
            ).format("&nbsp;" * 5)
        )
        hint.setProperty("role", "quiet")
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._run)
        self.list.itemActivated.connect(self._run)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(12, 12, 12, 12)
        column_layout.setSpacing(8)
        column_layout.addWidget(self.line)
        column_layout.addWidget(self._stack, 1)
        column_layout.addWidget(hint)
        self.resize(*SIZE)
        self._filter("")
        if window.workspace.recipe is not None:
            window.workspace.fetches.catalogue(self._take_passes, self._go_without_passes)

    def shown(self) -> list[Entry]:
        """Return what fits, in order."""
        return list(self._shown)

    def _take_passes(self, types: tuple[PassType, ...]) -> None:
        # It may have been closed meanwhile.
        if isValid(self):
            self._entries.add_pass_types(types)
            self._filter(self.line.text())

    def _go_without_passes(self, _problem: Problem) -> None:
        """Those of the pipeline are there; what is wrong is said where a pass is added."""

    def _filter(self, text: str) -> None:
        self._shown = self._entries.find(text)
        self.list.clear()
        items = [QTreeWidgetItem([each.title, each.where, each.keys]) for each in self._shown]
        for item, entry in zip(items, self._shown, strict=True):
            item.setDisabled(not entry.enabled)
            item.setToolTip(0, entry.title)
            for column in (1, 2):
                item.setForeground(column, QColor(theme.current().quiet))
        self.list.addTopLevelItems(items)
        first = next((item for item in items if not item.isDisabled()), None)
        if first is not None:
            self.list.setCurrentItem(first)
        self._stack.setCurrentWidget(self.list if items else self.empty)

    def _run(self) -> None:
        item = next(iter(self.list.selectedItems()), None)
        if item is None or item.isDisabled():
            return
        entry = self._shown[self.list.indexOfTopLevelItem(item)]
        self.accept()
        entry.act()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.line and isinstance(event, QKeyEvent) and event.key() in MOVES:
            if event.type() == QEvent.Type.KeyPress:
                self.list.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

"""The command palette: every command, found by typing a part of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QDialog, QLineEdit, QTreeWidget, QTreeWidgetItem, QVBoxLayout

from lowerscope.app.actions import keys_of

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

ACTION = Qt.ItemDataRole.UserRole
MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


def open_palette(window: MainWindow) -> None:
    """Open the palette over the window."""
    palette = Palette(window)
    palette.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    palette.open()


class Palette(QDialog):
    """A line to type in, above the commands that match it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.setWindowTitle(self.tr("All commands"))
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("Type a part of a command's name"))
        self.line.setAccessibleName(self.tr("Filter commands"))
        self.line.installEventFilter(self)
        self.list = QTreeWidget()
        self.list.setAccessibleName(self.tr("Commands"))
        self.list.setColumnCount(3)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        for command, action in window.commands:
            words = (_plain(action.text()), _plain(command.menu))
            item = QTreeWidgetItem(self.list, [*words, keys_of(command)])
            item.setData(0, ACTION, action)
            item.setDisabled(not action.isEnabled())
        for column in range(3):
            self.list.resizeColumnToContents(column)
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._run)
        self.list.itemActivated.connect(self._run)
        column_layout = QVBoxLayout(self)
        column_layout.setContentsMargins(12, 12, 12, 12)
        column_layout.setSpacing(8)
        column_layout.addWidget(self.line)
        column_layout.addWidget(self.list)
        self.resize(520, 420)
        self._filter("")

    def _items(self) -> list[QTreeWidgetItem]:
        items = (self.list.topLevelItem(index) for index in range(self.list.topLevelItemCount()))
        return [item for item in items if item is not None]

    def _filter(self, text: str) -> None:
        words = text.lower().split()
        shown = []
        for item in self._items():
            title = f"{item.text(0)} {item.text(1)}".lower()
            item.setHidden(not all(word in title for word in words))
            if not item.isHidden() and not item.isDisabled():
                shown.append(item)
        self.list.clearSelection()
        if shown:
            self.list.setCurrentItem(shown[0])

    def _run(self) -> None:
        item = next(iter(self.list.selectedItems()), None)
        if item is None or item.isDisabled() or item.isHidden():
            return
        action: QAction = item.data(0, ACTION)
        self.accept()
        action.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.line and isinstance(event, QKeyEvent) and event.key() in MOVES:
            if event.type() == QEvent.Type.KeyPress:
                self.list.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)


def _plain(text: str) -> str:
    return text.partition("\t")[0].replace("&", "").rstrip("…")

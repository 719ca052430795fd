"""A search dialog: a line, above the matching rows."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QStackedWidget,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.empty_state import EmptyState
from lowerscope.app.widgets.plain_text import MarkupLabel

_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class FindLine(QLineEdit):
    """A search line from which the arrow keys move through the matching rows.

    Parameters
    ----------
    rows : QAbstractItemView
        The rows.
    """

    def __init__(self, rows: QAbstractItemView) -> None:
        super().__init__()
        self._rows = rows
        self.setClearButtonEnabled(True)

    # Qt

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _MOVES:
            self._rows.keyPressEvent(event)
        else:
            super().keyPressEvent(event)


class Finder(Dialog):
    """A search dialog; the arrow keys move through the rows while typing.

    Parameters
    ----------
    columns : int
        The number of columns; the first one takes the remaining width.
    parent : QWidget
        The parent window.

    Attributes
    ----------
    line : FindLine
        The search line.
    rows : QTreeWidget
        The matching rows.
    empty : EmptyState
        Shown where nothing matches.
    hint : MarkupLabel
        A quiet line below.
    """

    def __init__(self, columns: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows = QTreeWidget()
        self.line = FindLine(self.rows)
        self.rows.setColumnCount(columns)
        self.rows.setHeaderHidden(True)
        self.rows.setRootIsDecorated(False)
        self.rows.setUniformRowHeights(True)
        header = self.rows.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.empty = EmptyState("", "")
        self._stack = QStackedWidget()
        self._stack.addWidget(self.rows)
        self._stack.addWidget(self.empty)
        self.hint = MarkupLabel()
        self.hint.setProperty("role", "quiet")
        self.hint.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 12, 12, 12)
        column.setSpacing(8)
        column.addWidget(self.line)
        column.addWidget(self._stack, 1)
        column.addWidget(self.hint)

    def show_found(self, found: bool) -> None:
        """Show the rows, or that nothing matches."""
        self._stack.setCurrentWidget(self.rows if found else self.empty)

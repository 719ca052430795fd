"""A short list that is reordered by dragging, or with Alt and the arrow keys."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QListWidget, QListWidgetItem, QWidget

_ROW = 24
_KEY = Qt.ItemDataRole.UserRole


class OrderList(QListWidget):
    """A list of names that the user can reorder."""

    edited = Signal()  # The user changed the order.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        # Whether a row is being dragged, and whether it has moved since the press.
        self._dragging = self._dragged = False
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setToolTip(self.tr("Drag, or press Alt with ↑ or ↓, to change the order"))

    def set_names(self, names: Sequence[str]) -> None:
        """Set the names; each is identified by its index from then on."""
        self.clear()
        for place, name in enumerate(names):
            item = QListWidgetItem(f"⋮⋮  {name}")
            item.setData(_KEY, place)
            item.setSizeHint(QSize(0, _ROW))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, name)
            self.addItem(item)
        if names:
            self.setCurrentRow(0)
        self.setFixedHeight(max(1, min(len(names), 8)) * _ROW + 4)

    def order(self) -> tuple[int, ...]:
        """Return the original indices of the names, in their current order."""
        return tuple(self.item(row).data(_KEY) for row in range(self.count()))

    def move_current(self, by: int) -> None:
        """Move the current name."""
        row = self.currentRow()
        to = row + by
        if row >= 0 and 0 <= to < self.count():
            self.insertItem(to, self.takeItem(row))
            self.setCurrentRow(to)
            self.edited.emit()

    # Qt's own

    def event(self, event: QEvent) -> bool:
        # The window uses these keys for other commands.
        override = event.type() == QEvent.Type.ShortcutOverride
        if override and isinstance(event, QKeyEvent) and _is_move(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_move(event):
            self.move_current(-1 if event.key() == Qt.Key.Key_Up else 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        left = event.button() == Qt.MouseButton.LeftButton
        self._dragging = left and self.itemAt(event.position().toPoint()) is not None
        self._dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._dragging:
            super().mouseMoveEvent(event)
            return
        # The row moves with the mouse, so that the list always shows the new order.
        self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        to = max(0, min(int(event.position().y()) // _ROW, self.count() - 1))
        row = self.currentRow()
        if to != row:
            self.insertItem(to, self.takeItem(row))
            self.setCurrentRow(to)
            self._dragged = True

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.viewport().unsetCursor()
        dragged, self._dragging = self._dragged, False
        if dragged:
            self._dragged = False
            self.edited.emit()


def _is_move(event: QKeyEvent) -> bool:
    alt = event.modifiers() & Qt.KeyboardModifier.AltModifier
    return bool(alt) and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down)

"""A splitter whose lines are moved by mouse or by keys."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle

from lowerscope.app import theme
from lowerscope.app.widgets.focus_ring import came_by_keyboard

STEP = 24
"""Pixels by which a key moves a line."""

_FAR = 1 << 16


class Split(QSplitter):
    """A splitter whose lines take the focus; the arrow keys move them, Home and End to the ends."""

    # Qt

    def createHandle(self) -> QSplitterHandle:
        return SplitLine(self.orientation(), self)


class SplitLine(QSplitterHandle):
    """The line between two parts; thicker while it has the focus."""

    def __init__(self, orientation: Qt.Orientation, parent: Split) -> None:
        super().__init__(orientation, parent)
        self._ring = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(self.tr("Line between two parts"))
        self.setAccessibleDescription(self.tr("The arrow keys move it"))

    def _across(self) -> bool:
        return self.orientation() == Qt.Orientation.Horizontal

    def _show_ring(self, on: bool) -> None:
        self._ring = on
        # Otherwise Qt shows a line of one pixel.
        if on:
            self.clearMask()
        else:
            self.setMask(self.contentsRect())
        self.update()

    # Qt

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = (Qt.Key.Key_Left, Qt.Key.Key_Right) if self._across() else _UP_DOWN
        by = dict(zip((*keys, Qt.Key.Key_Home, Qt.Key.Key_End), _MOVES, strict=True))
        step = by.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        place = self.x() if self._across() else self.y()
        self.moveSplitter(self.closestLegalPosition(place + step))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show_ring(came_by_keyboard(event))

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_ring(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._ring:
            self.clearMask()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._ring:
            QPainter(self).fillRect(self.rect(), QColor(theme.current().accent))
        else:
            super().paintEvent(event)


_UP_DOWN = (Qt.Key.Key_Up, Qt.Key.Key_Down)
_MOVES = (-STEP, STEP, -_FAR, _FAR)

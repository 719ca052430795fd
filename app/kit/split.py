"""A splitter whose lines are moved by mouse or by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QPushButton,
    QSizePolicy,
    QSplitter,
    QSplitterHandle,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics

if TYPE_CHECKING:
    from PySide6.QtGui import QEnterEvent


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


# --- A row that can be clicked: a title with a line of description below it ---
#
# It uses Qt's own widgets and the style sheet, without custom painting, since it is part of the
# window's first paint; see `lowerscope.app.kit.theme`.

PADDING = 12
HEIGHT = 46
LEAST_WIDTH = 160


class LinkRow(QPushButton):
    """A flat, wide button with two lines of text, elided where they do not fit."""

    def __init__(self, title: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines = (_line(title, "link", self), _line(description, "quiet", self))
        self._texts = (title, description)
        self.setProperty("row", True)
        self.setAccessibleName(title)
        self.setAccessibleDescription(description)
        self.setToolTip(description)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setFixedHeight(HEIGHT)
        column_of(self, *self._lines, margins=(PADDING, 4, PADDING, 5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        from PySide6.QtCore import Qt

        self.setCursor(Qt.CursorShape.PointingHandCursor)
        super().enterEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() - 2 * PADDING
        for line, text in zip(self._lines, self._texts, strict=True):
            # Qt's own eliding takes an argument of its namespace, which is slow to make.
            metrics = TextMetrics(line.font())
            shown = text[:SHOWN_CHARACTERS]
            while len(shown) > 1 and metrics.horizontalAdvance(shown) > room:
                shown = f"{shown.rstrip('…')[:-1]}…"
            line.setText(shown)


def _line(text: str, role: str, parent: QWidget) -> Label:
    line = Label(text, parent, role=role)
    line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return line

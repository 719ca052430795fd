"""Parts of a page: a splitter whose lines are moved by mouse or by keys, and a strip."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.layouts import Part, row_of
from lowerscope.core.model.texts import _

STEP = 24
"""Pixels by which a key moves a line."""

_FAR = 1 << 16


class Split(QSplitter):
    """A splitter whose lines take the focus; the arrow keys move them, Home and End to the ends.

    Args:
        sizes: The first sizes of the parts.
        shares: Their shares of room that is added later.
    """

    def __init__(
        self,
        orientation: Qt.Orientation = Qt.Orientation.Horizontal,
        *parts: QWidget,
        sizes: Sequence[int] = (),
        shares: Sequence[int] = (),
        collapsible: bool = False,
    ) -> None:
        super().__init__(orientation)
        if parts:
            self.setChildrenCollapsible(collapsible)
        for part in parts:
            self.addWidget(part)
        for place, share in enumerate(shares):
            self.setStretchFactor(place, share)
        if sizes:
            self.setSizes(sizes)

    # Qt

    def createHandle(self) -> QSplitterHandle:
        return SplitLine(self.orientation(), self)


class SplitLine(QSplitterHandle):
    """The line between two parts; thicker while it has the focus."""

    def __init__(self, orientation: Qt.Orientation, parent: Split) -> None:
        super().__init__(orientation, parent)
        self._ring = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(_("Splitter between two parts"))
        self.setAccessibleDescription(_("Move it with the arrow keys"))

    def _across(self) -> bool:
        return self.orientation() == Qt.Orientation.Horizontal

    def _show_ring(self, on: bool) -> None:
        self._ring = on
        # Otherwise Qt shows a line of one pixel.
        if on:
            self.clearMask()
        else:
            # A mask alone does not paint opaque widgets anew where they were covered.
            self.lower()
            self.raise_()
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
        # A click does not give it the focus.
        self._show_ring(came_by_keyboard(event, True))

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


HEAD = 36
"""Height of the row above a part of a page."""


def head_of(*parts: Part) -> QWidget:
    """Return the row above a part of a page: its title and its controls."""
    head = strip_of(*parts)
    head.setFixedHeight(HEAD)
    return head


def strip_of(*parts: Part) -> QWidget:
    """Return a row of controls at the top of a page, with a line below it."""
    strip = QWidget()
    strip.setProperty("edge", "bottom")
    strip.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    row_of(strip, *parts, margins=(8, 4, 8, 4), spacing=8)
    return strip

"""A slider over the steps of a list: a dot for each, and a ring around the current one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy, QToolTip

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import RINGED, came_by_keyboard

_HEIGHT = 34
_MARGIN = 18.0
_WIDEST = 56.0
_ROUND = 11.0
"""At a smaller distance, dots are drawn as lines."""

_BIG, _SMALL = 4.5, 2.25
_DISC, _ABOVE = 3.0, 13.0
"""Radius of the disc of a breakpoint, and its height above the middle."""


@dataclass(frozen=True)
class Dot:
    """A step on the slider."""

    key: int  # A unique number, increasing from left to right.
    big: bool  # Whether it is one to stop at; or, if all are, a major one.
    state: str = ""  # ``""``, ``"start"``, ``"wrong"``, ``"skipped"`` or ``"off"``.
    tooltip: str = ""  # Description of the step.
    is_break: bool = False  # Whether playing stops there: a breakpoint, with a red disc above it.


class StepSlider(QAbstractSlider):
    """Any number of dots in a row; those that do not fit are drawn as a line for each pixel.

    Qt's value is the index in the row; the keys are the caller's own.
    """

    # The user went to a dot, by click or by dragging; the argument is its key.
    chosen = Signal(int)
    # The user stepped forward, or back; the argument is the number of dots to stop at.
    stepped = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._dots: tuple[Dot, ...] = ()
        self._keys: list[int] = []
        self._current = -1
        self._hovered = -1
        self._ring = False
        self._columns: list[tuple[float, int]] = []
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setProperty(RINGED, True)
        self.setMouseTracking(True)
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)
        self.set_dots(())

    def set_dots(self, dots: Sequence[Dot]) -> None:
        """Set the dots, in the order of their keys."""
        key = self.current()
        self._dots = tuple(dots)
        self._keys = [dot.key for dot in dots]
        self.setRange(0, max(0, len(dots) - 1))
        self._current = -1
        self._arrange()
        self.set_current(key)

    def dots(self) -> tuple[Dot, ...]:
        return self._dots

    def set_current(self, key: int | None) -> None:
        """Move the ring to a dot, without a signal, or to the last one before it."""
        place = -1 if key is None else self._place_of(key)
        if place != self._current:
            self._current = place
            self.setValue(max(0, place))
            self.setAccessibleDescription(self._dots[place].tooltip if place >= 0 else "")
            self.update()

    def current(self) -> int | None:
        """Return key of the dot with the ring; ``None`` for none."""
        return self._dots[self._current].key if self._current >= 0 else None

    def dot_centre(self, key: int) -> QPointF:
        """Return the position of a dot in the widget."""
        return QPointF(self._x(self._keys.index(key)), self.height() / 2)

    def _place_of(self, key: int) -> int:
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else place - 1

    def _pitch(self) -> float:
        room = self.width() - 2 * _MARGIN
        return min(_WIDEST, room / max(1, len(self._dots) - 1))

    def _x(self, place: int) -> float:
        return _MARGIN + place * self._pitch()

    def _at(self, x: float) -> int:
        """Return the index of the nearest dot, or -1 if there is none."""
        if not self._dots:
            return -1
        place = round((x - _MARGIN) / max(self._pitch(), 1e-6))
        return max(0, min(place, len(self._dots) - 1))

    def _is_near(self, x: float) -> bool:
        return bool(self._dots) and abs(x - self._x(self._at(x))) <= max(_ROUND, self._pitch() / 2)

    def _arrange(self) -> None:
        """Compute the lines of a row that is too long for dots: the tallest of each pixel."""
        self._columns = []
        if self._pitch() < _ROUND:
            pitch, rank = self._pitch(), {"wrong": 3}
            tallest: dict[int, int] = {}
            for place, dot in enumerate(self._dots):
                x = round(_MARGIN + place * pitch)
                tall = rank.get(dot.state, 2 if dot.big else 1)
                tallest[x] = max(tallest.get(x, 0), tall)
            self._columns = [(float(x), tall) for x, tall in tallest.items()]
        self.update()

    def _scrub(self, x: float) -> None:
        place = self._at(x)
        if place >= 0 and place != self._current:
            self.chosen.emit(self._dots[place].key)

    # Qt's own

    def sizeHint(self) -> QSize:
        return QSize(400, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Down: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: 1,
            Qt.Key.Key_PageDown: 10,
            Qt.Key.Key_PageUp: -10,
        }
        key = Qt.Key(event.key())
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier or not self._dots:
            event.ignore()
        elif key in steps:
            self._ring = True
            self.stepped.emit(steps[key])
        elif key == Qt.Key.Key_Home:
            self.chosen.emit(self._dots[0].key)
        elif key == Qt.Key.Key_End:
            self.chosen.emit(self._dots[-1].key)
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._ring = False
            self._scrub(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._scrub(x)
        hovered = self._at(x) if self._is_near(x) else -1
        if hovered != self._hovered:
            self._hovered = hovered
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # The keyboard's position, where menus and tool tips opened by key appear.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._current >= 0:
            return QRectF(self._x(self._current) - 1, 0, 2, self.height()).toRect()
        return super().inputMethodQuery(query)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            x = float(event.pos().x())
            text = self._dots[self._at(x)].tooltip if self._is_near(x) else ""
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._columns:
            self._paint_lines(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._columns:
            for place, dot in enumerate(self._dots):
                self._paint_dot(painter, self._x(place), dot, hovered=place == self._hovered)
        if self._current >= 0:
            self._paint_current(painter, self._x(self._current), self._dots[self._current])
        self._paint_breaks(painter)

    def _paint_lines(self, painter: QPainter) -> None:
        colours = theme.current()
        middle = self.height() / 2
        for tall, half, colour in (
            (1, 1.5, colours.node_line),
            (2, 5.0, colours.edge),
            (3, 8.0, colours.wrong),
        ):
            rects = [
                QRectF(x, middle - half, 1, 2 * half) for x, rank in self._columns if rank == tall
            ]
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colour))
            painter.drawRects(rects)

    def _paint_breaks(self, painter: QPainter) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.current().stop))
        middle = self.height() / 2
        for place, dot in enumerate(self._dots):
            if dot.is_break:
                painter.drawEllipse(QPointF(self._x(place), middle - _ABOVE), _DISC, _DISC)

    def _paint_dot(self, painter: QPainter, x: float, dot: Dot, *, hovered: bool) -> None:
        colours = theme.current()
        centre = QPointF(x, self.height() / 2)
        radius = _BIG if dot.big else _SMALL
        if hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colours.hover))
            painter.drawEllipse(centre, 9, 9)
        colour = QColor(colours.edge if dot.big else colours.faint)
        if dot.state == "wrong":
            pen = QPen(QColor(colours.wrong), 2)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            for sign in (1, -1):
                arm = QPointF(4, 4 * sign)
                painter.drawLine(centre - arm, centre + arm)
        elif dot.state in ("off", "skipped", "start"):
            painter.setPen(QPen(colour if dot.state == "start" else QColor(colours.faint), 1.2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(centre, radius, radius)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            painter.drawEllipse(centre, radius, radius)

    def _paint_current(self, painter: QPainter, x: float, dot: Dot) -> None:
        colours = theme.current()
        centre = QPointF(x, self.height() / 2)
        accent = QColor(colours.wrong if dot.state == "wrong" else colours.accent)
        half = 9.0
        box = QRectF(centre.x() - half, centre.y() - half, 2 * half, 2 * half)
        painter.setPen(QPen(accent, 2))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 5, 5)
        if dot.state == "wrong":
            self._paint_dot(painter, x, dot, hovered=False)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(accent)
            painter.drawRoundedRect(QRectF(centre.x() - 4, centre.y() - 4, 8, 8), 2, 2)
        if self._ring and self.hasFocus():
            painter.setPen(QPen(accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(-2, -2, 2, 2), 7, 7)

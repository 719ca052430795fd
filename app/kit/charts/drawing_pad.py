"""A small grey picture, drawn pixel by pixel with a soft brush, by mouse, pen or keys."""

from math import hypot

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app.kit import theme

_ROOM = 4
_SMALLEST = 112
_HINT = 196
_SPACING = 0.35
"""Distance between the dabs of a stroke, as a share of the brush's radius."""

_SOFT = 1.0
"""Pixels over which a dab fades at its edge."""

_MOVES = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


class DrawingPad(QWidget):
    """A picture in grey on black for drawing.

    The arrows move by a cell, Space puts a dab there, Shift with the arrows draws a line; E
    switches between pencil and eraser, and Delete clears.
    """

    stroke_ended = Signal()  # The user drew a stroke, or cleared the picture: `pixels` has changed.
    tool_changed = Signal(str)  # The user chose ``"pencil"`` or ``"eraser"`` by a key.

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._width, self._height = 28, 28
        self._pixels = bytearray(self._width * self._height)
        self._erases = False
        self._radius = 1.4
        self._last: QPointF | None = None
        self._cell: tuple[int, int] | None = None
        self._by_keys = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.setAccessibleDescription(
            self.tr(
                "Arrows move, Space dabs, Shift and arrows draw, E pencil or eraser, Delete clears"
            )
        )
        self._say_size()
        theme.notifier().changed.connect(self.update)

    def set_picture(self, pixels: bytes, width: int, height: int) -> None:
        """Set the picture to draw on: one byte per pixel, row by row, 0 for black."""
        assert len(pixels) == width * height, (len(pixels), width, height)
        self._width, self._height = width, height
        self._pixels[:] = pixels
        self._cell = None
        self._say_size()
        self.update()

    def pixels(self) -> bytes:
        """Return the current picture, one byte per pixel, row by row."""
        return bytes(self._pixels)

    def picture_size(self) -> tuple[int, int]:
        """Return the width and height in pixels."""
        return self._width, self._height

    def is_drawing(self) -> bool:
        """Return whether a stroke is in progress."""
        return self._last is not None or self._by_keys

    def set_tool(self, tool: str) -> None:
        """Draw with the ``"pencil"`` or with the ``"eraser"``."""
        self._erases = tool == "eraser"

    def tool(self) -> str:
        """Return ``"pencil"`` or ``"eraser"``."""
        return "eraser" if self._erases else "pencil"

    def set_brush(self, radius: float) -> None:
        """Set the radius of the brush, in pixels of the picture."""
        self._radius = radius

    def clear(self) -> None:
        """Clear the picture to black, as one stroke."""
        self._pixels[:] = bytes(len(self._pixels))
        self.update()
        self.stroke_ended.emit()

    def picture_rect(self) -> QRectF:
        """Return the area of the picture in the widget; pixels have whole sizes if possible."""
        room = QRectF(self.rect()).adjusted(_ROOM, _ROOM, -_ROOM, -_ROOM)
        scale = min(room.width() / self._width, room.height() / self._height)
        scale = float(int(scale)) if scale >= 1 else scale
        return QRectF(room.left(), room.top(), scale * self._width, scale * self._height)

    def place_of(self, column: float, row: float) -> QPointF:
        """Return the position of a pixel's centre in the widget."""
        rect = self.picture_rect()
        return QPointF(
            rect.left() + (column + 0.5) * rect.width() / self._width,
            rect.top() + (row + 0.5) * rect.height() / self._height,
        )

    def _say_size(self) -> None:
        self.setAccessibleName(f"{self._name}, {self._width}×{self._height}")

    def _pixel_at(self, place: QPointF) -> QPointF:
        rect = self.picture_rect()
        return QPointF(
            (place.x() - rect.left()) / rect.width() * self._width - 0.5,
            (place.y() - rect.top()) / rect.height() * self._height - 0.5,
        )

    def _draw_to(self, end: QPointF) -> None:
        """Put dabs from the stroke's position to `end`, in pixels."""
        start = end if self._last is None else self._last
        length = hypot(end.x() - start.x(), end.y() - start.y())
        count = max(1, int(length / max(0.2, self._radius * _SPACING)))
        for step in range(count + 1):
            share = step / count
            self._dab(
                start.x() + share * (end.x() - start.x()), start.y() + share * (end.y() - start.y())
            )
        self._last = end
        self.update()

    def _dab(self, x: float, y: float) -> None:
        reach = self._radius + _SOFT
        for row in range(max(0, int(y - reach)), min(self._height, int(y + reach) + 2)):
            for column in range(max(0, int(x - reach)), min(self._width, int(x + reach) + 2)):
                strength = (reach - hypot(column - x, row - y)) / _SOFT
                value = round(255 * max(0.0, min(1.0, strength)))
                index = row * self._width + column
                if self._erases:
                    self._pixels[index] = min(self._pixels[index], 255 - value)
                else:
                    self._pixels[index] = max(self._pixels[index], value)

    def _end_stroke(self) -> None:
        if self.is_drawing():
            self._last, self._by_keys = None, False
            self.stroke_ended.emit()

    def _move(self, key: Qt.Key, *, draws: bool) -> None:
        columns, rows = _MOVES[key]
        column, row = self._cell or (self._width // 2, self._height // 2)
        if self._cell is not None:
            column = max(0, min(self._width - 1, column + columns))
            row = max(0, min(self._height - 1, row + rows))
        if draws:
            self._last = QPointF(*(self._cell or (column, row)))
            self._by_keys = True
            self._draw_to(QPointF(column, row))
        self._cell = column, row
        self.update()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(_HINT + 2 * _ROOM, _HINT + 2 * _ROOM)

    def minimumSizeHint(self) -> QSize:
        return QSize(_SMALLEST + 2 * _ROOM, _SMALLEST + 2 * _ROOM)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._cell = None
            self._last = None
            self._draw_to(self._pixel_at(event.position()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._last is not None and event.buttons() & Qt.MouseButton.LeftButton:
            self._draw_to(self._pixel_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._end_stroke()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in _MOVES:
            self._move(key, draws=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        elif key == Qt.Key.Key_Space:
            self._cell = self._cell or (self._width // 2, self._height // 2)
            self._last = None
            self._by_keys = True
            self._draw_to(QPointF(*self._cell))
        elif key == Qt.Key.Key_E:
            self.set_tool("pencil" if self._erases else "eraser")
            self.tool_changed.emit(self.tool())
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.clear()
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        super().keyReleaseEvent(event)
        # A line drawn by keys ends when Shift is released; a dab, with its own key.
        ends = event.key() in (Qt.Key.Key_Shift, Qt.Key.Key_Space)
        if self._by_keys and ends and not event.isAutoRepeat():
            self._end_stroke()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._end_stroke()
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        rect = self.picture_rect()
        image = QImage(
            bytes(self._pixels),
            self._width,
            self._height,
            self._width,
            QImage.Format.Format_Grayscale8,
        )
        painter = QPainter(self)
        painter.drawImage(rect, image)
        rim = colours.accent if self.hasFocus() else colours.line
        painter.setPen(QPen(QColor(rim), 1))
        painter.drawRect(rect.adjusted(-1, -1, 0, 0))
        if self._cell is not None and self.hasFocus():
            side = rect.width() / self._width
            column, row = self._cell
            cell = QRectF(rect.left() + column * side, rect.top() + row * side, side, side)
            painter.setPen(QPen(QColor(colours.accent), 2))
            painter.drawRect(cell)

"""Heat map: a matrix as colours, with a scale."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainterPath
from PySide6.QtWidgets import QGraphicsRectItem, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import ZoomChart
from lowerscope.app.kit.theme import Theme

_FAR = 10  # Elements by which the cursor moves with Ctrl.
_FEWEST = 4  # Rows or columns that are visible at the largest zoom.
_LARGEST = 40.0  # Size of an element, in pixels.
_MOST_UNEQUAL = 4.0  # Up to this ratio of their sides, elements are squares instead.
_MARKED_FROM = 7.0  # Size of a cell, in pixels, from which on it is crossed out.
_FRAMED_FROM = 6.0  # Size of an element, in pixels.
_ROOM, _BELOW = 10.0, 22.0
_BAR, _BAR_GAP, _BAR_ROOM, _BAR_HEIGHT = 12.0, 14.0, 96.0, 220.0
_SHADES = 255

_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


@dataclass(frozen=True)
class HeatPiece:
    """A part of a matrix in cells of one or more elements each."""

    # The first row of each row of cells, and the end of the last; likewise of columns.
    row_edges: tuple[int, ...]
    column_edges: tuple[int, ...]
    values: Sequence[float]  # A number for each cell, row by row.
    marked: bytes = b""  # A byte for each cell, 1 where it is out of tolerance; or empty.

    @property
    def height(self) -> int:
        """The number of rows of cells."""
        return len(self.row_edges) - 1

    @property
    def width(self) -> int:
        """The number of columns of cells."""
        return len(self.column_edges) - 1

    @property
    def is_reduced(self) -> bool:
        """Return whether a cell stands for several elements."""
        both = (self.row_edges, self.column_edges)
        return any(edges[-1] - edges[0] > len(edges) - 1 for edges in both)

    def cell_of(self, row: int, column: int) -> tuple[int, int] | None:
        """Return the cell of an element; ``None`` if the element is not in the piece."""
        i, j = bisect_right(self.row_edges, row) - 1, bisect_right(self.column_edges, column) - 1
        inside = 0 <= i < self.height and 0 <= j < self.width
        return (i, j) if inside else None

    def value(self, i: int, j: int) -> float:
        """Return the value of a cell."""
        return self.values[i * self.width + j]

    def is_marked(self, i: int, j: int) -> bool:
        """Return whether a cell is out of tolerance."""
        return bool(self.marked) and self.marked[i * self.width + j] != 0


@dataclass(frozen=True)
class HeatScale:
    """The range of the colours; ``diverging`` if they diverge at zero."""

    low: float
    high: float
    diverging: bool = False

    def colours(self, values: Sequence[float], theme: Theme) -> Any:
        """Return the colours of some values, as an array of red, green and blue."""
        import numpy as np

        stops = [_rgb(each) for each in _stops(theme, self.diverging)]
        given = np.asarray(values, dtype=float)
        finite = np.isfinite(given)
        # Halved first, since the range itself may overflow a float.
        span = (self.high / 2 - self.low / 2) or 1
        shares = np.where(finite, given / 2 - self.low / 2, 0) / span
        ends = np.linspace(0, 1, len(stops))
        shades = np.stack([np.interp(shares, ends, part) for part in zip(*stops, strict=True)], -1)
        shades[~finite] = _rgb(theme.wrong)
        return np.rint(shades).astype(np.uint8)


def _rgb(colour: str) -> tuple[int, int, int]:
    shade = QColor(colour)
    return shade.red(), shade.green(), shade.blue()


def _stops(theme: Theme, diverging: bool) -> tuple[str, ...]:
    """Return equally distant colours of a scale, from the lowest value to the highest."""
    if not diverging:
        # Viridis: distinguishable with colour blindness, and in grey.
        return ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
    if theme.dark:
        return ("#8ab6ff", "#41648f", theme.ground, "#8d5f38", "#ffb067")
    return ("#1d4f9f", "#86aee0", theme.ground, "#e3a066", "#a94b06")


def number_text(value: float) -> str:
    """Return the text of a number, for the colour scale and the grid."""
    return f"{value:.3g}"


class HeatMap(ZoomChart):
    """A matrix, shown in cells, a piece at a time. The arrow keys move a cursor."""

    # Another element is under the mouse or the cursor: its row and column.
    pointed = Signal(int, int)

    SIZE, SMALLEST = QSize(360, 240), QSize(200, 120)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._rows = self._columns = 0
        self._piece: HeatPiece | None = None
        self._scale = HeatScale(0.0, 1.0)
        self._hovered = -1
        self._said = ""
        self.setMouseTracking(True)

    def set_extent(self, rows: int, columns: int) -> None:
        """Set the size of the matrix; another size resets the zoom and removes the piece."""
        if (rows, columns) != self.extent():
            self._rows, self._columns = rows, columns
            self._here, self._hovered = 0, -1
            self._set_whole(QRectF(0, 0, columns, rows), QSizeF(_FEWEST, _FEWEST))
            self.clear()

    def extent(self) -> tuple[int, int]:
        """Return the rows and columns of the matrix."""
        return self._rows, self._columns

    def set_piece(self, piece: HeatPiece, scale: HeatScale, words: str = "") -> None:
        """Show a piece of the matrix in the colours of a scale, with a line below it."""
        self._piece, self._scale, self._summary = piece, scale, words
        self._draw()

    def clear(self) -> None:
        """Clear the heat map until there is a piece."""
        self._piece = None
        self._draw()

    def piece(self) -> HeatPiece | None:
        """Return the piece that is shown."""
        return self._piece

    def shown_range(self) -> tuple[int, int, int, int]:
        """Return the first visible row and column, and the number of visible ones."""
        part = self._part
        top, left = math.floor(part.top()), math.floor(part.left())
        return top, left, math.ceil(part.bottom()) - top, math.ceil(part.right()) - left

    def at(self) -> tuple[int, int]:
        """Return the row and column of the element under the mouse, or else of the cursor."""
        number = self._here if self._hovered < 0 else self._hovered
        return divmod(number, self._columns) if self._columns else (0, 0)

    def set_cursor(self, row: int, column: int) -> None:
        """Move the cursor to an element, and scroll to it."""
        row, column = min(max(0, row), self._rows - 1), min(max(0, column), self._columns - 1)
        self._here, self._hovered = row * self._columns + column, -1
        self._reveal(QRectF(column, row, 1, 1))
        self.pointed.emit(row, column)
        self._draw_mark()

    def say(self, words: str) -> None:
        """Set the text of the current element, for a screen reader."""
        self._said = words
        self._describe()

    def element_rect(self, row: int, column: int) -> QRectF:
        """Return the area in the widget of an element, which has to be visible."""
        return QRectF(self._to_widget(column, row), self._to_widget(column + 1, row + 1))

    def element_at(self, place: QPointF) -> tuple[int, int] | None:
        """Return the row and column of the element at a position in the widget."""
        number = self._number_at(place) if self._is_drawn() else -1
        return divmod(number, self._columns) if number >= 0 else None

    # Chart: elements are numbered row by row

    def _count(self) -> int:
        return self._rows * self._columns if self._piece is not None else 0

    def _value_text(self, number: int) -> str:
        return self._said

    def _place(self, number: int) -> tuple[float, float]:
        row, column = divmod(number, self._columns)
        return column + 0.5, row + 0.5

    def _number_at(self, place: QPointF) -> int:
        if not self._area().contains(place):
            return -1
        point = self._to_plot(place)
        row, column = min(int(point.y()), self._rows - 1), min(int(point.x()), self._columns - 1)
        return row * self._columns + column

    def _tip(self, place: QPointF) -> str:
        return ""

    def _go(self, number: int) -> None:
        self.set_cursor(*divmod(number, self._columns))

    def _draw_plot(self, pg: Any) -> None:
        piece, part = self._piece, self._part
        assert piece is not None
        room = QRectF(self.rect()).adjusted(_ROOM, _ROOM, -_BAR_ROOM, -_BELOW)
        room.setSize(room.size().expandedTo(QSizeF(1, 1)))
        wide, high = room.width() / part.width(), room.height() / part.height()
        if max(wide, high) <= _MOST_UNEQUAL * min(wide, high):
            wide = high = min(wide, high)
        wide, high = min(wide, _LARGEST), min(high, _LARGEST)
        across, down = wide * part.width(), high * part.height()
        right, bottom = self.width() - _ROOM - across, self.height() - _ROOM - down
        self._set_range(part, (_ROOM, _ROOM, right, bottom), down=True)
        self._plot.getViewBox().setBorder(theme.current().line)
        rows, columns = piece.row_edges, piece.column_edges
        area = QRectF(columns[0], rows[0], columns[-1] - columns[0], rows[-1] - rows[0])
        self._plot.addItem(self._image(pg, piece.values, piece.width, area))
        cell = QSizeF(area.width() / piece.width, area.height() / piece.height)
        size = min(cell.width() * wide, cell.height() * high)
        marked = [divmod(number, piece.width) for number, mark in enumerate(piece.marked) if mark]
        if marked and size >= _MARKED_FROM:
            x = [columns[j] + cell.width() / 2 for _, j in marked]
            y = [rows[i] + cell.height() / 2 for i, _ in marked]
            cross = QPainterPath(QPointF(-0.5, -0.5))
            cross.lineTo(0.5, 0.5)
            cross.moveTo(-0.5, 0.5)
            cross.lineTo(0.5, -0.5)
            # Visible on any colour: a dark line in a light one.
            for width, colour in ((3.0, theme.current().panel), (1.25, theme.current().text)):
                pen = pg.mkPen(colour, width=width)
                crosses = pg.ScatterPlotItem(x, y, symbol=cross, size=size / 2.5, pen=pen)
                self._plot.addItem(crosses)
        self._draw_scale(pg, QRectF(_ROOM + across + _BAR_GAP, _ROOM, _BAR, room.height()))
        line = QPointF(_ROOM, self.height() - 12)
        self._write(self._summary, line, theme.current().quiet, room=self.width() - 2 * _ROOM)

    def _image(self, pg: Any, values: Sequence[float], width: int, area: QRectF) -> Any:
        """Return values as an image of so many columns."""
        shades = self._scale.colours(values, theme.current()).reshape(-1, width, 3)
        image = pg.ImageItem(shades, axisOrder="row-major", levels=(0, 255))
        image.setRect(area)
        return image

    def _draw_scale(self, pg: Any, bar: QRectF) -> None:
        """Draw a bar with the colours of the scale and its values."""
        assert self._piece is not None
        colours, low, high = theme.current(), self._scale.low, self._scale.high
        bar.setHeight(min(bar.height(), _BAR_HEIGHT))
        steps = [high - (high - low) * step / (_SHADES - 1) for step in range(_SHADES)]
        image = self._image(pg, steps, 1, bar)
        image.setParentItem(self._plot.plotItem)
        self._added.append(image)
        for step in (0, _SHADES // 2, _SHADES - 1):
            share = step / (_SHADES - 1)
            place = QPointF(bar.right() + 6, bar.top() + share * bar.height())
            self._write(number_text(steps[step]), place, colours.quiet, (0, 0.2 + 0.6 * share))
        if not all(map(math.isfinite, self._piece.values)):
            self._fill(QRectF(bar.left(), bar.bottom() + 8, _BAR, 10), colours.wrong)
            place = QPointF(bar.right() + 6, bar.bottom() + 13)
            self._write(self.tr("not finite"), place, colours.quiet)

    def _draw_current(self, pg: Any) -> None:
        row, column = self.at()
        view, part = self._area(), self._part
        x, y = part.width() / view.width(), part.height() / view.height()
        # Around an element that is too small for a frame.
        grown = 1 if max(x, y) * _FRAMED_FROM > 1 else 0
        for more, colour in ((1, theme.current().panel), (0, theme.current().accent)):
            across, down = (grown + more) * x, (grown + more) * y
            area = QRectF(column, row, 1, 1).adjusted(-across, -down, across, down)
            frame = QGraphicsRectItem(area)
            frame.setPen(pg.mkPen(colour, width=1.5))
            self._mark(frame)

    def _hover(self, number: int) -> None:
        if number != self._hovered:
            self._hovered = number
            self._draw_mark()
            self.pointed.emit(*self.at())

    # Qt

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self._pressed is None and self._is_drawn():
            self._hover(self._number_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._rows or not self._columns:
            event.ignore()
            return
        row, column = divmod(self._here, self._columns)
        far = _FAR if event.modifiers() & Qt.KeyboardModifier.ControlModifier else 1
        move = _MOVES.get(Qt.Key(event.key()))
        if move is not None:
            self.set_cursor(row + far * move[0], column + far * move[1])
        elif event.key() == Qt.Key.Key_Home:
            self.set_cursor(row, 0)
        elif event.key() == Qt.Key.Key_End:
            self.set_cursor(row, self._columns - 1)
        else:
            super().keyPressEvent(event)

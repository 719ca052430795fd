"""Tensors as pictures: an image, a heat map, and the choice of a slice."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
)
from PySide6.QtWidgets import QGraphicsRectItem, QHBoxLayout, QSizePolicy, QSpinBox, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import ZoomChart
from lowerscope.app.kit.dialogs import show_within
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.theme import Theme
from lowerscope.core.model.texts import _

_ROOM = 8
_SMALLEST = 96


class PictureView(QWidget):
    """A picture of 8 bits a channel, enlarged by a whole number where there is room."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._image = QImage()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_picture(self, data: bytes, width: int, height: int, channels: int = 1) -> None:
        """Show a picture.

        Args:
            data: ``height`` rows of ``width`` pixels of ``channels`` bytes, from the top left.
            width, height: In pixels.
            channels: 1 for grey, 3 for red, green and blue.
        """
        assert channels in (1, 3), channels
        assert len(data) == width * height * channels, (len(data), width, height, channels)
        grey = QImage.Format.Format_Grayscale8
        layout = grey if channels == 1 else QImage.Format.Format_RGB888
        # The image reads the caller's bytes in place until it is copied.
        self._image = QImage(data, width, height, width * channels, layout).copy()
        self.updateGeometry()
        self.update()

    def picture_rect(self) -> QRectF:
        """Return the area of the picture in the widget."""
        if self._image.isNull():
            return QRectF()
        room = QRectF(self.rect()).adjusted(_ROOM, _ROOM, -_ROOM, -_ROOM)
        size = self._image.size()
        scale = min(room.width() / size.width(), room.height() / size.height())
        if scale >= 1:
            scale = int(scale)
        width, height = size.width() * scale, size.height() * scale
        left = round(room.center().x() - width / 2)
        return QRectF(left, round(room.top()), width, height)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(_SMALLEST + 2 * _ROOM, _SMALLEST + 2 * _ROOM)

    def minimumSizeHint(self) -> QSize:
        return QSize(_SMALLEST // 2, _SMALLEST // 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        place = self.picture_rect()
        if place.isEmpty():
            return
        colours = theme.current()
        painter = QPainter(self)
        # Enlarged, each pixel is a square; reduced, pixels are averaged.
        smaller = place.width() < self._image.width()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smaller)
        painter.drawImage(place, self._image)
        painter.setPen(QColor(colours.line))
        painter.drawRect(place.adjusted(-1, -1, 0, 0))


_FAR = 10  # Elements by which the cursor moves with Ctrl.
_FEWEST = 4  # Rows or columns that are visible at the largest zoom.
_LARGEST = 60.0  # Size of an element, in pixels.
_WRITTEN_FROM = QSizeF(44, 18)  # Size of an element from which on its value is written in it.
_MOST_UNEQUAL = 4.0  # Up to this ratio of their sides, elements are squares instead.
_MARKED_FROM = 7.0  # Size of a cell, in pixels, from which on it is crossed out.
_LONGEST = 7
_FRAMED_FROM = 6.0  # Size of an element, in pixels.
_MAP_ROOM, _BELOW, _BAR = 2.0, 20.0, 6.0
_SHADES = 64

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

    def cells_in(self, part: QRectF) -> Iterator[tuple[int, int]]:
        """Yield the cells that are in a part of the matrix."""
        rows = [
            i for i in range(self.height) if _meet(self.row_edges, i, part.top(), part.bottom())
        ]
        for j in range(self.width):
            if _meet(self.column_edges, j, part.left(), part.right()):
                yield from ((i, j) for i in rows)

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


def _meet(edges: Sequence[int], cell: int, low: float, high: float) -> bool:
    return low < edges[cell] + 0.5 < high


def short_text(value: float) -> str:
    """Return a number in at most about seven characters."""
    words = f"{value:.3g}"
    if math.isfinite(value) and len(words) > _LONGEST:
        mantissa, exponent = f"{value:.1e}".split("e")
        words = f"{mantissa}e{int(exponent)}"
    return words


class HeatMap(ZoomChart):
    """A matrix, shown in cells, a piece at a time, above the colours of its scale.

    The arrow keys move a cursor; elements with room for it have their values written in them.
    """

    # Another element is under the mouse or the cursor: its row and column.
    pointed = Signal(int, int)

    SIZE, SMALLEST = QSize(180, 190), QSize(100, 100)

    def __init__(self, name: str) -> None:
        super().__init__(name)
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
        """Show a piece of the matrix in the colours of a scale; `words` are for a screen reader."""
        self._piece, self._scale, self._summary = piece, scale, words
        self._redraw()

    def clear(self) -> None:
        """Clear the heat map until there is a piece."""
        self._piece = None
        self._redraw()

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

    def follow(self, other: HeatMap) -> None:
        """Show the part, and the element, that another heat map of the same extent shows."""
        self._here, self._hovered = other._here, other._hovered
        self._show_part(other._part)
        self._draw_mark()

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
        room = QRectF(self.rect()).adjusted(_MAP_ROOM, _MAP_ROOM, -_MAP_ROOM, -_BELOW)
        room.setSize(room.size().expandedTo(QSizeF(1, 1)))
        wide, high = room.width() / part.width(), room.height() / part.height()
        if max(wide, high) <= _MOST_UNEQUAL * min(wide, high):
            wide = high = min(wide, high)
        wide, high = min(wide, _LARGEST), min(high, _LARGEST)
        across, down = wide * part.width(), high * part.height()
        right, bottom = (self.width() - _MAP_ROOM - across, self.height() - _MAP_ROOM - down)
        self._set_range(part, (_MAP_ROOM, _MAP_ROOM, right, bottom), down=True)
        self._plot.getViewBox().setBorder(theme.current().line)
        rows, columns = piece.row_edges, piece.column_edges
        area = QRectF(columns[0], rows[0], columns[-1] - columns[0], rows[-1] - rows[0])
        self._plot.addItem(self._image(pg, piece.values, piece.width, area))
        cell = QSizeF(area.width() / piece.width, area.height() / piece.height)
        size = QSizeF(cell.width() * wide, cell.height() * high)
        if size.boundedTo(_WRITTEN_FROM) == _WRITTEN_FROM:
            self._write_values(piece, part)
        elif min(size.toTuple()) >= _MARKED_FROM:
            self._cross_out(pg, piece, cell, min(size.toTuple()) / 2.5)
        self._draw_scale(pg, max(across, min(room.width(), 80.0)))

    def _write_values(self, piece: HeatPiece, part: QRectF) -> None:
        """Write the value of each visible cell in it; one that is out of tolerance has a cross."""
        shades = self._scale.colours(piece.values, theme.current())
        for i, j in piece.cells_in(part):
            dark = sum(shades[i * piece.width + j].tolist()) < 3 * 128
            words = short_text(piece.value(i, j))
            text = f"✕ {words}" if piece.is_marked(i, j) else words
            place = self._to_widget(
                (piece.column_edges[j] + piece.column_edges[j + 1]) / 2,
                (piece.row_edges[i] + piece.row_edges[i + 1]) / 2,
            )
            self._write(text, place, "#ffffff" if dark else "#1d2430", (0.5, 0.5))

    def _cross_out(self, pg: Any, piece: HeatPiece, cell: QSizeF, size: float) -> None:
        """Cross out the cells that are out of tolerance."""
        marked = [divmod(number, piece.width) for number, mark in enumerate(piece.marked) if mark]
        if not marked:
            return
        x = [piece.column_edges[j] + cell.width() / 2 for _, j in marked]
        y = [piece.row_edges[i] + cell.height() / 2 for i, _ in marked]
        cross = QPainterPath(QPointF(-0.5, -0.5))
        cross.lineTo(0.5, 0.5)
        cross.moveTo(-0.5, 0.5)
        cross.lineTo(0.5, -0.5)
        # Visible on any colour: a dark line in a light one.
        for width, colour in ((3.0, theme.current().panel), (1.25, theme.current().text)):
            pen = self._pen(colour, width)
            self._plot.addItem(pg.ScatterPlotItem(x, y, symbol=cross, size=size, pen=pen))

    def _image(self, pg: Any, values: Sequence[float], width: int, area: QRectF) -> Any:
        """Return values as an image of so many columns."""
        shades = self._scale.colours(values, theme.current()).reshape(-1, width, 3)
        image = pg.ImageItem(shades, axisOrder="row-major", levels=(0, 255))
        image.setRect(area)
        return image

    def _draw_scale(self, pg: Any, width: float) -> None:
        """Draw the colours of the scale below the map, between its ends."""
        quiet, low, high = theme.current().quiet, self._scale.low, self._scale.high
        middle, left = self.height() - _BELOW / 2, _MAP_ROOM
        ends = [short_text(low), short_text(high)]
        first, last = (self._metrics.horizontalAdvance(each) + 6 for each in ends)
        self._write(ends[0], QPointF(left, middle), quiet)
        self._write(ends[1], QPointF(left + width, middle), quiet, (1, 0.5))
        bar = QRectF(left + first, middle - _BAR / 2, width - first - last, _BAR)
        if bar.width() > 0:
            shares = [step / (_SHADES - 1) for step in range(_SHADES)]
            steps = [low * (1 - each) + high * each for each in shares]
            image = self._image(pg, steps, _SHADES, bar)
            image.setParentItem(self._plot.plotItem)
            self._added.append(image)

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
            frame.setPen(self._pen(colour, 1.5))
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


# --- Fields that select a slice of a tensor: an index in each dimension before the last two ---

_WIDTH = 92


class SlicesRow(QWidget):
    """A field for each of these dimensions."""

    changed = Signal()  # The user selected another slice.

    def __init__(self) -> None:
        super().__init__()
        self.title = Label(_("slice"))
        self.title.setProperty("role", "quiet")
        self.fields: list[QSpinBox] = []
        self._shape: tuple[int, ...] = ()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.title)
        self.hide()

    def set_shape(self, shape: Sequence[int]) -> None:
        """Set the shape of another tensor, and select its first slice."""
        if tuple(shape) == self._shape:
            return
        self._shape = tuple(shape)
        for field in self.fields:
            self._row.removeWidget(field)
            field.hide()
            field.deleteLater()
        self.fields = [self._field(place, extent) for place, extent in enumerate(shape[:-2])]
        for field, extent in zip(self.fields, shape[:-2], strict=True):
            self._row.addWidget(field)
            # A dimension of extent 1 offers no choice.
            field.setVisible(extent > 1)
        self.setVisible(any(extent > 1 for extent in shape[:-2]))

    def index(self) -> tuple[int, ...]:
        """The index of the slice shown."""
        return tuple(field.value() for field in self.fields)

    def set_index(self, index: Sequence[int]) -> None:
        """Select another slice, without a signal."""
        for field, value in zip(self.fields, index, strict=False):
            field.blockSignals(True)
            field.setValue(value)
            field.blockSignals(False)

    def step(self, by: int) -> None:
        """Go to another index of the last dimension that offers a choice, as a channel."""
        for field in reversed(self.fields):
            if field.maximum():
                field.stepBy(by)
                break

    def _field(self, place: int, extent: int) -> QSpinBox:
        field = QSpinBox()
        field.setRange(0, max(0, extent - 1))
        field.setWrapping(True)
        show_within(field, _("{number} of {extent}", number="{number}", extent=extent))
        field.setFixedWidth(_WIDTH)
        field.setKeyboardTracking(False)
        field.setAccessibleName(_("Index in dimension {place}", place=place))
        field.setToolTip(_("Index in dimension {place}, of {extent}", place=place, extent=extent))
        field.valueChanged.connect(self.changed)
        return field

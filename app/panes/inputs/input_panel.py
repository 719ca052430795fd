"""An input: its picture to draw on, or its statistics, and the source of its value."""

from __future__ import annotations

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
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QBoxLayout,
    QDoubleSpinBox,
    QFileDialog,
    QGridLayout,
    QSizePolicy,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.bars import Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.layouts import STRETCH, column_of
from lowerscope.app.kit.pane import FactLines
from lowerscope.app.panes.common.descriptions import Facts
from lowerscope.app.panes.common.prediction import show_prediction
from lowerscope.app.panes.common.values_panel import ValuesPanel
from lowerscope.app.panes.inputs.inputs_dialog import FILES
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.core.model.recipe import SEEDS
from lowerscope.core.model.snapshot import InputRecord
from lowerscope.core.model.texts import _

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
            _(
                "Arrows move, Space draws a dot, Shift and arrows draw a line, "
                "E switches pencil and eraser, Delete clears"
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


BRUSHES = {"fine": 0.6, "medium": 1.4, "broad": 3.0}
"""Radii of the brush in pixels of a picture of 28×28."""

_DRAWN_FOR = 28

SMALLEST, MOST = 120, 460
"""Bounds on the sides of the picture, in points."""

BESIDE = 380
"""Minimum width of the tools and the scores."""


class InputPanel(QWidget):
    """The value of an input, and the commands on it."""

    def __init__(
        self, document: Document, queries: Queries, inputs: Inputs, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._inputs = inputs
        self.name = ""  # The input shown; empty for none.
        self.pad = DrawingPad(_("Drawing"))
        self.picture = PictureView(_("Input image"))
        self.facts = FactLines()
        self.values = ValuesPanel(document, queries, self._show_facts, self._set_busy)
        self.values.save.hide()
        self.bars = Bars(_("The best classes of both sides"), whole=1.0)
        self.tool = SegmentedSwitch(
            _("Tool"),
            (
                Segment("pencil", _("Pencil"), _("Draw in white (E changes)")),
                Segment("eraser", _("Eraser"), _("Draw in black (E changes)")),
            ),
        )
        self.brush = SegmentedSwitch(
            _("Brush"),
            (
                Segment("fine", _("Fine")),
                Segment("medium", _("Medium")),
                Segment("broad", _("Broad")),
            ),
        )
        self.brush.set_current("medium")
        self.clear = push_button(_("Clear"), _("All black (Delete)"), self.pad.clear)
        self.file = push_button(
            _("File…"),
            _("An image, .npy, .npz or .pt; or drop one on the window"),
            self._choose_file,
        )
        self.random = push_button(
            _("Random"), _("New values; the weights stay the same"), self._randomise
        )
        self.reset = push_button(
            _("Example"), _("The example value from the model's file"), self._reset
        )
        self.seed = QDoubleSpinBox()
        self.seed.setDecimals(0)
        self.seed.setRange(0, SEEDS - 1)
        self.seed.setFixedWidth(84)
        self.seed.lineEdit().setTextMargins(6, 0, 0, 0)
        self.seed.setAccessibleName(_("Seed of the random values"))
        self.seed.setToolTip(_("Seed of the random values"))
        self._drawing = QWidget()
        drawing = QGridLayout(self._drawing)
        drawing.setContentsMargins(0, 0, 0, 0)
        drawing.setSpacing(6)
        drawing.addWidget(self.tool, 0, 0)
        drawing.addWidget(self.clear, 0, 1)
        drawing.addWidget(self.brush, 1, 0, 1, 2, Qt.AlignmentFlag.AlignLeft)
        sources = QGridLayout()
        sources.setSpacing(6)
        sources.addWidget(self.random, 0, 0)
        sources.addWidget(self.seed, 0, 1)
        sources.addWidget(self.file, 1, 0)
        sources.addWidget(self.reset, 1, 1)
        tools = column_of(None, self._drawing, sources, STRETCH, spacing=8)
        shown = column_of(None, self.facts, (self.values, 1), margins=None)
        self._figures = QWidget()
        self._figures.setLayout(shown)
        shown.setContentsMargins(0, 0, 0, 0)
        row = self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        row.setContentsMargins(10, 6, 10, 6)
        row.setSpacing(16)
        row.addWidget(self.pad)
        row.addWidget(self.picture)
        row.addWidget(self._figures, 4)
        row.addLayout(tools)
        row.addWidget(self.bars, 3, Qt.AlignmentFlag.AlignTop)
        row.addStretch(1)
        self.tool.changed.connect(self.pad.set_tool)
        self.pad.tool_changed.connect(self.tool.set_current)
        self.brush.changed.connect(self._take_brush)
        self.pad.stroke_ended.connect(self._draw)
        document.on(("run", "running"), self._show_run)
        inputs.changed.connect(self._show_state)
        self.show_input("")
        self._show_run()

    def show_input(self, name: str) -> None:
        """Show an input by its name, or nothing for an empty name."""
        inputs = self._inputs
        self.name = name
        record = next((each for each in inputs.records if each.name == name), None)
        drawn = record is not None and inputs.drawable is record
        self.setEnabled(record is not None)
        self.pad.setVisible(drawn)
        self._drawing.setVisible(drawn)
        has_picture = record is not None and record.picture is not None
        self.picture.setVisible(has_picture and not drawn)
        self._figures.setVisible(not has_picture)
        spec = inputs.spec_of(name) if record is not None else None
        self.reset.setEnabled(spec is not None)
        if spec is not None and spec.seed is not None:
            self.seed.setValue(spec.seed)
        if record is None or not record.picture:
            self._show_figures(record)
            return
        self.values.show_nothing()
        picture = record.picture
        if not drawn:
            self.picture.set_picture(
                picture.pixels, picture.width, picture.height, picture.channels
            )
        elif not self.pad.is_drawing() and not inputs.waits:
            # Strokes drawn meanwhile are newer than the engine's state.
            if (self.pad.pixels(), self.pad.picture_size()) != (
                picture.pixels,
                (picture.width, picture.height),
            ):
                self.pad.set_picture(picture.pixels, picture.width, picture.height)
            self._take_brush(self.brush.current())

    def set_narrow(self, narrow: bool) -> None:
        """Stack the parts, or place them side by side."""
        directions = QBoxLayout.Direction
        self._row.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self._fit()

    def _fit(self) -> None:
        narrow = self._row.direction() == QBoxLayout.Direction.TopToBottom
        # The picture is square, so that the parts beside it get the rest.
        room = SMALLEST if narrow else min(self.height() - 12, self.width() - BESIDE)
        side = max(SMALLEST, min(MOST, room))
        for widget in (self.pad, self.picture):
            widget.setFixedWidth(side)
            widget.setMinimumHeight(side if narrow else 0)

    def _show_figures(self, record: InputRecord | None) -> None:
        is_open = self._document.snapshot is not None
        none = _("The model takes no inputs.") if is_open else _("Nothing is open.")
        self.facts.set_facts(() if record is not None else (("", none),))
        if record is None:
            self.values.show_nothing()
        else:
            self.values.show_tensor(record.name)

    def _show_facts(self, facts: Facts) -> None:
        self.facts.set_facts(facts)

    def _set_busy(self, busy: bool) -> None:
        self.facts.setEnabled(not busy)

    def _take_brush(self, key: str) -> None:
        width, height = self.pad.picture_size()
        self.pad.set_brush(BRUSHES[key] * max(1.0, min(width, height) / _DRAWN_FOR))

    def _draw(self) -> None:
        self._inputs.draw(self.pad.pixels())

    def _randomise(self) -> None:
        inputs = self._inputs
        spec = inputs.spec_of(self.name)
        if spec is not None and spec.seed == round(self.seed.value()):
            # Randomising again uses other values.
            self.seed.setValue((self.seed.value() + 1) % SEEDS)
        inputs.randomise(self.name, round(self.seed.value()))

    def _choose_file(self) -> None:
        title = _("Value of {name}", name=self.name)
        wanted = _("Values ({files})", files=FILES)
        path, _filter = QFileDialog.getOpenFileName(self, title, "", wanted)
        if path:
            self._inputs.take_file(self.name, path)

    def _reset(self) -> None:
        self._inputs.reset(self.name)

    def _show_state(self) -> None:
        if self._inputs.problem is not None:
            # A rejected drawing is not what is run.
            self.show_input(self.name)

    def _show_run(self) -> None:
        record = self._document.run_record
        if record is not None:
            show_prediction(self.bars, record)
        else:
            self.bars.set_faded(True)
        self.bars.setVisible(bool(self.bars.bars()))

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

"""Steps side by side: a cell for each, below a curve of the value after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QListView,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.tables.data_table import Index, wrapped
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

CELL = Qt.ItemDataRole.UserRole
_NARROWEST, _WIDEST = 100, 150
_FOOT = 52
"""Height of the texts below the curve; in a strip that is too low for both, there is the curve."""
_LEAST = 112
_LEAST_SPAN = 0.3
"""Least range of the scale, in powers of ten: smaller differences look small."""
_LINE = 15.0
_LABEL = 15.0


@dataclass(frozen=True)
class StepCell:
    """A step, and the value after it."""

    key: str  # Unique.
    title: str
    value: float | None = None  # Positive; ``None`` if unknown.
    text: str = ""  # The value as text.
    unsure: bool = False  # Whether the value is unreliable.
    mark: str = ""  # Text below the title, and its role: ``"right"``, ``"wrong"`` or ``""``.
    role: str = ""
    quiet: bool = False  # Whether the step has no effect.
    place: int = -1  # Its place among the cells that can be moved, from 0; -1 for none.
    said: str = ""  # More for a screen reader.
    tooltip: str = ""


@dataclass(frozen=True)
class _Scale:
    """The logarithmic scale of the values, and the known ones by cell."""

    known: tuple[tuple[int, float], ...] = ()
    low: float = 0.0
    high: float = 1.0

    def share(self, value: float) -> float:
        """Return the height of a value, from 0 for the highest to 1 for the lowest."""
        return (self.high - math.log10(value)) / (self.high - self.low)

    def share_at(self, place: float) -> float | None:
        """Return the height of the curve at a place between cells; ``None`` beside the curve."""
        for (left, first), (right, second) in zip(self.known, self.known[1:], strict=False):
            if left <= place <= right:
                part = (place - left) / (right - left)
                return self.share(first) * (1 - part) + self.share(second) * part
        return None


class StepStrip(QListWidget):
    """Steps from left to right; the arrow keys go through them.

    Space switches one, Return opens it, Delete removes it, Insert inserts before it, and Ctrl+←
    and → move it, as dragging does.
    """

    stepped = Signal(str)  # The user made a step the current one; the argument is its key.
    row_activated = Signal(str)  # A step was double-clicked or entered; the argument is its key.
    switched = Signal(str)
    removed = Signal(str)
    inserted = Signal(str)  # The next step is to be inserted before this one.
    moved = Signal(int, int)  # A step was moved: its place, and its new place.
    menu_wanted = Signal(str, QPoint)  # Its context menu was requested, at a screen position.

    def __init__(self, name: str) -> None:
        super().__init__()
        self._cells: tuple[StepCell, ...] = ()
        # The text of the reference value, and the value.
        self.level: tuple[str, float] | None = None
        self._marked = ""
        self._pressed: tuple[int, QPoint] | None = None
        self.target = -1  # The place in front of which a dragged step would be put; -1 for none.
        self.scale = _Scale()
        self.setAccessibleName(name)
        self.setFlow(QListView.Flow.LeftToRight)
        self.setWrapping(False)
        self.setUniformItemSizes(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setItemDelegate(_CellDelegate(self))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._want_menu)
        self.currentItemChanged.connect(self._tell_step)
        self.itemDoubleClicked.connect(self._activate)
        theme.notifier().changed.connect(self.viewport().update)

    def set_cells(self, cells: Sequence[StepCell], level: tuple[str, float] | None = None) -> None:
        """Set the steps, and a reference value with its text; the current step stays current."""
        if (tuple(cells), level) == (self._cells, self.level):
            return
        current = self.current_key()
        self._cells, self.level = tuple(cells), level
        self.scale = _scale_of(cells, level)
        self.blockSignals(True)
        while self.count() > len(cells):
            self.takeItem(self.count() - 1)
        while self.count() < len(cells):
            self.addItem(QListWidgetItem())
        for row, cell in enumerate(cells):
            item = self.item(row)
            item.setText(cell.title)
            item.setData(CELL, cell)
            item.setToolTip(cell.tooltip)
            said = (cell.title, cell.text, cell.mark, cell.said)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, _(", ").join(filter(None, said)))
        self.blockSignals(False)
        self.select(current)
        self.scheduleDelayedItemsLayout()
        self.viewport().update()

    def cells(self) -> tuple[StepCell, ...]:
        """Return the steps, from the left."""
        return self._cells

    def cell(self, key: str) -> StepCell | None:
        """Return the step of a key."""
        return next((each for each in self._cells if each.key == key), None)

    def current_key(self) -> str:
        """Return the key of the current step, or ``""``."""
        row = self.currentRow()
        return self._cells[row].key if 0 <= row < len(self._cells) else ""

    def select(self, key: str) -> None:
        """Make a step the current one, without a signal."""
        row = next((row for row, each in enumerate(self._cells) if each.key == key), -1)
        if row != self.currentRow():
            self.blockSignals(True)
            self.setCurrentRow(row)
            self.blockSignals(False)
            self.viewport().update()
        if row >= 0:
            self.scrollToItem(self.item(row))

    def cell_rect(self, key: str) -> QRectF:
        """Return the area of a step in the viewport."""
        row = [each.key for each in self._cells].index(key)
        return QRectF(self.visualItemRect(self.item(row)))

    def cell_size(self) -> QSize:
        room = self.viewport().width() // max(1, len(self._cells))
        return QSize(max(_NARROWEST, min(_WIDEST, room)), max(1, self.viewport().height()))

    def _tell_step(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.stepped.emit(item.data(CELL).key)

    def _activate(self, item: QListWidgetItem) -> None:
        self.row_activated.emit(item.data(CELL).key)

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place) or self.currentItem()
        if item is not None:
            self.setCurrentItem(item)
            self.menu_wanted.emit(item.data(CELL).key, self.viewport().mapToGlobal(place))

    def _place_at(self, place: QPoint) -> int:
        """Return the place in front of which a step dropped there is put."""
        movable = [each for each in self._cells if each.place >= 0]
        before = [each for each in movable if self.cell_rect(each.key).center().x() < place.x()]
        return len(before)

    # Qt

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, cell = event.key(), self.cell(self.current_key())
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if cell is None:
            super().keyPressEvent(event)
        elif control and key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and cell.place >= 0:
            self.moved.emit(cell.place, cell.place + (1 if key == Qt.Key.Key_Right else -1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.row_activated.emit(cell.key)
        elif key == Qt.Key.Key_Space:
            self.switched.emit(cell.key)
        elif key == Qt.Key.Key_Delete:
            self.removed.emit(cell.key)
        elif key == Qt.Key.Key_Insert:
            self.inserted.emit(cell.key)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        item = self.itemAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and item is not None:
            place = item.data(CELL).place
            self._pressed = (place, event.position().toPoint()) if place >= 0 else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if self._pressed is None:
            super().mouseMoveEvent(event)
            return
        far = (place - self._pressed[1]).manhattanLength() >= QApplication.startDragDistance()
        if far or self.target >= 0:
            self.target = self._place_at(place)
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed, target = self._pressed, self.target
        self._pressed, self.target = None, -1
        self.viewport().unsetCursor()
        self.viewport().update()
        if pressed is not None and target >= 0:
            to = target - 1 if target > pressed[0] else target
            if to != pressed[0]:
                self.moved.emit(pressed[0], to)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        movable = [each for each in self._cells if each.place >= 0]
        if self.target >= 0 and movable:
            last = self.target == len(movable)
            area = self.cell_rect(movable[-1 if last else self.target].key)
            x = area.right() if last else area.left()
            painter = QPainter(self.viewport())
            painter.setPen(QPen(QColor(theme.current().accent), 2))
            painter.drawLine(QLineF(x, area.top(), x, area.bottom()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()


def _scale_of(cells: Sequence[StepCell], level: tuple[str, float] | None) -> _Scale:
    known = tuple(
        (row, each.value) for row, each in enumerate(cells) if each.value is not None and each.value
    )
    values = [value for _, value in known]
    if level is not None and known:
        values.append(level[1])
    if not values:
        return _Scale()
    low, high = math.log10(min(values)), math.log10(max(values))
    spare = max(0.0, _LEAST_SPAN - (high - low)) / 2
    return _Scale(known, low - spare, high + spare)


class _CellDelegate(QStyledItemDelegate):
    """Paints a step: its part of the curve, its title and its mark."""

    def __init__(self, strip: StepStrip) -> None:
        super().__init__(strip)
        self._strip = strip
        self._font = ui_font(11.5)
        self._bold = ui_font(11.5, QFont.Weight.DemiBold)
        self._figures = ui_font(11.5, tabular=True)
        self._bold_figures = ui_font(11.5, QFont.Weight.DemiBold, tabular=True)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return self._strip.cell_size()

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, area = theme.current(), QRectF(option.rect)
        cell: StepCell = index.data(CELL)
        state = option.state
        current = bool(state & QStyle.StateFlag.State_Selected)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        foot = _FOOT if area.height() >= _LEAST else 0
        below = QRectF(area.left(), area.bottom() - foot, area.width(), foot)
        ground = colours.accent_ground if current else colours.panel
        if not current and state & QStyle.StateFlag.State_MouseOver:
            ground = colours.hover
        painter.fillRect(below if foot else area, QColor(ground))
        if foot:
            painter.setPen(QColor(colours.line))
            painter.drawLine(QLineF(below.topLeft(), below.topRight()))
            painter.drawLine(QLineF(below.right(), below.top(), below.right(), below.bottom()))
            self._paint_texts(painter, below, cell, current)
        chart = QRectF(area.left(), area.top(), area.width(), area.height() - foot)
        self._paint_curve(
            painter, chart, index.row(), cell, current, colours.panel if foot else ground
        )
        if current and self._strip.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QColor(colours.accent))
            painter.drawRect((below if foot else area).adjusted(0.5, 0.5, -1, -1))

    def _paint_texts(self, painter: QPainter, area: QRectF, cell: StepCell, current: bool) -> None:
        colours = theme.current()
        font = self._bold if current else self._font
        room = area.width() - 12
        lines = wrapped(cell.title, font, room)
        if len(lines) > 2:
            lines = [lines[0], " ".join(lines[1:])]
        ink = colours.quiet if cell.quiet else colours.text
        top = area.top() + 4
        for number, line in enumerate(lines):
            self._write(painter, line, font, ink, area, top + number * _LINE)
        inks = {"right": colours.right, "wrong": colours.wrong, "unsure": colours.unsure}
        mark = inks.get(cell.role, colours.quiet)
        self._write(painter, cell.mark, self._font, mark, area, area.bottom() - _LINE - 2)

    def _write(
        self, painter: QPainter, text: str, font: QFont, ink: str, area: QRectF, top: float
    ) -> None:
        metrics = TextMetrics(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, area.width() - 10)
        x = area.center().x() - metrics.horizontalAdvance(shown) / 2
        painter.setFont(font)
        painter.setPen(QColor(ink))
        painter.drawText(QPointF(x, top + 11), shown)

    def _paint_curve(
        self,
        painter: QPainter,
        area: QRectF,
        row: int,
        cell: StepCell,
        current: bool,
        ground: str,
    ) -> None:
        colours, scale, level = theme.current(), self._strip.scale, self._strip.level
        top, height = area.top() + _LABEL + 6, area.height() - _LABEL - 16
        if height < 4:
            return

        def y_of(share: float) -> float:
            return top + share * height

        if level is not None and scale.known:
            y = y_of(scale.share(level[1]))
            painter.setPen(QPen(QColor(colours.quiet), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(area.left(), y, area.right() + 1, y))
            if row == 0:
                # Beside the point of this step and its value above it.
                point = y_of(scale.share(cell.value)) if cell.value else math.inf
                base = y - 3
                if abs(point - y) < 2 * _LABEL:
                    base = y + _LABEL if point <= y else point - 2 * _LABEL
                painter.setFont(self._font)
                painter.setPen(QColor(colours.quiet))
                painter.drawText(QPointF(area.left() + 6, base), level[0])
        centre = area.center().x()
        ends = (
            (row - 0.5, row, area.left(), centre),
            (row, row + 0.5, centre, area.right() + 1),
        )
        painter.setPen(QPen(QColor(colours.accent), 1.6))
        for first, second, left, right in ends:
            start, end = scale.share_at(first), scale.share_at(second)
            if start is not None and end is not None:
                painter.drawLine(QLineF(left, y_of(start), right, y_of(end)))
        if not cell.value:
            return
        place = QPointF(centre, y_of(scale.share(cell.value)))
        painter.setBrush(QColor(colours.accent if current else colours.panel))
        painter.drawEllipse(place, 5.0 if current else 3.5, 5.0 if current else 3.5)
        font = self._bold_figures if current else self._figures
        ink = colours.unsure if cell.unsure else colours.text if current else colours.quiet
        # Where the curve comes from above, it would cross the text.
        width = TextMetrics(font).horizontalAdvance(cell.text) + 2
        behind = QRectF(place.x() - width / 2, place.y() - _LABEL - 7, width, _LABEL)
        painter.fillRect(behind, QColor(ground))
        self._write(painter, cell.text, font, ink, area, place.y() - _LABEL - 6)

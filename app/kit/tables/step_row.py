"""A row of a list of steps, and its painting."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import (
    QStyle,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.tables.table_cells import ROW_HEIGHT, WholeWords
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font

ROW = Qt.ItemDataRole.UserRole
COLUMNS = ("#", "pass", "changed", "time")
TITLE = 1
_PAD = 10.0
_BOX = 14.0


@dataclass(frozen=True)
class StepRow:
    """A row of a list of steps."""

    key: str  # Unique among the rows.
    number: str  # The texts of its columns; the note is beside the title.
    title: str
    note: str = ""
    changed: str = ""
    time: str = ""
    parent: str = ""  # Key of the parent row; empty for none.
    unfolded: bool = False  # Whether its child rows are shown.
    on: bool | None = None  # Whether its check box is checked; ``None`` for no box.
    value: int = 0  # A number for the caller's own use.
    place: int = -1  # Its place among the rows that can be moved, from 0; -1 for one that cannot.
    state: str = ""  # ``""``, ``"section"``, ``"wrong"`` or ``"quiet"``.
    unsure: bool = False  # Whether the note is a warning.
    last_role: str = ""  # Role of the last column: ``""``, ``"right"`` or ``"wrong"``.
    said: str = ""  # Text for a screen reader besides its title and note.
    tooltip: str = ""  # More about it.


@dataclass
class Marks:
    """The marked row, by its key, and the one under the mouse."""

    key: str = ""
    hovered: QTreeWidgetItem | None = None


def box_of(row: QRectF) -> QRectF:
    return QRectF(row.left() + _PAD, row.center().y() - _BOX / 2, _BOX, _BOX)


def paint_ground(painter: QPainter, area: QRectF, item: QTreeWidgetItem, marks: Marks) -> None:
    """Paint the background of a row, and the line below it."""
    colours = theme.current()
    ground = colours.hover if item is marks.hovered else colours.panel
    painter.fillRect(area, QColor(colours.accent_ground if item.isSelected() else ground))
    line = QRectF(area.left(), area.bottom() - 1, area.width(), 1)
    painter.fillRect(line, QColor(colours.line))


class StepDelegate(WholeWords):
    """Delegate that paints the cells of a row in the style of tables."""

    def __init__(self, steps: QTreeWidget, marks: Marks) -> None:
        super().__init__(steps)
        self._steps = steps
        self._marks = marks

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        row: StepRow = self._steps.itemFromIndex(index).data(0, ROW)
        words = (row.number, row.title, row.changed, row.time)[index.column()]
        note = row.note if index.column() == TITLE else ""
        wanted = TextMetrics(ui_font(weight=QFont.Weight.DemiBold)).horizontalAdvance(words)
        if note:
            wanted += 8 + TextMetrics(ui_font()).horizontalAdvance(note)
        room = option.rect.width() - (_PAD + 4 if index.column() == TITLE else 2 * _PAD)
        return f"{words}  {note}".rstrip() if wanted > room + 0.5 else ""

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(40, ROW_HEIGHT)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        colours = theme.current()
        item = self._steps.itemFromIndex(index)
        row: StepRow = item.data(0, ROW)
        area = QRectF(option.rect)
        column = index.column()
        if column == 0:
            area.setLeft(0)
        paint_ground(painter, area, item, self._marks)
        marked = row.key == self._marks.key
        if column == 0:
            if marked:
                painter.fillRect(
                    QRectF(0, area.top(), 3, area.height() - 1), QColor(colours.accent)
                )
            if row.on is not None:
                self._paint_box(painter, box_of(area), row.on, option)
        self._paint_words(painter, area, row, column, marked=marked)

    def _paint_box(
        self, painter: QPainter, box: QRectF, on: bool, option: QStyleOptionViewItem
    ) -> None:
        colours = theme.current()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        over = bool(option.state & QStyle.StateFlag.State_MouseOver)
        painter.setPen(QPen(QColor(colours.accent if on or over else colours.faint), 1))
        painter.setBrush(QColor(colours.accent if on else colours.panel))
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        if on:
            pen = QPen(QColor(colours.on_accent), 1.6)
            pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(pen)
            corner = box.topLeft()
            points = [corner + QPointF(*each) for each in ((3.6, 7.2), (6.0, 9.6), (10.4, 4.6))]
            painter.drawPolyline(points)
        painter.restore()

    def _paint_words(
        self, painter: QPainter, area: QRectF, row: StepRow, column: int, *, marked: bool
    ) -> None:
        colours = theme.current()
        role = {"wrong": colours.wrong, "quiet": colours.quiet, "section": colours.quiet}
        colour = role.get(row.state, colours.text)
        if column == 0:
            colour = colours.accent if marked else colours.quiet
        elif column == TITLE and marked and not row.state:
            colour = colours.accent
        elif column != TITLE and not row.state:
            colour = colours.text if column == len(COLUMNS) - 1 else colours.quiet
        if column == len(COLUMNS) - 1 and row.last_role:
            colour = {
                "right": colours.right,
                "wrong": colours.wrong,
                "unsure": colours.unsure,
            }[row.last_role]
        bold = column == TITLE and (marked or row.state == "section")
        weight = QFont.Weight.DemiBold if bold else QFont.Weight.Normal
        font = ui_font(weight=weight, tabular=column != TITLE)
        words = (row.number, row.title, row.changed, row.time)[column]
        room = area.width() - (_PAD + 4 if column == TITLE else 2 * _PAD)
        metrics = TextMetrics(font)
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, max(0.0, room) + 0.5)
        left = area.left() + (4 if column == TITLE else _PAD)
        if column != TITLE:
            left = area.right() - _PAD - metrics.horizontalAdvance(shown)
        base = round(area.center().y() - 0.5 + UI_PIXELS * 0.364)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(QPointF(left, base), shown)
        if column == TITLE and row.note:
            used = metrics.horizontalAdvance(shown) + 8
            note = TextMetrics(ui_font())
            text = note.elidedText(row.note, Qt.TextElideMode.ElideRight, max(0.0, room - used))
            painter.setFont(ui_font())
            ink = colours.unsure if row.unsure else colours.quiet
            painter.setPen(QColor(colours.wrong if row.state == "wrong" else ink))
            painter.drawText(QPointF(left + used, base), text)

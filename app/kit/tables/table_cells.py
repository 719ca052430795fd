"""Painting of a table's cells: fonts, colours, and wrapped text."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QHelpEvent, QPainter, QPalette, QTextLayout, QTextOption
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.plain_text import LONGEST
from lowerscope.app.kit.tables.table_model import Cell, Column, TableModel
from lowerscope.app.kit.theme_colours import strategy_colour
from lowerscope.app.kit.typefaces import CODE_PIXELS, UI_PIXELS, TextMetrics, code_font, ui_font

# --- Delegate that shows elided text in full in the tool tip ---


class WholeWords(QStyledItemDelegate):
    """Delegate with a tool tip for elided text, where an item has none of its own."""

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        """Return the full text of an item that is elided, or ``""``."""
        raise NotImplementedError

    # Qt

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        own = index.data(Qt.ItemDataRole.ToolTipRole) if index.isValid() else None
        if event.type() != QEvent.Type.ToolTip or not index.isValid() or own:
            return super().helpEvent(event, view, option, index)
        QToolTip.showText(event.globalPos(), self.cut_words(option, index), view)
        return True


ROW_HEIGHT = 26
LINE_HEIGHT = 17
MOST_LINES = 6
PAD = 10.0
NARROWEST = 48


def cell_font(cell: Cell, column: Column) -> QFont:
    """Return the font of a cell."""
    if cell.code:
        return code_font(CODE_PIXELS)
    weight = QFont.Weight.DemiBold if cell.bold else QFont.Weight.Normal
    return ui_font(weight=weight, tabular=column.numeric)


def wrapped(text: str, font: QFont, room: float) -> list[str]:
    """Return the lines of a text, wrapped between words, or inside of one longer than a line."""
    text = text[:LONGEST]
    if TextMetrics(font).horizontalAdvance(text) <= room + 0.5:
        return [text]
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    lines: list[str] = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(room, 1.0))
        lines.append(text[line.textStart() : line.textStart() + line.textLength()].strip())
    layout.endLayout()
    return lines


class CellDelegate(WholeWords):
    """Delegate that paints a cell: its background, its text, and a line below.

    Args:
        model: Its rows.
        hovered_row: Returns the index of the row under the mouse, or -1.
    """

    def __init__(
        self, table: QAbstractItemView, model: TableModel, hovered_row: Callable[[], int]
    ) -> None:
        super().__init__(table)
        self._model = model
        self._hovered_row = hovered_row
        # Cached, since a font takes longer to create than a word to draw.
        self._fonts: dict[tuple[bool, bool, bool], tuple[QFont, TextMetrics]] = {}

    def _font_of(self, cell: Cell, column: Column) -> tuple[QFont, TextMetrics]:
        key = cell.code, cell.bold, column.numeric
        known = self._fonts.get(key)
        if known is None:
            font = cell_font(cell, column)
            known = self._fonts[key] = font, TextMetrics(font)
        return known

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        cell, column = self._model.cell(index), self._model.columns[index.column()]
        font, metrics = self._font_of(cell, column)
        room = option.rect.width() - 2 * PAD
        if column.wrap and option.rect.height() > ROW_HEIGHT:
            return cell.text if len(wrapped(cell.text, font, room)) > MOST_LINES else ""
        return cell.text if metrics.horizontalAdvance(cell.text) > room + 0.5 else ""

    def _colour(self, role: str) -> str:
        colours = theme.current()
        return {
            "": colours.text,
            "quiet": colours.quiet,
            "accent": colours.accent,
            "right": colours.right,
            "wrong": colours.wrong,
            "unsure": colours.unsure,
        }.get(role) or strategy_colour(colours, role)

    # Qt

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(NARROWEST, ROW_HEIGHT)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        colours = theme.current()
        cell, column = self._model.cell(index), self._model.columns[index.column()]
        area = QRectF(option.rect)
        state = option.state
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, QColor(colours.accent_ground))
        elif index.row() == self._hovered_row():
            painter.fillRect(area, QColor(colours.hover))
        below = QRectF(area.left(), area.bottom() - 1, area.width(), 1)
        painter.fillRect(below, QColor(colours.line))
        font, metrics = self._font_of(cell, column)
        room = area.width() - 2 * PAD
        is_high = area.height() > ROW_HEIGHT
        lines = wrapped(cell.text, font, room) if column.wrap and is_high else [cell.text]
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], " ".join(lines[MOST_LINES - 1 :])]
        # The first line is where it is in a row of one line.
        base = round(area.top() + ROW_HEIGHT / 2 - 0.5 + UI_PIXELS * 0.364)
        painter.setFont(font)
        painter.setPen(QColor(self._colour(cell.role)))
        for number, line in enumerate(lines):
            words = metrics.elidedText(line, Qt.TextElideMode.ElideRight, room + 0.5)
            left = area.left() + PAD
            if column.numeric:
                left = area.right() - PAD - metrics.horizontalAdvance(words)
            painter.drawText(QPointF(left, base + number * LINE_HEIGHT), words)


# --- Rows of a tree or list with a quiet note at the right ---

NOTE = int(Qt.ItemDataRole.UserRole) + 1
"""Item data role of the note's text."""

GAP, EDGE = 10, 8


class NoteDelegate(WholeWords):
    """Delegate that draws each row's text at the left, elided to make room for the note."""

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        self.initStyleOption(option, index)
        text, note = option.text, str(index.data(NOTE) or "")
        metrics = TextMetrics(option.font)
        room = option.rect.width() - 4 - EDGE
        room -= round(metrics.horizontalAdvance(note)) + GAP if note else 0
        return text if metrics.horizontalAdvance(text) > room else ""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        self.initStyleOption(option, index)
        text, note = option.text, str(index.data(NOTE) or "")
        option.text = ""
        style = option.widget.style() if option.widget is not None else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        colours = theme.current()
        metrics = TextMetrics(option.font)
        room = option.rect.adjusted(4, 0, -EDGE, 0)
        painter.save()
        painter.setFont(option.font)
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.setPen(QColor(colours.accent if selected else colours.quiet))
        painter.drawText(room, int(side), note)
        width = room.width() - (metrics.horizontalAdvance(note) + GAP if note else 0)
        own = option.palette.color(QPalette.ColorRole.Text)
        painter.setPen(QColor(colours.accent) if selected else own)
        side = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        elided = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, width)
        painter.drawText(QRect(room), int(side), elided)
        painter.restore()

"""Rows of a tree or list with a quiet note at the right."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QStyle,
    QStyleOptionViewItem,
)

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics
from lowerscope.app.widgets.whole_words import WholeWords

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

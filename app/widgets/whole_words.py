"""Delegate that shows elided text in full in the tool tip."""

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
)


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

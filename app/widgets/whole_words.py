"""Items whose words are painted shortened, with the whole of them in the tool tip."""

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
)


class WholeWords(QStyledItemDelegate):
    """A delegate that says what it has cut, where an item has no tool tip of its own."""

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        """The whole of what an item's room is too small for, or ``""``."""
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

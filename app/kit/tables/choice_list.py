"""A searchable list of choices under headings, with the reason why a choice is disabled."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.finder import EmptyState
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, UI_PIXELS, TextMetrics, ui_font

CHOICE = Qt.ItemDataRole.UserRole
MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_ROW = 24
_PAD = 8.0


@dataclass(frozen=True)
class Choice:
    """A choice."""

    key: str  # Unique; empty for a heading.
    title: str  # Its name, and a note behind it.
    note: str = ""
    usable: bool = True  # Whether it can be chosen directly.
    mark: str = ""  # Text at the right end.
    tooltip: str = ""  # More about it.


class ChoiceList(QWidget):
    """A filter line above the choices.

    Args:
        placeholder: The placeholder of the line.
    """

    # Another choice became current, by mouse or keyboard: its key, or ``""``.
    pointed = Signal(str)
    chosen = Signal(str)  # A choice was clicked or entered; the argument is its key.
    escaped = Signal()  # Escape was pressed while the line was empty.

    def __init__(self, name: str, placeholder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: tuple[Choice, ...] = ()
        self._pointed = ""
        self._second = False
        self._said = ("", "", -1)
        self.line = QLineEdit()
        self.line.setPlaceholderText(placeholder)
        self.line.setAccessibleName(placeholder)
        self.line.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(name)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setMouseTracking(True)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(_ChoiceDelegate(self.list))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.empty = EmptyState()
        self.list.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.line)
        column.addWidget(self.empty, 1)
        column.addWidget(self.list, 1)
        self.line.textChanged.connect(self._filter)
        self.line.installEventFilter(self)
        self.list.installEventFilter(self)
        self.list.viewport().installEventFilter(self)
        self.list.itemClicked.connect(self._choose_item)
        self.list.currentItemChanged.connect(self._point_at_current)
        theme.notifier().changed.connect(self.list.viewport().update)

    def set_choices(self, choices: Sequence[Choice]) -> None:
        """Set the choices; the current one stays current."""
        if tuple(choices) == self._choices:
            return
        current, top = self.current_key(), self.list.verticalScrollBar().value()
        self._choices = tuple(choices)
        self.list.blockSignals(True)
        self.list.clear()
        for choice in choices:
            item = QListWidgetItem(choice.title)
            item.setData(CHOICE, choice)
            item.setToolTip(choice.tooltip)
            said = f"{choice.title}, {choice.note}" if choice.note else choice.title
            item.setData(Qt.ItemDataRole.AccessibleTextRole, said)
            if not choice.key:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(item)
            if choice.key and choice.key == current:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)
        self.list.setVisible(bool(choices))
        self._filter(self.line.text())
        self.list.verticalScrollBar().setValue(top)
        if self._pointed not in [each.key for each in choices]:
            self._pointed = ""

    def set_hint(self, title: str, hint: str) -> None:
        """Show a hint in place of choices; ``""`` for none."""
        said = (title, hint, len(self._choices))
        if said == self._said:
            return
        self._said = said
        self.empty.set_text(title, hint)
        self.empty.setVisible(bool(title) or not self._choices)

    def choices(self) -> tuple[Choice, ...]:
        """Return all choices and headings, from the top."""
        return self._choices

    def shown(self) -> list[Choice]:
        """Return the choices that match the filter."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return [
            item.data(CHOICE) for item in items if not item.isHidden() and item.data(CHOICE).key
        ]

    def current_key(self) -> str:
        """Return key of the current choice, or ``""``."""
        item = self.list.currentItem()
        return "" if item is None or item.isHidden() else item.data(CHOICE).key

    def item_of(self, key: str) -> QListWidgetItem | None:
        """Return the item of a choice."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return next((item for item in items if item.data(CHOICE).key == key), None)

    def point_at_first(self) -> None:
        """Make the first matching choice that can be chosen the current one."""
        shown = self.shown()
        best = next((each for each in shown if each.usable), shown[0] if shown else None)
        item = None if best is None else self.item_of(best.key)
        if item is not None:
            self.list.setCurrentItem(item)

    def _filter(self, text: str) -> None:
        words = text.casefold().split()
        heading: QListWidgetItem | None = None
        for row in range(self.list.count()):
            item = self.list.item(row)
            choice: Choice = item.data(CHOICE)
            if not choice.key:
                heading = item
                heading.setHidden(True)
                continue
            said = f"{choice.key} {choice.title}".casefold()
            item.setHidden(not all(word in said for word in words))
            if heading is not None and not item.isHidden():
                heading.setHidden(False)
        if words:
            self.point_at_first()

    def _choose_item(self, item: QListWidgetItem) -> None:
        if item.data(CHOICE).key:
            self.chosen.emit(item.data(CHOICE).key)

    def _point_at_current(self) -> None:
        self._point(self.current_key())

    def _point(self, key: str) -> None:
        if key != self._pointed:
            self._pointed = key
            self.pointed.emit(key)

    def _take_mouse(self, event: QMouseEvent) -> bool:
        """Handle a mouse event of the list; return whether it is consumed."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonDblClick:
            # The first click has chosen, and the choices may have changed since.
            self._second = True
            return True
        if kind == QEvent.Type.MouseButtonRelease and self._second:
            self._second = False
            return True
        if kind == QEvent.Type.MouseMove:
            item = self.list.itemAt(event.position().toPoint())
            self._point("" if item is None else item.data(CHOICE).key)
        return False

    def _take_key(self, watched: QObject, event: QKeyEvent) -> bool:
        """Handle a key; return whether it is consumed."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.current_key():
                self.chosen.emit(self.current_key())
        elif event.key() == Qt.Key.Key_Escape:
            if self.line.text():
                self.line.clear()
            else:
                self.escaped.emit()
        elif watched is self.line and event.key() in MOVES:
            if self.list.currentItem() is None:
                self.point_at_first()
            else:
                self.list.keyPressEvent(event)
        else:
            return False
        return True

    # Qt's own

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if watched is self.list.viewport():
            if isinstance(event, QMouseEvent) and self._take_mouse(event):
                return True
            if kind == QEvent.Type.Leave and self.list.isVisible():
                # Hiding the list while choices are pending is not leaving it.
                self._point("")
        elif kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if self._take_key(watched, event):
                return True
        elif kind == QEvent.Type.FocusOut:
            self._point("")
        return super().eventFilter(watched, event)


class _ChoiceDelegate(QStyledItemDelegate):
    """Delegate that paints a choice or a heading."""

    # Qt

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(60, _ROW)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        colours = theme.current()
        choice: Choice = index.data(CHOICE)
        area = QRectF(option.rect)
        base = round(area.center().y() - 0.5 + UI_PIXELS * 0.364)
        if not choice.key:
            painter.setFont(ui_font(12))
            painter.setPen(QColor(colours.quiet))
            painter.drawText(QPointF(area.left() + _PAD, base), choice.title[:SHOWN_CHARACTERS])
            return
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, QColor(colours.accent_ground))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(area, QColor(colours.hover))
        right = area.right() - _PAD
        quiet = ui_font()
        if choice.mark:
            width = TextMetrics(quiet).horizontalAdvance(choice.mark)
            painter.setFont(quiet)
            painter.setPen(QColor(colours.quiet))
            painter.drawText(QPointF(right - width, base), choice.mark[:SHOWN_CHARACTERS])
            right -= width + 8
        font = ui_font(weight=QFont.Weight.Medium if choice.usable else QFont.Weight.Normal)
        metrics = TextMetrics(font)
        left = area.left() + _PAD + 8
        title = metrics.elidedText(choice.title, Qt.TextElideMode.ElideRight, right - left)
        painter.setFont(font)
        painter.setPen(QColor(colours.text if choice.usable else colours.faint))
        painter.drawText(QPointF(left, base), title)
        left += metrics.horizontalAdvance(title) + 8
        if choice.note and right - left > 20:
            note = TextMetrics(quiet).elidedText(
                choice.note, Qt.TextElideMode.ElideRight, right - left
            )
            painter.setFont(quiet)
            painter.setPen(QColor(colours.quiet if choice.usable else colours.faint))
            painter.drawText(QPointF(left, base), note)

"""Lists: searchable choices under headings, and a short list that the user reorders."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.tables.data_table import Index, draw_line
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

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

    def __init__(self, name: str, placeholder: str) -> None:
        super().__init__()
        self._choices: tuple[Choice, ...] = ()
        self._pointed = ""
        self._second = False
        self._hint = ("", "")
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
        column_of(self, self.line, (self.empty, 1), (self.list, 1), spacing=4)
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
        self._filter(self.line.text())
        self.list.verticalScrollBar().setValue(top)
        if self._pointed not in [each.key for each in choices]:
            self._pointed = ""

    def set_hint(self, title: str, hint: str) -> None:
        """Show a hint in place of choices; ``""`` for none."""
        self._hint = title, hint
        self._show_hint()

    def _show_hint(self) -> None:
        filtered = bool(self._choices) and not self.shown()
        title, hint = (_("No match"), "") if filtered else self._hint
        self.list.setVisible(bool(self._choices) and not filtered)
        said = (title, hint, len(self._choices))
        if said == self._said:
            return
        self._said = said
        self.empty.set_text(title, hint)
        self.empty.setVisible(bool(title) or not self._choices)

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
            # None if no choice matches.
            self._point_at_current()
        self._show_hint()

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

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(60, _ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours = theme.current()
        choice: Choice = index.data(CHOICE)
        room = QRectF(option.rect).adjusted(_PAD, 0, -_PAD, 0)
        if not choice.key:
            draw_line(painter, room, choice.title, ui_font(12), colours.quiet)
            return
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(QRectF(option.rect), QColor(colours.accent_ground))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(QRectF(option.rect), QColor(colours.hover))
        quiet = ui_font()
        if choice.mark:
            draw_line(painter, room, choice.mark, quiet, colours.quiet, right=True)
            room.setRight(room.right() - TextMetrics(quiet).horizontalAdvance(choice.mark) - 8)
        room.setLeft(room.left() + 8)
        font = ui_font(weight=QFont.Weight.Medium if choice.usable else QFont.Weight.Normal)
        colour = colours.text if choice.usable else colours.faint
        room.setLeft(draw_line(painter, room, choice.title, font, colour) + 8)
        if choice.note and room.width() > 20:
            colour = colours.quiet if choice.usable else colours.faint
            draw_line(painter, room, choice.note, quiet, colour)


class OrderList(QListWidget):
    """A list of names that the user can reorder."""

    edited = Signal()  # The user changed the order.

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        # Whether a row is being dragged, and whether it has moved since the press.
        self._dragging = self._dragged = False
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setToolTip(_("Drag, or press Alt with ↑ or ↓, to change the order"))

    def set_names(self, names: Sequence[str]) -> None:
        """Set the names; each is identified by its index from then on."""
        self.clear()
        for place, name in enumerate(names):
            item = QListWidgetItem(f"⋮⋮  {name}")
            item.setData(CHOICE, place)
            item.setSizeHint(QSize(0, _ROW))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, name)
            self.addItem(item)
        if names:
            self.setCurrentRow(0)
        self.setFixedHeight(max(1, min(len(names), 8)) * _ROW + 4)

    def order(self) -> tuple[int, ...]:
        """Return the original indices of the names, in their current order."""
        return tuple(self.item(row).data(CHOICE) for row in range(self.count()))

    def move_current(self, by: int) -> None:
        """Move the current name."""
        row = self.currentRow()
        to = row + by
        if row >= 0 and 0 <= to < self.count():
            self.insertItem(to, self.takeItem(row))
            self.setCurrentRow(to)
            self.edited.emit()

    # Qt's own

    def event(self, event: QEvent) -> bool:
        # The window uses these keys for other commands.
        override = event.type() == QEvent.Type.ShortcutOverride
        if override and isinstance(event, QKeyEvent) and _is_move(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_move(event):
            self.move_current(-1 if event.key() == Qt.Key.Key_Up else 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        left = event.button() == Qt.MouseButton.LeftButton
        self._dragging = left and self.itemAt(event.position().toPoint()) is not None
        self._dragged = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if not self._dragging:
            super().mouseMoveEvent(event)
            return
        # The row moves with the mouse, so that the list always shows the new order.
        self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        to = max(0, min(int(event.position().y()) // _ROW, self.count() - 1))
        row = self.currentRow()
        if to != row:
            self.insertItem(to, self.takeItem(row))
            self.setCurrentRow(to)
            self._dragged = True

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.viewport().unsetCursor()
        dragged, self._dragging = self._dragged, False
        if dragged:
            self._dragged = False
            self.edited.emit()


def _is_move(event: QKeyEvent) -> bool:
    alt = event.modifiers() & Qt.KeyboardModifier.AltModifier
    return bool(alt) and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down)

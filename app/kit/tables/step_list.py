"""A list of steps that can be folded, switched off, and reordered by dragging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
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
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.finder import EmptyState
from lowerscope.app.kit.tables.step_row import (
    COLUMNS,
    ROW,
    TITLE,
    Marks,
    StepDelegate,
    StepRow,
    box_of,
    paint_ground,
)
from lowerscope.app.kit.tables.table_cells import ROW_HEIGHT
from lowerscope.app.kit.typefaces import ui_font

_WIDTHS = {0: 56, 2: 104, 3: 84}


class StepList(QTreeWidget):
    """A list of steps.

    Args:
        titles: Titles of the columns: number, step, what it changed, time.
    """

    activated_key = Signal(str)  # A row was double-clicked or entered; the argument is its key.
    switched = Signal(str)  # The check box of a row was clicked, or Space was pressed on it.
    moved = Signal(int, int)  # A row was dragged: its place, and its new place.
    removed = Signal(str)  # Delete was pressed on a row.
    folded = Signal(str, bool)  # A row was folded or unfolded.
    # The context menu of a row was requested, at a position on the screen.
    menu_wanted = Signal(str, QPoint)

    def __init__(
        self, name: str, titles: tuple[str, str, str, str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._items: dict[str, QTreeWidgetItem] = {}
        self._marks = Marks()
        self._pressed: tuple[StepRow, QPoint] | None = None
        self._target = -1
        self.setAccessibleName(name)
        self.setColumnCount(len(COLUMNS))
        self.setHeaderLabels(titles)
        self.setTreePosition(TITLE)
        self.setIndentation(12)
        self.setUniformRowHeights(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setExpandsOnDoubleClick(False)
        self.setItemDelegate(StepDelegate(self, self._marks))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = self.header()
        header.setFont(ui_font(12))
        header.setFixedHeight(ROW_HEIGHT)
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        for column in range(len(COLUMNS)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(column, _WIDTHS.get(column, 100))
        header.setSectionResizeMode(TITLE, QHeaderView.ResizeMode.Stretch)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column in (0, 2, 3):
            self.headerItem().setTextAlignment(column, right)
        self.empty = EmptyState("", "", self)
        self.itemExpanded.connect(self._tell_unfolded)
        self.itemCollapsed.connect(self._tell_folded)
        self.itemDoubleClicked.connect(self._activate)
        self.customContextMenuRequested.connect(self._want_menu)
        theme.notifier().changed.connect(self.viewport().update)

    def set_rows(self, rows: Sequence[StepRow]) -> None:
        """Set the rows; the selected one stays selected, if it still exists."""
        if list(rows) == self.rows():
            return
        chosen, top = self.current_key(), self.verticalScrollBar().value()
        if _places(rows) != _places(self.rows()):
            # The dragged row may be gone, or elsewhere.
            self._give_up_drag()
        self.blockSignals(True)
        self.clear()
        self._items, self._marks.hovered = {}, None
        for row in rows:
            words = [row.number, row.title, row.changed, row.time]
            above = self._items.get(row.parent)
            item = QTreeWidgetItem(above, words) if above else QTreeWidgetItem(self, words)
            item.setData(0, ROW, row)
            for column in range(len(COLUMNS)):
                item.setToolTip(column, row.tooltip)
            off = self.tr("switched off") if row.on is False else ""
            said = ", ".join(each for each in (row.title, row.note, off, row.said) if each)
            item.setData(TITLE, Qt.ItemDataRole.AccessibleTextRole, said)
            if row.on is not None:
                state = Qt.CheckState.Checked if row.on else Qt.CheckState.Unchecked
                item.setCheckState(0, state)
            self._items[row.key] = item
        for row in rows:
            self._items[row.key].setExpanded(row.unfolded)
        if chosen in self._items:
            self.setCurrentItem(self._items[chosen])
        self.blockSignals(False)
        self.verticalScrollBar().setValue(top)
        self.empty.setVisible(not rows)

    def rows(self) -> list[StepRow]:
        """Return all rows, in order."""
        return [item.data(0, ROW) for item in self._items.values()]

    def row(self, key: str) -> StepRow | None:
        """Return the row with this key."""
        item = self._items.get(key)
        return None if item is None else item.data(0, ROW)

    def current_key(self) -> str:
        """Return key of the selected row, or ``""``."""
        item = self.currentItem()
        return "" if item is None else item.data(0, ROW).key

    def select(self, key: str) -> None:
        """Select a row, if it exists."""
        if key in self._items:
            self.setCurrentItem(self._items[key])

    def set_marked(self, key: str) -> None:
        """Mark the row of the current step; none for ``""``."""
        if key != self._marks.key:
            self._marks.key = key
            if key in self._items and self.visualItemRect(self._items[key]).isValid():
                self.scrollToItem(self._items[key])
            self.viewport().update()

    def marked(self) -> str:
        """Return key of the marked row, or ``""``."""
        return self._marks.key

    def row_rect(self, key: str) -> QRectF:
        """Return the area of a row in the viewport."""
        return QRectF(self.visualItemRect(self._items[key])).adjusted(
            -self.visualItemRect(self._items[key]).left(), 0, 0, 0
        )

    def box_rect(self, key: str) -> QRectF:
        """Return the area of a row's check box in the viewport."""
        return box_of(self.row_rect(key))

    def _activate(self, item: QTreeWidgetItem) -> None:
        self.activated_key.emit(item.data(0, ROW).key)

    def _tell_unfolded(self, item: QTreeWidgetItem) -> None:
        self.folded.emit(item.data(0, ROW).key, True)

    def _tell_folded(self, item: QTreeWidgetItem) -> None:
        self.folded.emit(item.data(0, ROW).key, False)

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place)
        if item is not None:
            self.setCurrentItem(item)
            self.menu_wanted.emit(item.data(0, ROW).key, self.viewport().mapToGlobal(place))

    def _movable(self) -> Iterator[tuple[StepRow, QTreeWidgetItem]]:
        for item in self._items.values():
            row: StepRow = item.data(0, ROW)
            if row.place >= 0:
                yield row, item

    def _gaps(self) -> list[float]:
        """Return the heights of the gaps between movable rows, where a row can be dropped."""
        gaps: list[float] = []
        for _, item in self._movable():
            gaps.append(self.visualItemRect(item).top())
            last: QTreeWidgetItem | None = item
            while last is not None and last.isExpanded() and last.childCount():
                last = last.child(last.childCount() - 1)
            end = float(self.visualItemRect(last or item).bottom() + 1)
        return [*gaps, end] if gaps else []

    def _drag_to(self, y: float) -> None:
        gaps = self._gaps()
        target = min(range(len(gaps)), key=lambda place: abs(gaps[place] - y))
        if target != self._target:
            self._target = target
            self.viewport().update()

    def _drop(self) -> None:
        assert self._pressed is not None
        place, target = self._pressed[0].place, self._target
        self._target = -1
        self.viewport().unsetCursor()
        self.viewport().update()
        if target >= 0 and target not in (place, place + 1):
            self.moved.emit(place, target if target < place else target - 1)

    def _give_up_drag(self) -> None:
        self._target, self._pressed = -1, None
        self.viewport().unsetCursor()
        self.viewport().update()

    def _is_on_box(self, row: StepRow, place: QPointF) -> bool:
        return row.on is not None and self.box_rect(row.key).adjusted(-4, -4, 4, 4).contains(place)

    # Qt's own

    def mousePressEvent(self, event: QMouseEvent) -> None:
        item = self.itemAt(event.position().toPoint())
        row: StepRow | None = None if item is None else item.data(0, ROW)
        left = event.button() == Qt.MouseButton.LeftButton
        if left and row is not None and self._is_on_box(row, event.position()):
            self.select(row.key)
            self.switched.emit(row.key)
            return
        super().mousePressEvent(event)
        if left and row is not None and row.place >= 0:
            self._pressed = (row, event.position().toPoint())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if event.buttons() & Qt.MouseButton.LeftButton and self._pressed is not None:
            far = (place - self._pressed[1]).manhattanLength()
            if self._target >= 0 or far >= QApplication.startDragDistance():
                self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
                self._drag_to(event.position().y())
            return
        hovered = self.itemAt(place)
        if hovered is not self._marks.hovered:
            self._marks.hovered = hovered
            self.viewport().update()
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._pressed is not None:
            self._drop()
            self._pressed = None

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._marks.hovered = None
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = self.current_key()
        row = self.row(key)
        if event.key() == Qt.Key.Key_Escape and self._target >= 0:
            self._give_up_drag()
        elif row is None:
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.activated_key.emit(key)
        elif event.key() == Qt.Key.Key_Space and row.on is not None:
            self.switched.emit(key)
        elif event.key() == Qt.Key.Key_Delete and row.place >= 0:
            self.removed.emit(key)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.empty.setGeometry(self.viewport().geometry())

    def drawBranches(
        self, painter: QPainter, rect: QRect, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        # The area beside the arrow has the row's background.
        paint_ground(painter, QRectF(rect), self.itemFromIndex(index), self._marks)
        super().drawBranches(painter, rect, index)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._target >= 0:
            painter = QPainter(self.viewport())
            y = self._gaps()[self._target]
            painter.setPen(QPen(QColor(theme.current().accent), 2))
            painter.drawLine(QPointF(8, y), QPointF(self.viewport().width() - 8, y))


def _places(rows: Sequence[StepRow]) -> list[tuple[str, int]]:
    """Return the rows that can be moved, and their places."""
    return [(row.key, row.place) for row in rows if row.place >= 0]

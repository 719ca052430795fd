"""Trees of painted rows: a table with several selected rows, and a list of steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
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
    QHeaderView,
    QStyle,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.tables.data_table import (
    ROW_HEIGHT,
    Cell,
    Column,
    Index,
    WholeWords,
    draw_line,
)
from lowerscope.app.kit.typefaces import ui_font

ROW = Qt.ItemDataRole.UserRole
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class PaintedTree(QTreeWidget):
    """A tree of rows that a delegate paints; each item has its row, with its key and its parent's.

    It knows the row under the mouse, and shows a text while there are no rows.
    """

    row_activated = Signal(str)  # A row was double-clicked or entered; the argument is its key.

    def __init__(self, name: str, titles: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: dict[str, QTreeWidgetItem] = {}
        self._hovered: QTreeWidgetItem | None = None
        self.setAccessibleName(name)
        self.setColumnCount(len(titles))
        self.setHeaderLabels(titles)
        self.setUniformRowHeights(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = self.header()
        header.setFont(ui_font(12))
        header.setFixedHeight(ROW_HEIGHT)
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(40)
        self.empty = EmptyState("", "", self)
        self.itemDoubleClicked.connect(self._activate)
        self.customContextMenuRequested.connect(self._want_menu)
        theme.notifier().changed.connect(self.viewport().update)

    def current_key(self) -> str:
        """Return key of the current row, or ``""``."""
        item = self.currentItem()
        return "" if item is None else item.data(0, ROW).key

    def hovered(self) -> QTreeWidgetItem | None:
        """Return the row under the mouse."""
        return self._hovered

    def row_rect(self, key: str) -> QRectF:
        """Return the area of a row in the viewport."""
        area = QRectF(self.visualItemRect(self._items[key]))
        area.setLeft(0)
        return area

    def row_of(self, index: Index) -> Any:
        return self.itemFromIndex(index).data(0, ROW)

    def _clear_items(self) -> None:
        self.clear()
        self._items, self._hovered = {}, None

    def _add_item(self, row: Any, texts: Sequence[str]) -> QTreeWidgetItem:
        above = self._items.get(row.parent)
        item = QTreeWidgetItem(above, texts) if above else QTreeWidgetItem(self, texts)
        item.setData(0, ROW, row)
        self._items[row.key] = item
        return item

    def _activate(self, item: QTreeWidgetItem) -> None:
        self.row_activated.emit(item.data(0, ROW).key)

    def _want_menu(self, place: QPoint) -> None:
        raise NotImplementedError

    # Qt's own

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current_key():
            self.row_activated.emit(self.current_key())
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hovered = self.itemAt(event.position().toPoint())
        if hovered is not self._hovered:
            self._hovered = hovered
            self.viewport().update()
        super().mouseMoveEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hovered = None
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.empty.setGeometry(self.viewport().geometry())


@dataclass(frozen=True)
class TreeRow:
    """A row: its key, its cells, its parent row, and whether it is a title.

    ``note`` is a quiet text behind that of the first cell.
    """

    key: str
    cells: tuple[Cell, ...]
    parent: str = ""
    note: str = ""
    section: bool = False
    tooltip: str = ""


_INDENT = 8


class TreeTable(PaintedTree):
    """Rows in a tree, all expanded."""

    # The user changed the selection; the argument is the keys in the order of selection.
    rows_selected = Signal(list)
    # The context menu of the selection was requested, at a position on the screen.
    menu_wanted = Signal(QPoint)

    def __init__(self, name: str, columns: Sequence[Column], parent: QWidget | None = None) -> None:
        super().__init__(name, [column.title for column in columns], parent)
        self._rows: tuple[TreeRow, ...] = ()
        self._order: list[str] = []
        self._silent = False
        self.setIndentation(_INDENT)
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)
        self.setItemDelegate(_TreeDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        header, mode = self.header(), QHeaderView.ResizeMode
        for place, column in enumerate(columns):
            self.headerItem().setToolTip(place, column.tooltip)
            header.setSectionResizeMode(place, mode.Stretch if column.stretch else mode.Fixed)
            if column.width:
                header.resizeSection(place, column.width)
            self.headerItem().setTextAlignment(place, _RIGHT if column.numeric else _LEFT)
        self.columns = tuple(columns)
        self.itemSelectionChanged.connect(self._tell_selected)

    def set_rows(self, rows: Sequence[TreeRow]) -> None:
        """Set the rows; selected ones stay selected, if they still exist."""
        if tuple(rows) == self._rows:
            return
        chosen, top = list(self._order), self.verticalScrollBar().value()
        current = self.current_key()
        self._silent = True
        self._clear_items()
        self._rows = tuple(rows)
        for row in rows:
            item = self._add_item(row, [cell.text for cell in row.cells])
            for column, cell in enumerate(row.cells):
                item.setToolTip(column, cell.tooltip or row.tooltip)
            if row.section:
                item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        self.expandAll()
        self._silent = False
        self.set_selection(chosen)
        if current in self._items:
            flag = QItemSelectionModel.SelectionFlag.NoUpdate
            self.setCurrentItem(self._items[current], 0, flag)
        self.verticalScrollBar().setValue(top)
        self.empty.setVisible(not rows)

    def rows(self) -> tuple[TreeRow, ...]:
        """Return the rows, from the top."""
        return self._rows

    def set_selection(self, keys: Collection[str]) -> None:
        """Select the rows of these keys, without a signal."""
        wanted = [key for key in keys if key in self._items]
        if wanted == self._order and wanted == self._marked():
            return
        self._silent = True
        self.clearSelection()
        for key in wanted:
            self._items[key].setSelected(True)
        if wanted and self.currentItem() not in [self._items[key] for key in wanted]:
            flag = QItemSelectionModel.SelectionFlag.NoUpdate
            self.setCurrentItem(self._items[wanted[-1]], 0, flag)
        if wanted:
            self.scrollToItem(self._items[wanted[-1]])
        self._order = wanted
        self._silent = False

    def selected_keys(self) -> list[str]:
        """Return the keys of the selected rows, in the order of selection."""
        return list(self._order)

    def item_of(self, key: str) -> QTreeWidgetItem:
        """Return the item of a row."""
        return self._items[key]

    def open_menu(self) -> None:
        """Request the context menu of the selection, beside it."""
        item = self.currentItem()
        rect = QRect() if item is None else self.visualItemRect(item)
        self.menu_wanted.emit(self.viewport().mapToGlobal(rect.bottomLeft() + QPoint(24, 0)))

    def _marked(self) -> list[str]:
        return [item.data(0, ROW).key for item in self.selectedItems()]

    def _tell_selected(self) -> None:
        if self._silent:
            return
        marked = self._marked()
        kept = [key for key in self._order if key in marked]
        self._order = kept + [key for key in marked if key not in kept]
        self.rows_selected.emit(list(self._order))

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place)
        if item is not None and not item.isSelected() and not item.data(0, ROW).section:
            self.setCurrentItem(item)
        self.menu_wanted.emit(self.viewport().mapToGlobal(place))

    # Painting

    def drawBranches(self, painter: QPainter, rect: QRect, index: Index) -> None:
        # The area left of the text has the row's background; thin lines show the depth.
        self.paint_ground(painter, QRectF(rect), self.itemFromIndex(index))
        painter.setPen(QColor(theme.current().line))
        for level in range(1, rect.width() // _INDENT):
            x = rect.left() + level * _INDENT + 3
            painter.drawLine(x, rect.top(), x, rect.bottom())

    def paint_ground(self, painter: QPainter, area: QRectF, item: QTreeWidgetItem) -> None:
        """Paint the background of a row."""
        colours = theme.current()
        ground = colours.panel
        if item.isSelected():
            ground = colours.accent_ground
        elif item is self._hovered and not item.data(0, ROW).section:
            ground = colours.hover
        painter.fillRect(area, QColor(ground))


_SPACE = 8.0
"""Between texts, and at their sides."""


class _TreeDelegate(WholeWords):
    """Delegate that paints a cell of a row."""

    def __init__(self, tree: TreeTable) -> None:
        super().__init__(tree)
        self._tree = tree

    def _cell(self, index: Index) -> tuple[TreeRow, Cell, QFont, str]:
        """Return the row, cell, font and note at an index."""
        row: TreeRow = self._tree.row_of(index)
        column = index.column()
        cell = row.cells[column] if column < len(row.cells) else Cell("")
        weight = QFont.Weight.DemiBold if cell.bold or row.section else QFont.Weight.Normal
        font = ui_font(weight=weight, tabular=self._tree.columns[column].numeric)
        return row, cell, font, row.note if column == 0 else ""

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        _, cell, font, note = self._cell(index)
        return self.cut_line(cell.text, note, font, option.rect.width() - 2 * _SPACE)

    # Qt

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(40, 24)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, area = theme.current(), QRectF(option.rect)
        self._tree.paint_ground(painter, area, self._tree.itemFromIndex(index))
        row, cell, font, note = self._cell(index)
        shades = {"quiet": colours.quiet, "accent": colours.accent, "wrong": colours.wrong}
        colour = colours.quiet if row.section else shades.get(cell.role, colours.text)
        room = area.adjusted(_SPACE, 0, -_SPACE, 0)
        numeric = self._tree.columns[index.column()].numeric
        room.setLeft(draw_line(painter, room, cell.text, font, colour, right=numeric) + _SPACE)
        if note:
            draw_line(painter, room, note, ui_font(), colours.quiet)


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

    def texts(self) -> list[str]:
        """Return the text of each column."""
        return [self.number, self.title, self.changed, self.time]


_NUMBER, _TITLE, _CHANGED, _TIME = range(4)
"""The columns of a list of steps."""
_WIDTHS = {_NUMBER: 56, _TITLE: 100, _CHANGED: 104, _TIME: 84}
_PAD = 10.0
_BOX = 14.0


class StepList(PaintedTree):
    """A list of steps that can be folded, switched off, and reordered by dragging.

    Args:
        titles: Titles of the columns: number, step, what it changed, time.
    """

    switched = Signal(str)  # The check box of a row was clicked, or Space was pressed on it.
    moved = Signal(int, int)  # A row was dragged: its place, and its new place.
    removed = Signal(str)  # Delete was pressed on a row.
    folded = Signal(str, bool)  # A row was folded or unfolded.
    # The context menu of a row was requested, at a position on the screen.
    menu_wanted = Signal(str, QPoint)

    def __init__(
        self, name: str, titles: tuple[str, str, str, str], parent: QWidget | None = None
    ) -> None:
        super().__init__(name, titles, parent)
        self._marked = ""
        self._pressed: tuple[StepRow, QPoint] | None = None
        self._target = -1
        self.setTreePosition(_TITLE)
        self.setIndentation(12)
        self.setExpandsOnDoubleClick(False)
        self.setItemDelegate(_StepDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header, mode = self.header(), QHeaderView.ResizeMode
        header.setSectionsMovable(False)
        for column, width in _WIDTHS.items():
            header.setSectionResizeMode(column, mode.Stretch if column == _TITLE else mode.Fixed)
            header.resizeSection(column, width)
            self.headerItem().setTextAlignment(column, _LEFT if column == _TITLE else _RIGHT)
        self.itemExpanded.connect(self._tell_folded)
        self.itemCollapsed.connect(self._tell_folded)

    def set_rows(self, rows: Sequence[StepRow]) -> None:
        """Set the rows; the selected one stays selected, if it still exists."""
        if list(rows) == self.rows():
            return
        chosen, top = self.current_key(), self.verticalScrollBar().value()
        if _places(rows) != _places(self.rows()):
            # The dragged row may be gone, or elsewhere.
            self._cancel_drag()
        self.blockSignals(True)
        self._clear_items()
        for row in rows:
            item = self._add_item(row, row.texts())
            for column in _WIDTHS:
                item.setToolTip(column, row.tooltip)
            off = self.tr("switched off") if row.on is False else ""
            said = ", ".join(each for each in (row.title, row.note, off, row.said) if each)
            item.setData(_TITLE, Qt.ItemDataRole.AccessibleTextRole, said)
            if row.on is not None:
                state = Qt.CheckState.Checked if row.on else Qt.CheckState.Unchecked
                item.setCheckState(0, state)
        for row in rows:
            self._items[row.key].setExpanded(row.unfolded)
        self.select(chosen)
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

    def select(self, key: str) -> None:
        """Select a row, if it exists."""
        if key in self._items:
            self.setCurrentItem(self._items[key])

    def set_marked(self, key: str) -> None:
        """Mark the row of the current step; none for ``""``."""
        if key != self._marked:
            self._marked = key
            if key in self._items and self.visualItemRect(self._items[key]).isValid():
                self.scrollToItem(self._items[key])
            self.viewport().update()

    def marked(self) -> str:
        """Return key of the marked row, or ``""``."""
        return self._marked

    def box_rect(self, key: str) -> QRectF:
        """Return the area of a row's check box in the viewport."""
        return _box_of(self.row_rect(key))

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place)
        if item is not None:
            self.setCurrentItem(item)
            self.menu_wanted.emit(item.data(0, ROW).key, self.viewport().mapToGlobal(place))

    def _tell_folded(self, item: QTreeWidgetItem) -> None:
        self.folded.emit(item.data(0, ROW).key, item.isExpanded())

    # Dragging

    def _movable(self) -> Iterator[QTreeWidgetItem]:
        return (item for item in self._items.values() if item.data(0, ROW).place >= 0)

    def _gaps(self) -> list[float]:
        """Return the heights of the gaps between movable rows, where a row can be dropped."""
        gaps: list[float] = []
        for item in self._movable():
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
        self._cancel_drag()
        if target >= 0 and target not in (place, place + 1):
            self.moved.emit(place, target if target < place else target - 1)

    def _cancel_drag(self) -> None:
        self._target, self._pressed = -1, None
        self.viewport().unsetCursor()
        self.viewport().update()

    def _is_on_box(self, row: StepRow, place: QPointF) -> bool:
        return row.on is not None and self.box_rect(row.key).adjusted(-4, -4, 4, 4).contains(place)

    # Painting

    def paint_ground(self, painter: QPainter, area: QRectF, item: QTreeWidgetItem) -> None:
        """Paint the background of a row, and the line below it."""
        colours = theme.current()
        ground = colours.hover if item is self._hovered else colours.panel
        painter.fillRect(area, QColor(colours.accent_ground if item.isSelected() else ground))
        line = QRectF(area.left(), area.bottom() - 1, area.width(), 1)
        painter.fillRect(line, QColor(colours.line))

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
        if event.buttons() & Qt.MouseButton.LeftButton and self._pressed is not None:
            far = (event.position().toPoint() - self._pressed[1]).manhattanLength()
            if self._target >= 0 or far >= QApplication.startDragDistance():
                self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
                self._drag_to(event.position().y())
        else:
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if self._pressed is not None:
            self._drop()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.row(self.current_key())
        if event.key() == Qt.Key.Key_Escape and self._target >= 0:
            self._cancel_drag()
        elif row is not None and event.key() == Qt.Key.Key_Space and row.on is not None:
            self.switched.emit(row.key)
        elif row is not None and event.key() == Qt.Key.Key_Delete and row.place >= 0:
            self.removed.emit(row.key)
        else:
            super().keyPressEvent(event)

    def drawBranches(self, painter: QPainter, rect: QRect, index: Index) -> None:
        # The area beside the arrow has the row's background.
        self.paint_ground(painter, QRectF(rect), self.itemFromIndex(index))
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


def _box_of(row: QRectF) -> QRectF:
    return QRectF(row.left() + _PAD, row.center().y() - _BOX / 2, _BOX, _BOX)


class _StepDelegate(WholeWords):
    """Delegate that paints the cells of a row in the style of tables."""

    def __init__(self, steps: StepList) -> None:
        super().__init__(steps)
        self._steps = steps

    def _note(self, row: StepRow, column: int) -> str:
        return row.note if column == _TITLE else ""

    def _room(self, area: QRectF, column: int) -> QRectF:
        return area.adjusted(4 if column == _TITLE else _PAD, 0, -_PAD, 0)

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        row: StepRow = self._steps.row_of(index)
        column, bold = index.column(), ui_font(weight=QFont.Weight.DemiBold)
        room = self._room(QRectF(option.rect), column).width()
        return self.cut_line(row.texts()[column], self._note(row, column), bold, room)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(40, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, column = theme.current(), index.column()
        row: StepRow = self._steps.row_of(index)
        marked = row.key == self._steps.marked()
        area = QRectF(option.rect)
        if column == _NUMBER:
            area.setLeft(0)
        self._steps.paint_ground(painter, area, self._steps.itemFromIndex(index))
        if column == _NUMBER and marked:
            bar = QRectF(0, area.top(), 3, area.height() - 1)
            painter.fillRect(bar, QColor(colours.accent))
        if column == _NUMBER and row.on is not None:
            self._paint_box(painter, _box_of(area), row.on, option)
        bold = column == _TITLE and (marked or row.state == "section")
        weight = QFont.Weight.DemiBold if bold else QFont.Weight.Normal
        font = ui_font(weight=weight, tabular=column != _TITLE)
        room, text = self._room(area, column), row.texts()[column]
        colour = self._colour(row, column, marked=marked)
        end = draw_line(painter, room, text, font, colour, right=column != _TITLE)
        if note := self._note(row, column):
            room.setLeft(end + _SPACE)
            ink = colours.unsure if row.unsure else colours.quiet
            ink = colours.wrong if row.state == "wrong" else ink
            draw_line(painter, room, note, ui_font(), ink)

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

    def _colour(self, row: StepRow, column: int, *, marked: bool) -> str:
        colours = theme.current()
        verdicts = {"right": colours.right, "wrong": colours.wrong, "unsure": colours.unsure}
        if column == _TIME and row.last_role:
            return verdicts[row.last_role]
        if column == _NUMBER:
            return colours.accent if marked else colours.quiet
        if row.state:
            return colours.wrong if row.state == "wrong" else colours.quiet
        if column == _TITLE:
            return colours.accent if marked else colours.text
        return colours.text if column == _TIME else colours.quiet

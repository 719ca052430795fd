"""Trees of painted rows: their base, and a table with several selected rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QPoint,
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
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
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

    def __init__(self, name: str, titles: Sequence[str]) -> None:
        super().__init__()
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

    def __init__(self, name: str, columns: Sequence[Column]) -> None:
        super().__init__(name, [column.title for column in columns])
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

    # Qt

    def event(self, event: QEvent) -> bool:
        # Space selects a row, with Ctrl one more: the window may use it for another command.
        override = event.type() == QEvent.Type.ShortcutOverride
        if override and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Space:
            event.accept()
            return True
        return super().event(event)

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
        row, cell, font, note = self._cell(index)
        room = option.rect.width() + self._spare(row, index)
        return self.cut_line(cell.text, note, font, room - 2 * _SPACE)

    def _spare(self, row: TreeRow, index: Index) -> int:
        """Return the width of the second column, if the name may take it as well."""
        is_name = index.column() == 0 and len(row.cells) > 1 and not row.cells[1].text
        return self._tree.columnWidth(1) if is_name else 0

    # Qt

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(40, 24)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, area = theme.current(), QRectF(option.rect)
        row, cell, font, note = self._cell(index)
        if index.column() == 1 and not cell.text:
            # The name of the row is painted over it.
            return
        area.setRight(area.right() + self._spare(row, index))
        self._tree.paint_ground(painter, area, self._tree.itemFromIndex(index))
        shades = {"quiet": colours.quiet, "accent": colours.accent, "wrong": colours.wrong}
        colour = colours.quiet if row.section else shades.get(cell.role, colours.text)
        room = area.adjusted(_SPACE, 0, -_SPACE, 0)
        numeric = self._tree.columns[index.column()].numeric
        room.setLeft(draw_line(painter, room, cell.text, font, colour, right=numeric) + _SPACE)
        if note:
            draw_line(painter, room, note, ui_font(), colours.quiet)

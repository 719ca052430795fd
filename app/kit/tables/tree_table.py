"""A tree of rows with columns and multiple selection."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
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
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.finder import EmptyState
from lowerscope.app.kit.tables.table_cells import ROW_HEIGHT, WholeWords
from lowerscope.app.kit.tables.table_model import Cell, Column
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font

ROW = Qt.ItemDataRole.UserRole
_PAD = 8.0
_LEFT = 8.0
_INDENT = 8


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


class TreeTable(QTreeWidget):
    """Rows in a tree, all expanded."""

    # The user changed the selection; the argument is the keys in the order of selection.
    rows_selected = Signal(list)
    row_activated = Signal(str)  # A row was double-clicked or entered; the argument is its key.
    # The context menu of the selection was requested, at a position on the screen.
    menu_wanted = Signal(QPoint)

    def __init__(self, name: str, columns: Sequence[Column], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[TreeRow, ...] = ()
        self._items: dict[str, QTreeWidgetItem] = {}
        self._order: list[str] = []
        self._hovered: QTreeWidgetItem | None = None
        self._silent = False
        self.setAccessibleName(name)
        self.setColumnCount(len(columns))
        self.setHeaderLabels([column.title for column in columns])
        self.setIndentation(_INDENT)
        self.setUniformRowHeights(True)
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setItemDelegate(_CellDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header = self.header()
        header.setFont(ui_font(12))
        header.setFixedHeight(ROW_HEIGHT)
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(40)
        for place, column in enumerate(columns):
            self.headerItem().setToolTip(place, column.tooltip)
            mode = QHeaderView.ResizeMode
            header.setSectionResizeMode(place, mode.Stretch if column.stretch else mode.Fixed)
            if column.width:
                header.resizeSection(place, column.width)
            side = Qt.AlignmentFlag.AlignRight if column.numeric else Qt.AlignmentFlag.AlignLeft
            self.headerItem().setTextAlignment(place, side | Qt.AlignmentFlag.AlignVCenter)
        self.columns = tuple(columns)
        self.empty = EmptyState("", "", self)
        self.itemSelectionChanged.connect(self._tell_selected)
        self.itemDoubleClicked.connect(self._activate)
        self.customContextMenuRequested.connect(self._want_menu)
        theme.notifier().changed.connect(self.viewport().update)

    def set_rows(self, rows: Sequence[TreeRow]) -> None:
        """Set the rows; selected ones stay selected, if they still exist."""
        if tuple(rows) == self._rows:
            return
        chosen, top = list(self._order), self.verticalScrollBar().value()
        current = self.current_key()
        self._silent = True
        self.clear()
        self._rows, self._items, self._hovered = tuple(rows), {}, None
        for row in rows:
            above = self._items.get(row.parent)
            item = QTreeWidgetItem(above) if above else QTreeWidgetItem(self)
            item.setData(0, ROW, row)
            for column, cell in enumerate(row.cells):
                item.setText(column, cell.text)
                item.setToolTip(column, cell.tooltip or row.tooltip)
            if row.section:
                item.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self._items[row.key] = item
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

    def current_key(self) -> str:
        """Return key of the current row, or ``""``."""
        item = self.currentItem()
        return "" if item is None else item.data(0, ROW).key

    def item_of(self, key: str) -> QTreeWidgetItem:
        """Return the item of a row."""
        return self._items[key]

    def row_rect(self, key: str) -> QRect:
        """Return the area of a row in the viewport."""
        return self.visualItemRect(self._items[key])

    def hovered(self) -> QTreeWidgetItem | None:
        """Return the row under the mouse."""
        return self._hovered

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

    def _activate(self, item: QTreeWidgetItem) -> None:
        self.row_activated.emit(item.data(0, ROW).key)

    def _want_menu(self, place: QPoint) -> None:
        item = self.itemAt(place)
        if item is not None and not item.isSelected() and not item.data(0, ROW).section:
            self.setCurrentItem(item)
        self.menu_wanted.emit(self.viewport().mapToGlobal(place))

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

    def drawBranches(
        self, painter: QPainter, rect: QRect, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        # The area left of the text has the row's background; thin lines show the depth.
        item = self.itemFromIndex(index)
        self.paint_ground(painter, QRectF(rect), item)
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


class _CellDelegate(WholeWords):
    """Delegate that paints a cell of a row."""

    def __init__(self, tree: TreeTable) -> None:
        super().__init__(tree)
        self._tree = tree

    def cut_words(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> str:
        row: TreeRow = self._tree.itemFromIndex(index).data(0, ROW)
        column = index.column()
        if column >= len(row.cells):
            return ""
        cell, note = row.cells[column], row.note if column == 0 else ""
        weight = QFont.Weight.DemiBold if cell.bold or row.section else QFont.Weight.Normal
        font = ui_font(weight=weight, tabular=self._tree.columns[column].numeric)
        wanted = TextMetrics(font).horizontalAdvance(cell.text)
        if note:
            wanted += 8 + TextMetrics(ui_font()).horizontalAdvance(note)
        room = option.rect.width() - _PAD - (_LEFT if column == 0 else _PAD)
        return f"{cell.text}  {note}".rstrip() if wanted > room + 0.5 else ""

    # Qt

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(40, 24)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        colours = theme.current()
        item = self._tree.itemFromIndex(index)
        row: TreeRow = item.data(0, ROW)
        area, column = QRectF(option.rect), index.column()
        self._tree.paint_ground(painter, area, item)
        cell = row.cells[column] if column < len(row.cells) else Cell("")
        shades = {"quiet": colours.quiet, "accent": colours.accent, "wrong": colours.wrong}
        colour = colours.quiet if row.section else shades.get(cell.role, colours.text)
        bold = cell.bold or row.section
        weight = QFont.Weight.DemiBold if bold else QFont.Weight.Normal
        numeric = self._tree.columns[column].numeric
        font = ui_font(weight=weight, tabular=numeric)
        metrics = TextMetrics(font)
        room = area.width() - _PAD - (_LEFT if column == 0 else _PAD)
        words = metrics.elidedText(cell.text, Qt.TextElideMode.ElideRight, max(0.0, room) + 0.5)
        used = metrics.horizontalAdvance(words)
        left = area.left() + (_LEFT if column == 0 else _PAD)
        if numeric:
            left = area.right() - _PAD - used
        base = round(area.center().y() - 0.5 + UI_PIXELS * 0.364)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(QPointF(left, base), words)
        if column == 0 and row.note:
            small = ui_font()
            rest = room - used - 8
            note = TextMetrics(small).elidedText(
                row.note, Qt.TextElideMode.ElideRight, max(0.0, rest)
            )
            painter.setFont(small)
            painter.setPen(QColor(colours.quiet))
            painter.drawText(QPointF(left + used + 8, base), note)

"""A table of rows that are plain values, with selection and copying."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPoint,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QMenu,
    QTableView,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.finder import EmptyState
from lowerscope.app.kit.tables.table_cells import (
    LINE_HEIGHT,
    MOST_LINES,
    NARROWEST,
    PAD,
    ROW_HEIGHT,
    CellDelegate,
    cell_font,
    wrapped,
)
from lowerscope.app.kit.tables.table_model import Cell, Column, Row, TableModel
from lowerscope.app.kit.typefaces import TextMetrics, ui_font

# Context menu of a table's columns: the keyboard equivalent of sorting and resizing by mouse.

STEP = 24
"""Step, in pixels, by which a column is made wider or narrower."""


def open_column_menu(table: QTableView, place: QPoint | None = None) -> QMenu:
    """Open the menu to sort by a column, change its width, hide it or show it.

    Args:
        place: Position on the screen; by default, below the column titles.

    Returns:
        The open menu; this does not wait for a choice.
    """
    header, model = table.horizontalHeader(), table.model()
    menu = QMenu(table)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setAccessibleName(_tr("Columns"))
    for column in range(header.count()):
        title = str(
            model.headerData(column, Qt.Orientation.Horizontal)
            or _tr("Column {0}").format(column + 1)
        )
        below = menu.addMenu(title)
        tip = model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
        if tip:
            below.addAction(str(tip)).setEnabled(False)
            below.addSeparator()
        _add_sorting(table, column, below)
        if header.sectionResizeMode(column) == QHeaderView.ResizeMode.Interactive:
            width = header.sectionSize(column)
            for words, by in ((_tr("Wider"), STEP), (_tr("Narrower"), -STEP)):
                _add(below, words, partial(_resize, header, column, width + by))
            fitting = table.sizeHintForColumn(column)
            _add(below, _tr("Fit to contents"), partial(_resize, header, column, fitting))
        shown = _add(below, _tr("Shown"), partial(_switch, header, column))
        shown.setCheckable(True)
        shown.setChecked(not header.isSectionHidden(column))
        shown.setEnabled(header.isSectionHidden(column) or _shown(header) > 1)
    corner = table.viewport().mapToGlobal(QPoint(4, 0))
    menu.popup(corner if place is None else place)
    if place is None:
        # The first action, as by a key: made active in another way, a submenu would open at once.
        down = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Down, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(menu, down)
    return menu


def _add_sorting(table: QTableView, column: int, menu: QMenu) -> None:
    if not table.isSortingEnabled():
        return
    header = table.horizontalHeader()
    here = header.sortIndicatorSection() == column
    for words, order in (
        (_tr("Sort ascending"), Qt.SortOrder.AscendingOrder),
        (_tr("Sort descending"), Qt.SortOrder.DescendingOrder),
    ):
        action = _add(menu, words, partial(header.setSortIndicator, column, order))
        action.setCheckable(True)
        action.setChecked(here and header.sortIndicatorOrder() == order)
    away = _add(
        menu, _tr("Unsorted"), partial(header.setSortIndicator, -1, Qt.SortOrder.AscendingOrder)
    )
    away.setEnabled(here)
    menu.addSeparator()


def _add(menu: QMenu, words: str, act: partial[None]) -> QAction:
    action = menu.addAction(words)
    action.triggered.connect(lambda _checked=False: act())
    return action


def _resize(header: QHeaderView, column: int, width: int) -> None:
    header.resizeSection(column, max(header.minimumSectionSize(), width))


def _switch(header: QHeaderView, column: int) -> None:
    header.setSectionHidden(column, not header.isSectionHidden(column))


def _shown(header: QHeaderView) -> int:
    return sum(not header.isSectionHidden(column) for column in range(header.count()))


def _tr(text: str) -> str:
    return QCoreApplication.translate("column_menu", text)


__all__ = ["Cell", "Column", "Row", "Table"]

MOST_WRAPPED = MOST_MEASURED = 500


class Table(QTableView):
    """A table of cells."""

    # A row became current, by click or arrow key; the argument is its key.
    row_clicked = Signal(str, object)
    row_activated = Signal(str)  # A row was double-clicked or entered; the argument is its key.
    # The text of a row's editable column was edited: the row's key, and the text.
    row_written = Signal(str, str)

    def __init__(self, name: str, columns: Sequence[Column], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = TableModel(columns, self)
        self._hovered = -1
        self._later: tuple[Row, ...] | None = None
        # Widths of columns that the user has set; and whether columns are being fitted.
        self._chosen: dict[int, int] = {}
        self._fitting = False
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(self, self._model, self.hovered_row))
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        header = self.horizontalHeader()
        header.setFont(ui_font(12))
        header.setFixedHeight(ROW_HEIGHT)
        header.setMinimumSectionSize(NARROWEST)
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setStretchLastSection(False)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._open_columns)
        # A scroll bar that appears makes the column narrower, and that of a hidden header late.
        header.sectionResized.connect(self._note_width)
        self.empty = EmptyState("", "", self)
        # Texts are measured only for a visible table.
        self._is_fitted = True
        # For each column, the width that its texts need, and the width that it was given.
        self._wanted: dict[int, int] = {}
        self._given: dict[int, int] = {}
        self.entered.connect(self._hover)
        # Queued, since new rows in response would close the editor while it is still in use.
        self._model.written.connect(self.row_written, Qt.ConnectionType.QueuedConnection)
        self.clicked.connect(self._clicked)
        self.doubleClicked.connect(self._activated)
        theme.notifier().changed.connect(self.viewport().update)
        self._show_empty()

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Set the rows; selected ones stay selected, if they still exist.

        During an edit, the update waits until the edit is finished.
        """
        self._later = None
        if self.state() == QAbstractItemView.State.EditingState:
            self._later = tuple(rows)
            return
        chosen = self.selected_keys()
        top = self.verticalScrollBar().value()
        self._model.set_rows(rows)
        self._is_fitted = self.isVisible()
        if self._is_fitted:
            self._fit_columns()
        self.set_selection(chosen)
        self.verticalScrollBar().setValue(top)
        self._show_empty()

    def rows(self) -> tuple[Row, ...]:
        """Return the rows in the current order."""
        return self._model.rows()

    def set_selection(self, keys: Collection[str]) -> None:
        """Select the rows of these keys, without a signal; the view does not move."""
        selection = QItemSelection()
        rows = sorted({i for key in keys if (i := self._model.row_of(key)) >= 0})
        last = len(self._model.columns) - 1
        for first, final in _runs(rows):
            selection.select(self._model.index(first, 0), self._model.index(final, last))
        model = self.selectionModel()
        model.select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if rows and self.currentIndex().row() not in rows:
            current = self._model.index(rows[0], 0)
            model.setCurrentIndex(current, QItemSelectionModel.SelectionFlag.NoUpdate)

    def selected_keys(self) -> list[str]:
        """Return the keys of the selected rows, from the top."""
        rows = sorted({index.row() for index in self.selectionModel().selectedRows()})
        return [self._model.rows()[i].key for i in rows]

    def reveal(self, key: str) -> bool:
        """Scroll to a row; return False if it does not exist."""
        i = self._model.row_of(key)
        if i < 0:
            return False
        self.scrollTo(self._model.index(i, 0))
        return True

    def write_row(self, key: str) -> None:
        """Edit the text of a row's editable column."""
        editable = (i for i, column in enumerate(self._model.columns) if column.editable)
        index = self._model.index(self._model.row_of(key), next(editable, -1))
        if index.isValid():
            self.edit(index)

    def set_sortable(self, sortable: bool) -> None:
        """Let clicks on a title sort, sort in reverse, and restore the order, in turn."""
        header = self.horizontalHeader()
        header.setSectionsClickable(sortable)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(sortable)

    def set_empty(self, title: str, hint: str = "") -> None:
        """Set the text that is shown while there are no rows."""
        self.empty.set_text(title, hint)

    def open_columns(self) -> None:
        """Open the menu of the columns: to sort by one, change its width, or hide it."""
        open_column_menu(self)

    def copy(self) -> None:
        """Copy the selected rows, or all, to the clipboard: titles, then rows, with tabs."""
        chosen = set(self.selected_keys())
        rows = [row for row in self.rows() if not chosen or row.key in chosen]
        lines = [[column.title for column in self._model.columns]]
        lines += [[row.cell(i).text for i in range(len(row.cells))] for row in rows]
        text = "\n".join("\t".join(line) for line in lines)
        QGuiApplication.clipboard().setText(text)

    def hovered_row(self) -> int:
        """Return the index of the row under the mouse, or -1."""
        return self._hovered

    def table_model(self) -> TableModel:
        """Return the model of columns and rows."""
        return self._model

    def _open_columns(self, place: QPoint) -> None:
        open_column_menu(self, self.horizontalHeader().mapToGlobal(place))

    def _fit_columns(self) -> None:
        header, self._fitting = self.horizontalHeader(), True
        for i, column in enumerate(self._model.columns):
            if column.stretch and not column.width:
                header.setSectionResizeMode(i, QHeaderView.ResizeMode.Stretch)
            else:
                header.setSectionResizeMode(i, QHeaderView.ResizeMode.Interactive)
                wanted = self._wanted[i] = self.sizeHintForColumn(i)
                # A number must not be elided: it would read as another number.
                least = max(column.width, wanted) if column.numeric else column.width or wanted
                self._given[i] = least
                header.resizeSection(i, self._chosen.get(i, least))
        self._widen()
        self._fitting = False
        self._fit_wide()
        self._fit_rows()

    def _widen(self) -> None:
        """Give elided columns up to half of the stretched column's extra width."""
        header, columns = self.horizontalHeader(), self._model.columns
        if not any(column.stretch for column in columns):
            return
        named = [
            i
            for i, column in enumerate(columns)
            if column.width and not (column.numeric or column.stretch)
        ]
        least = sum(
            column.width or NARROWEST if i in named or column.stretch else header.sectionSize(i)
            for i, column in enumerate(columns)
            if not header.isSectionHidden(i)
        )
        room = max(0, self.viewport().width() - least) // 2
        before, self._fitting = self._fitting, True
        for i in named:
            # A width that the user has set is kept.
            if header.sectionSize(i) == self._given[i]:
                more = max(0, min(self._wanted[i] - columns[i].width, room))
                room -= more
                self._given[i] = columns[i].width + more
                header.resizeSection(i, self._given[i])
        self._fitting = before

    def _fit_wide(self) -> None:
        """Give a stretched column with a least width the remaining room."""
        header, before = self.horizontalHeader(), self._fitting
        self._fitting = True
        for i, column in enumerate(self._model.columns):
            if column.stretch and column.width and i not in self._chosen:
                left = self.viewport().width() - header.length() + header.sectionSize(i)
                header.resizeSection(i, max(column.width, left))
        self._fitting = before

    def _note_width(self, column: int, before: int, width: int) -> None:
        mode = self.horizontalHeader().sectionResizeMode(column)
        # A column that was hidden had no width before.
        if not self._fitting and before and width and mode == QHeaderView.ResizeMode.Interactive:
            self._chosen[column] = width
        if self._is_fitted and self._model.columns[column].wrap:
            # The signal comes before the column has the width.
            self._fit_rows({column: width})

    def _fit_rows(self, widths: Mapping[int, int] = MappingProxyType({})) -> None:
        """Set the height of the rows to the lines of their texts."""
        for i, column in enumerate(self._model.columns):
            if not column.wrap:
                continue
            room = widths.get(i, self.columnWidth(i)) - 2 * PAD
            for number, row in enumerate(self._model.rows()[:MOST_WRAPPED]):
                cell = row.cell(i)
                lines = wrapped(cell.text, cell_font(cell, column), room)
                more = min(len(lines), MOST_LINES) - 1
                self.setRowHeight(number, ROW_HEIGHT + more * LINE_HEIGHT)

    def _show_empty(self) -> None:
        is_empty = not self._model.rows()
        self.empty.setVisible(is_empty)
        policy = Qt.ScrollBarPolicy
        self.setHorizontalScrollBarPolicy(
            policy.ScrollBarAlwaysOff if is_empty else policy.ScrollBarAsNeeded
        )
        self.empty.setGeometry(self.viewport().geometry())

    def _hover(self, index: QModelIndex) -> None:
        self._set_hovered(index.row())

    def _set_hovered(self, row: int) -> None:
        if row != self._hovered:
            self._hovered = row
            self.viewport().update()

    def _clicked(self, index: QModelIndex) -> None:
        modifiers = QGuiApplication.keyboardModifiers()
        self.row_clicked.emit(self._model.rows()[index.row()].key, modifiers)

    def _activated(self, index: QModelIndex) -> None:
        self.row_activated.emit(self._model.rows()[index.row()].key)

    # Qt

    def sizeHintForColumn(self, column: int) -> int:
        title = TextMetrics(self.horizontalHeader().font())
        width = title.horizontalAdvance(self._model.columns[column].title)
        # As wide as the widest of the first rows: measuring all of a long table would take long.
        texts: dict[tuple[bool, bool], set[str]] = {}
        for row in self._model.rows()[:MOST_MEASURED]:
            cell = row.cell(column)
            texts.setdefault((cell.code, cell.bold), set()).add(cell.text)
        for (code, bold), of_one_font in texts.items():
            font = cell_font(Cell("", code=code, bold=bold), self._model.columns[column])
            metrics = TextMetrics(font)
            width = max(width, *map(metrics.horizontalAdvance, of_one_font))
        return max(NARROWEST, round(width + 2 * PAD + 1))

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Copy)
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            # An editor passes on the key that has closed it.
            editing = self.state() == QAbstractItemView.State.EditingState
            if self.currentIndex().isValid() and not editing:
                self._activated(self.currentIndex())
            return
        before = self.currentIndex().row()
        super().keyPressEvent(event)
        after = self.currentIndex().row()
        if after >= 0 and after != before:
            self.row_clicked.emit(self._model.rows()[after].key, event.modifiers())

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        if self._later is not None:
            self.set_rows(self._later)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._set_hovered(-1)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_fitted:
            self._is_fitted = True
            self._fit_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._given:
            self._widen()
        self._fit_wide()
        self._fit_rows()
        self.empty.setGeometry(self.viewport().geometry())


def _runs(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of consecutive numbers."""
    first = 0
    for place in range(1, len(rows) + 1):
        if place == len(rows) or rows[place] != rows[place - 1] + 1:
            yield rows[first], rows[place - 1]
            first = place

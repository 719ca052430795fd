"""A table of rows that are plain values: its model, the painting of cells, and the view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRectF,
    QSize,
    QSizeF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QGuiApplication,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QResizeEvent,
    QShowEvent,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import LONGEST
from lowerscope.app.kit.theme import strategy_colour
from lowerscope.app.kit.typefaces import CODE_PIXELS, UI_PIXELS, TextMetrics, code_font, ui_font
from lowerscope.core.model.texts import _

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str  # Its heading.
    numeric: bool = False  # Whether it is right-aligned, in tabular figures.
    width: int = 0  # In pixels; 0 for as wide as its contents.
    # Whether it takes the remaining room: at least ``width``, or else the table scrolls.
    stretch: bool = False
    wrap: bool = False  # Whether long text is wrapped; otherwise it is elided.
    tooltip: str = ""  # Explanation of the title.
    falling: bool = False  # Whether the first click on its title sorts in descending order.
    editable: bool = False  # Whether its text can be edited.


def figures(title: str, width: int, tooltip: str = "") -> Column:
    """Return a column of numbers; the first click on its title puts the largest at the top."""
    return Column(title, numeric=True, width=width, falling=True, tooltip=tooltip)


@dataclass(frozen=True)
class Gauge:
    """A bar in a cell."""

    share: float  # Its length, from 0 to 1.
    role: str = ""  # Its colour: that of a cell, pale with ``"pale-"`` before.
    mark: float | None = None  # Place of a mark on it, from 0 to 1.


@dataclass(frozen=True)
class Cell:
    """Contents of a cell."""

    text: str  # The text that is shown.
    # Its colour: ``""``, ``"quiet"``, ``"accent"``, ``"right"``, ``"wrong"``, ``"high-level"``,
    # ``"te"`` or ``"library"``.
    role: str = ""
    bold: bool = False  # Semibold; in the font of code.
    code: bool = False
    tooltip: str = ""  # More about it.
    value: float | None = None  # Sort key; the text if there is none.
    spoken: str = ""  # Text for a screen reader, in place of symbols.
    square: str = ""  # Colour of a small square before the text, as ``#rrggbb``.
    gauge: Gauge | None = None  # Before the text, if there is one.


@dataclass(frozen=True)
class Row:
    """A row: a unique key, and a cell, or its text, for each column."""

    key: str
    cells: tuple[Cell | str, ...]
    wrong: bool = False  # Whether it is marked as the one that is wrong.

    def cell(self, column: int) -> Cell:
        cell = self.cells[column]
        return Cell(cell) if isinstance(cell, str) else cell


class TableModel(QAbstractTableModel):
    """Columns and rows for Qt's views."""

    # The text of an editable column was edited: the row's key, and the text.
    written = Signal(str, str)

    def __init__(self, columns: Sequence[Column], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.worded: Callable[[str], str] = str  # Returns a title or its explanation as shown.
        self._given: tuple[Row, ...] = ()
        self._rows: tuple[Row, ...] = ()
        self._places: dict[str, int] = {}
        self._order: tuple[int, Qt.SortOrder] = (-1, Qt.SortOrder.AscendingOrder)

    def set_rows(self, rows: Sequence[Row]) -> None:
        self.beginResetModel()
        self._given = tuple(rows)
        self._put_in_order()
        self.endResetModel()

    def rows(self) -> tuple[Row, ...]:
        """Return the rows in the current order."""
        return self._rows

    def row_of(self, key: str) -> int:
        """Return the index of the row with this key, or -1."""
        return self._places.get(key, -1)

    def cell(self, index: Index) -> Cell:
        """Return the cell at an index."""
        return self._rows[index.row()].cell(index.column())

    def _put_in_order(self) -> None:
        self._rows = self._in_order()
        self._places = {row.key: place for place, row in enumerate(self._rows)}

    def _in_order(self) -> tuple[Row, ...]:
        column, order = self._order
        if column < 0:
            return self._given
        down = order == Qt.SortOrder.DescendingOrder
        ranked = sorted(self._given, key=lambda row: _rank(row.cell(column)), reverse=down)
        # Cells without a value come last in either direction.
        return tuple(sorted(ranked, key=lambda row: row.cell(column).value is None))

    # Qt

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        cell = self.cell(index)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return cell.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return cell.spoken or cell.text
        if role == Qt.ItemDataRole.ToolTipRole and cell.tooltip:
            return self.worded(cell.tooltip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(self.columns[index.column()])
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if index.isValid() and self.columns[index.column()].editable:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or str(value) == self.cell(index).text:
            return False
        # Listeners may set other rows, or keep these.
        self.written.emit(self._rows[index.row()].key, str(value))
        return True

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.worded(column.title)
        if role == Qt.ItemDataRole.ToolTipRole and column.tooltip:
            return self.worded(column.tooltip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.InitialSortOrderRole and column.falling:
            return int(Qt.SortOrder.DescendingOrder.value)
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.beginResetModel()
        self._order = (column, order)
        self._put_in_order()
        self.endResetModel()


def _alignment(column: Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column.numeric else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


def _rank(cell: Cell) -> tuple[float, str]:
    return 0.0 if cell.value is None else cell.value, cell.text.casefold()


# --- Delegate that shows elided text in full in the tool tip ---


class WholeWords(QStyledItemDelegate):
    """Delegate with a tool tip for elided text, where an item has none of its own."""

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        """Return the full text of an item that is elided, or ``""``."""
        raise NotImplementedError

    def cut_line(self, text: str, note: str, font: QFont, room: float) -> str:
        """Return a text with the note behind it if they do not fit, or ``""``."""
        wanted = TextMetrics(font).horizontalAdvance(text)
        if note:
            wanted += _NOTE_GAP + TextMetrics(ui_font()).horizontalAdvance(note)
        return f"{text}  {note}".rstrip() if wanted > room + 0.5 else ""

    # Qt

    def helpEvent(
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        own = index.data(Qt.ItemDataRole.ToolTipRole) if index.isValid() else None
        if event.type() != QEvent.Type.ToolTip or not index.isValid() or own:
            return super().helpEvent(event, view, option, index)
        QToolTip.showText(event.globalPos(), self.cut_words(option, index), view)
        return True


def draw_line(
    painter: QPainter,
    room: QRectF,
    text: str,
    font: QFont,
    colour: str,
    *,
    right: bool = False,
    metrics: TextMetrics | None = None,
    elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> float:
    """Draw a line of text, elided to its room and vertically centred in it; return its end."""
    metrics = metrics or TextMetrics(font)
    shown = metrics.elidedText(text, elide, max(0.0, room.width()) + 0.5)
    width = metrics.horizontalAdvance(shown)
    left = room.right() - width if right else room.left()
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawText(QPointF(left, round(room.center().y() - 0.5 + UI_PIXELS * 0.364)), shown)
    return left + width


_NOTE_GAP = 8
ROW_HEIGHT = 26
LINE_HEIGHT = 17
_SQUARE, _SQUARE_GAP = 8.0, 8.0
_FIGURE = 58.0
"""Width of the text behind a gauge."""
_GAUGE = 6.0
_EDGE, _PALE = 3.0, 90
MOST_LINES = 6
PAD = 10.0
NARROWEST = 36


def cell_font(cell: Cell, column: Column) -> QFont:
    if cell.code:
        return code_font(CODE_PIXELS)
    weight = QFont.Weight.DemiBold if cell.bold else QFont.Weight.Normal
    return ui_font(weight=weight, tabular=column.numeric)


def _before(cell: Cell) -> float:
    """Return the room of what is before the text of a cell."""
    return _SQUARE + _SQUARE_GAP if cell.square else 0.0


def wrapped(text: str, font: QFont, room: float) -> list[str]:
    """Return the lines of a text, wrapped between words, or inside of one longer than a line."""
    text = text[:LONGEST]
    if TextMetrics(font).horizontalAdvance(text) <= room + 0.5:
        return [text]
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    lines: list[str] = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(max(room, 1.0))
        lines.append(text[line.textStart() : line.textStart() + line.textLength()].strip())
    layout.endLayout()
    return lines


class CellDelegate(WholeWords):
    """Delegate that paints a cell: its background, its text, and a line below.

    Args:
        model: Its rows.
        hovered_row: Returns the index of the row under the mouse, or -1.
    """

    def __init__(
        self, table: QAbstractItemView, model: TableModel, hovered_row: Callable[[], int]
    ) -> None:
        super().__init__(table)
        self._model = model
        self._hovered_row = hovered_row
        # Cached, since a font takes longer to create than a word to draw.
        self._fonts: dict[tuple[bool, bool, bool], tuple[QFont, TextMetrics]] = {}

    def _font_of(self, cell: Cell, column: Column) -> tuple[QFont, TextMetrics]:
        key = cell.code, cell.bold, column.numeric
        known = self._fonts.get(key)
        if known is None:
            font = cell_font(cell, column)
            known = self._fonts[key] = font, TextMetrics(font)
        return known

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        cell, column = self._model.cell(index), self._model.columns[index.column()]
        font, metrics = self._font_of(cell, column)
        room = option.rect.width() - 2 * PAD - _before(cell)
        if column.wrap and option.rect.height() > ROW_HEIGHT:
            return cell.text if len(wrapped(cell.text, font, room)) > MOST_LINES else ""
        return cell.text if metrics.horizontalAdvance(cell.text) > room + 0.5 else ""

    def _colour(self, role: str) -> str:
        colours = theme.current()
        return {
            "": colours.text,
            "quiet": colours.quiet,
            "accent": colours.accent,
            "right": colours.right,
            "wrong": colours.wrong,
            "unsure": colours.unsure,
        }.get(role) or strategy_colour(colours, role)

    # Qt

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(NARROWEST, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours = theme.current()
        row, column = self._model.rows()[index.row()], self._model.columns[index.column()]
        cell = row.cell(index.column())
        area = QRectF(option.rect)
        state = option.state
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(area, QColor(colours.accent_ground))
        elif row.wrong:
            painter.fillRect(area, QColor(colours.wrong_ground))
        elif index.row() == self._hovered_row():
            painter.fillRect(area, QColor(colours.hover))
        if row.wrong and index.column() == 0:
            painter.fillRect(
                QRectF(area.topLeft(), QSizeF(_EDGE, area.height())), QColor(colours.wrong)
            )
        below = QRectF(area.left(), area.bottom() - 1, area.width(), 1)
        painter.fillRect(below, QColor(colours.line))
        font, metrics = self._font_of(cell, column)
        left = area.left() + PAD
        if cell.square:
            top = area.center().y() - _SQUARE / 2
            painter.fillRect(QRectF(left, top, _SQUARE, _SQUARE), QColor(cell.square))
            left += _SQUARE + _SQUARE_GAP
        room = area.right() - PAD - left
        if cell.gauge is not None:
            behind = PAD + _FIGURE if cell.text else PAD
            self._paint_gauge(painter, cell.gauge, area.adjusted(PAD, 0, -behind, 0))
        is_high = area.height() > ROW_HEIGHT
        lines = wrapped(cell.text, font, room) if column.wrap and is_high else [cell.text]
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], " ".join(lines[MOST_LINES - 1 :])]
        colour = self._colour(cell.role)
        for number, line in enumerate(lines):
            # The first line is where it is in a row of one line.
            top = area.top() + number * LINE_HEIGHT
            place = QRectF(left, top, room, ROW_HEIGHT)
            draw_line(painter, place, line, font, colour, right=column.numeric, metrics=metrics)

    def _paint_gauge(self, painter: QPainter, gauge: Gauge, room: QRectF) -> None:
        colours = theme.current()
        whole = QRectF(room.left(), room.center().y() - _GAUGE / 2, room.width(), _GAUGE)
        bar = QRectF(whole)
        bar.setWidth(max(2.0, min(1.0, gauge.share) * whole.width()))
        role = gauge.role.removeprefix("pale-")
        ink = QColor(colours.neutral if role == "quiet" else self._colour(role))
        if role != gauge.role:
            ink.setAlpha(_PALE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if gauge.mark is not None:
            painter.setBrush(QColor(colours.line))
            painter.drawRoundedRect(whole, _GAUGE / 2, _GAUGE / 2)
        painter.setBrush(ink)
        painter.drawRoundedRect(bar, _GAUGE / 2, _GAUGE / 2)
        if gauge.mark is not None:
            x = whole.left() + gauge.mark * whole.width()
            painter.fillRect(QRectF(x, whole.top() - 3, 1, _GAUGE + 6), QColor(colours.quiet))
        painter.restore()


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
    menu.setAccessibleName(_("Columns"))
    for column in range(header.count()):
        title = str(
            model.headerData(column, Qt.Orientation.Horizontal)
            or _("Column {column}", column=column + 1)
        )
        below = menu.addMenu(title)
        tip = model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
        if tip:
            below.addAction(str(tip)).setEnabled(False)
            below.addSeparator()
        _add_sorting(table, column, below)
        if header.sectionResizeMode(column) == QHeaderView.ResizeMode.Interactive:
            width = header.sectionSize(column)
            for words, by in ((_("Wider"), STEP), (_("Narrower"), -STEP)):
                _add(below, words, partial(_resize, header, column, width + by))
            fitting = table.sizeHintForColumn(column)
            _add(below, _("Fit to contents"), partial(_resize, header, column, fitting))
        shown = _add(below, _("Shown"), partial(_switch, header, column))
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
        (_("Sort ascending"), Qt.SortOrder.AscendingOrder),
        (_("Sort descending"), Qt.SortOrder.DescendingOrder),
    ):
        action = _add(menu, words, partial(header.setSortIndicator, column, order))
        action.setCheckable(True)
        action.setChecked(here and header.sortIndicatorOrder() == order)
    away = _add(
        menu, _("Unsorted"), partial(header.setSortIndicator, -1, Qt.SortOrder.AscendingOrder)
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


MOST_WRAPPED = MOST_MEASURED = 500


class Table(QTableView):
    """A table of cells."""

    # A row became current, by click or arrow key; the argument is its key.
    row_clicked = Signal(str, object)
    row_activated = Signal(str)  # A row was double-clicked or entered; the argument is its key.
    # The text of a row's editable column was edited: the row's key, and the text.
    row_written = Signal(str, str)
    # The menu of a row was requested: the row's key, and the screen position.
    menu_wanted = Signal(str, QPoint)

    def __init__(self, name: str, columns: Sequence[Column]) -> None:
        super().__init__()
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
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._want_menu)
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

    def word_titles(self, worded: Callable[[str], str]) -> None:
        """Set what returns a title or its explanation as shown, each time anew."""
        self._model.worded = worded

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

    def least_width(self) -> int:
        """Return the width that the visible columns need."""
        header = self.horizontalHeader()
        return sum(
            column.width if column.stretch else header.sectionSize(i)
            for i, column in enumerate(self._model.columns)
            if not header.isSectionHidden(i)
        )

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

    def _want_menu(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if index.isValid():
            key = self._model.rows()[index.row()].key
            self.menu_wanted.emit(key, self.viewport().mapToGlobal(place))

    def _activated(self, index: QModelIndex) -> None:
        self.row_activated.emit(self._model.rows()[index.row()].key)

    # Qt

    def sizeHintForColumn(self, column: int) -> int:
        title = self._model.worded(self._model.columns[column].title)
        width = TextMetrics(self.horizontalHeader().font()).horizontalAdvance(title)
        # As wide as the widest of the first rows: measuring all of a long table would take long.
        texts: dict[tuple[bool, bool], set[str]] = {}
        before = 0.0
        for row in self._model.rows()[:MOST_MEASURED]:
            cell = row.cell(column)
            texts.setdefault((cell.code, cell.bold), set()).add(cell.text)
            before = max(before, _before(cell))
        for (code, bold), of_one_font in texts.items():
            font = cell_font(Cell("", code=code, bold=bold), self._model.columns[column])
            metrics = TextMetrics(font)
            width = max(width, *map(metrics.horizontalAdvance, of_one_font))
        return max(NARROWEST, round(before + width + 2 * PAD + 1))

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

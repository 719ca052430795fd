"""Rows of a table as plain values, and Qt's model of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)


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


@dataclass(frozen=True)
class Row:
    """A row: a unique key, and a cell, or its text, for each column."""

    key: str
    cells: tuple[Cell | str, ...]

    def cell(self, column: int) -> Cell:
        """Return the cell of a column."""
        cell = self.cells[column]
        return Cell(cell) if isinstance(cell, str) else cell


class TableModel(QAbstractTableModel):
    """Columns and rows for Qt's views."""

    # The text of an editable column was edited: the row's key, and the text.
    written = Signal(str, str)

    def __init__(self, columns: Sequence[Column], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self._given: tuple[Row, ...] = ()
        self._rows: tuple[Row, ...] = ()
        self._places: dict[str, int] = {}
        self._order: tuple[int, Qt.SortOrder] = (-1, Qt.SortOrder.AscendingOrder)

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Set the rows."""
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

    def cell(self, index: QModelIndex | QPersistentModelIndex) -> Cell:
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

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.columns)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        if not index.isValid():
            return None
        cell = self.cell(index)
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return cell.text
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return cell.spoken or cell.text
        if role == Qt.ItemDataRole.ToolTipRole and cell.tooltip:
            return cell.tooltip
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(self.columns[index.column()])
        return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        flags = super().flags(index)
        if index.isValid() and self.columns[index.column()].editable:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def setData(
        self,
        index: QModelIndex | QPersistentModelIndex,
        value: object,
        role: int = Qt.ItemDataRole.EditRole,
    ) -> bool:
        if role != Qt.ItemDataRole.EditRole or str(value) == self.cell(index).text:
            return False
        # Listeners may set other rows, or keep these.
        self.written.emit(self._rows[index.row()].key, str(value))
        return True

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole and column.tooltip:
            return column.tooltip
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

"""Context menu of a table's columns: the keyboard equivalent of sorting and resizing by mouse."""

from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QApplication, QHeaderView, QMenu, QTableView

STEP = 24
"""Step, in pixels, by which a column is made wider or narrower."""


def open_column_menu(table: QTableView, place: QPoint | None = None) -> QMenu:
    """Open the menu to sort by a column, change its width, hide it or show it.

    Parameters
    ----------
    table
        The table.
    place
        Position on the screen; by default, below the column titles.

    Returns
    -------
    QMenu
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

"""The table: rows, selection, copying, sorting."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
COLUMNS = [Column("node"), Column("lowered as", stretch=True), Column("time", numeric=True)]
ROWS = [
    Row("a", ("linear0", Cell("TE · dense", "te"), Cell("0.010 ms", value=0.010))),
    Row("b", ("relu", "TE · relu", Cell("0.2 ms", value=0.2))),
    Row("c", ("linear1", Cell("High-level", "high-level"), Cell("0.03 ms", value=0.03))),
]


@pytest.fixture
def table(qtbot: QtBot) -> Table:
    widget = Table("Compare", COLUMNS)
    qtbot.addWidget(widget)
    widget.resize(500, 200)
    widget.set_rows(ROWS)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def place(table: Table, row: int, column: int = 0) -> QPoint:
    return table.visualRect(table.model().index(row, column)).center()


def keys(table: Table) -> list[str]:
    return [row.key for row in table.rows()]


def test_click_gives_the_rows_key(qtbot: QtBot, table: Table) -> None:
    with qtbot.waitSignal(table.row_clicked) as heard:
        qtbot.mouseClick(table.viewport(), LEFT, NONE, place(table, 1))
    assert heard.args[0] == "b"
    assert table.selected_keys() == ["b"]


def test_arrows_and_enter(qtbot: QtBot, table: Table) -> None:
    table.set_selection(["a"])
    with qtbot.waitSignal(table.row_clicked) as heard:
        qtbot.keyClick(table, Qt.Key.Key_Down)
    assert heard.args[0] == "b"
    with qtbot.waitSignal(table.row_activated) as activated:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    assert activated.args == ["b"]


@pytest.mark.x
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_columns_are_sorted_resized_and_put_away_by_keys(qtbot: QtBot, table: Table) -> None:
    table.set_sortable(True)

    def choose(column: int, *words: str) -> list[str]:
        """Go with the arrows to an entry of a column, and press it; return what there was."""
        table.open_columns()
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        for _ in range(column):
            qtbot.keyClick(menu, Qt.Key.Key_Down)
        qtbot.keyClick(menu, Qt.Key.Key_Right)
        qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not menu)
        below = QApplication.activePopupWidget()
        assert isinstance(below, QMenu)
        for _ in range(10):
            active = below.activeAction()
            if active is not None and active.text() in words:
                break
            qtbot.keyClick(below, Qt.Key.Key_Down)
        qtbot.keyClick(below, Qt.Key.Key_Return)
        return [each.text() for each in below.actions() if each.isEnabled() and each.text()]

    choose(2, "Sort descending")
    assert keys(table) == ["b", "c", "a"]
    assert "Unsorted" in choose(2, "Unsorted")
    assert keys(table) == ["a", "b", "c"]
    width = table.columnWidth(0)
    choose(0, "Wider")
    assert table.columnWidth(0) > width
    choose(1, "Shown")
    assert table.isColumnHidden(1)
    choose(1, "Shown")
    assert not table.isColumnHidden(1)


def test_selection_from_outside_is_silent_and_survives_other_rows(
    qtbot: QtBot, table: Table
) -> None:
    with qtbot.assertNotEmitted(table.row_clicked):
        table.set_selection(["a", "c", "nothing"])
    assert table.selected_keys() == ["a", "c"]
    table.set_rows(ROWS[1:])
    assert table.selected_keys() == ["c"]


def test_copies_titles_and_rows_parted_by_tabs(qtbot: QtBot, table: Table) -> None:
    table.set_selection(["c"])
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    expected = "node\tlowered as\ttime\nlinear1\tHigh-level\t0.03 ms"
    assert QGuiApplication.clipboard().text() == expected
    table.set_selection([])
    table.copy()
    assert len(QGuiApplication.clipboard().text().splitlines()) == 4


def test_sorts_by_value_only_where_asked(table: Table) -> None:
    header = table.horizontalHeader()
    assert not header.sectionsClickable()
    table.set_sortable(True)
    header.setSortIndicator(2, Qt.SortOrder.DescendingOrder)
    assert keys(table) == ["b", "c", "a"]
    header.setSortIndicator(2, Qt.SortOrder.AscendingOrder)
    assert keys(table) == ["a", "c", "b"]
    header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    assert keys(table) == ["a", "b", "c"]


def test_a_falling_column_begins_with_the_largest_and_what_has_no_value_is_last(
    qtbot: QtBot,
) -> None:
    table = Table("Errors", (Column("node"), Column("error", numeric=True, falling=True)))
    qtbot.addWidget(table)
    table.set_sortable(True)
    values = {"a": 1e-7, "b": None, "c": 3.0}
    table.set_rows([Row(key, (key, Cell(str(each), value=each))) for key, each in values.items()])
    table.show()
    header = table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(1) + 5, header.height() // 2)
    orders = []
    for _ in range(3):
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        orders.append(keys(table))
    assert orders == [["c", "a", "b"], ["a", "c", "b"], ["a", "b", "c"]]


def test_reveal_and_empty(table: Table) -> None:
    assert table.reveal("c")
    assert not table.reveal("nothing")
    table.set_empty("Nothing to compare", "Run it first.")
    assert not table.empty.isVisible()
    table.set_rows([])
    assert table.empty.isVisible()
    assert table.empty.accessibleName() == "Nothing to compare"

"""The table: rows, selection, copying, sorting."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
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
    widget.show()
    qtbot.waitExposed(widget)
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


def test_selected_row_keeps_its_colours(table: Table) -> None:
    table.set_selection(["a"])
    picture = table.viewport().grab().toImage()
    look = theme.current()
    at = table.visualRect(table.model().index(0, 2)).topLeft() + QPoint(3, 3)
    assert picture.pixelColor(at).name() == look.accent_ground
    words = table.visualRect(table.model().index(0, 1))
    shades = {
        picture.pixelColor(x, y).name()
        for x in range(words.left(), words.left() + 60)
        for y in range(words.top(), words.bottom())
    }
    assert look.te in shades


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


def test_a_wide_column_has_the_room_that_is_left_and_what_it_needs(qtbot: QtBot) -> None:
    table = Table("Notes", (Column("node", width=100), Column("note", stretch=True, width=160)))
    qtbot.addWidget(table)
    table.set_rows([Row("a", ("a", "a long note"))])
    table.resize(400, 100)
    table.show()
    assert table.columnWidth(1) == table.viewport().width() - 100
    table.resize(200, 100)
    assert table.columnWidth(1) == 160
    assert table.horizontalScrollBar().maximum() > 0


def test_figures_are_at_the_right(table: Table) -> None:
    index = table.model().index(0, 2)
    alignment = Qt.AlignmentFlag(index.data(Qt.ItemDataRole.TextAlignmentRole))
    assert alignment & Qt.AlignmentFlag.AlignRight


def test_reveal_and_empty(table: Table) -> None:
    assert table.reveal("c")
    assert not table.reveal("nothing")
    table.set_empty("Nothing to compare", "Run it first.")
    assert not table.empty.isVisible()
    table.set_rows([])
    assert table.empty.isVisible()
    assert table.empty.accessibleName() == "Nothing to compare"


def test_rows_have_room_for_their_lines_beside_a_scroll_bar(qtbot: QtBot) -> None:
    columns = (Column("", width=60), Column("", stretch=True, wrap=True))
    rows = [Row(str(n), ("", Cell("i" * n, code=True))) for n in range(20, 80)]

    def make(height: int) -> Table:
        table = Table("Call", columns)
        qtbot.addWidget(table)
        table.horizontalHeader().hide()
        table.resize(300, height)
        table.show()
        qtbot.waitExposed(table)
        return table

    table = make(120)
    table.set_rows(rows[:2])
    table.set_rows(rows)
    qtbot.waitUntil(table.verticalScrollBar().isVisible)
    whole = make(120 * len(rows))
    whole.resize(300 - table.verticalScrollBar().width(), whole.height())
    whole.set_rows(rows)
    assert not whole.verticalScrollBar().isVisible()

    def fits() -> None:
        assert table.columnWidth(1) == whole.columnWidth(1)
        for number in range(len(rows)):
            assert table.rowHeight(number) == whole.rowHeight(number)

    qtbot.waitUntil(fits)


def test_a_column_out_of_hiding_is_as_wide_as_its_words(table: Table) -> None:
    table.setColumnHidden(2, True)
    table.setColumnHidden(2, False)
    table.set_rows([Row("a", ("linear0", "TE", "1,234,567.891 milliseconds"))])
    assert table.columnWidth(2) >= table.sizeHintForColumn(2)

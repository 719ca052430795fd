"""The widgets of the workbench: tree of rows, list of choices, factors, and an order."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.tables.choice_list import Choice, ChoiceList, OrderList
from lowerscope.app.kit.tables.data_table import Cell, Column
from lowerscope.app.kit.tables.trees import TreeRow, TreeTable
from lowerscope.app.panes.schedule.schedule_form import FactorsField

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier


def row(key: str, parent: str = "", *, section: bool = False) -> TreeRow:
    return TreeRow(key, (Cell(key), Cell("8")), parent, section=section)


def tree_of(qtbot: QtBot) -> TreeTable:
    tree = TreeTable("Loops", (Column("loop", stretch=True), Column("extent", numeric=True)))
    qtbot.addWidget(tree)
    tree.resize(300, 300)
    tree.set_rows([row("i"), row("j", "i"), row("k", "j"), row("buffers", section=True)])
    tree.show()
    return tree


def click(qtbot: QtBot, tree: TreeTable, key: str, keys: Qt.KeyboardModifier) -> None:
    place = tree.row_rect(key).center().toPoint()
    qtbot.mouseClick(tree.viewport(), LEFT, keys, QPoint(place.x(), place.y()))


def test_rows_are_selected_in_the_order_of_the_clicks(qtbot: QtBot) -> None:
    tree = tree_of(qtbot)
    seen: list[list[str]] = []
    tree.rows_selected.connect(seen.append)
    click(qtbot, tree, "k", Qt.KeyboardModifier.NoModifier)
    click(qtbot, tree, "i", CONTROL)
    assert seen[-1] == ["k", "i"]
    click(qtbot, tree, "buffers", Qt.KeyboardModifier.NoModifier)
    assert "buffers" not in seen[-1]


def test_the_keyboard_goes_through_the_rows_and_extends_the_selection(qtbot: QtBot) -> None:
    tree = tree_of(qtbot)
    click(qtbot, tree, "i", Qt.KeyboardModifier.NoModifier)
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    assert tree.selected_keys() == ["j"]
    qtbot.keyClick(tree, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert tree.selected_keys() == ["j", "k"]
    with qtbot.waitSignal(tree.row_activated) as entered:
        qtbot.keyClick(tree, Qt.Key.Key_Return)
    assert entered.args == ["k"]


def test_what_is_selected_stays_so_in_other_rows(qtbot: QtBot) -> None:
    tree = tree_of(qtbot)
    tree.set_selection(["k", "j"])
    tree.set_rows([row("i"), row("j0", "i"), row("k", "i")])
    assert tree.selected_keys() == ["k"]


def list_of(qtbot: QtBot) -> ChoiceList:
    choices = ChoiceList("Moves", "Search")
    qtbot.addWidget(choices)
    choices.resize(300, 300)
    choices.set_choices(
        (
            Choice("", "Loops"),
            Choice("split", "split", "into nested loops"),
            Choice("fuse", "fuse", "needs two loops", usable=False),
            Choice("", "Memory"),
            Choice("cache_write", "cache_write"),
        )
    )
    choices.show()
    return choices


def test_typing_finds_choices_and_enter_takes_one(qtbot: QtBot) -> None:
    choices = list_of(qtbot)
    choices.line.setFocus()
    qtbot.keyClicks(choices.line, "cach")
    assert [each.key for each in choices.shown()] == ["cache_write"]
    with qtbot.waitSignal(choices.chosen) as chosen:
        qtbot.keyClick(choices.line, Qt.Key.Key_Return)
    assert chosen.args == ["cache_write"]
    qtbot.keyClick(choices.line, Qt.Key.Key_Escape)
    assert len(choices.shown()) == 3
    with qtbot.waitSignal(choices.escaped):
        qtbot.keyClick(choices.line, Qt.Key.Key_Escape)


def test_a_list_without_a_match_says_so(qtbot: QtBot) -> None:
    choices = list_of(qtbot)
    pointed: list[str] = []
    choices.pointed.connect(pointed.append)
    qtbot.keyClicks(choices.line, "split")
    assert not choices.empty.isVisible()
    qtbot.keyClicks(choices.line, "x")
    assert choices.empty.isVisible()
    assert choices.empty.accessibleName() == "No match"
    assert not choices.list.isVisible()
    qtbot.keyClick(choices.line, Qt.Key.Key_Backspace)
    assert not choices.empty.isVisible()
    assert choices.list.isVisible()
    assert pointed == ["split", "", "split"]


def test_mouse_and_keyboard_point_at_choices(qtbot: QtBot) -> None:
    choices = list_of(qtbot)
    pointed: list[str] = []
    choices.pointed.connect(pointed.append)
    item = choices.item_of("split")
    assert item is not None
    viewport = choices.list.viewport()
    qtbot.mouseMove(viewport, choices.list.visualItemRect(item).center())
    qtbot.waitUntil(lambda: pointed == ["split"])
    choices.line.setFocus()
    choices.point_at_first()
    qtbot.keyClick(choices.line, Qt.Key.Key_Down)
    assert choices.current_key() == "fuse"
    assert pointed[-1] == "fuse"
    qtbot.mouseClick(viewport, LEFT, pos=choices.list.visualItemRect(item).center())
    assert choices.current_key() == "split"


def test_factors_say_whether_they_cover_the_extent(qtbot: QtBot) -> None:
    factors = FactorsField("Factors", 128)
    qtbot.addWidget(factors)
    factors.set_values((None, 16))
    assert factors.check.text() == "✓ 8 × 16 = 128"
    factors.fields[1].selectAll()
    with qtbot.waitSignal(factors.edited):
        qtbot.keyClicks(factors.fields[1], "5")
    assert factors.values() == (None, 5)
    assert "130 covers 128" in factors.check.text()
    factors.fields[1].clear()
    assert factors.problem() == "only one factor can be left open"
    factors.set_values((None, "s1[1]"))
    assert factors.fields[1].isReadOnly()
    assert factors.values() == (None, "s1[1]")
    assert factors.problem() == ""
    factors.set_values((4, 16))
    assert factors.check.text() == "✕ 4 × 16 = 64 does not cover 128"
    qtbot.mouseClick(factors.more, LEFT)
    assert factors.values() == (4, 16, None)
    assert factors.problem() == ""
    qtbot.mouseClick(factors.fewer, LEFT)
    assert factors.values() == (4, 16)


@pytest.mark.x
def test_an_order_is_changed_by_dragging(qtbot: QtBot) -> None:
    order = OrderList("Loops")
    qtbot.addWidget(order)
    order.set_names(("i", "j", "k"))
    order.show()
    places = [order.visualItemRect(order.item(row)).center() for row in range(3)]
    qtbot.mousePress(order.viewport(), LEFT, pos=places[0])
    for place in places[1:]:
        qtbot.mouseMove(order.viewport(), place)
    with qtbot.waitSignal(order.edited):
        qtbot.mouseRelease(order.viewport(), LEFT, pos=places[2])
    assert order.order() == (1, 2, 0)

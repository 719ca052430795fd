"""The viewer of differences: what is drawn, gone through, folded, found and copied."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.diff_editor import (
    DiffEditor,
    DiffPart,
    DiffRows,
    DiffRun,
    Printed,
    Row,
)
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.typefaces import CODE_LINE, TextMetrics, code_font
from lowerscope.core.model.compact_script import Edit

OLD = [f"line {number}" for number in range(1, 21)]
NEW = [*OLD[:9], "line ten", *OLD[10:15], "more", *OLD[15:]]
CHANGED = DiffPart(
    "dense",
    "changed",
    OLD,
    NEW,
    (
        DiffRun("same", 1, 1, 9),
        DiffRun("changed", 10, 10, 1),
        DiffRun("same", 11, 11, 5),
        DiffRun("added", 16, 16, 1),
        DiffRun("same", 16, 17, 5),
    ),
)
GONE = DiffPart("relu", "removed", ["a", "b"], [], (DiffRun("removed", 1, 1, 2),))
SAME = DiffPart("add", "same", ["x"] * 4, ["x"] * 4, (DiffRun("same", 1, 1, 4),))


def words(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Mark all but the first five characters."""
    return [(5, len(old))], [(5, len(new))]


@pytest.fixture
def view(qtbot: QtBot) -> DiffView:
    """Return a view of three parts."""
    view = DiffView("Difference", words)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.set_parts([CHANGED, GONE, SAME], "python")
    with qtbot.waitActive(view):
        view.show()
        # Without a window manager nobody else gives it the keyboard.
        view.activateWindow()
    view.new.setFocus()
    return view


def shown(view: DiffView) -> list[Row]:
    """Return the rows that are in view or can be scrolled to."""
    rows = view.new.rows()
    return [view.rows().row(rows.line_of(place)) for place in range(rows.count)]


def place(view: DiffView, row: Row) -> int:
    """Return where a row is in the text of a side."""
    return next(n for n in range(view.rows().starts[-1]) if view.rows().row(n) == row)


def top(view: DiffView, editor: DiffEditor, row: Row) -> int:
    """Return the top of a row in the viewport of a side."""
    number = place(view, row)
    visible = dict(editor.visible_lines(editor.viewport().rect()))
    return round(visible[number].top())


def at(view: DiffView, editor: DiffEditor, row: Row, x: int = 100) -> QPoint:
    """Return the middle of a row at a distance from the left of a side's text."""
    return QPoint(x, top(view, editor, row) + CODE_LINE // 2)


def click(qtbot: QtBot, view: DiffView, row: Row) -> None:
    """Click on a row of the old side."""
    pos = at(view, view.old, row)
    qtbot.mouseClick(view.old.viewport(), Qt.MouseButton.LeftButton, pos=pos)


def test_equal_lines_are_folded_but_for_three_beside_changes(view: DiffView) -> None:
    rows = [row for row in shown(view) if row.part == 0]
    assert rows[:3] == [Row("title", 0), Row("fold", 0, 1, 1, 6), Row("same", 0, 7, 7)]
    assert Row("changed", 0, 10, 10) in rows
    assert Row("added", 0, 0, 16) in rows
    # Five equal lines between changes: none is hidden for less than two.
    assert [row.old for row in rows if row.kind == "same"][3:8] == [11, 12, 13, 14, 15]
    assert rows[-1] == Row("fold", 0, 19, 20, 2)


@pytest.mark.parametrize("unified", [False, True])
def test_both_sides_have_all_lines_on_as_many_rows(unified: bool) -> None:
    rows = DiffRows([CHANGED, GONE, SAME], unified)
    old, new = rows.lines("old"), rows.lines("both" if unified else "new")
    assert len(old) == len(new) == rows.starts[-1]
    for side, lines in (("old", [*OLD, "a", "b"]), ("new", NEW)):
        numbers = [n for n in range(len(old)) if getattr(rows.row(n), side)]
        numbers = [n for n in numbers if not rows.begins(n) and rows.row(n).part < 2]
        texts = [rows.texts(rows.row(n))[side == "new"] for n in numbers]
        assert texts == lines


def test_keys_go_through_the_changes(qtbot: QtBot, view: DiffView) -> None:
    assert view.change() == (0, 3)
    seen = []
    for _ in range(3):
        qtbot.keyClick(view.new, Qt.Key.Key_N)
        row = view.rows().row(view.row())
        seen.append((row.part, row.kind))
    assert seen == [(0, "changed"), (0, "added"), (1, "removed")]
    assert view.change() == (3, 3)
    assert not view.next_change()
    qtbot.keyClick(view.new, Qt.Key.Key_P)
    assert view.change() == (2, 3)
    assert view.new.accessibleDescription() == "16 + more"
    assert view.texts() == (None, "more")


@pytest.mark.parametrize("unified", [False, True])
def test_both_sides_scroll_to_the_first_changed_word(qtbot: QtBot, unified: bool) -> None:
    def mark(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        start = old.index("old")
        return [(start, start + 3)], [(start, start + 3)]

    view = DiffView("Difference", mark)
    qtbot.addWidget(view)
    view.resize(900, 700)
    view.set_unified(unified)
    view.set_parts([GONE], "python")
    view.show()
    room = view.new.viewport().width()
    width = TextMetrics(code_font()).horizontalAdvance("0")
    columns = room / width
    # The last column in view, one of the middle, and one far to the right.
    places = [round(columns) - 9, 300, round(columns / 2), 700]
    old = [line for at in places for line in (" " * at + "old" + " " * 300, "same")]
    runs = [
        DiffRun("same" if at % 2 else "changed", at + 1, at + 1, 1) for at in range(2 * len(places))
    ]
    new = [line.replace("old", "new") for line in old]
    view.set_parts([DiffPart("f", "changed", old, new, runs)], "python")
    seen = []
    for go in (view.next_change,) * 4 + (view.previous_change,) * 3:
        assert go()
        bars = {editor.horizontalScrollBar().value() for editor in view.editors()}
        assert len(bars) == 1
        seen.append(bars.pop())
    assert seen[0] == seen[2] == 0
    assert seen[1] < seen[3]
    for at, left in zip(places, seen, strict=False):
        assert left <= at * width
        assert (at + 3) * width <= left + room
    assert seen[4:] == seen[2::-1]


def test_a_click_unfolds_and_folds_a_part(qtbot: QtBot, view: DiffView) -> None:
    fold = Row("fold", 0, 1, 1, 6)
    above = shown(view).index(fold)
    click(qtbot, view, fold)
    assert shown(view)[above] == Row("same", 0, 1, 1)
    before = shown(view)
    for editor in view.editors():
        assert editor.rows().count == len(before)
    click(qtbot, view, Row("title", 0))
    assert [row.kind for row in shown(view) if row.part == 0] == ["title"]
    click(qtbot, view, Row("title", 0))
    assert shown(view) == before


def test_enter_unfolds_where_the_keyboard_is(qtbot: QtBot, view: DiffView) -> None:
    qtbot.keyClick(view.new, Qt.Key.Key_Down)
    assert view.new.accessibleDescription() == "6 unchanged lines"
    qtbot.keyClick(view.new, Qt.Key.Key_Return)
    assert Row("fold", 0, 1, 1, 6) not in shown(view)
    assert view.rows().row(view.row()) == Row("same", 0, 1, 1)


@pytest.mark.x
def test_dragging_selects_lines_of_one_side(qtbot: QtBot, view: DiffView) -> None:
    new = view.new
    first = at(view, new, Row("changed", 0, 10, 10), 0)
    last = at(view, new, Row("same", 0, 11, 11), new.viewport().width() - 2)
    qtbot.mousePress(new.viewport(), Qt.MouseButton.LeftButton, pos=first)
    qtbot.mouseMove(new.viewport(), last)
    qtbot.mouseRelease(new.viewport(), Qt.MouseButton.LeftButton, pos=last)
    assert new.selected_text() == "line ten\nline 11"
    qtbot.keyClick(new, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "line ten\nline 11"


@pytest.mark.x
def test_keys_select_lines_of_either_side(qtbot: QtBot, view: DiffView) -> None:
    shift = Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(view.new, Qt.Key.Key_N)
    for _ in range(2):
        qtbot.keyClick(view.new, Qt.Key.Key_Down, shift)
    assert view.new.selected_text() == "line ten\nline 11\n"
    qtbot.keyClick(view.new, Qt.Key.Key_Tab, shift)
    qtbot.waitUntil(view.old.hasFocus)
    assert view.new.selected_text() == ""
    for _ in range(2):
        qtbot.keyClick(view.old, Qt.Key.Key_Up, shift)
    qtbot.keyClick(view.old, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "line 10\nline 11\n"
    qtbot.keyClick(view.old, Qt.Key.Key_Down)
    assert view.old.selected_text() == ""


def test_find_opens_the_fold_that_it_stands_in(qtbot: QtBot, view: DiffView) -> None:
    qtbot.keyClick(view.new, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(view.find_bar.field, "line 2")
    # The lines 2 and 20; the same on both sides counts once.
    assert view.find_bar.figure.text() == "1 of 2"
    row = view.rows().row(view.row())
    assert (row.kind, row.new) == ("same", 2)
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Return)
    assert view.texts() == ("line 20", "line 20")
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Escape)
    assert not view.find_bar.isVisible()


@pytest.mark.parametrize("unified", [False, True])
def test_find_goes_through_both_sides(qtbot: QtBot, view: DiffView, unified: bool) -> None:
    view.set_unified(unified)
    view.open_find()
    view.find_bar.field.setText("line 10")
    assert view.find_bar.figure.text() == "1 of 1"
    assert view.texts()[0] == "line 10"
    view.find_bar.field.setText("line t")
    assert view.find_bar.figure.text() == "1 of 1"
    assert view.texts()[1] == "line ten"
    assert view.new.selected_text() == "line t"


def test_both_sides_scroll_as_one(qtbot: QtBot, view: DiffView) -> None:
    view.resize(900, 160)
    view.new.unfold_all()
    view.new.verticalScrollBar().setValue(7)
    assert view.old.top_line() == view.new.top_line() > 0
    view.old.verticalScrollBar().setValue(3)
    assert view.old.top_line() == view.new.top_line() == 4
    long = [" " * 300 + "x"]
    view.set_parts([DiffPart("f", "added", [], long, (DiffRun("added", 1, 1, 1),))], "python")
    view.new.horizontalScrollBar().setValue(500)
    assert view.old.horizontalScrollBar().value() == 500


def test_switching_columns_keeps_the_place(qtbot: QtBot, view: DiffView) -> None:
    view.resize(900, 160)
    view.new.set_top_line(place(view, Row("changed", 0, 10, 10)))
    view.set_unified(True)
    assert not view.old.isVisible()
    assert view.rows().row(view.new.top_line()) == Row("removed", 0, 10, partner=10)
    view.set_unified(False)
    assert view.rows().row(view.old.top_line()) == Row("changed", 0, 10, 10)


def test_lines_and_parts_of_them_are_copied_as_printed(view: DiffView) -> None:
    runs = [DiffRun("changed", 1, 1, 1), DiffRun("same", 2, 2, 1)]
    printed = Printed("f(T.int64(2), x)", [Edit(2, 12, "2")])
    part = DiffPart(
        "f", "changed", ["f(1, x)", "end"], ["f(2, x)", "end"], runs, new_printed={1: printed}
    )
    view.set_parts([part], "python")
    view.new.go_to(1)
    view.new.copy_line()
    assert QGuiApplication.clipboard().text() == printed.text
    assert view.new.text_between((1, 0), (2, 3)) == "f(T.int64(2), x)\nend"
    assert view.new.text_between((1, 2), (2, 1)) == "T.int64(2), x)\ne"
    assert view.new.text_between((1, 2), (1, 3)) == "T.int64(2)"
    assert view.new.text_between((1, 3), (1, 6)) == ", x"
    assert view.old.text_between((1, 0), (2, 3)) == "f(1, x)\nend"

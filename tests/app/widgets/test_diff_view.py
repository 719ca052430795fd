"""The viewer of differences: what is drawn, gone through, folded, found and copied."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage
from pytestqt.qtbot import QtBot

from lowerscope.app import theme
from lowerscope.app.widgets.diff.rows import Row, rows_of
from lowerscope.app.widgets.diff.view import DiffPart, DiffRun, DiffView
from lowerscope.app.widgets.typefaces import CODE_LINE

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
    view.show()
    qtbot.waitExposed(view)
    view.area.setFocus()
    return view


def test_equal_lines_are_folded_but_for_three_beside_changes() -> None:
    rows = rows_of([CHANGED], unified=False)
    assert rows[:3] == [
        Row("title", 0),
        Row("fold", 0, 1, 1, 6),
        Row("same", 0, 7, 7),
    ]
    assert Row("changed", 0, 10, 10) in rows
    assert Row("added", 0, 0, 16) in rows
    # Five equal lines between changes: none is hidden for less than two.
    assert [row.old for row in rows if row.kind == "same"][3:8] == [11, 12, 13, 14, 15]
    assert rows[-1] == Row("fold", 0, 19, 20, 2)


def test_one_column_has_a_changed_line_twice() -> None:
    rows = rows_of([CHANGED], unified=True)
    at = rows.index(Row("removed", 0, 10, 0))
    assert rows[at + 1] == Row("added", 0, 0, 10)


def test_keys_go_through_the_changes(qtbot: QtBot, view: DiffView) -> None:
    assert view.change() == (0, 3)
    area = view.area
    seen = []
    for _ in range(3):
        qtbot.keyClick(area, Qt.Key.Key_N)
        row = area.document.rows[area.current()]
        seen.append((row.part, row.kind))
    assert seen == [(0, "changed"), (0, "added"), (1, "removed")]
    assert view.change() == (3, 3)
    assert not view.next_change()
    qtbot.keyClick(area, Qt.Key.Key_P)
    assert view.change() == (2, 3)
    assert area.accessibleDescription() == "16 + more"


def test_a_click_unfolds_and_folds_a_part(qtbot: QtBot, view: DiffView) -> None:
    area, document = view.area, view.area.document
    fold = next(place for place, row in enumerate(document.rows) if row.kind == "fold")
    place = QPoint(100, document.tops[fold] + CODE_LINE // 2)
    qtbot.mouseClick(area.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert document.rows[fold] == Row("same", 0, 1, 1)
    before = len(document.rows)
    qtbot.mouseClick(area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(100, 10))
    assert [row.kind for row in document.rows if row.part == 0] == ["title"]
    qtbot.mouseClick(area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(100, 10))
    assert len(document.rows) == before


def test_a_part_without_a_change_is_its_title(qtbot: QtBot, view: DiffView) -> None:
    document = view.area.document
    assert [row.kind for row in document.rows if row.part == 2] == ["title"]
    view.area.unfold_all()
    assert [row.kind for row in document.rows if row.part == 2].count("same") == 4
    assert not any(row.kind == "fold" for row in document.rows)


def test_dragging_selects_lines_of_one_side(qtbot: QtBot, view: DiffView) -> None:
    view.area.unfold_all()
    view.area.go_to(0)
    area = view.area
    middle = area.viewport().width() // 2
    top = area.document.tops[area.document.rows.index(Row("changed", 0, 10, 10))]
    first = QPoint(middle + 1, top + CODE_LINE // 2)
    last = QPoint(area.viewport().width() - 2, top + CODE_LINE + CODE_LINE // 2)
    qtbot.mousePress(area.viewport(), Qt.MouseButton.LeftButton, pos=first)
    qtbot.mouseMove(area.viewport(), last)
    qtbot.mouseRelease(area.viewport(), Qt.MouseButton.LeftButton, pos=last)
    assert area.selected_text() == "line ten\nline 11"
    qtbot.keyClick(area, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "line ten\nline 11"


def test_keys_select_lines_of_either_side(qtbot: QtBot, view: DiffView) -> None:
    area, shift = view.area, Qt.KeyboardModifier.ShiftModifier
    qtbot.keyClick(area, Qt.Key.Key_N)
    for _ in range(2):
        qtbot.keyClick(area, Qt.Key.Key_Down, shift)
    assert area.selected_text() == "line ten\nline 11\n"
    qtbot.keyClick(area, Qt.Key.Key_Left, shift)
    assert area.selected_text() == "line 10\nline 11\n"
    qtbot.keyClick(area, Qt.Key.Key_Right, shift)
    qtbot.keyClick(area, Qt.Key.Key_Up, shift)
    qtbot.keyClick(area, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "line ten\n"
    qtbot.keyClick(area, Qt.Key.Key_Down)
    assert area.selected_text() == ""


def test_find_opens_the_fold_that_it_stands_in(qtbot: QtBot, view: DiffView) -> None:
    area = view.area
    qtbot.keyClick(area, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClicks(view.find_bar.field, "line 2")
    # The lines 2 and 20; the same on both sides counts once.
    assert view.find_bar.figure.text() == "1 of 2"
    row = area.document.rows[area.current()]
    assert (row.kind, row.new) == ("same", 2)
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Return)
    assert area.document.texts_of(area.document.rows[area.current()]) == ("line 20", "line 20")
    qtbot.keyClick(view.find_bar.field, Qt.Key.Key_Escape)
    assert not view.find_bar.isVisible()


def test_sides_have_signs_and_grounds(qtbot: QtBot, view: DiffView) -> None:
    image = view.area.viewport().grab().toImage()
    document = view.area.document
    colours = theme.current()
    gone = document.rows.index(Row("removed", 1, 1, 0))
    assert colour(image, 300, document.tops[gone]) == colours.wrong_ground
    assert colour(image, 700, document.tops[gone]) == colours.ground
    more = document.rows.index(Row("added", 0, 0, 16))
    assert colour(image, 700, document.tops[more]) == colours.right_ground
    changed = document.rows.index(Row("changed", 0, 10, 10))
    assert colour(image, 300, document.tops[changed]) == colours.changed
    assert colour(image, 700, document.tops[changed]) == colours.changed


def colour(image: QImage, x: int, top: int) -> str:
    """Return the colour of a pixel a line's height below its top, in points."""
    ratio = image.devicePixelRatio()
    return QColor(image.pixelColor(round(x * ratio), round((top + 2) * ratio))).name()


def test_switching_columns_keeps_the_place(qtbot: QtBot, view: DiffView) -> None:
    view.resize(900, 160)
    area, document = view.area, view.area.document
    place = document.rows.index(Row("changed", 0, 10, 10))
    area.verticalScrollBar().setValue(document.tops[place])
    view.set_unified(True)
    top = document.rows[document.at(area.verticalScrollBar().value())]
    assert top == Row("removed", 0, 10, 0)


def test_a_change_far_to_the_right_comes_into_view(qtbot: QtBot, view: DiffView) -> None:
    line = " " * 200 + "x = 2"
    view.set_parts([DiffPart("f", "added", [], [line], (DiffRun("added", 1, 1, 1),))], "python")
    bar = view.area.horizontalScrollBar()
    assert bar.value() == 0
    qtbot.keyClick(view.area, Qt.Key.Key_N)
    assert bar.value() > 0


def test_nothing_to_show_says_so(qtbot: QtBot, view: DiffView) -> None:
    view.set_empty("Nothing differs", "")
    view.set_parts(())
    assert view.empty.isVisible()
    assert not view.next_change()

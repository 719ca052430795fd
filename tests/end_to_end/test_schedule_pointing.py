"""Loops and blocks are selected, moves are found and tried, and steps gone through: in the tree,
in the script, on the timeline; by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.schedule_moves_page import ScheduleMenu
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import At, Primitive
from tests.end_to_end.scheduling import CONTROL, LEFT, Bench

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
SHIFT = Qt.KeyboardModifier.ShiftModifier
LOOP_J = At(block="matmul", loop=1)


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


def do(bench: Bench, name: str, **arguments: object) -> None:
    """Apply a primitive that is not what a test is about."""
    count = len(bench.record.steps)
    bench.scheduling.editing.apply(Primitive(id="", name=name, arguments=arguments))  # type: ignore[arg-type]
    bench.steps(count + 1)


def choose_with_preview(bench: Bench, menu: ScheduleMenu) -> None:
    """Try `unroll` with the mouse, look at what it would make, and apply it with a click."""
    shown = bench.window.panes.scheduled
    bench.wait(menu.isVisible)
    bench.settle()
    choices = menu.page.choices
    item = choices.item_of("unroll")
    assert item is not None
    bench.point(choices.list, item)
    bench.wait(lambda: shown.pages.currentWidget() is shown.preview)
    assert shown.line.whole() == "Preview: unroll k"
    assert "T.unroll(" in bench.script
    assert bench.record.steps == ()
    rect = choices.list.visualItemRect(choices.item_of("unroll"))
    QTest.mouseClick(choices.list.viewport(), LEFT, pos=rect.center())
    bench.steps(1)
    assert not menu.isVisible()
    assert shown.pages.currentWidget() is shown.script
    assert "T.unroll(" in bench.script


@pytest.mark.x
def test_the_menu_of_the_script_offers_the_moves(bench: Bench) -> None:
    do(bench, "annotate", block_or_loop=LOOP_J, ann_key="note", ann_val="here")
    script = bench.window.panes.scheduled
    bench.choose_in_menu(script.script.code.editor, bench.line_place("T.serial("), "Moves…")
    menu = script.menu
    bench.wait(menu.isVisible)
    assert bench.view.tree.selected_keys() == bench.ids("j")
    bench.settle()
    QTest.keyClicks(menu.page.choices.line, "unannot")
    bench.key(menu.page.choices.line, Qt.Key.Key_Return)
    assert not menu.isVisible()
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    bench.key(bench.view.form.editors["ann_key"], Qt.Key.Key_Escape)
    assert bench.scheduling.trying.draft is None


def test_a_letter_opens_the_moves_where_the_tree_has_the_keyboard(bench: Bench) -> None:
    bench.select("j")
    bench.key(bench.view.tree, Qt.Key.Key_Down)
    bench.settle()
    assert bench.view.tree.selected_keys() == bench.ids("k")
    bench.key(bench.view.tree, Qt.Key.Key_S)
    choose_with_preview(bench, bench.view.menu)
    # Return goes to the list beside the tree, and Escape in the menu comes back to it.
    bench.key(bench.view.tree, Qt.Key.Key_S)
    bench.key(bench.view.menu.page.choices.line, Qt.Key.Key_Escape)
    assert not bench.view.menu.isVisible()
    bench.key(bench.view.tree, Qt.Key.Key_Return)
    choices = bench.view.moves.choices
    assert choices.current_key() == bench.scheduling.moves.all[0].name
    keys = bench.window.commands.action("schedule-moves").text()
    assert keys.endswith("·  S")


def test_several_are_selected_by_keyboard_and_in_the_script(bench: Bench) -> None:
    do(bench, "unroll", loop=At(block="matmul", loop=2))
    tree = bench.view.tree
    bench.select("i")
    bench.key(tree, Qt.Key.Key_Down, SHIFT)
    bench.settle()
    assert tree.selected_keys() == bench.ids("i", "j")
    marks = bench.window.panes.scheduled.script.code.editor.marks
    assert marks.is_selected(bench.code_line("T.grid("))
    assert not marks.is_selected(bench.code_line("T.unroll("))
    assert bench.moves()["fuse"]

    bench.click_code("T.unroll(")
    assert tree.selected_keys() == bench.ids("k")
    assert marks.is_selected(bench.code_line("T.unroll("))
    bench.click_code('T.sblock("matmul")', CONTROL)
    assert tree.selected_keys() == bench.ids("k", "matmul")
    assert bench.moves()["decompose_reduction"]
    editor = bench.window.panes.scheduled.script.code.editor
    editor.go_to(bench.code_line("T.unroll("))
    bench.key(editor, Qt.Key.Key_Return)
    assert tree.selected_keys() == bench.ids("k")


def test_the_timeline_goes_through_the_primitives(bench: Bench) -> None:
    timeline = bench.window.panes.timeline
    do(bench, "split", loop=LOOP_J, factors=(None, 16))
    do(bench, "parallel", loop=At(block="matmul", loop=1))
    bench.window.features.stepping.set_section("passes")
    sections = timeline.sections
    place = sections.segment_rect("schedule").center().toPoint()
    QTest.mouseClick(sections, LEFT, pos=place)
    bench.wait(lambda: bench.scheduling.active and len(timeline.slider.dots()) == 3)
    bench.settle()

    QTest.mouseClick(timeline.slider, LEFT, pos=timeline.slider.dot_centre(1).toPoint())
    bench.wait(lambda: bench.record.index == 1)
    assert "j_0" in bench.script
    assert "T.parallel(" not in bench.script
    marks = bench.window.panes.scheduled.script.code.editor.marks
    assert marks.is_changed(bench.code_line("T.grid("))
    assert not marks.is_changed(bench.code_line("T.writes("))

    for key, index in ((Qt.Key.Key_Left, 0), (Qt.Key.Key_End, 2), (Qt.Key.Key_Home, 0)):
        bench.key(timeline.slider, key)
        bench.wait(lambda index=index: bench.record.index == index)
        assert ("j_0" in bench.script) == (index > 0)
        assert ("T.parallel(" in bench.script) == (index > 1)
    QTest.mouseClick(timeline.on, LEFT)
    bench.wait(lambda: bench.record.index == 1)
    QTest.mouseClick(timeline.leave, LEFT)
    bench.wait(lambda: bench.scheduling.index is None)
    bench.settle()
    assert "T.parallel(" in bench.script


def drag(bench: Bench, number: int, below: int) -> None:
    """Drag a step of the history with the mouse to below another one; from 1."""
    steps = bench.view.history.list
    begin, end = (
        steps.row_rect(bench.record.steps[each - 1].id).center() for each in (number, below)
    )
    down = QPoint(90, round(begin.y()))
    drop = QPointF(90, end.y() + steps.row_rect("start").height() / 2).toPoint()
    QTest.mousePress(steps.viewport(), LEFT, pos=down)
    for place in (QPoint(90, (down.y() + drop.y()) // 2), drop):
        QTest.mouseMove(steps.viewport(), place)
    QTest.mouseRelease(steps.viewport(), LEFT, pos=drop)


@pytest.mark.x
def test_a_step_is_dragged_and_has_a_menu(bench: Bench) -> None:
    do(bench, "split", loop=LOOP_J, factors=(None, 16))
    do(bench, "unroll", loop=At(block="matmul", loop=3))
    do(bench, "parallel", loop=At(block="matmul", loop=1))
    drag(bench, 1, below=2)
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s2", "s1", "s3"])
    bench.settle()
    # Before j is split, the fourth loop around the block is not there.
    assert bench.statuses() == ["✕ failed", "✓ done", "✓ done"]
    assert bench.scheduling.record is not None
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s1", "s2", "s3"])
    bench.settle()
    assert bench.statuses() == ["✓ done"] * 3

    steps = bench.view.history.list

    def choose(step: str, text: str) -> None:
        place = QPoint(90, round(steps.row_rect(step).center().y()))
        bench.choose_in_menu(steps, place, text)
        bench.settle()

    choose("s2", "Delete")
    bench.steps(2)
    choose("s1", "Switch off")
    bench.wait(lambda: bench.statuses()[0] == "○ off")
    choose("s1", "Switch on")
    bench.wait(lambda: bench.statuses() == ["✓ done"] * 2)
    choose("s3", "Insert before it")
    bench.wait(lambda: bench.scheduling.place == 1)
    bench.settle()
    bench.select("k")
    bench.choose("unroll")
    bench.steps(3)
    assert [each.id for each in bench.record.steps] == ["s1", "s4", "s3"]
    choose("s4", "Delete")
    bench.steps(2)
    choose("s3", "Edit…")
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    assert bench.view.form.editors["loop"].name.text() == "j_0"  # type: ignore[attr-defined]


def test_what_is_compiled_is_the_function_at_its_step(bench: Bench) -> None:
    do(bench, "split", loop=LOOP_J, factors=(None, 8))
    do(bench, "reorder", loops=(At(block="matmul", loop=3), At(block="matmul", loop=2)))
    do(bench, "vectorize", loop=At(block="matmul", loop=3))
    pane, _document = bench.window.panes.tensorir, bench.window.document
    pane.set_current("llvm")
    code = pane.texts["llvm"].script.code

    def head() -> str:
        return code.text().partition("\n")[0]

    bench.wait(lambda: head().endswith("by itself, after step 3 of its schedule"))
    assert "<8 x float>" in code.text()
    # Its lines are those of the loops of the tree.
    bench.select("k")
    assert any(code.editor.marks.is_selected(line) for line in range(len(code.text().split("\n"))))
    bench.click_step(2)
    bench.wait(lambda: head().endswith("by itself, after step 2 of its schedule"))
    # Nothing of that is the model's: it has no such step, and is compiled when it is looked at.
    bench.window.features.stepping.set_section("passes")
    bench.wait(lambda: head() == "; te_matmul for llvm")
    pane.set_current("script")


def test_with_nothing_selected_the_function_with_the_most_work_is_there(bench: Bench) -> None:
    bench.begin(Recipe(source=Source(spec="sample:conv_net"), lowering="te"))
    bench.window.commands.action("workbench").trigger()
    bench.wait(lambda: bench.scheduling.record is not None)
    bench.settle()
    # conv2d has more loops, and fewer iterations.
    assert bench.scheduling.function == "dense"
    assert bench.moves() == {}
    assert bench.view.moves.choices.empty.isVisible()
    bench.select("k")
    assert bench.moves()["split"]

"""Loops and blocks are selected, moves are found and tried, and steps gone through: in the tree,
in the script, on the timeline; by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

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


@pytest.mark.x
def test_the_menu_of_the_script_offers_the_moves(bench: Bench) -> None:
    do(bench, "annotate", block_or_loop=LOOP_J, ann_key="note", ann_val="here")
    script = bench.code
    bench.choose_in_menu(script.script.code.editor, bench.line_place("T.serial("), "Primitives…")
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


def test_letters_choose_primitives_where_the_tree_has_the_keyboard(bench: Bench) -> None:
    bench.select("j")
    bench.key(bench.view.tree, Qt.Key.Key_Down)
    # It need not be known yet what applies to the loop.
    bench.key(bench.view.tree, Qt.Key.Key_S)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    assert bench.view.form.title.text() == "split"
    bench.key(bench.view.form, Qt.Key.Key_Escape)
    assert bench.window.focusWidget() is bench.view.tree
    # Return goes to the list beside the tree, and Escape in the menu comes back to it.
    bench.window.commands.action("schedule-moves").trigger()
    bench.wait(bench.view.menu.isVisible)
    bench.key(bench.view.menu.page.choices.line, Qt.Key.Key_Escape)
    assert not bench.view.menu.isVisible()
    bench.settle()
    bench.key(bench.view.tree, Qt.Key.Key_Return)
    choices = bench.view.moves.choices
    assert choices.current_key() == bench.scheduling.moves.all[0].name
    bench.key(choices.line, Qt.Key.Key_Escape)
    assert bench.window.focusWidget() is bench.view.tree
    bench.key(bench.view.tree, Qt.Key.Key_U)
    bench.steps(1)
    assert "T.unroll(" in bench.script


def test_several_are_selected_by_keyboard_and_in_the_script(bench: Bench) -> None:
    do(bench, "unroll", loop=At(block="matmul", loop=2))
    tree = bench.view.tree
    bench.select("i")
    bench.key(tree, Qt.Key.Key_Down, SHIFT)
    bench.settle()
    assert tree.selected_keys() == bench.ids("i", "j")
    marks = bench.code.script.code.editor.marks
    assert marks.is_selected(bench.code_line("T.grid("))
    assert not marks.is_selected(bench.code_line("T.unroll("))
    assert bench.moves()["fuse"]

    bench.click_code("T.unroll(")
    assert tree.selected_keys() == bench.ids("k")
    assert marks.is_selected(bench.code_line("T.unroll("))
    bench.click_code('T.sblock("matmul")', CONTROL)
    assert tree.selected_keys() == bench.ids("k", "matmul")
    assert bench.moves()["decompose_reduction"]
    editor = bench.code.script.code.editor
    editor.go_to(bench.code_line("T.unroll("))
    bench.key(editor, Qt.Key.Key_Return)
    assert tree.selected_keys() == bench.ids("k")


def drag(bench: Bench, number: int, behind: int) -> None:
    """Drag a step of the history with the mouse to behind another one; from 1."""
    strip = bench.view.history.strip
    begin, end = (
        strip.cell_rect(bench.record.steps[each - 1].id).center() for each in (number, behind)
    )
    down, drop = begin.toPoint(), (end + QPointF(20, 0)).toPoint()
    QTest.mousePress(strip.viewport(), LEFT, pos=down)
    for place in (QPoint((down.x() + drop.x()) // 2, down.y()), drop):
        QTest.mouseMove(strip.viewport(), place)
    QTest.mouseRelease(strip.viewport(), LEFT, pos=drop)


@pytest.mark.x
def test_a_step_is_dragged_and_has_a_menu(bench: Bench) -> None:
    do(bench, "split", loop=LOOP_J, factors=(None, 16))
    do(bench, "unroll", loop=At(block="matmul", loop=3))
    do(bench, "parallel", loop=At(block="matmul", loop=1))
    drag(bench, 1, behind=2)
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s2", "s1", "s3"])
    bench.settle()
    # Before j is split, the fourth loop around the block is not there.
    assert bench.statuses() == ["failed", "done", "done"]
    assert bench.scheduling.record is not None
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s1", "s2", "s3"])
    bench.settle()
    assert bench.statuses() == ["done"] * 3

    steps = bench.view.history.strip

    def choose(step: str, text: str) -> None:
        place = steps.cell_rect(step).center().toPoint()
        bench.choose_in_menu(steps, place, text)
        bench.settle()

    choose("s2", "Delete")
    bench.steps(2)
    choose("s1", "Switch off")
    bench.wait(lambda: bench.statuses()[0] == "off")
    choose("s1", "Switch on")
    bench.wait(lambda: bench.statuses() == ["done"] * 2)
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
    pane = bench.code
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
    pane.set_current("script")


def test_with_nothing_selected_the_functions_are_there_to_choose_from(bench: Bench) -> None:
    bench.begin(Recipe(source=Source(spec="sample:conv_net"), lowering="te"))
    bench.scheduling.look("")
    bench.window.commands.action("workbench").trigger()
    chooser = bench.view.chooser
    bench.wait(chooser.table.isVisible)
    assert chooser.title.text() == "No function selected"
    # conv2d has more loops, and fewer iterations.
    assert chooser.table.rows()[0].key == "tir:dense"
    bench.key(chooser.table, Qt.Key.Key_Home)
    bench.key(chooser.table, Qt.Key.Key_Return)
    bench.wait(lambda: bench.scheduling.function == "dense" and bench.scheduling.record)
    bench.settle()
    assert not chooser.isVisible()
    assert bench.moves() == {}
    assert bench.view.moves.choices.empty.isVisible()
    bench.select("k")
    assert bench.moves()["split"]

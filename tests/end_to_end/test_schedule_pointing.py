"""Loops and blocks are selected, moves are found and tried, and steps gone through: in the tree,
in the script, on the timeline; by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest

from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import At, Primitive
from tests.end_to_end.scheduling import LEFT, Bench

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
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

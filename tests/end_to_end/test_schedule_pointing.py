"""The workbench of a function: its parts, the moves in the menu of the script, what is compiled."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import At, Primitive
from tests.end_to_end.scheduling import Bench

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


def test_all_parts_are_in_view_and_nothing_is_cut(bench: Bench) -> None:
    bench.window.resize(1366, 768)
    view, tree = bench.view, bench.view.tree
    parts = (tree, view.moves, view.figures, view.code, view.history, view.variants, view.roofline)
    assert all(part.isVisible() for part in parts)
    for place, text in ((1, "65.5 kB"), (2, "global · output")):
        assert tree.fontMetrics().horizontalAdvance(text) + 16 <= tree.columnWidth(place)
    bench.select("j")
    bench.choose("split")
    assert view.form.isVisible()
    # In a narrow window, the form takes the place of the primitives.
    bench.window.resize(1000, 600)
    bench.wait(lambda: not view.middle.isVisible())
    assert view.form.isVisible()
    assert not view.moves.isVisible()
    bench.key(view.form, Qt.Key.Key_Escape)
    assert view.moves.isVisible()
    bench.window.resize(1440, 900)
    bench.wait(view.figures.isVisible)
    assert view.roofline.isVisible()

"""The scheduling walk of the help, by its keys alone: each row of its table shows what it says."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from lowerscope.app import help_pages
from lowerscope.core.recipe import Recipe, Source
from tests import schedule_walk
from tests.end_to_end.scheduling import CONTROL, NONE, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul"))

ROW = re.compile(r"^\| (`.+?`) \| (\w+)(?:, (\d+))? \| .+ \| `(.+)` \|$", re.MULTILINE)


def focus(bench: Bench) -> QWidget:
    return QApplication.focusWidget() or bench.window


def press(bench: Bench, keys: str) -> None:
    QTest.keySequence(focus(bench), QKeySequence(keys))
    QApplication.processEvents()


def select_rows(bench: Bench, names: list[str]) -> None:
    """Go to rows of the tree with the arrows; from the second on with Ctrl, and Space adds it."""
    tree = bench.view.tree
    assert tree.hasFocus()
    for place, key in enumerate(bench.ids(*names)):
        held = CONTROL if place else NONE
        rows = [row.key for row in tree.rows()]
        while tree.current_key() != key:
            down = rows.index(tree.current_key() or rows[0]) < rows.index(key)
            QTest.keyClick(tree, Qt.Key.Key_Down if down else Qt.Key.Key_Up, held)
        if place or key not in tree.selected_keys():
            QTest.keyClick(tree, Qt.Key.Key_Space, held)
    assert tree.selected_keys() == bench.ids(*names)
    bench.settle()


def test_the_walk_goes_as_the_page_says(bench: Bench) -> None:
    window = bench.window
    # What each step takes is measured by `tests.schedule_walk`.
    window.workspace.measurements.set_automatic(False)
    window.activateWindow()
    text = help_pages.text_of("scheduling-walk")
    for key in ("te", "target-native", "workbench", "palette", "run"):
        # The page says these keys.
        assert window.commands.action(key).shortcut().toString() in text, key
    press(bench, "Ctrl+2")
    press(bench, window.commands.action("target-native").shortcut().toString())
    recipe = schedule_walk.recipe_of("native")
    bench.wait(lambda: window.workspace.recipe == recipe and not window.workspace.activity.text)
    press(bench, "Ctrl+Shift+P")
    QTest.keyClicks(focus(bench), "@matmul")
    press(bench, "Return")
    assert window.workspace.selection.chosen == ("fx:matmul",)
    press(bench, "Ctrl+Shift+S")
    bench.wait(lambda: bench.scheduling.function == "te_matmul" and bench.scheduling.record)
    bench.settle()
    rows = ROW.findall(text)
    assert len(rows) == 8
    for place, (clicked, move, number, script) in enumerate(rows):
        select_rows(bench, re.findall(r"`(\w+)`", clicked))
        press(bench, "Return")
        choices = bench.view.moves.choices
        bench.wait(lambda move=move: move in bench.moves())  # type: ignore[misc]
        assert choices.line.hasFocus()
        QTest.keyClicks(choices.line, move)
        assert choices.current_key() == move
        press(bench, "Return")
        if number:
            # The last number is that of the inner loop.
            press(bench, "Tab")
            QTest.keyClicks(focus(bench), number)
        if bench.scheduling.trying.draft is not None:
            form = bench.view.form
            bench.wait(lambda form=form: form.state.text().startswith("✓"))  # type: ignore[misc]
            press(bench, "Return")
        bench.steps(place + 1)
        assert bench.record.steps[-1].status == "done", bench.state()
        assert script in bench.script, f"after {clicked} {move}:\n{bench.script}"
        # The table of times has the same steps.
        assert f"| {clicked} → {move}{number and f', {number}'} |" in text
        if not bench.view.tree.hasFocus():
            press(bench, "Shift+Tab")
    while not bench.view.in_model.hasFocus():
        press(bench, "Shift+Tab")
    press(bench, "Space")
    press(bench, "F5")
    bench.wait(lambda: window.workspace.run_record is not None)
    assert window.workspace.run_record is not None
    assert window.workspace.run_record.verdict == "match"

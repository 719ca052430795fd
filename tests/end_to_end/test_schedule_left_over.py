"""A schedule whose function is another one since the model was edited is shown, and not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMenu

from lowerscope.core.model.recipe import Recipe, Source, applies_schedules
from tests.end_to_end.scheduling import LEFT, Bench
from tests.end_to_end.test_schedule_keeping import RECIPE, TWINS, keep

pytestmark = [pytest.mark.x, pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]
__all__ = ["RECIPE"]  # what the window of the tests begins with


def left_over(bench: Bench, number: int, text: str) -> tuple[str, ...]:
    """Open the menu of what is left over, choose an entry of one; return the texts of all."""
    menu = bench.view.left_over.menu()
    assert menu is not None
    QTest.mouseClick(bench.view.left_over, LEFT)
    bench.wait(menu.isVisible)
    entry = menu.actions()[number]
    inner = entry.menu()
    assert isinstance(inner, QMenu)
    menu.setActiveAction(entry)
    bench.key(menu, Qt.Key.Key_Right)
    bench.wait(inner.isVisible)
    texts = (entry.text(), *(each.text().replace("&", "") for each in inner.actions()))
    chosen = inner.actions()[texts.index(text) - 1]
    # On X, events that a test sends to a menu inside of a menu do not close both.
    chosen.trigger()
    menu.close()
    bench.wait(lambda: not menu.isVisible())
    return texts


def test_it_is_looked_at_copied_tried_and_deleted(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "twins.py"
    file.write_text(TWINS)
    bench.begin(Recipe(source=Source(spec=str(file)), steps=()))
    document, window = bench.window.document, bench.window
    bench.open("double")
    bench.select("j")
    bench.choose("split")
    bench.type_factors(None, 4)
    bench.press_apply()
    bench.steps(1)
    bench.select("j_1")
    bench.apply("vectorize")
    assert not bench.view.left_over.isVisible()

    file.write_text(TWINS.replace("16", "12"))
    window.commands.action("reload").trigger()
    bench.wait(lambda: bench.view.left_over.isVisible())
    bench.steps(0)
    assert bench.view.left_over.text() == "⚠ 1 orphaned"
    assert "a function: double" in window.banner.message()
    problems = window.panes.problems.findChildren(QLabel)
    assert any("double · first · 2 steps is not applied" in each.text() for each in problems)

    texts = left_over(bench, 0, "Copy as Python")
    assert texts[:2] == ("double · first · 2 steps", "double now computes something else")
    bench.wait(lambda: "sch.vectorize(made1[1])" in QGuiApplication.clipboard().text())

    left_over(bench, 0, "Try on double")
    bench.steps(2)
    assert bench.statuses() == ["done", "done"]
    assert "T.vectorized(4)" in bench.script
    # What was tried is a schedule of the function that is there; the other one stands until it is
    # deleted, which can be undone.
    assert bench.view.left_over.isVisible()
    left_over(bench, 0, "Delete")
    bench.wait(lambda: not bench.view.left_over.isVisible())
    assert document.recipe is not None
    assert len(document.recipe.schedules) == 1
    assert not window.commands.action("left-over").isEnabled()
    keep(bench, bench.view.variant, "Delete the variant")
    bench.steps(0)
    bench.wait(lambda: document.recipe is not None and not document.recipe.schedules)
    QTest.mouseClick(bench.view.in_model, LEFT)
    bench.wait(lambda: document.recipe is not None and applies_schedules(document.recipe))
    assert not document.notes

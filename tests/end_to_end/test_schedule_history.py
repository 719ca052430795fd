"""The history of a schedule: undone, switched, edited, moved, and in variants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.children import hold
from tests.end_to_end.scheduling import Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


def split(bench: Bench, loop: str, *factors: int | None) -> None:
    """Split a loop by mouse."""
    count = len(bench.record.steps)
    bench.select(loop)
    bench.choose("split")
    bench.type_factors(*factors)
    bench.press_apply()
    bench.steps(count + 1)


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_steps_are_switched_edited_inserted_moved_and_taken_out(bench: Bench) -> None:
    split(bench, "j", None, 16)
    bench.select("j_0")
    bench.apply("parallel")
    steps = bench.view.history.strip
    # A step that is off takes those along that need it.
    place = steps.cell_rect("s1").center().toPoint()
    bench.choose_in_menu(steps, place, "Switch off")
    bench.settle()
    assert bench.statuses() == ["off", "failed"]
    assert bench.record.steps[1].error is not None
    assert "step 1, which made" in bench.record.steps[1].error.message
    bench.click_step(2)
    assert bench.code.line.whole().startswith("✕ ")
    QTest.keyClick(steps, Qt.Key.Key_Left)
    bench.wait(lambda: bench.record.index == 1)
    QTest.keyClick(steps, Qt.Key.Key_Space)
    bench.settle()
    assert bench.statuses() == ["done"] * 2
    # Edited, it has the names of before it, and the rest is applied again.
    QTest.keyClick(steps, Qt.Key.Key_Return)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    assert bench.view.form.editors["loop"].name.text() == "j"  # type: ignore[attr-defined]
    bench.type_factors(None, 32)
    bench.press_apply()
    bench.wait(lambda: "32" in bench.record.steps[0].title)
    bench.settle()
    assert bench.statuses() == ["done"] * 2
    # What is applied there is inserted; it is moved and deleted by keys.
    assert bench.record.index == 1
    split(bench, "k", None, 4)
    assert [each.id for each in bench.record.steps] == ["s1", "s3", "s2"]
    assert bench.statuses() == ["done"] * 3
    bench.click_step(2)
    QTest.keyClick(steps, Qt.Key.Key_Right, CONTROL)
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s1", "s2", "s3"])
    bench.settle()
    bench.click_step(3)
    QTest.keyClick(steps, Qt.Key.Key_Delete)
    bench.steps(2)
    bench.window.commands.action("leave-steps").trigger()
    bench.settle()
    assert "k_0" not in bench.script
    assert [each.extent for each in bench.record.tree if each.name == "j_1"] == ["32"]
    assert "T.parallel(" in bench.script


def kill(bench: Bench, act: Callable[[], object]) -> None:
    """Do something that the engine is to answer, and kill it before it does."""
    engine = bench.window.features.processes.engine
    assert engine.pid is not None
    hold(engine.pid)
    act()
    bench.wait(lambda: engine.state == "busy")
    os.kill(engine.pid, signal.SIGKILL)


# The mouse rests on the primitive until its tooltip comes, which that platform cannot raise.
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_the_engine_is_killed_while_a_move_is_tried_and_while_one_is_applied(bench: Bench) -> None:
    # What was applied before is known without the engine.
    split(bench, "j", None, 8)
    bench.select("j_0")
    choices = bench.view.moves.choices
    item = choices.item_of("unroll")
    assert item is not None
    kill(bench, lambda: bench.point(choices.list, item))
    bench.wait(lambda: "while it tried unroll" in bench.window.banner.message())
    engine = bench.window.features.processes.engine
    bench.wait(lambda: engine.state == "ready")
    bench.settle()
    assert bench.statuses() == ["done"]
    kill(bench, lambda: bench.choose("parallel"))
    bench.wait(lambda: len(bench.scheduling.primitives) == 2 and engine.state == "ready")
    bench.steps(2)
    # It may have been killed from outside: the next one applies it.
    assert bench.statuses() == ["done", "done"]
    assert "while applying a schedule" in bench.window.banner.message()

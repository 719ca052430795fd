"""The history of a schedule: undone, switched, edited, moved, and in variants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt

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
    bench.wait(lambda: "while trying unroll" in bench.window.banner.message())
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

"""The history of a schedule: undone, switched, edited, moved, and in variants."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog

from lowerscope.core.files.pipelines_and_schedules import load_schedules
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.children import hold
from tests.end_to_end.scheduling import LEFT, Bench
from tests.end_to_end.small_nets import EXAMPLES, NET, write

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


def test_a_reload_shows_the_function_that_the_file_makes_by_now(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "net.py"
    net = NET.format(name="Net") + EXAMPLES
    write(file, net)
    bench.begin(Recipe(source=Source(spec=str(file)), lowering="te"))
    bench.open("dense")
    extents = [each.extent for each in bench.record.tree if each.kind == "loop"]
    assert extents == ["1", "3", "4"]
    bench.select("i1")
    bench.apply("parallel")
    write(file, net.replace("nn.Linear(4, 3)", "nn.Linear(4, 24)"))
    bench.window.commands.action("reload").trigger()
    bench.wait(lambda: bench.record.tree[1].extent == "24")
    bench.settle()
    # The schedule was made for another structure.
    assert bench.record.steps == ()
    bench.select("i1")
    assert bench.moves()["parallel"]


def test_steps_are_undone_and_done_again_at_once(bench: Bench) -> None:
    document = bench.window.document
    snapshot = document.snapshot
    split(bench, "j", None, 16)
    bench.select("j_0")
    bench.apply("parallel")
    bench.window.commands.action("undo").trigger()
    bench.steps(1)
    assert "T.parallel(" not in bench.script
    bench.window.commands.action("undo").trigger()
    bench.steps(0)
    bench.window.commands.action("redo").trigger()
    bench.window.commands.action("redo").trigger()
    bench.steps(2)
    assert "T.parallel(" in bench.script
    # The model was not derived anew.
    assert document.snapshot is snapshot


def test_a_step_that_is_off_takes_those_along_that_need_it(bench: Bench) -> None:
    split(bench, "k", None, 4)
    split(bench, "j", None, 16)
    bench.select("j_0")
    bench.apply("parallel")
    steps = bench.view.history.list
    box = steps.box_rect("s2").center().toPoint()
    QTest.mouseClick(steps.viewport(), LEFT, pos=box)
    bench.settle()
    assert bench.statuses() == ["✓ done", "○ off", "✕ failed"]
    assert bench.record.steps[2].error is not None
    assert "step 2, which made" in bench.record.steps[2].error.message
    bench.click_step(3)
    assert bench.view.history.why.isVisible()
    assert bench.window.panes.scheduled.line.whole().startswith("✕ ")
    QTest.keyClick(steps, Qt.Key.Key_Up)
    bench.wait(lambda: bench.record.index == 2)
    QTest.keyClick(steps, Qt.Key.Key_Space)
    bench.settle()
    assert bench.statuses() == ["✓ done"] * 3


def test_a_step_is_edited_and_the_rest_applied_again(bench: Bench) -> None:
    split(bench, "j", None, 16)
    bench.select("j_1")
    bench.apply("vectorize" if bench.moves().get("vectorize") else "unroll")
    bench.click_step(1)
    QTest.keyClick(bench.view.history.list, Qt.Key.Key_Return)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    bench.type_factors(None, 32)
    bench.press_apply()
    bench.wait(lambda: "32" in bench.record.steps[0].title)
    bench.settle()
    assert bench.statuses() == ["✓ done"] * 2
    bench.window.commands.action("leave-steps").trigger()
    bench.settle()
    assert [each.extent for each in bench.record.tree if each.name == "j_1"] == ["32"]


def test_steps_are_inserted_moved_and_taken_out(bench: Bench) -> None:
    split(bench, "j", None, 16)
    bench.select("j_0")
    bench.apply("parallel")
    bench.click_step(1)
    assert "after step 1" in bench.view.history.place.whole()
    split(bench, "k", None, 4)
    assert [each.id for each in bench.record.steps] == ["s1", "s3", "s2"]
    assert bench.statuses() == ["✓ done"] * 3
    bench.click_step(2)
    QTest.keyClick(bench.view.history.list, Qt.Key.Key_Down, CONTROL)
    bench.wait(lambda: [each.id for each in bench.record.steps] == ["s1", "s2", "s3"])
    bench.settle()
    bench.click_step(3)
    QTest.keyClick(bench.view.history.list, Qt.Key.Key_Delete)
    bench.steps(2)
    assert "k_0" not in bench.script


def test_the_slider_goes_through_the_steps(bench: Bench) -> None:
    split(bench, "j", None, 16)
    bench.select("j_0")
    bench.apply("parallel")
    bench.window.commands.action("first-step").trigger()
    bench.wait(lambda: bench.record.index == 0)
    assert "j_0" not in bench.script
    bench.window.commands.action("next-step").trigger()
    bench.wait(lambda: bench.record.index == 1)
    assert "j_0" in bench.script
    assert "T.parallel(" not in bench.script
    line = bench.window.panes.timeline.title.text()
    assert "split j" in line
    code = bench.window.panes.scheduled.script.code
    assert any(code.editor.marks.is_changed(at) for at in range(len(code.text().split("\n"))))


def test_variants_stand_side_by_side(bench: Bench, tmp_path: Path) -> None:
    split(bench, "j", None, 16)
    variants = bench.window.features.variants
    bench.window.commands.action("duplicate-variant").trigger()
    bench.settle()
    bench.select("j_0")
    bench.apply("parallel")
    assert bench.view.variant.text() == "Variant: copy of first"
    assert [len(each.primitives) for each in variants.all] == [1, 2]
    bench.view.variant.menu().aboutToShow.emit()
    first = bench.view.variant.menu().actions()[0]
    assert first.text() == "first · 1 step"
    first.trigger()
    bench.steps(1)
    bench.window.commands.action("unscheduled").trigger()
    bench.steps(0)
    assert bench.view.variant.text() == "Variant: unscheduled"


def test_a_schedule_is_saved_and_loaded(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(bench, "j", None, 16)
    path = str(tmp_path / "mine.json")
    function = bench.scheduling.function
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (path, ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (path, ""))
    bench.window.commands.action("save-schedule").trigger()
    # It is what the command line applies.
    (saved,) = load_schedules(path)
    assert (saved.function, len(saved.primitives)) == (function, 1)
    bench.window.commands.action("unscheduled").trigger()
    bench.steps(0)
    bench.window.commands.action("load-schedule").trigger()
    bench.steps(1)
    assert bench.view.variant.text() == "Variant: mine"
    assert "j_0" in bench.script


def test_the_engine_dies_while_a_move_is_applied(bench: Bench) -> None:
    # What was applied before is known without the engine.
    split(bench, "j", None, 8)
    bench.select("j_0")
    engine = bench.window.features.processes.engine
    assert engine.pid is not None
    hold(engine.pid)
    bench.choose("parallel")
    assert engine.state == "busy"
    os.kill(engine.pid, signal.SIGKILL)
    bench.wait(lambda: len(bench.scheduling.primitives) == 2 and engine.state == "ready")
    bench.wait(lambda: len(bench.record.steps) == 2)
    bench.settle()
    # It may have been killed from outside: the next one applies it.
    assert bench.statuses() == ["✓ done", "✓ done"]
    assert "while applying a schedule" in bench.window.banner.message()

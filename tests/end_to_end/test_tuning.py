"""Tuning through the window: the curve, pause, stop, a process that dies, and what is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import msgspec
import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from lowerscope.app.views.tune_dialog import TuneDialog
from lowerscope.app.views.tune_page import TunePage
from lowerscope.app.workbench.tuning import Tuning
from lowerscope.core.passes.presets import find_pipeline
from lowerscope.core.recipe import Recipe, Source
from lowerscope.core.records.tuning import TunedFunction
from tests.end_to_end.driving import PATIENCE, wait_until
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
FUNCTION = "te_matmul"


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> Iterator[None]:
    bench.begin(RECIPE)
    bench.open(FUNCTION)
    yield
    tuning_of(bench).stop()
    bench.wait(lambda: not tuning_of(bench).under_way)


def tuning_of(bench: Bench) -> Tuning:
    return bench.window.workspace.tuning


def page_of(bench: Bench) -> TunePage:
    return bench.window.panes.tune


def start(bench: Bench, trials: int) -> None:
    """Tune the function at the workbench, by mouse."""
    QTest.mouseClick(bench.view.tune, LEFT)
    dialog = bench.window.findChild(TuneDialog)
    assert dialog is not None
    assert dialog.one.isChecked()
    assert FUNCTION in dialog.one.text()
    dialog.trials.setValue(trials)
    assert dialog.estimate.text().startswith("About ")
    QTest.mouseClick(dialog.begin, LEFT)
    bench.wait(page_of(bench).isVisible)


def found(bench: Bench) -> TunedFunction:
    """Return what is known of the function."""
    state = tuning_of(bench).state
    assert state is not None
    return state.functions[0]


def trials_of(bench: Bench) -> int:
    return 0 if tuning_of(bench).state is None else found(bench).trials


def wait_for_trials(bench: Bench, count: int) -> None:
    """Wait for the first candidates: two processes import torch and TVM before."""
    assert wait_until(lambda: trials_of(bench) >= count, 3 * PATIENCE), tuning_of(bench).said


def variants(bench: Bench) -> list[str]:
    return [each.variant for each in bench.window.workspace.variants.all]


def group_of(pid: int) -> list[psutil.Process]:
    """Return a process and all that it has started."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def test_a_function_is_tuned_and_its_best_is_in_the_history(bench: Bench) -> None:
    tuning, page, workspace = tuning_of(bench), page_of(bench), bench.window.workspace
    start(bench, 10)
    wait_for_trials(bench, 2)
    before = len(page.curve.points())
    assert before >= 1
    assert {each.label for each in page.curve.levels()} >= {"unscheduled"}
    assert "of 10 trials" in page.curve.accessibleDescription()
    # Paused, it measures nothing, while the model is run.
    QTest.mouseClick(page.pause, LEFT)
    bench.wait(lambda: tuning.phase == "paused")
    done = trials_of(bench)
    assert done < 10
    assert page.pause.text() == "Resume"
    bench.window.commands.action("run").trigger()
    bench.wait(lambda: workspace.run_record is not None and not workspace.running)
    assert tuning.phase == "paused"
    assert trials_of(bench) == done
    bench.window.show_page("tune")
    QTest.mouseClick(page.pause, LEFT)
    bench.wait(lambda: trials_of(bench) > done or not tuning.under_way)
    bench.wait(lambda: not tuning.under_way and workspace.scheduling.schedule)
    assert found(bench).state == "done"
    assert len(page.curve.points()) >= before
    best, unscheduled = found(bench).best, found(bench).unscheduled
    assert best is not None
    assert unscheduled is not None
    assert best < unscheduled
    # The best is an ordinary history, which computes the same.
    bench.settle()
    assert variants(bench) == ["tuned"]
    assert {each.status for each in bench.record.steps} == {"done"}
    assert "undo takes it back" in page.said.text()
    bench.wait(lambda: bench.view.verdict.text().startswith("✓"))
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: not workspace.recipe.schedules)  # type: ignore[union-attr]


def test_a_run_pauses_it_and_stopped_it_leaves_no_process(bench: Bench) -> None:
    tuning, page, workspace = tuning_of(bench), page_of(bench), bench.window.workspace
    start(bench, 5_000)
    wait_for_trials(bench, 1)
    bench.window.commands.action("run").trigger()
    bench.wait(lambda: tuning.phase == "paused")
    assert "run" in tuning.said.text
    bench.wait(lambda: workspace.run_record is not None and not workspace.running)
    bench.wait(lambda: tuning.phase == "tuning")
    # The function is fused into another one meanwhile: what is found of it has no place.
    fused = msgspec.structs.replace(RECIPE, steps=find_pipeline("fuse").steps)
    workspace.change(fused)
    bench.wait(lambda: workspace.recipe == fused)
    bench.window.show_page("tune")
    assert tuning.pid is not None
    processes = group_of(tuning.pid)
    assert len(processes) > 1
    QTest.mouseClick(page.stop, LEFT)
    bench.wait(lambda: not tuning.under_way)
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive
    bench.wait(lambda: "not in the model any more" in tuning.said.text)
    assert not workspace.recipe.schedules  # type: ignore[union-attr]


def test_a_process_that_is_killed_is_said_and_what_it_found_is_kept(bench: Bench) -> None:
    tuning, page, workspace = tuning_of(bench), page_of(bench), bench.window.workspace
    start(bench, 5_000)
    wait_for_trials(bench, 1)
    assert tuning.pid is not None
    processes = group_of(tuning.pid)
    os.kill(tuning.pid, signal.SIGKILL)
    bench.wait(lambda: "killed" in page.said.text())
    bench.wait(lambda: not tuning.under_way and workspace.scheduling.schedule)
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive
    assert variants(bench) == ["tuned"]
    # It goes on from there, by keyboard.
    page.more.setFocus()
    QTest.keyClick(page.more, Qt.Key.Key_Space)
    bench.wait(lambda: tuning.phase == "tuning" and tuning.state is not None)
    bench.wait(lambda: found(bench).from_database)
    # The window is closed while it tunes; this test is the last one.
    processes = group_of(tuning.pid)
    bench.window.close()
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert not alive

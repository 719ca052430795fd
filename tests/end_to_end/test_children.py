"""The engine and the worker hang, die, are stopped and started anew; the session goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import psutil
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.children import hanging
from lowerscope.app.views.entry_dialog import EntryDialog
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Extension, Step
from tests.end_to_end.children import hold
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.end_to_end.small_nets import EXAMPLES, NET, write

HANGS = "while True:\n    pass\n"


def test_a_file_that_hangs_is_cancelled(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    before = window.workspace.recipe
    engine = window.workspace.engine
    hung = engine.pid
    window.open_source(write(tmp_path / "hangs.py", "while True:\n    pass\n"))
    qtbot.waitUntil(lambda: engine.state == "busy", timeout=PATIENCE)
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.workspace.wanted == before, timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    assert hung is not None
    assert not psutil.pid_exists(hung)
    assert window.workspace.problems == ()
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    assert "te_matmul" in window.panes.relax.script.code.text()


def test_what_was_on_its_way_when_the_engine_died_comes_from_the_next(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    workspace = window.workspace
    qtbot.waitUntil(lambda: workspace.engine.state == "ready", timeout=PATIENCE)
    first = workspace.engine.pid
    assert first is not None
    hold(first)
    workspace.select(("fx:linear1",))
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(
        lambda: "def dense1" in window.panes.tensorir.script.code.text(), timeout=PATIENCE
    )


def test_the_engine_dies_and_the_session_comes_back(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    workspace = window.workspace
    qtbot.waitUntil(lambda: workspace.engine.state == "ready", timeout=PATIENCE)
    first = workspace.engine.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(lambda: workspace.engine.pid not in (None, first), timeout=PATIENCE)
    assert window.banner.isVisible()
    assert "engine" in window.banner.message()
    assert "was killed" in window.banner.message()
    workspace.select(("fx:linear1",))
    qtbot.waitUntil(
        lambda: "def dense1" in window.panes.tensorir.script.code.text(), timeout=PATIENCE
    )
    window.commands.action("high-level").trigger()
    wait_for_records(qtbot, window)
    assert "R.matmul" in window.panes.relax.script.code.text()


def test_the_worker_dies_in_a_run(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net")
    workspace = window.workspace
    qtbot.waitUntil(lambda: workspace.worker.state == "ready", timeout=PATIENCE)
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: workspace.worker.state == "busy", timeout=PATIENCE)
    worker = workspace.worker.pid
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    qtbot.waitUntil(lambda: bool(workspace.problems), timeout=PATIENCE)
    assert workspace.problems[0].code == "crashed"
    assert "worker" in window.banner.message()
    assert workspace.snapshot is not None
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_stop_ends_a_run_and_the_next_one_works(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net")
    window.commands.action("run").trigger()
    assert window.tool_bar.run.text() == "Stop"
    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.workspace.running, timeout=PATIENCE)
    assert window.workspace.problems == ()
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_a_source_that_is_opened_over_a_hanging_one_comes_up(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, impatient: None
) -> None:
    window = open_window("sample:matmul_relu")
    engine = window.workspace.engine
    window.open_source(write(tmp_path / "hangs.py", HANGS))
    qtbot.waitUntil(lambda: engine.state == "busy", timeout=PATIENCE)
    window.open_source("sample:conv_net")
    wait_for_records(qtbot, window)
    assert window.windowTitle().startswith("conv_net")


def test_a_run_that_is_replaced_does_not_stand_in_the_way_of_the_next(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, impatient: None
) -> None:
    # Hangs where the model is called for comparison: it was traced before.
    text = NET.format(name="Net").replace(
        "        return self.linear(x)",
        "        import os\n"
        "        while os.path.exists(__file__ + '.hangs'):\n"
        "            pass\n"
        "        return self.linear(x)",
    )
    path = write(tmp_path / "net.py", text + EXAMPLES)
    window = open_window(path)
    workspace = window.workspace
    run_and_wait(qtbot, window)
    write(tmp_path / "net.py.hangs", "")
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: workspace.activity.text == "Running torch", timeout=PATIENCE)
    window.open_source("sample:matmul_relu")
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_a_file_that_kills_the_engine_again_and_again_is_given_up(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    window = open_window(write(path, NET.format(name="Net") + EXAMPLES))
    window.commands.action("watch").trigger()
    workspace, banners = window.workspace, []
    workspace.announced.connect(lambda text, _role: banners.append(text))
    before = window.panes.relax.script.code.text()
    write(path, "import os\nos.abort()\n")
    window.commands.action("reload").trigger()
    wait_for_problem(qtbot, window)
    # The reload died, and so did the one replay; then the engine is left alone.
    qtbot.waitUntil(lambda: len(banners) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: workspace.engine.state == "ready", timeout=PATIENCE)
    qtbot.wait(1500)
    assert len(banners) == 2
    assert workspace.engine.state == "ready"
    assert window.panes.relax.script.code.text() == before
    write(path, NET.format(name="Net") + EXAMPLES)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert workspace.problems == ()


def test_what_is_derived_anew_is_no_problem_any_more(qtbot: QtBot, open_window: OpenWindow) -> None:
    workspace = open_window("sample:matmul_relu").workspace
    workspace.changes.refuse_shown(Problem(what="The engine does not start", code="crashed"))
    workspace.recovering.replay()
    qtbot.waitUntil(lambda: not workspace.problems, timeout=PATIENCE)


def test_cancelling_keeps_the_problem_with_its_own_recipe(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window()
    workspace = window.workspace
    two = NET.format(name="First") + NET.format(name="Second") + EXAMPLES
    first = write(tmp_path / "two.py", two)
    window.open_source(first)
    wait_for_problem(qtbot, window)
    for dialog in window.findChildren(EntryDialog):
        dialog.reject()
    window.open_source(write(tmp_path / "hangs.py", HANGS))
    qtbot.waitUntil(lambda: workspace.engine.state == "busy", timeout=PATIENCE)
    window.commands.action("stop").trigger()
    qtbot.waitUntil(lambda: workspace.wanted is None, timeout=PATIENCE)
    assert workspace.problems[0].code == "choose-entry"
    assert workspace.refused is not None
    assert workspace.refused.source.spec == first


def test_a_run_that_is_stopped_leaves_the_verdict_of_before(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    run_and_wait(qtbot, window)
    workspace = window.workspace
    before = workspace.run_record
    window.commands.action("run").trigger()
    assert workspace.running
    window.commands.action("stop").trigger()
    qtbot.waitUntil(lambda: not workspace.running, timeout=PATIENCE)
    assert workspace.run_record == before
    assert window.tool_bar.verdict.role() == "right"


def test_after_a_cancel_by_force_the_session_is_replayed(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    workspace = window.workspace
    window.open_source(write(tmp_path / "hangs.py", HANGS))
    qtbot.waitUntil(lambda: workspace.engine.state == "busy", timeout=PATIENCE)
    window.commands.action("stop").trigger()
    workspace.select(("fx:linear1",))
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense1" in script.text(), timeout=PATIENCE)


PASSES = """
import ctypes
import tvm

@tvm.transform.module_pass(opt_level=0)
def hangs(module, context):
    ctypes.PyDLL(None).sleep(1000)  # in native code, where nothing of Python's goes on
    return module
"""


def test_a_pass_that_hangs_in_native_code_is_cancelled(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window, logged = open_window("sample:matmul_relu"), []
    workspace = window.workspace
    workspace.logged.connect(logged.append)
    before, engine = workspace.recipe, workspace.engine
    assert before is not None
    hung = engine.pid
    file = write(tmp_path / "own.py", PASSES)
    workspace.change(
        msgspec.structs.replace(
            before,
            extensions=(Extension(path=file, kind="passes"),),
            steps=(*before.steps, Step(name="own.hangs")),
        )
    )
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: workspace.wanted == before, timeout=PATIENCE)
    assert "The engine did not stop by itself and was killed." in "".join(logged)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    assert engine.pid != hung
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)


def test_what_nobody_else_says_is_said_and_cancelled(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    workspace, engine = window.workspace, window.workspace.engine
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    first = engine.pid
    assert first is not None
    assert not window.commands.action("stop").isEnabled()
    hold(first)
    workspace.select(("fx:linear1",))
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    assert window.status.activity.text() in ("Printing a function…", "Applying a schedule…")
    assert window.commands.action("stop").isEnabled()
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: engine.pid not in (None, first), timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    qtbot.waitUntil(lambda: not workspace.activity.text, timeout=PATIENCE)
    workspace.select(("fx:linear0",))
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense(" in script.text(), timeout=PATIENCE)


def test_the_children_can_be_started_anew(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    engine = window.workspace.engine
    first = engine.pid
    window.commands.action("restart").trigger()
    qtbot.waitUntil(lambda: engine.pid not in (None, first), timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_an_engine_that_hangs_is_said_and_started_anew(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hanging, "LOOK_MS", 200)
    monkeypatch.setattr(hanging, "HANGS_MS", 1000)
    window = open_window("sample:fashion_mlp", lowering="te")
    workspace, recipe = window.workspace, window.workspace.recipe
    qtbot.waitUntil(lambda: workspace.engine.state == "ready", timeout=PATIENCE)
    assert workspace.engine.pid is not None
    hold(workspace.engine.pid)
    workspace.select(("fx:linear1",))
    qtbot.waitUntil(
        lambda: "The engine has done nothing" in window.banner.message(), timeout=PATIENCE
    )
    window.commands.action("restart").trigger()
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense1" in script.text(), timeout=PATIENCE)
    assert workspace.recipe == recipe

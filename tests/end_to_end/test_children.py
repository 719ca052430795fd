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

from lowerscope.app.engine import watchdog
from lowerscope.core.model.recipe import Extension, Step
from tests.end_to_end.children import hold
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    notices_of,
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
    before = window.document.recipe
    engine = window.features.processes.engine
    hung = engine.pid
    window.open_source(write(tmp_path / "hangs.py", "while True:\n    pass\n"))
    qtbot.waitUntil(lambda: engine.state == "busy", timeout=PATIENCE)
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.document.wanted == before, timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    assert hung is not None
    assert not psutil.pid_exists(hung)
    assert window.document.problems == ()
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    assert "te_matmul" in window.panes.relax.script.code.text()


def test_what_was_on_its_way_when_the_engine_died_comes_from_the_next(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    document = window.document
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "ready", timeout=PATIENCE)
    first = window.features.processes.engine.pid
    assert first is not None
    hold(first)
    document.select(("fx:linear1",))
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(
        lambda: "def dense1" in window.panes.tensorir.script.code.text(), timeout=PATIENCE
    )


def test_the_engine_dies_and_the_session_comes_back(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    document = window.document
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "ready", timeout=PATIENCE)
    first = window.features.processes.engine.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    qtbot.waitUntil(
        lambda: window.features.processes.engine.pid not in (None, first), timeout=PATIENCE
    )
    assert window.banner.isVisible()
    assert "engine" in window.banner.message()
    assert "was killed" in window.banner.message()
    document.select(("fx:linear1",))
    qtbot.waitUntil(
        lambda: "def dense1" in window.panes.tensorir.script.code.text(), timeout=PATIENCE
    )
    window.commands.action("high-level").trigger()
    wait_for_records(qtbot, window)
    assert "R.matmul" in window.panes.relax.script.code.text()


def test_the_worker_dies_in_a_run(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net")
    document = window.document
    qtbot.waitUntil(lambda: window.features.processes.worker.state == "ready", timeout=PATIENCE)
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: window.features.processes.worker.state == "busy", timeout=PATIENCE)
    worker = window.features.processes.worker.pid
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    qtbot.waitUntil(lambda: bool(document.problems), timeout=PATIENCE)
    assert document.problems[0].code == "crashed"
    assert "worker" in window.banner.message()
    assert document.snapshot is not None
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_stop_ends_a_run_and_the_next_one_works(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net")
    window.commands.action("run").trigger()
    assert window.tool_bar.run.text() == "Stop"
    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.document.running, timeout=PATIENCE)
    assert window.document.problems == ()
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_a_source_that_is_opened_over_a_hanging_one_comes_up(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, impatient: None
) -> None:
    window = open_window("sample:matmul_relu")
    engine = window.features.processes.engine
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
    document = window.document
    run_and_wait(qtbot, window)
    write(tmp_path / "net.py.hangs", "")
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: document.job.text == "Running torch", timeout=PATIENCE)
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
    document, banners = window.document, []
    notices_of(window, lambda text, _role: banners.append(text))
    before = window.panes.relax.script.code.text()
    write(path, "import os\nos.abort()\n")
    window.commands.action("reload").trigger()
    wait_for_problem(qtbot, window)
    # The reload died, and so did the one replay; then the engine is left alone.
    qtbot.waitUntil(lambda: len(banners) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "ready", timeout=PATIENCE)
    qtbot.wait(1500)
    assert len(banners) == 2
    assert window.features.processes.engine.state == "ready"
    assert window.panes.relax.script.code.text() == before
    write(path, NET.format(name="Net") + EXAMPLES)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert document.problems == ()


def test_after_a_cancel_by_force_the_session_is_replayed(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    document = window.document
    window.open_source(write(tmp_path / "hangs.py", HANGS))
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "busy", timeout=PATIENCE)
    window.commands.action("stop").trigger()
    document.select(("fx:linear1",))
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
    document = window.document
    window.features.processes.logged.connect(logged.append)
    before, engine = document.recipe, window.features.processes.engine
    assert before is not None
    hung = engine.pid
    file = write(tmp_path / "own.py", PASSES)
    document.change(
        msgspec.structs.replace(
            before,
            extensions=(Extension(path=file, kind="passes"),),
            steps=(*before.steps, Step(name="own.hangs")),
        )
    )
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.wanted == before, timeout=PATIENCE)
    assert "The engine did not stop by itself and was killed." in "".join(logged)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    assert engine.pid != hung
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)


def test_what_nobody_else_says_is_said_and_cancelled(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    document, engine = window.document, window.features.processes.engine
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    first = engine.pid
    assert first is not None
    assert not window.commands.action("stop").isEnabled()
    hold(first)
    document.select(("fx:linear1",))
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    assert window.status.job.text() in ("Printing a function…", "Applying a schedule…")
    assert window.commands.action("stop").isEnabled()
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: engine.pid not in (None, first), timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    qtbot.waitUntil(lambda: not document.job.text, timeout=PATIENCE)
    document.select(("fx:linear0",))
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense(" in script.text(), timeout=PATIENCE)


def test_the_children_can_be_started_anew(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    engine = window.features.processes.engine
    first = engine.pid
    window.commands.action("restart").trigger()
    qtbot.waitUntil(lambda: engine.pid not in (None, first), timeout=PATIENCE)
    qtbot.waitUntil(lambda: engine.state == "ready", timeout=PATIENCE)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_an_engine_that_hangs_is_said_and_started_anew(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "LOOK_MS", 200)
    monkeypatch.setattr(watchdog, "HANGS_MS", 1000)
    window = open_window("sample:fashion_mlp", lowering="te")
    document, recipe = window.document, window.document.recipe
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "ready", timeout=PATIENCE)
    assert window.features.processes.engine.pid is not None
    hold(window.features.processes.engine.pid)
    document.select(("fx:linear1",))
    qtbot.waitUntil(
        lambda: "The engine has done nothing" in window.banner.message(), timeout=PATIENCE
    )
    window.commands.action("restart").trigger()
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense1" in script.text(), timeout=PATIENCE)
    assert document.recipe == recipe

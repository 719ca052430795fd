"""The engine and the worker hang, die, are stopped and started anew; the session goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

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


def test_a_file_that_hangs_is_superseded_and_cancelled(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, impatient: None
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    before, engine = window.document.recipe, window.features.processes.engine
    hangs = write(tmp_path / "hangs.py", HANGS)
    window.open_source(hangs)
    qtbot.waitUntil(window.status.cancel.isVisible, timeout=PATIENCE)
    hung = engine.pid
    assert hung is not None
    qtbot.mouseClick(window.status.cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.document.wanted == before, timeout=PATIENCE)
    assert window.document.problems == ()
    # What is shown is replayed in the next engine, which has never heard of it.
    window.document.select(("fx:linear1",))
    script = window.panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense1" in script.text(), timeout=PATIENCE)
    assert not psutil.pid_exists(hung)
    # Another source over it does not wait for it either.
    window.open_source(hangs)
    qtbot.waitUntil(lambda: engine.state == "busy", timeout=PATIENCE)
    window.open_source("sample:conv_net")
    wait_for_records(qtbot, window)
    assert window.windowTitle().startswith("conv_net")


def test_a_run_is_stopped_and_the_worker_killed_in_another(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:conv_net")
    document, worker = window.document, window.features.processes.worker
    qtbot.waitUntil(lambda: worker.state == "ready", timeout=PATIENCE)
    window.commands.action("run").trigger()
    assert window.tool_bar.run.text() == "Stop"
    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not document.running, timeout=PATIENCE)
    assert document.problems == ()
    qtbot.waitUntil(lambda: worker.state == "ready", timeout=PATIENCE)
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: worker.state == "busy", timeout=PATIENCE)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: bool(document.problems), timeout=PATIENCE)
    assert document.problems[0].code == "crashed"
    assert "worker" in window.banner.message()
    assert document.snapshot is not None
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_a_file_that_kills_the_engine_again_and_again_is_given_up(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    window = open_window(write(path, NET.format(name="Net") + EXAMPLES))
    window.commands.action("watch").trigger()
    document, banners = window.document, list[str]()

    def note(text: str, _role: str) -> None:
        # The last one says later that the engine has been restarted.
        if "has been restarted" not in text:
            banners.append(text)

    notices_of(window, note)
    before = window.panes.relax.script.code.text()
    write(path, "import os\nos.abort()\n")
    window.commands.action("reload").trigger()
    wait_for_problem(qtbot, window)
    # The reload died, and so did the one replay; then the engine is left alone.
    qtbot.waitUntil(lambda: len(banners) == 2, timeout=PATIENCE)
    qtbot.waitUntil(lambda: window.features.processes.engine.state == "ready", timeout=PATIENCE)
    # A third attempt would be under way by now.
    assert not window.features.processes.engine.under_way()
    assert not document.is_changing
    assert len(banners) == 2
    assert window.features.processes.engine.state == "ready"
    assert window.panes.relax.script.code.text() == before
    write(path, NET.format(name="Net") + EXAMPLES)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert document.problems == ()

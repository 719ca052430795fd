"""The engine and the worker hang, die, are stopped and started anew; the session goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_records,
)
from tests.end_to_end.small_nets import write

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


@pytest.mark.at_length
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

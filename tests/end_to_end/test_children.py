"""The engine and the worker hang, die, are stopped and started anew; the session goes on."""

from __future__ import annotations

from pathlib import Path

import psutil
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import PATIENCE, OpenWindow
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

"""Sessions: saved by themselves, reopened as they were, by one window at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.sandbox.folder import folders
from lowerscope.core.sandbox.temporary_files import sweep
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records
from tests.end_to_end.small_nets import EXAMPLES, NET, write
from tests.sandboxes import reason_without


def save_as(window: MainWindow, path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    """Save the session by the menu."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("save-session").trigger()


def test_a_session_and_its_source_file(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "net.py", NET.format(name="Net") + EXAMPLES)
    window = open_window(source)
    path = tmp_path / "mine.lowerscope"
    save_as(window, tmp_path / "mine", monkeypatch, qtbot)
    assert "mine" in window.windowTitle()
    window.panes.switch_closed("model")
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("te").trigger()
        wait_for_records(qtbot, window)
        window.document.select(("fx:linear",))
    qtbot.waitUntil(lambda: json.loads(path.read_text())["layout"]["selection"] == ["fx:linear"])
    recipe = window.document.recipe

    # As editors save it: a new file in place of the old one.
    before = window.document.snapshot
    os.replace(write(tmp_path / "net.py.new", NET.format(name="Other") + EXAMPLES), source)
    qtbot.waitUntil(
        lambda: window.document.snapshot not in (None, before) and not window.document.is_changing,
        timeout=PATIENCE,
    )
    assert window.document.snapshot is not None
    assert "Other" in window.document.snapshot.model.title
    assert "net.py was saved" in window.banner.message()

    # Another model is another document: the file keeps the one that it has.
    window.open_source("sample:matmul")
    wait_for_records(qtbot, window)
    assert window.sessions.path is None
    window.panes.switch_closed("model")
    write(tmp_path / "net.py", NET.format(name="Third") + EXAMPLES)
    window.open_source(str(path))
    qtbot.waitUntil(lambda: window.sessions.path == path, timeout=PATIENCE)
    wait_for_records(qtbot, window)
    assert window.document.recipe == recipe
    assert window.document.selection.chosen == ("fx:linear",)
    qtbot.waitUntil(lambda: not window.panes.model.isVisible())
    qtbot.waitUntil(
        lambda: "Changed since the session was saved: net.py" in window.banner.message(),
        timeout=PATIENCE,
    )
    assert str(path) in window.settings.recent()


def test_a_window_that_was_killed_is_reopened_where_it_was(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {
        "XDG_CONFIG_HOME": str(home),
        "QT_QPA_PLATFORM": "offscreen",
        "TMPDIR": str(temporary),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "lowerscope.app", "sample:matmul_relu", "--lowering", "te"],
        env=environment,
        start_new_session=True,
    )
    folder = home / "lowerscope" / "sessions"
    end = time.monotonic() + PATIENCE / 1000
    while not list(folder.glob("[!.]*.lowerscope")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    # In a sandbox they are in memory that is the children's alone.
    assert bool(os.listdir(temporary)) == bool(reason_without())
    process.send_signal(signal.SIGKILL)
    process.wait()
    # Nothing of it goes on, and nothing is left of it but the session and its lock.
    _, alive = psutil.wait_procs(children, timeout=PATIENCE / 1000)
    assert not alive
    assert os.listdir(temporary) == []
    # The next start removes the folder of its sandboxes.
    sweep()
    assert not [each for each in folders() if each.name.startswith(f"{process.pid}-")]
    (saved,) = folder.glob("*.lowerscope")
    window = open_window()
    window.settings.last_session = str(saved)
    window.commands.action("reopen").trigger()
    qtbot.waitUntil(lambda: window.document.recipe is not None, timeout=PATIENCE)
    recipe = window.document.recipe
    assert recipe is not None
    assert (recipe.source.spec, recipe.lowering) == ("sample:matmul_relu", "te")
    assert not window.sessions.read_only

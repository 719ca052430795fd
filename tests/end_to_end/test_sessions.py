"""Sessions: saved by themselves, reopened as they were, by one window at a time."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.app.panes.sessions import sessions
from lowerscope.app.panes.sessions.source_watch import SourceWatch
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.sessions import Hashes, load_session
from lowerscope.core.sandbox.folder import folders
from lowerscope.core.sandbox.temporary_files import sweep
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_problem, wait_for_records
from tests.end_to_end.small_nets import EXAMPLES, NET, write
from tests.sandboxes import reason_without


def save_as(window: MainWindow, path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    """Save the session by the menu."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("save-session").trigger()


def test_what_is_changed_is_saved_and_opened_as_it_was(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:matmul_relu")
    path = tmp_path / "mine.lowerscope"
    save_as(window, tmp_path / "mine", monkeypatch, qtbot)
    assert "mine" in window.windowTitle()
    window.panes.docks["model"].close()
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("te").trigger()
        wait_for_records(qtbot, window)
        window.document.select(("fx:relu",))
    qtbot.waitUntil(lambda: json.loads(path.read_text())["layout"]["selection"] == ["fx:relu"])
    recipe = window.document.recipe
    # Another model is another document: the file keeps the one that it has.
    window.open_source("sample:matmul")
    wait_for_records(qtbot, window)
    assert window.sessions.path is None
    assert load_session(path, Hashes()).recipe == recipe
    window.panes.docks["model"].show()
    window.open_source(str(path))
    qtbot.waitUntil(lambda: window.sessions.path == path, timeout=PATIENCE)
    wait_for_records(qtbot, window)
    assert window.document.recipe == recipe
    assert window.document.selection.chosen == ("fx:relu",)
    qtbot.waitUntil(lambda: not window.panes.docks["model"].isVisible())
    assert window.settings.recent()[0] in (str(path), "sample:matmul_relu")
    assert str(path) in window.settings.recent()


def test_a_second_window_saves_nothing_in_the_same_file(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_window("sample:matmul_relu")
    path = tmp_path / "mine.lowerscope"
    save_as(first, path, monkeypatch, qtbot)
    content = path.read_bytes()
    second = open_window()
    second.open_source(str(path))
    wait_for_records(qtbot, second)
    assert second.sessions.read_only
    assert "[read-only]" in second.windowTitle()
    assert "nothing is saved here" in second.banner.message()
    second.commands.action("te").trigger()
    wait_for_records(qtbot, second)
    assert path.read_bytes() == content
    first.commands.action("library").trigger()
    wait_for_records(qtbot, first)
    first.close()
    assert load_session(path, Hashes()).recipe.lowering == "library"
    # The first has gone: who opens it again has it.
    second.open_source(str(path))
    qtbot.waitUntil(lambda: not second.sessions.read_only, timeout=PATIENCE)
    second.close()
    assert os.listdir(tmp_path).count("mine.lowerscope") == 1
    assert "mine.lowerscope.lock" not in os.listdir(tmp_path)


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
    window.settings.set_last_session(str(saved))
    window.commands.action("reopen").trigger()
    qtbot.waitUntil(lambda: window.document.recipe is not None, timeout=PATIENCE)
    recipe = window.document.recipe
    assert recipe is not None
    assert (recipe.source.spec, recipe.lowering) == ("sample:matmul_relu", "te")
    assert not window.sessions.read_only


def test_a_session_that_cannot_be_opened_leaves_what_was_open(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:matmul_relu")
    mine = tmp_path / "mine.lowerscope"
    save_as(window, mine, monkeypatch, qtbot)
    bad = tmp_path / "bad.lowerscope"
    bad.write_text("{")
    window.open_source(str(bad))
    assert "it holds no session" in wait_for_problem(qtbot, window)
    assert window.sessions.path == mine
    # One whose model cannot be opened: neither file may become the other's.
    value = json.loads(mine.read_text())
    value["recipe"]["source"]["spec"] = "gone.py"
    bad.write_text(json.dumps(value))
    before = bad.read_text()
    window.open_source(str(bad))
    qtbot.waitUntil(lambda: "gone.py" in window.document.problems[0].line(), timeout=PATIENCE)
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("te").trigger()
        wait_for_records(qtbot, window)
    assert window.sessions.path == mine
    assert load_session(mine, Hashes()).recipe.lowering == "te"
    assert bad.read_text() == before


def test_a_disk_that_is_full_is_said_and_tried_again(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RETRY_MS", 100)
    window = open_window("sample:matmul_relu")
    path = tmp_path / "mine.lowerscope"
    save_as(window, path, monkeypatch, qtbot)

    content = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        window.commands.action("te").trigger()
        qtbot.waitUntil(lambda: "No space left" in window.banner.message(), timeout=PATIENCE)
        assert "\n" not in window.banner.message()
    # What was there is as it was, and nothing half-written is beside it.
    assert path.read_bytes() == content
    assert [each for each in os.listdir(tmp_path) if each.startswith(".")] == []
    # It is tried again by itself, and what was said is taken back.
    qtbot.waitUntil(lambda: "is saved again" in window.banner.message(), timeout=PATIENCE)
    assert load_session(path, Hashes()).recipe.lowering == "te"
    # What is removed while it is open is written anew.
    path.unlink()
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("library").trigger()
        wait_for_records(qtbot, window)
    assert "mine.lowerscope was gone" in window.banner.message()
    assert load_session(path, Hashes()).recipe.lowering == "library"


def test_what_comes_after_the_end_is_not_saved(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "DELAY_MS", 10)
    window = open_window("sample:matmul_relu")
    path = tmp_path / "mine.lowerscope"
    save_as(window, path, monkeypatch, qtbot)
    window.sessions.finish()
    content = path.read_bytes()
    # An answer that was on its way when the window closed. An error in a slot fails the test.
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    qtbot.wait(50)
    assert path.read_bytes() == content


def test_a_file_that_is_saved_in_an_editor_is_read_again(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "net.py", NET.format(name="Net") + EXAMPLES)
    window = open_window(path, lowering="te")
    session = tmp_path / "mine.lowerscope"
    save_as(window, session, monkeypatch, qtbot)
    before = window.document.snapshot
    beside = tmp_path / "beside.py"
    write(beside, "Net = None\n")
    # As editors do it: a new file in place of the old one.
    for name in ("Other", "Another"):
        text = NET.format(name=name) + EXAMPLES + "\nimport beside\n"
        new = write(tmp_path / "net.py.new", text)
        os.replace(new, path)
        qtbot.waitUntil(
            lambda name=name: (
                window.document.snapshot is not None
                and window.document.snapshot is not before
                and name in window.document.snapshot.model.title
            ),
            timeout=PATIENCE,
        )
        assert "net.py was saved" in window.banner.message()
    # What the file imports from beside it is a part of the model.
    wait_for_records(qtbot, window)
    write(beside, "Net = 1\n")
    qtbot.waitUntil(lambda: "beside.py was saved" in window.banner.message(), timeout=PATIENCE)
    wait_for_records(qtbot, window)
    # What is read again by hand is not read once more for having been saved.
    watch = window.document.findChild(SourceWatch)
    assert watch is not None
    noted = watch.findChild(QTimer)
    assert noted is not None
    reloads: list[None] = []

    def note_reload(change: Change) -> None:
        pending = change.after.pending
        if "pending" in change.fields and pending is not None and pending.reads_files:
            reloads.append(None)

    window.document.changed.connect(note_reload)
    write(beside, "Net = 22\n")
    qtbot.waitUntil(noted.isActive)
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    qtbot.waitUntil(lambda: not noted.isActive())
    assert len(reloads) == 1
    os.unlink(path)
    qtbot.waitUntil(lambda: "net.py is gone" in window.banner.message(), timeout=PATIENCE)
    recipe = window.document.recipe
    assert recipe is not None
    assert recipe.lowering == "te"
    # While no window is there, it changes again.
    window.close()
    write(tmp_path / "net.py", NET.format(name="Third") + EXAMPLES)
    again = open_window()
    again.open_source(str(session))
    wait_for_records(qtbot, again)
    qtbot.waitUntil(lambda: "Changed since the session was saved: net.py" in again.banner.message())

"""Children in a sandbox end as others do, are told of as others are, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.engine import client
from lowerscope.app.engine.sandboxing import Sandboxing
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.temporary_files import sweep
from tests.app.engine.practice_window import PRACTICE_FILE, Window, is_alive, practice
from tests.sandboxes import needs_sandbox

pytestmark = needs_sandbox


@pytest.fixture
def enclosed(open_window: Callable[..., Window], tmp_path: Path) -> Window:
    """Return a window whose child is started in a sandbox."""
    ini = QSettings.Format.IniFormat
    QSettings.setPath(ini, QSettings.Scope.UserScope, str(tmp_path / "settings"))
    window = open_window()
    window.client.sandbox = Sandboxing(Settings(), window.client)
    window.client.start()
    return window


def test_crashes_and_exits_are_told_by_their_names(enclosed: Window) -> None:
    problem = enclosed.problem(enclosed.ask("abort"))
    assert problem.what == "The engine crashed with SIGABRT while tracing"
    assert "in abort" in problem.details
    problem = enclosed.problem(enclosed.ask("segfault"))
    assert problem.what == "The engine crashed with SIGSEGV while reading a string"
    problem = enclosed.problem(enclosed.ask("leave", practice.Count(3)))
    assert problem.what == "The engine exited with code 3 while leaving"
    assert enclosed.result(enclosed.ask("echo", practice.Text("back"))) == "back"


def test_killed_or_stopped_it_takes_along_all_that_it_has_started(enclosed: Window) -> None:
    enclosed.result(enclosed.ask("start_sleeper"))
    enclosed.result(enclosed.ask("start_fork"))
    enclosed.result(enclosed.ask("start_session"))
    family = enclosed.family()
    assert enclosed.client.pid is not None
    os.kill(enclosed.client.pid, signal.SIGKILL)
    enclosed.until(lambda: bool(enclosed.endings))
    assert str(enclosed.endings[0]).startswith("The engine was killed")
    enclosed.until_gone(family)
    enclosed.result(enclosed.ask("start_session"))
    stuck = enclosed.ask("hold_lock")
    enclosed.until_told(stuck)
    family = enclosed.family()
    began = time.monotonic()
    enclosed.client.stop()
    assert time.monotonic() - began < 30
    enclosed.until_gone(family)


FEW = 40
"""More processes and threads than a child has by itself."""


@pytest.mark.parametrize(
    ("processes", "each", "code", "said"),
    [
        (FEW + 10, 0, "processes", "processes and threads"),
        (8, 100 << 20, "memory", "it and its children used"),
    ],
)
def test_what_it_starts_is_stopped_with_it_where_that_takes_too_much(
    enclosed: Window,
    monkeypatch: pytest.MonkeyPatch,
    processes: int,
    each: int,
    code: str,
    said: str,
) -> None:
    monkeypatch.setattr(bubblewrap, "task_limit", lambda: FEW)
    # With the window's own command it hears from the sandbox what was too much.
    monkeypatch.setattr(
        client, "server_command", lambda *_: (sys.executable, str(PRACTICE_FILE), "engine")
    )
    enclosed.client._command = None
    enclosed.client.memory_limit = 512 << 20
    enclosed.client.restart()
    problem = enclosed.problem(enclosed.ask("hoard", practice.Hoard(processes, each)))
    assert problem.code == code
    assert "The engine was stopped while hoarding" in problem.what
    assert said in problem.what
    assert enclosed.result(enclosed.ask("echo", practice.Text("back"))) == "back"


def test_nothing_is_left_when_the_window_is_killed(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    program = """
from PySide6.QtCore import QCoreApplication
from lowerscope.app.engine import client
from lowerscope.app.engine.sandboxing import Sandboxing
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.document.settings import Settings
app = QCoreApplication([])
client = EngineClient("engine")
client.sandbox = Sandboxing(Settings(), client)
client.start()
print(client.pid, flush=True)
app.exec()
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        try:
            leader = psutil.Process(int(process.stdout.readline()))
            # Two of the sandbox's, the engine, and who guards it.
            qtbot.waitUntil(lambda: len(leader.children(recursive=True)) >= 4)
            words = leader.cmdline()
            calls = words[words.index("--calls") + 1]
            family = [leader, *leader.children(recursive=True)]
        finally:
            process.kill()
    qtbot.waitUntil(lambda: not any(is_alive(each) for each in family))
    # An engine that had not come so far as to hear of it leaves it to the next start.
    sweep()
    assert not Path(calls).exists()


def test_without_the_program_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, qapp: object
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandboxing = Sandboxing(Settings())
    assert sandboxing.state == "missing"
    assert not sandboxing.is_on
    assert "install bubblewrap" in sandboxing.availability

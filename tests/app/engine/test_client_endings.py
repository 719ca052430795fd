"""Endings of a real child process: it comes back, and nothing of it is left behind."""

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
from pytestqt.qtbot import QtBot

from lowerscope.app.engine.client import server_command
from lowerscope.core.engine.protocol import MAGIC
from tests.app.engine.practice_window import PRACTICE_FILE, Window, is_alive, practice

# --- crashes ------------------------------------------------------------------------------------


def test_a_crash_says_what_happened_and_the_child_comes_back(window: Window) -> None:
    request = window.ask("abort")
    behind = window.ask("heavy_echo", practice.Text("behind"))
    problem = window.problem(request)
    assert problem.code == "crashed"
    assert problem.what == "The engine crashed with SIGABRT while tracing"
    assert "in abort" in problem.details
    assert window.problem(behind).code == "crashed"
    assert [str(each) for each in window.endings] == [problem.what]
    assert window.result(window.ask("echo", practice.Text("back"))) == "back"


def test_killed_from_outside_while_idle(window: Window) -> None:
    window.until_state("ready")
    assert window.client.pid is not None
    os.kill(window.client.pid, signal.SIGKILL)
    window.until(lambda: bool(window.endings))
    assert str(window.endings[0]) == "The engine was killed; the memory may have run out"
    window.until_state("ready")
    assert window.states == ["starting", "ready", "starting", "ready"]


def test_killed_in_the_middle_of_an_answer(window: Window) -> None:
    problem = window.problem(window.ask("die_in_reply"))
    assert problem.code == "crashed"
    assert window.result(window.ask("echo", practice.Text("back"))) == "back"


@pytest.mark.parametrize("start", ["start_sleeper", "start_fork"])
def test_a_crash_takes_along_what_the_child_had_started(window: Window, start: str) -> None:
    window.result(window.ask(start))
    family = window.family()
    assert len(family) == 3
    window.problem(window.ask("abort"))
    window.until_gone(family)


def test_requests_that_had_not_been_sent_survive_a_crash(window: Window) -> None:
    window.until_state("ready")
    window.ask("abort")
    window.until_state("starting")
    assert window.result(window.ask("echo", practice.Text("back"))) == "back"


def test_a_child_that_dies_at_once_is_given_up_after_three_times(
    open_window: Callable[..., Window],
) -> None:
    window = open_window(sys.executable, str(PRACTICE_FILE), "engine", "abort")
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    problem = window.problem(request)
    assert window.client.state == "failed"
    assert [each.during for each in window.endings] == ["starting"] * 3
    assert problem.line() == (
        "The engine does not start. The engine crashed with SIGABRT while starting."
        " Read the log, correct the cause, and restart it."
    )
    assert window.client.failure == problem
    assert window.problem(window.ask("echo", practice.Text("b"))) == problem
    window.client.restart()
    assert window.client.state == "starting"
    assert window.client.failure is None


def test_a_child_that_says_why_it_cannot_start_is_given_up_at_once(
    open_window: Callable[..., Window],
) -> None:
    window = open_window(sys.executable, str(PRACTICE_FILE), "engine", "missing")
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    assert "No module named 'no_such_package'" in window.problem(request).what
    assert window.client.state == "failed"
    assert len(window.endings) == 1


def test_a_program_that_does_not_exist(open_window: Callable[..., Window]) -> None:
    window = open_window("/no/such/program")
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    assert "could not be started" in window.problem(request).what
    assert window.client.state == "failed"


def test_restart_of_a_child_that_is_busy(window: Window) -> None:
    request = window.ask("spin")
    window.until_told(request)
    family = window.family()
    window.client.restart()
    assert window.problem(request).code == "cancelled"
    assert window.result(window.ask("heavy_echo", practice.Text("back"))) == "back"
    window.until_gone(family)


# --- no process left behind ---------------------------------------------------------------------


@pytest.mark.parametrize("busy", ["spin", "hold_lock"])
def test_stop_ends_the_child_and_what_it_started(window: Window, busy: str) -> None:
    window.result(window.ask("start_sleeper"))
    window.result(window.ask("start_fork"))
    stuck = window.ask(busy)
    window.until_told(stuck)
    family = window.family()
    assert len(family) == 4

    began = time.monotonic()
    window.client.stop()
    assert time.monotonic() - began < 30
    assert window.client.state == "stopped"
    assert window.client.pid is None
    window.until_gone(family)
    assert window.problems == {}


def test_nothing_is_left_when_the_window_is_killed(qtbot: QtBot) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from PySide6.QtCore import QCoreApplication
from tests.app.engine.practice_window import EngineClient, PRACTICE_FILE, practice, psutil
app = QCoreApplication([])
client = EngineClient("engine", command=(sys.executable, str(PRACTICE_FILE), "engine"))
def say(sleeper):
    leader = psutil.Process(client.pid)
    print(leader.pid, *(each.pid for each in leader.children(recursive=True)), flush=True)
client.request(practice.query("start_sleeper", practice.Nothing()), say, print)
client.start()
app.exec()
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        family = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        assert len(family) == 3
        process.kill()
    qtbot.waitUntil(lambda: not any(is_alive(each) for each in family))


# --- words --------------------------------------------------------------------------------------


def test_the_folder_that_the_window_was_started_in_shadows_nothing(tmp_path: Path) -> None:
    for name in ("msgspec", "torch", "core", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('shadowed')")
    process = subprocess.Popen(
        server_command("engine"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.read(len(MAGIC)) == MAGIC
        process.kill()


# --- a child that is stopped ----------------------------------------------------------------------


def test_a_child_that_is_stopped_in_the_middle_of_a_frame_is_restarted(window: Window) -> None:
    window.until_state("ready")
    family = window.family()
    request = window.ask("stop_in_reply")
    other = window.ask("echo", practice.Text("still there"))
    window.until(lambda: family[0].status() == "stopped")
    # The window goes on; the user cancels, or restarts it.
    window.client.cancel(request)
    assert window.problem(request).code == "cancelled"
    assert window.result(other) == "still there"
    window.until_gone(family)

"""The window's side of a child, with real processes: answers, cancels, crashes, no leftovers."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import psutil
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.child_process import LOG_LIMIT, Ending
from lowerscope.app.engine_client import CANCEL_MS, EngineClient, server_command
from lowerscope.core.engine.protocol import MAGIC
from lowerscope.core.errors import Problem

PRACTICE_FILE = Path(__file__).parents[1] / "core" / "engine" / "practice_child.py"


def load_practice() -> ModuleType:
    spec = importlib.util.spec_from_file_location("practice_child", PRACTICE_FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


practice = load_practice()
NOTHING = practice.Nothing()


class Window:
    """What a window does with a client, and what it is told."""

    def __init__(self, bot: QtBot, *command: str) -> None:
        self.bot = bot
        self.client = EngineClient(
            "engine",
            command=command or (sys.executable, str(PRACTICE_FILE), "engine"),
            methods=practice.METHODS,
        )
        self.results: dict[int, Any] = {}
        self.problems: dict[int, Problem] = {}
        self.told: dict[int, list[str]] = {}
        self.log = ""
        self.states: list[str] = []
        self.endings: list[Ending] = []
        self.client.log.connect(self._add_log)
        self.client.state_changed.connect(self.states.append)
        self.client.crashed.connect(self.endings.append)

    def _add_log(self, text: str) -> None:
        self.log += text

    def ask(self, method: str, params: msgspec.Struct = NOTHING) -> int:
        request = 0

        def take(result: Any) -> None:
            self.results[request] = result

        def fail(problem: Problem) -> None:
            assert request not in self.problems
            self.problems[request] = problem

        def tell(text: str, fraction: float | None) -> None:
            self.told.setdefault(request, []).append(text)

        request = self.client.request(method, params, take, fail, tell)
        assert request not in self.problems  # never before the caller knows the id
        return request

    def until(self, done: Callable[[], bool]) -> None:
        self.bot.waitUntil(done, timeout=20_000)

    def until_state(self, state: str) -> None:
        self.until(lambda: self.client.state == state)

    def until_told(self, request: int) -> None:
        self.until(lambda: request in self.told)

    def result(self, request: int) -> Any:
        self.until(lambda: request in self.results or request in self.problems)
        assert request in self.results, self.problems[request]
        return self.results[request]

    def problem(self, request: int) -> Problem:
        self.until(lambda: request in self.results or request in self.problems)
        assert request not in self.results
        return self.problems[request]

    def family(self) -> list[psutil.Process]:
        """Return the child and all that it has started."""
        leader = psutil.Process(self.client.pid)
        return [leader, *leader.children(recursive=True)]

    def until_gone(self, family: list[psutil.Process]) -> None:
        self.until(lambda: not any(is_alive(each) for each in family))


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Window]:
    """Return a window whose child has been started."""
    window = Window(qtbot)
    window.client.start()
    yield window
    family = [] if window.client.pid is None else window.family()
    window.client.stop()
    window.until_gone(family)


@pytest.fixture
def open_window(qtbot: QtBot) -> Iterator[Callable[..., Window]]:
    """Return a function that makes a window with a command of one's own, not yet started."""
    windows = []

    def open_one(*command: str) -> Window:
        windows.append(Window(qtbot, *command))
        return windows[-1]

    yield open_one
    for window in windows:
        window.client.stop()


# --- requests -----------------------------------------------------------------------------------


def test_requests_wait_for_the_child_and_are_answered(open_window: Callable[..., Window]) -> None:
    window = open_window()
    before_start = window.ask("echo", practice.Text("grüße"))
    window.client.start()
    before_ready = window.ask("echo", practice.Text("b"))
    assert window.client.state == "starting"
    assert window.result(before_start) == "grüße"
    assert window.result(before_ready) == "b"
    window.until_state("ready")
    assert window.states == ["starting", "busy", "ready"]


def test_results_have_the_type_of_the_method(window: Window) -> None:
    found = window.result(window.ask("whereabouts"))
    assert isinstance(found, practice.Whereabouts)
    assert found.folder == str(Path.cwd())


def test_an_answer_of_another_type_is_a_problem(window: Window) -> None:
    problem = window.problem(window.ask("wrong_type"))
    assert problem.code == "internal"
    assert problem.what.startswith("The engine's answer to wrong_type cannot be read")


def test_small_requests_are_answered_while_a_long_job_runs(window: Window) -> None:
    long = window.ask("wait", practice.Text("Waiting"))
    later = window.ask("heavy_echo", practice.Text("later"))
    assert window.result(window.ask("echo", practice.Text("now"))) == "now"
    assert window.client.state == "busy"
    assert later not in window.results
    window.client.cancel(long)
    assert window.result(later) == "later"


def test_progress(window: Window) -> None:
    request = window.ask("report", practice.Count(500))
    assert window.result(request) == 500
    assert window.told[request][0] == "Number 0"
    assert window.told[request][-1] == "Number 499"


def test_a_users_error_arrives_whole(window: Window) -> None:
    problem = window.problem(window.ask("err", practice.Text("The shape is wrong")))
    assert problem.line() == "model.py:3: The shape is wrong. Write it anew."


def test_50_megabytes(window: Window) -> None:
    assert window.result(window.ask("big", practice.Count(50_000_000))) == bytes(50_000_000)


def test_a_dropped_request_is_never_heard_of_again(window: Window) -> None:
    dropped = window.ask("wait", practice.Text("Waiting"))
    window.until_told(dropped)
    window.client.drop(dropped)
    assert window.client.state == "busy"
    assert window.result(window.ask("heavy_echo", practice.Text("next"))) == "next"
    window.until_state("ready")
    assert dropped not in window.problems
    window.client.drop(dropped)


def test_a_request_that_is_dropped_before_it_is_sent_is_not_run(window: Window) -> None:
    window.client.drop(window.ask("abort"))
    assert window.result(window.ask("heavy_echo", practice.Text("next"))) == "next"
    assert window.endings == []


def test_a_stale_result_is_dropped(window: Window) -> None:
    window.until_state("ready")
    stale = window.ask("big", practice.Count(1000))
    window.client.drop(stale)
    assert window.result(window.ask("heavy_echo", practice.Text("next"))) == "next"
    assert stale not in window.results
    assert stale not in window.problems


def test_a_callback_that_runs_an_event_loop_does_not_hold_up_the_next(window: Window) -> None:
    # As a dialog does which is opened because of a problem.
    seen: list[object] = []

    def open_dialog(problem: Problem) -> None:
        second = window.ask("echo", practice.Text("meanwhile"))
        seen.append(window.result(second))

    window.client.request("err", practice.Text("a"), seen.append, open_dialog)
    window.until(lambda: seen == ["meanwhile"])


# --- cancel -------------------------------------------------------------------------------------


def test_cancel_of_a_job_that_listens_keeps_the_child(window: Window) -> None:
    request = window.ask("wait", practice.Text("Waiting"))
    window.until_told(request)
    pid = window.client.pid
    window.client.cancel(request)
    window.client.cancel(request)
    assert window.problem(request).code == "cancelled"
    assert window.client.pid == pid
    window.until_state("ready")
    window.client.cancel(request)


@pytest.mark.parametrize("method", ["spin", "hold_lock"])
def test_cancel_of_a_job_that_does_not_listen_takes_a_second(window: Window, method: str) -> None:
    # "hold_lock" keeps the interpreter lock in C, so the child cannot even read the cancel.
    stuck = window.ask(method)
    other = window.ask("heavy_echo", practice.Text("other"))
    window.until_told(stuck)
    family = window.family()

    began = time.monotonic()
    window.client.cancel(stuck)
    assert window.problem(stuck).code == "cancelled"
    assert time.monotonic() - began < 1.0
    assert window.result(other) == "other"
    assert window.endings == []
    window.until_gone(family)


def test_cancel_before_the_child_is_ready(window: Window) -> None:
    request = window.ask("abort")
    window.client.cancel(request)
    assert window.problem(request).code == "cancelled"
    assert window.client.state == "starting"
    assert window.result(window.ask("heavy_echo", practice.Text("next"))) == "next"
    assert window.endings == []


def test_an_answered_cancel_does_not_kill_later(window: Window) -> None:
    request = window.ask("wait", practice.Text("Waiting"))
    window.until_told(request)
    window.client.cancel(request)
    window.problem(request)
    pid = window.client.pid
    with window.bot.waitSignal(window.client.crashed, timeout=CANCEL_MS + 200, raising=False):
        pass
    assert window.client.pid == pid
    assert "starting" not in window.states[1:]


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


def test_a_segmentation_fault_leaves_its_trace_in_the_log(window: Window) -> None:
    problem = window.problem(window.ask("segfault"))
    assert problem.what == "The engine crashed with SIGSEGV while reading a string"
    assert "in segfault" in window.log


def test_an_exit_of_the_whole_process(window: Window) -> None:
    problem = window.problem(window.ask("leave", practice.Count(3)))
    assert problem.what == "The engine ended by itself with exit code 3 while leaving"
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
        " Look into the log, mend what it says, and restart it."
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


# --- the stream and the log ---------------------------------------------------------------------


def test_whatever_prints_prints_to_the_log(window: Window) -> None:
    window.result(window.ask("say", practice.Text("grüße")))
    ways = ("print", "stderr", "write", "printf", "child")
    window.until(lambda: all(f"{way} grüße\n" in window.log for way in ways))


@pytest.mark.parametrize("garbage", ["Loading...\n", "\n\n\n\n", "\0\0\0\5hello"])
def test_something_else_in_the_stream_is_reported_and_mended(window: Window, garbage: str) -> None:
    problem = window.problem(window.ask("utter", practice.Text(garbage)))
    assert problem.what.startswith("The engine sent something that is no message while talking")
    assert repr(garbage)[1:-1] in problem.what
    assert window.result(window.ask("echo", practice.Text("back"))) == "back"


def test_something_else_at_the_start_of_the_stream(open_window: Callable[..., Window]) -> None:
    window = open_window(sys.executable, "-c", "print('hello')")
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    assert "sent something that is no message" in window.problem(request).what


def test_a_flood_of_output_does_not_flood_the_window(window: Window) -> None:
    pieces: list[str] = []
    window.client.log.connect(pieces.append)
    window.result(window.ask("flood", practice.Count(20_000_000)))
    window.until(lambda: "characters left out" in window.log)
    assert window.result(window.ask("echo", practice.Text("here"))) == "here"
    assert max(map(len, pieces)) < LOG_LIMIT + 100


def test_characters_that_are_split_between_reads_are_whole(window: Window) -> None:
    window.result(window.ask("flood", practice.Count(200_001)))
    window.until(lambda: len(window.log) >= 200_001)
    assert window.log == "ü" * 200_001


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
    assert time.monotonic() - began < 0.5
    assert window.client.state == "stopped"
    assert window.client.pid is None
    window.until_gone(family)
    assert window.problems == {}


def test_stop_at_once(open_window: Callable[..., Window]) -> None:
    window = open_window()
    window.client.start()
    family = window.family()
    window.client.stop()
    window.until_gone(family)


def test_stop_without_start(open_window: Callable[..., Window]) -> None:
    window = open_window()
    window.client.stop()
    assert window.states == []


def test_start_after_stop(window: Window) -> None:
    window.until_state("ready")
    window.client.stop()
    window.client.start()
    assert window.result(window.ask("echo", practice.Text("again"))) == "again"


def test_nothing_is_left_when_the_window_is_killed(qtbot: QtBot) -> None:
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from PySide6.QtCore import QCoreApplication
from test_engine_client import EngineClient, PRACTICE_FILE, practice, psutil
app = QCoreApplication([])
client = EngineClient("engine", command=(sys.executable, str(PRACTICE_FILE), "engine"),
                      methods=practice.METHODS)
def say(sleeper):
    leader = psutil.Process(client.pid)
    print(leader.pid, *(each.pid for each in leader.children(recursive=True)), flush=True)
client.request("start_sleeper", practice.Nothing(), say, print)
client.start()
app.exec()
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, process.stdout:
        family = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        assert len(family) == 3
        process.kill()
    qtbot.waitUntil(lambda: not any(is_alive(each) for each in family), timeout=20_000)


# --- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (
            Ending("engine", "signal", signal_name="SIGSEGV", during="tracing"),
            "The engine crashed with SIGSEGV while tracing",
        ),
        (Ending("worker", "signal", signal_name="SIGFPE"), "The worker crashed with SIGFPE"),
        (
            Ending("worker", "signal", signal_name="SIGKILL", during="measuring"),
            "The worker was killed while measuring; the memory may have run out",
        ),
        (Ending("worker", "exit", exit_code=0), "The worker ended by itself with exit code 0"),
        (
            Ending("engine", "garbage", reason="expected a frame, found b'hi'"),
            "The engine sent something that is no message: expected a frame, found b'hi'",
        ),
        (
            Ending("engine", "start", reason="No such file"),
            "The engine could not be started: No such file",
        ),
    ],
)
def test_how_an_ending_is_told(ending: Ending, sentence: str) -> None:
    assert str(ending) == sentence


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

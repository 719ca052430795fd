"""Requests to a real child process: answers, cancels, the stream, the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from lowerscope.app.engine.child_process import LOG_LIMIT
from lowerscope.app.engine.client import CANCEL_MS
from lowerscope.core.model.problems import Problem
from tests.app.engine.practice_window import Window, practice

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


def test_an_answer_of_another_type_is_a_problem(window: Window) -> None:
    problem = window.problem(window.ask("wrong_type"))
    assert problem.code == "internal"
    assert problem.what.startswith("The engine's answer to wrong_type cannot be read")


def test_a_dropped_request_is_never_heard_of_again(window: Window) -> None:
    dropped = window.ask("wait", practice.Text("Waiting"))
    window.until_told(dropped)
    window.client.drop(dropped)
    assert window.client.state == "busy"
    assert window.result(window.ask("heavy_echo", practice.Text("next"))) == "next"
    window.until_state("ready")
    assert dropped not in window.problems
    window.client.drop(dropped)


def test_a_callback_that_runs_an_event_loop_does_not_hold_up_the_next(window: Window) -> None:
    # As a dialog does which is opened because of a problem.
    seen: list[object] = []

    def open_dialog(problem: Problem) -> None:
        second = window.ask("echo", practice.Text("meanwhile"))
        seen.append(window.result(second))

    window.client.request(practice.query("err", practice.Text("a")), seen.append, open_dialog)
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
def test_cancel_of_a_job_that_does_not_listen_ends_the_child(window: Window, method: str) -> None:
    # "hold_lock" keeps the interpreter lock in C, so the child cannot even read the cancel.
    stuck = window.ask(method)
    other = window.ask("heavy_echo", practice.Text("other"))
    window.until_told(stuck)
    family = window.family()

    began = time.monotonic()
    window.client.cancel(stuck)
    assert window.problem(stuck).code == "cancelled"
    assert time.monotonic() - began < 30
    assert window.result(other) == "other"
    assert window.endings == []
    window.until_gone(family)


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


# --- the stream and the log ---------------------------------------------------------------------


@pytest.mark.parametrize("garbage", ["Loading...\n", "\n\n\n\n", "\0\0\0\5hello"])
def test_something_else_in_the_stream_is_reported_and_mended(window: Window, garbage: str) -> None:
    problem = window.problem(window.ask("utter", practice.Text(garbage)))
    assert problem.what.startswith("The engine sent an invalid message while talking")
    assert repr(garbage)[1:-1] in problem.what
    assert window.result(window.ask("echo", practice.Text("back"))) == "back"


def test_something_else_at_the_start_of_the_stream(open_window: Callable[..., Window]) -> None:
    window = open_window(sys.executable, "-c", "print('hello')")
    request = window.ask("echo", practice.Text("a"))
    window.client.start()
    assert "sent an invalid message" in window.problem(request).what


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

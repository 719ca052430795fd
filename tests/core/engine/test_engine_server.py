"""The server as a process: its pipes, lanes, cancels, errors, and that nothing outlives it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator

import msgspec
import psutil
import pytest

from lowerscope.core.engine.protocol import VERSION, Failure, Hello, Progress, Ready, Reply
from lowerscope.core.engine.server import EARLY_TEXTS, PROGRESS_INTERVAL, REST_AFTER
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.engine.practice_window import is_alive
from tests.core.engine import practice_child as practice
from tests.core.engine.practice_driving import PRACTICE_FILE, TIMEOUT, Child


@pytest.fixture
def child() -> Iterator[Child]:
    """Return a child that is ready."""
    child = Child()
    assert isinstance(child.next(), Hello)
    assert isinstance(child.next(), Ready)
    yield child
    child.close()


def assert_gone(family: list[psutil.Process]) -> None:
    """Wait until all have ended; a zombie that nobody has collected yet has ended too."""
    deadline = time.monotonic() + TIMEOUT
    while family := [each for each in family if is_alive(each)]:
        assert time.monotonic() < deadline, family
        psutil.wait_procs(family, timeout=0.02)


def test_greets_before_it_is_warm_and_takes_requests_meanwhile() -> None:
    child = Child(sys.executable, str(PRACTICE_FILE), "worker", "hold")
    try:
        assert child.next() == Hello(VERSION, child.process.pid, "worker")
        child.ask(1, "no_such_method")
        answer = child.answer()
        assert isinstance(answer, Failure)
        assert "no query 'no_such_method'" in answer.problem.what
    finally:
        child.close()


def test_the_engine_rests_until_something_is_asked(child: Child) -> None:
    child.ask(1, "rests")
    assert child.result() == 0
    deadline, number = time.monotonic() + TIMEOUT / 2, 1
    while True:
        # A busy machine may take longer than this until it rests.
        time.sleep(REST_AFTER + 0.2)
        number += 1
        child.ask(number, "rests")
        if child.result() == 1:
            break
        assert time.monotonic() < deadline


def test_small_requests_are_answered_while_a_long_job_runs(child: Child) -> None:
    child.ask(1, "wait", practice.Text("Waiting"))
    child.ask(2, "heavy_echo", practice.Text("later"))
    child.ask(3, "echo", practice.Text("now"))
    assert child.answer().id == 3
    child.cancel(1)
    assert child.answer().id == 1
    assert child.answer().id == 2


def test_a_running_job_hears_of_its_cancel(child: Child) -> None:
    child.ask(1, "wait", practice.Text("Waiting"))
    assert child.next() == Progress(1, "Waiting", None)
    child.cancel(1)
    answer = child.answer()
    assert isinstance(answer, Failure)
    assert answer.problem.code == "cancelled"


def test_progress_is_paced_and_ends_with_the_latest(child: Child) -> None:
    began = time.monotonic()
    child.ask(1, "report", practice.Count(20_000))
    told = []
    while isinstance(message := child.next(), Progress):
        told.append(message)
    seconds = time.monotonic() - began
    assert isinstance(message, Reply)
    assert told[0] == Progress(1, "Number 0", 0.0)
    assert told[-1] == Progress(1, "Number 19999", 19999 / 20_000)
    assert len(told) <= EARLY_TEXTS + seconds / PROGRESS_INTERVAL + 2


def test_an_answer_that_cannot_be_sent_is_an_internal_error_and_the_lane_goes_on(
    child: Child,
) -> None:
    child.ask(1, "answer_with_an_odd_problem", practice.Text("oops"))
    answer = child.answer()
    assert isinstance(answer, Failure)
    assert answer.problem.code == "internal"
    assert "cannot be encoded" in answer.problem.what
    child.ask(2, "echo", practice.Text("still here"))
    assert child.result() == "still here"


def test_our_own_mistake_is_internal_with_its_traceback_and_in_the_log(child: Child) -> None:
    child.ask(1, "fail", practice.Text("oops"))
    answer = child.answer()
    assert isinstance(answer, Failure)
    assert answer.problem.what == "internal error: ZeroDivisionError: oops"
    assert answer.problem.code == "internal"
    assert "in fail" in answer.problem.details
    child.ask(2, "echo", practice.Text("still here"))
    assert child.result() == "still here"
    child.kill()
    assert "ZeroDivisionError: oops" in child.log()


def test_a_model_file_finds_main_thread_empty_stdin_and_no_arguments(child: Child) -> None:
    child.ask(1, "whereabouts")
    found = msgspec.convert(child.result(), practice.Whereabouts)
    assert found.main_thread
    assert found.read == ""
    assert len(found.arguments) == 1


def test_a_crash_leaves_a_trace_in_the_log_and_no_process(child: Child) -> None:
    child.ask(1, "start_sleeper")
    sleeper = child.result()
    family = child.family()
    assert sleeper in [each.pid for each in family]
    child.ask(2, "segfault")
    assert child.next() is None
    assert child.process.wait(TIMEOUT) == -signal.SIGSEGV
    assert_gone(family)
    log = child.log()
    assert "Segmentation fault" in log
    assert "in segfault" in log


@pytest.mark.parametrize("start", ["start_sleeper", "start_fork"])
def test_nothing_is_left_when_the_window_closes_the_pipe(child: Child, start: str) -> None:
    child.ask(1, start)
    child.result()
    child.ask(2, "spin")
    assert child.next() == Progress(2, "Spinning", None)
    family = child.family()
    assert len(family) == 3  # the server, its guard, and what it started
    assert child.process.stdin is not None
    child.process.stdin.close()
    assert_gone(family)


def test_a_child_that_cannot_warm_up_says_why_and_ends() -> None:
    child = Child(sys.executable, str(PRACTICE_FILE), "engine", "missing")
    try:
        assert isinstance(child.next(), Hello)
        failure = child.next()
        assert isinstance(failure, Failure)
        assert failure.id == 0
        assert "No module named 'no_such_package'" in failure.problem.what
        assert child.next() is None
        assert "no_such_package" in child.log()
    finally:
        child.close()


def test_the_engine_of_the_product_does_not_run_code() -> None:
    child = Child(sys.executable, "-P", "-m", "lowerscope.core.engine.server", "--role", "engine")
    try:
        assert child.next() == Hello(VERSION, child.process.pid, "engine")
        child.ask(1, "RunQuery", RunQuery(Recipe(source=Source(spec="sample:fashion_mlp"))))
        answer = child.next()
        assert isinstance(answer, Failure)
        assert "RunQuery is for the worker" in answer.problem.what
    finally:
        child.close()


def test_a_crash_of_the_product_shows_its_python_and_its_compiled_side() -> None:
    child = Child(sys.executable, "-P", "-m", "lowerscope.core.engine.server", "--role", "worker")
    try:
        assert isinstance(child.next(), Hello)
        ready = child.next()
        assert isinstance(ready, Ready), ready
        family = child.family()
        child.process.send_signal(signal.SIGSEGV)
        assert child.next() is None
        log = child.log()
        assert log.startswith("Fatal Python error: Segmentation fault"), log
        assert "!!!!!!! Segfault encountered !!!!!!!" in log
        assert_gone(family)
    finally:
        child.close()

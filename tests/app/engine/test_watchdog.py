"""The watchdog, with a child that practices, and requests that take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change, Document
from lowerscope.app.engine import watchdog
from lowerscope.app.engine.watchdog import Hanging
from lowerscope.core.model.queries import RunQuery
from tests.app.conftest import bench
from tests.app.engine.practice_window import Window
from tests.app.plain_values import RECIPE, Bench

__all__ = ["bench"]


@pytest.fixture(autouse=True)
def _vigilant(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, milliseconds in (("LOOK_MS", 50), ("HANGS_MS", 1000), ("SAY_MS", 20)):
        monkeypatch.setattr(watchdog, name, milliseconds)


@pytest.fixture
def suspend(window: Window) -> Iterator[Callable[[], None]]:
    """Return a function that suspends the child, which is resumed at the end."""
    held: list[psutil.Process] = []

    def suspend() -> None:
        for each in window.family():
            each.suspend()
            held.append(each)

    yield suspend
    for each in held:
        if each.is_running():
            each.resume()


def spent(window: Window) -> float:
    """Return the processor time of the child in seconds."""
    times = [each.cpu_times() for each in window.family()]
    return sum(each.user + each.system for each in times)


def test_an_engine_without_processor_time_is_said_to_hang(
    window: Window, suspend: Callable[[], None]
) -> None:
    document, said = Document(), []

    def note(change: Change) -> None:
        if change.after.notice is not None:
            said.append(change.after.notice.text)

    document.changed.connect(note)
    Hanging(document, window.client)
    window.until_state("ready")
    # One that works for longer is left alone.
    window.until_told(window.ask("spin"))
    start = spent(window)
    window.until(lambda: spent(window) > start + 1.5)
    assert said == []
    suspend()
    window.until(lambda: bool(said))
    assert "has made no progress" in said[0]


def test_a_long_request_is_shown_and_cancelled(bench: Bench, qtbot: QtBot) -> None:
    document, at_work = bench.document, bench.features.at_work
    bench.open(RECIPE)
    bench.features.scheduling.look("dense")
    bench.features.stepping.set_section("schedule")
    engine: Any = bench.engine
    waiting = engine.last()
    assert not waiting.fate
    engine.state_changed.emit("busy")
    qtbot.waitUntil(lambda: bool(document.job.text))
    assert document.job.text.lower() == waiting.query.doing
    bench.features.cancel()
    assert waiting.fate == "cancelled"
    engine.state_changed.emit("ready")
    assert not document.job.text
    assert not at_work.said


def test_a_run_has_its_own_progress(bench: Bench, qtbot: QtBot) -> None:
    bench.open(RECIPE)
    bench.features.runs.run()
    bench.worker.state_changed.emit("busy")
    assert isinstance(bench.worker.last().query, RunQuery)
    assert not bench.features.at_work.said
    assert not bench.features.at_work._timer.isActive()

"""Threads beside the window: they free no object of Qt's, and their answers come in this one."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Event, Thread, get_ident

import pytest
from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtGui import QStandardItemModel
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.background import (
    COLLECTION_MS,
    LATE_MS,
    CycleCollector,
    in_thread,
    when_done,
)


class Cyclic(QStandardItemModel):
    """A model that refers to itself, as what connects its own methods does."""

    def __init__(self) -> None:
        super().__init__(10, 3)
        self.itself = self


def garbage() -> weakref.ref[Cyclic]:
    """Return a reference to a model that is left with more cycles than the youngest may have."""
    left = weakref.ref(Cyclic())
    for _ in range(2 * gc.get_threshold()[0]):
        cycle: list[object] = []
        cycle.append(cycle)
    return left


@pytest.fixture
def collecting() -> Iterator[set[int]]:
    """Yield the threads that cycles are collected in."""
    threads: set[int] = set()

    def note(phase: str, _info: dict[str, int]) -> None:
        threads.add(get_ident())

    gc.callbacks.append(note)
    yield threads
    gc.callbacks.remove(note)


def test_cycles_are_collected_in_the_windows_thread_alone(
    qtbot: QtBot, collecting: set[int]
) -> None:
    owner = QObject()
    collector = CycleCollector(owner)
    left = garbage()

    def allocate() -> None:
        # Python looks for cycles when this many are allocated and kept.
        kept = [[number] for number in range(50_000)]
        assert kept

    thread = Thread(target=allocate)
    thread.start()
    thread.join()
    assert not collecting
    assert left() is not None
    collector.collect()
    assert collecting == {get_ident()}
    assert left() is None


def test_cycles_are_collected_from_the_event_loop(qtbot: QtBot) -> None:
    owner = QObject()
    CycleCollector(owner)
    left = garbage()
    qtbot.waitUntil(lambda: left() is None)


def test_a_collection_waits_while_the_event_loop_is_busy(
    qtbot: QtBot, collecting: set[int]
) -> None:
    owner = QObject()
    CycleCollector(owner)
    left = garbage()
    busy_until = time.monotonic() + (COLLECTION_MS + 3 * LATE_MS) / 1000
    while time.monotonic() < busy_until:
        pass
    QCoreApplication.processEvents()
    assert not collecting
    qtbot.waitUntil(lambda: left() is None)


def test_an_answer_comes_in_the_windows_thread(qtbot: QtBot) -> None:
    owner, threads = QObject(), list[int]()

    def take(future: Future[int]) -> None:
        threads.extend((future.result(), get_ident()))

    when_done(in_thread("named", get_ident), owner, take)
    qtbot.waitUntil(lambda: bool(threads))
    worked, taken = threads
    assert worked != taken == get_ident()


def test_an_answer_for_what_was_deleted_is_dropped(qtbot: QtBot) -> None:
    owner, other, go_on, taken = QObject(), QObject(), Event(), list[str]()

    def wait() -> None:
        go_on.wait()

    when_done(in_thread("slow", wait), owner, lambda _: taken.append("deleted"))
    owner.deleteLater()
    qtbot.waitSignal(owner.destroyed).wait()
    go_on.set()
    slow = next((each for each in threading.enumerate() if each.name.startswith("slow")), None)
    if slow is not None:
        slow.join()
    when_done(in_thread("later", int), other, lambda _: taken.append("there"))
    qtbot.waitUntil(lambda: bool(taken))
    assert taken == ["there"]


# What PySide6 dies of: lost references to None, and a type that is made while painting


MADE = """
import PySide6.QtGui
assert "QGradient" not in vars(PySide6.QtGui), "PySide6 makes its types at once"
import lowerscope.app.kit.theme
print("QGradient" in vars(PySide6.QtGui))
"""


def test_the_type_that_filling_asks_for_is_there_before_anything_is_painted() -> None:
    # Made in the middle of QPainter.fillRect, it took the process with it, at the mercy of what
    # stood in memory.
    run = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "True"

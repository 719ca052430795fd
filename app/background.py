"""Work in threads, and the collection of cycles, which both leave Qt to the window's thread.

Qt's objects belong to the thread of the window: where another thread drops the last reference to
one, or Python's collector happens to run in it, the process crashes. So a thread is given work that
knows no such object, its answer comes in the window's thread, and cycles are collected there alone.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, Qt, QTimer, Signal

T = TypeVar("T")

COLLECTION_MS = 250
"""Between looks at how much there is to collect."""

FULL_COLLECTION_SHARE = 0.01
"""The most of the time that collections of all generations take."""


def in_thread(name: str, work: Callable[[], T]) -> Future[T]:
    """Start work in a thread of its own, which the process waits for before it ends.

    Parameters
    ----------
    name
        Of the thread.
    work
        Refers to no object of Qt's.
    """
    thread = ThreadPoolExecutor(1, name)
    future = thread.submit(work)
    thread.shutdown(wait=False)
    return future


def when_done(future: Future[T], owner: QObject, then: Callable[[Future[T]], None]) -> None:
    """Call `then` with a future that is done, in this thread, unless `owner` is deleted by then."""
    _deliveries().add(future, owner, then)


class _Deliveries(QObject):
    """The futures that somebody waits for. It lives as long as the process."""

    _done = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Future[Any], QObject, Callable[[Future[Any]], None]]] = {}
        self._done.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def add(self, future: Future[Any], owner: QObject, then: Callable[[Future[Any]], None]) -> None:
        number = next(self._numbers)
        self._waiting[number] = future, owner, then
        # What the thread holds on to is a number, and this object.
        future.add_done_callback(lambda _: self._done.emit(number))

    def _deliver(self, number: int) -> None:
        future, owner, then = self._waiting.pop(number)
        if shiboken6.isValid(owner):
            then(future)


_deliveries = cache(_Deliveries)


class CycleCollector(QObject):
    """Collects cycles from the event loop, by Python's own thresholds, and nowhere else."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        self._next_full = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(COLLECTION_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> None:
        """Collect the oldest generation whose threshold is exceeded, and the younger ones."""
        exceeded = [
            count > threshold
            for count, threshold in zip(gc.get_count(), gc.get_threshold(), strict=True)
        ]
        if exceeded[2] and time.monotonic() >= self._next_full:
            began = time.monotonic()
            gc.collect()
            ended = time.monotonic()
            self._next_full = ended + (ended - began) / FULL_COLLECTION_SHARE
        elif exceeded[1] or exceeded[2]:
            gc.collect(1)
        elif exceeded[0]:
            gc.collect(0)

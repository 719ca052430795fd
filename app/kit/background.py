"""Work in threads, and garbage collection of cycles in the GUI thread only.

Qt's objects belong to the GUI thread: where another thread drops the last reference to one, or
Python's collector happens to run in it, the process crashes. So work given to a thread refers to no
such object, its result is delivered in the GUI thread, and cycles are collected there alone.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import shiboken6
from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

COLLECTION_MS = 250
"""Interval between checks of the collection thresholds."""

LATE_MS = 20
"""Delay of a check after which the event loop counts as busy: the collection waits then."""

MOST_LATE = 8
"""Checks in a row that may find the loop busy; the last one collects nevertheless."""

FULL_COLLECTION_SHARE = 0.01
"""Largest share of time spent in collections of what was made since the last of these."""

WHOLE_COLLECTION_SHARE = 0.001
"""Largest share of time spent in collections of everything, which takes 0.1 s for a large model."""


def in_thread(name: str, work: Callable[[], T]) -> Future[T]:
    """Start work in a thread of its own; the process waits for it before exiting.

    Args:
        name: Name of the thread.
        work: The function to run; must not refer to any Qt object.
    """
    from concurrent.futures import ThreadPoolExecutor

    thread = ThreadPoolExecutor(1, name)
    future = thread.submit(work)
    thread.shutdown(wait=False)
    return future


def when_done(future: Future[T], owner: QObject, then: Callable[[Future[T]], None]) -> None:
    """Call `then` in this thread once a future is done, unless `owner` is deleted by then."""
    _deliveries().add(future, owner, then)


def single_shot(owner: QObject, milliseconds: int, then: Callable[[], object]) -> QTimer:
    """Return a timer that calls `then` once, this long after it was last started."""
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(then)
    return timer


class _Deliveries(QObject):
    """Delivers futures to their callbacks. It lives as long as the process."""

    _done = Signal(int)

    def __init__(self) -> None:
        from PySide6.QtCore import Qt

        super().__init__()
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Future[Any], QObject, Callable[[Future[Any]], None]]] = {}
        self._done.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def add(self, future: Future[Any], owner: QObject, then: Callable[[Future[Any]], None]) -> None:
        number = next(self._numbers)
        self._waiting[number] = future, owner, then
        # The thread holds references to a number and this object only.
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
        self._next_full = self._next_whole = 0.0
        self._late = 0
        self._timer = single_shot(self, COLLECTION_MS, self._check)
        self._start()

    def _start(self) -> None:
        self._due = time.monotonic() + COLLECTION_MS / 1000
        self._timer.start()

    def _check(self) -> None:
        """Collect, unless the user waits for what the event loop does."""
        is_late = time.monotonic() > self._due + LATE_MS / 1000
        self._late = self._late + 1 if is_late else 0
        if not is_late or self._late >= MOST_LATE:
            self._late = 0
            self.collect()
        self._start()

    def collect(self) -> None:
        """Collect the oldest generation whose threshold is exceeded, and the younger ones."""
        exceeded = [
            count > threshold
            for count, threshold in zip(gc.get_count(), gc.get_threshold(), strict=True)
        ]
        if exceeded[2] and time.monotonic() >= self._next_full:
            began = time.monotonic()
            is_whole = began >= self._next_whole
            if is_whole:
                gc.unfreeze()
            gc.collect()
            # What lives on is not visited again by the next ones.
            gc.freeze()
            ended = time.monotonic()
            self._next_full = ended + (ended - began) / FULL_COLLECTION_SHARE
            if is_whole:
                self._next_whole = ended + (ended - began) / WHOLE_COLLECTION_SHARE
        elif exceeded[1] or exceeded[2]:
            gc.collect(1)
        elif exceeded[0]:
            gc.collect(0)

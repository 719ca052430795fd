"""Measure of the window's response: the time for which its event loop is held up."""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer

TICK_MS = 5


class Pulse(QObject):
    """Longest pause of the event loop: the largest gap between two ticks of a timer.

    Attributes
    ----------
    wall, processor
        Milliseconds on the clock, and of this thread's own work; the clock of a busy machine counts
        what others did meanwhile as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wall = self.processor = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)
        self.begin()

    def begin(self) -> None:
        """Measure anew from here on."""
        self.wall = self.processor = 0.0
        self._last = time.monotonic(), time.thread_time()
        self._timer.start()

    def end(self) -> None:
        """Measure no more: what follows is the test's own work."""
        self._tick()
        self._timer.stop()

    def _tick(self) -> None:
        now = time.monotonic(), time.thread_time()
        self.wall = max(self.wall, (now[0] - self._last[0]) * 1000)
        self.processor = max(self.processor, (now[1] - self._last[1]) * 1000)
        self._last = now

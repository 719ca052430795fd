"""Processor use of other programs during a measurement."""

from __future__ import annotations

import time

import psutil

from lowerscope.core.execution.environment import usable_processors
from lowerscope.core.records.times import were_taken

_IDLE = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Fields that the system also adds to user time."""


class ProcessorUse:
    """Measurement of processor use, started on creation.

    Attributes
    ----------
    processors
        Number of processors that this process may use.
    """

    def __init__(self) -> None:
        self._usable = usable_processors()
        self.processors = len(self._usable)
        self._began = time.monotonic()
        self._busy, self._own = self._times()

    def by_others(self) -> float:
        """Return the average number of processors used by other programs since the start."""
        busy, own = self._times()
        elapsed = time.monotonic() - self._began
        others = (busy - self._busy) - (own - self._own)
        return min(max(others / elapsed, 0.0), float(self.processors)) if elapsed > 0 else 0.0

    def was_short(self, threads: int) -> bool:
        """Return whether other programs used processors that `threads` threads needed."""
        return were_taken(self.by_others(), self.processors, threads)

    def _times(self) -> tuple[float, float]:
        """Return the seconds that the processors were busy, in total and with this process."""
        spent = psutil.cpu_times(percpu=True)
        busy = sum(
            seconds
            for number, each in enumerate(spent)
            if number in self._usable
            for kind, seconds in each._asdict().items()
            if kind not in (*_IDLE, *_COUNTED_TWICE)
        )
        return busy, time.process_time()

"""Threads, the same for TVM and torch, and the processor use of other programs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import psutil
import torch
import tvm

from lowerscope.core.model.processors import MACHINE, usable_processors
from lowerscope.core.model.time_records import were_taken


def use_threads(count: int) -> int:
    """Set the number of threads of torch and TVM, 0 for all; return the number that both use."""
    count = min(count or MACHINE, MACHINE)
    torch.set_num_threads(count)
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    return count


def threads_of_tvm() -> int:
    """Return the number of threads that TVM runs parallel loops with."""
    return int(tvm.get_global_func("runtime.NumThreads")())


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread in the body."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)


_IDLE = ("idle", "iowait")
_COUNTED_TWICE = ("guest", "guest_nice")
"""Fields that the system also adds to user time."""


class ProcessorUse:
    """Measurement of processor use, started on creation."""

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

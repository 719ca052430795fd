"""Processors of this process, and the settings of torch's and TVM's threads.

Every process that imports `lowerscope.core` imports this first, so it imports nothing slow.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path


def usable_processors() -> frozenset[int]:
    """Return the numbers of the processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


MACHINE = len(usable_processors())
"""Number of processors that this process may use."""


@cache
def cache_sizes() -> dict[int, int]:
    """Return the bytes of each data cache of a processor by level, where they are known."""
    found = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        # Some virtual machines have the level alone.
        with contextlib.suppress(OSError, ValueError):
            kind, level, size = (
                (folder / name).read_text().strip() for name in ("type", "level", "size")
            )
            if kind != "Instruction":
                found[int(level)] = int(size.removesuffix("K")) << 10
    return found


SETTINGS = {
    # TVM counts half of the processors on x86, as if each were a hardware thread of a pair, and
    # never exceeds its first count.
    "TVM_NUM_THREADS": str(MACHINE),
    # torch's threads spin for milliseconds while they wait for each other. When another process
    # takes a processor, this made ResNet-18 take 900 ms instead of 25; so they sleep earlier.
    "GOMP_SPINCOUNT": "20000",
    # TVM's threads spin for 150 ms after each call, and block a processor meanwhile: a convolution
    # of torch took 16 ms instead of 0.15 beside them. With this it is 1.5 ms, which is longer than
    # a model's pause between two parallel loops.
    "TVM_THREAD_POOL_SPIN_COUNT": "3000",
}


def prepare() -> None:
    """Set variables that the user has not set; takes effect if torch and TVM are imported later."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)

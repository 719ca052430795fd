"""The processors that this process may use, and what torch's and TVM's pools of threads read when
they are loaded. Imports neither.
"""

from __future__ import annotations

import os


def usable_processors() -> frozenset[int]:
    """Return the numbers of the processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


MACHINE = len(usable_processors())
"""Number of processors that this process may use."""

SETTINGS = {
    # TVM counts half of the processors on x86, as if each were one of a pair, and never goes
    # beyond what it counted first.
    "TVM_NUM_THREADS": str(MACHINE),
    # torch's threads spin for milliseconds where they wait for each other. When another process
    # takes a processor, this made ResNet-18 take 900 ms instead of 25; so they sleep earlier.
    "GOMP_SPINCOUNT": "20000",
    # TVM's threads look for more to do for 150 ms after each call, and take a processor meanwhile
    # from whatever comes next: a convolution of torch took 16 ms instead of 0.15 beside them. With
    # this it is 1.5 ms, which is longer than a model pauses between two parallel loops.
    "TVM_THREAD_POOL_SPIN_COUNT": "3000",
}


def prepare() -> None:
    """Set what the user has not set; it counts where torch and TVM are imported afterwards."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)

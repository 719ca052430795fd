"""Variables that torch's and TVM's thread pools read when they are loaded. Imports neither."""

from __future__ import annotations

import os

MACHINE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Number of processors that this process may use."""

SETTINGS = {
    # TVM counts half of the processors on x86, as if each were one of a pair, and never goes
    # beyond what it counted first.
    "TVM_NUM_THREADS": str(MACHINE),
    # torch's threads spin for milliseconds where they wait for each other. When another process
    # takes a processor, this made ResNet-18 take 900 ms instead of 25; so they sleep earlier.
    "GOMP_SPINCOUNT": "20000",
}


def prepare() -> None:
    """Set what the user has not set; it counts where torch and TVM are imported afterwards."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)

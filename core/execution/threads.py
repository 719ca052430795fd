"""Threads: the same number for TVM and for torch, so that times can be compared."""

from __future__ import annotations

import os

MACHINE = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Number of processors that this process may use."""

# TVM counts half of the processors on x86, as if each were one of a pair, and never goes beyond
# what it counted first; so it is told before it is imported.
os.environ.setdefault("TVM_NUM_THREADS", str(MACHINE))


def use_threads(count: int) -> int:
    """Let torch and TVM use `count` threads, or all of the machine's if it is 0.

    Returns
    -------
    int
        The number of threads that both use now.
    """
    import torch
    import tvm

    count = min(count or MACHINE, MACHINE)
    torch.set_num_threads(count)
    tvm.get_global_func("runtime.config_threadpool")(1, count)
    return count

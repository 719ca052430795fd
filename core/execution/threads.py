"""Thread counts: the same for TVM and torch, so that times can be compared."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
import tvm

from lowerscope.core.execution.environment import MACHINE


def use_threads(count: int) -> int:
    """Set the number of threads of torch and TVM, 0 for all of the machine's.

    Returns
    -------
    int
        The number of threads that both use now.
    """
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

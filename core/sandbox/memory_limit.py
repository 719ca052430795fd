"""Memory limit of a worker, and the errors where it does not suffice.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _

if TYPE_CHECKING or sys.platform != "win32":
    import resource


_SAID = re.compile(
    r"bad_alloc|can't allocate memory|cannot allocate memory|unable to allocate|out of memory"
    r"|MemoryError",
    re.IGNORECASE,
)
"""Messages of the C++ library, torch, the system and NumPy for failed allocations."""


def limit_memory(limit: int) -> None:
    """Limit the data of this process, and of each that it starts, to `limit` bytes, if possible.

    An allocation beyond that fails, in the call that makes it. Only what is written counts, and
    not the code of libraries or files that are mapped.
    """
    if sys.platform == "win32":
        return
    _other, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def limit_in_force() -> int | None:
    """Return the bytes of data that this process may have; ``None`` without a limit."""
    if sys.platform == "win32":
        return None
    soft, _other = resource.getrlimit(resource.RLIMIT_DATA)
    return None if soft == resource.RLIM_INFINITY else soft


def taken_by_group(group: int) -> tuple[int, int]:
    """Return the bytes that the processes of a group hold, and how many threads they have.

    File-backed pages are not counted.
    """
    # The window, which knows limits as well, is not to wait for it.
    import psutil

    held = tasks = 0
    for pid in psutil.pids():
        try:
            if os.getpgid(pid) == group:
                process = psutil.Process(pid)
                memory = process.memory_info()
                held += memory.rss - getattr(memory, "shared", 0)
                tasks += process.num_threads()
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue  # it has ended, or is another user's
    return held, tasks


def task_limit() -> int:
    """Return the limit on the processes and threads of a child, with all that it starts.

    torch, TVM and OpenMP have a pool of one thread for each processor, each; torch starts up to 32
    processes to compile, which have such a pool as well. More busy threads would starve everything
    else.
    """
    return 256 + 32 * (os.cpu_count() or 1)


def is_shortage(error: BaseException | str) -> bool:
    """Return whether an error, or its message, is a failed allocation."""
    return isinstance(error, MemoryError) or _SAID.search(str(error)) is not None


def shortage(reason: str, where: str = "") -> Problem:
    """Return the problem of a failed allocation."""
    limit = limit_in_force()
    return Problem(
        what=_("out of memory: {reason}", reason=reason)
        if limit is None
        else _(
            "out of memory within the limit of {limit}: {reason}",
            limit=bytes_text(limit),
            reason=reason,
        ),
        where=where,
        todo=_("Allow more memory: --memory-limit GB; or make the inputs smaller"),
        code="memory",
    )

"""The bound on the memory of a worker, and what is said where it does not suffice.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from lowerscope.core.errors import Problem

if TYPE_CHECKING or sys.platform != "win32":
    import resource

SHARE = 0.75
"""Of the machine's memory, what a worker may take unless the user says otherwise."""

LEAST = 1 << 30
"""Bytes without which torch and TVM do not even start."""

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_MOST = 1 << 50

_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kmgt]?)(i?b)?", re.IGNORECASE)

_SAID = re.compile(
    r"bad_alloc|can't allocate memory|cannot allocate memory|unable to allocate|out of memory"
    r"|MemoryError",
    re.IGNORECASE,
)
"""What the C++ library, torch, the system and NumPy say where memory is refused."""


def usual_limit() -> int:
    """Return the bytes that a worker may take unless the user says otherwise.

    Windows has no such limit.
    """
    if sys.platform == "win32":
        return LEAST
    return max(LEAST, int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE))


def parse_bytes(text: str) -> int:
    """Return the bytes that a text such as ``3GB``, ``800 MB`` or ``4294967296`` stands for.

    Raises
    ------
    ValueError
        If it stands for none.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no amount of memory, such as 3GB")
    number = float(found["number"]) * _UNITS[found["unit"].lower()]
    if number > _MOST:
        raise ValueError(f"{text.strip()[:40]} is more than any machine has")
    return int(number)


def parse_limit(text: str) -> int:
    """Return the bytes that a text stands for, as a limit of the worker.

    Raises
    ------
    ValueError
        If it stands for none, or for less than torch and TVM need to start.
    """
    number = parse_bytes(text)
    if number < LEAST:
        raise ValueError(f"torch and TVM need {bytes_text(LEAST)} at least")
    return number


def bytes_text(number: int) -> str:
    """Return an amount of memory for people: ``3 GB``, ``1.5 GB``, ``800 MB``, ``200 B``."""
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if number >= unit:
            # Up to 1023 of a unit are written in full.
            return f"{number / unit:.{4 if number >= 1000 * unit else 3}g} {name}"
    return f"{number} B"


def limit_memory(limit: int) -> None:
    """Let this process and those that it starts have so many bytes of data each, if it can be done.

    An allocation beyond that fails, in the call that makes it. Only what is written counts, and
    not the code of libraries or files that are mapped.
    """
    if sys.platform == "win32":
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def limit_in_force() -> int | None:
    """Return the bytes of data that this process may have; ``None`` without a limit."""
    if sys.platform == "win32":
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return None if soft == resource.RLIM_INFINITY else soft


def taken_by_group(group: int) -> tuple[int, int]:
    """Return the bytes that the processes of a group hold, and how many threads they have.

    What files back is not counted.
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
            continue  # it has ended, or is somebody else's
    return held, tasks


def task_limit() -> int:
    """Return how many processes and threads a child may have, with all that it starts.

    torch, TVM and OpenMP have a pool of one thread for each processor, each; torch starts up to 32
    processes to compile, which have such a pool as well. More that are all at work would leave
    nothing else a turn.
    """
    return 256 + 32 * (os.cpu_count() or 1)


def is_shortage(error: BaseException | str) -> bool:
    """Return whether an error, or what it says, is that memory was refused."""
    return isinstance(error, MemoryError) or _SAID.search(str(error)) is not None


def shortage(reason: str, where: str = "") -> Problem:
    """Return the problem of an allocation that was refused."""
    limit = limit_in_force()
    bound = "" if limit is None else f" within the limit of {bytes_text(limit)}"
    return Problem(
        what=f"the memory does not suffice{bound}: {reason}",
        where=where,
        todo="Allow more memory (Run, Memory limit; or --memory-limit), or make the inputs smaller",
        code="memory",
    )

"""The user's cache: derived data that is kept across sessions."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import IO

import platformdirs

if sys.platform != "win32":
    import fcntl


CACHE = "LOWERSCOPE_CACHE"
"""Environment variable with the cache folder of this process, in place of the user's."""


def user_cache_folder() -> Path:
    """Return the folder of the user's cache; it may not be there yet."""
    return platformdirs.user_cache_path("lowerscope", appauthor=False)


def cache_folder() -> Path:
    """Return the folder that this process writes to, which is not the user's in a sandbox."""
    return Path(os.environ.get(CACHE) or user_cache_folder())


def fallback_of(file: Path) -> Path | None:
    """Return the file of the user's cache that is read where this process's has none.

    ``None`` where both caches are the same.
    """
    if CACHE not in os.environ:
        return None
    return user_cache_folder() / file.relative_to(cache_folder())


def lock_file(opened: IO[bytes]) -> bool:
    """Lock a file until it is closed or its process exits; return whether that was possible."""
    if sys.platform == "win32":
        return True  # where nobody can remove a file that is open
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def processor_name() -> str:
    """Return the name of the processor, as far as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no Linux: what Python knows has to do
    return platform.processor() or platform.machine()

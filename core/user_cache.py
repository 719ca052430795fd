"""The user's cache: what can be made again, and is kept from one session to the next."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path
from typing import IO

from lowerscope.core.directories import open_file

if sys.platform != "win32":
    import fcntl


CACHE = "LOWERSCOPE_CACHE"
"""Names the folder that this process has for its cache, in place of the user's."""


def user_cache_folder() -> Path:
    """Return the folder of the user's cache; it may not be there yet."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "lowerscope"


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


def write_whole(file: Path, data: bytes) -> None:
    """Write a file so that no reader sees a part of it.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    # A new file: what has the name by chance, such as a link, is not written through.
    with contextlib.suppress(FileNotFoundError):
        part.unlink()
    with os.fdopen(open_file(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as opened:
        opened.write(data)
    part.replace(file)


def lock_file(opened: IO[bytes]) -> bool:
    """Lock a file until it is closed, or its process ends; return whether that was possible."""
    if sys.platform == "win32":
        return True  # where nobody can remove a file that is open
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def processor_name() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no Linux: what Python knows has to do
    return platform.processor() or platform.machine()

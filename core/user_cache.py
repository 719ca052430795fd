"""The user's cache: what can be made again, and is kept from one session to the next."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl


def cache_folder() -> Path:
    """Return the folder; it may not be there yet."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "lowerscope"


def write_whole(file: Path, data: bytes) -> None:
    """Write a file so that no reader sees a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(data)
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

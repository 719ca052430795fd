"""The user's cache: what can be made again, and is kept from one session to the next."""

from __future__ import annotations

import os
import platform
from pathlib import Path


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


def processor_name() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no Linux: what Python knows has to do
    return platform.processor() or platform.machine()

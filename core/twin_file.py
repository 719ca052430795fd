"""A file that is saved without another one taking its place: two files that exchange their names.

Where something is mounted on a file, as on what a sandbox keeps read-only, the kernel takes that
away when another file takes its name. When two files exchange their names, what is mounted on each
goes with it. So a session beside which code may write is saved in its twin, which is as read-only
there, and both exchange their names at once. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

_HERE = -100
"""``AT_FDCWD``: paths are taken as they are."""

_EXCHANGE = 2
"""``RENAME_EXCHANGE``, of Linux."""


def twin_of(path: Path) -> Path:
    """Return the path of a file's twin: a hidden one beside it."""
    return path.parent / f".{path.name}~"


def make_twin(path: Path) -> bool:
    """Give a file a twin that is like it; return whether the two can exchange their names.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    twin = twin_of(path)
    twin.unlink(missing_ok=True)
    with path.open("rb") as there, twin.open("xb") as made:
        shutil.copyfileobj(there, made)
    shutil.copymode(path, twin)
    if _exchange(path, twin):
        return True
    twin.unlink()
    return False


def write_by_twin(path: Path, content: bytes) -> bool:
    """Write a file by way of its twin, whole or not at all; return whether it has one to do that.

    Raises
    ------
    OSError
        If it cannot be written; what was there is as it was.
    """
    twin = twin_of(path)
    if not path.is_file():
        return False
    try:
        descriptor = os.open(twin, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return _exchange(twin, path)


def _exchange(one: Path, other: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    paths = (os.fsencode(one), os.fsencode(other))
    return bool(rename(_HERE, paths[0], _HERE, paths[1], _EXCHANGE) == 0)

"""The temporary files of the window's children, none of which outlive them.

Each child has a folder of its own, which whoever started it removes when it has ended: whatever was
in there, and however it ended. The folder's name has the process that made it, so that the next
start can remove those of a process that was killed. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lowerscope.core.engine.running_call import call_files

_PREFIX = "lowerscope-of-"

_TRIES = 10
_PAUSE = 0.05
"""Seconds between them: what a child had started may still be ending."""


def new_folder() -> str:
    """Make a folder for the temporary files of a child of this process."""
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it."""
    for _ in range(_TRIES):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        time.sleep(_PAUSE)


def remove_own() -> None:
    """Remove the folder of this process: whoever made it has gone."""
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(_PREFIX):
        remove_folder(str(folder))


def sweep() -> None:
    """Remove what processes of this user have left that were killed."""
    for path in (*Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"), *call_files()):
        with contextlib.suppress(OSError):
            if _is_left(path):
                path.unlink() if path.is_file() else remove_folder(str(path))


def _is_left(path: Path) -> bool:
    """Return whether the process that a file or folder is named after has gone."""
    if sys.platform != "win32" and path.lstat().st_uid != os.getuid():
        return False
    number = next(_numbers(path.name), None)
    return number is not None and not _is_alive(number)


def _numbers(name: str) -> Iterator[int]:
    return (int(each) for each in name.split("-") if each.isdecimal())


def _is_alive(number: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill would end it there
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

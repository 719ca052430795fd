"""Temporary files, none of which outlive the process that they are for.

Each child of a window, and each command, has a folder of its own, which its parent removes when it
has ended, however it ended. The name of the folder has the process that made it, so that the next
start of a window or a command can remove those of a killed process. So have the other temporary
places: `sweep` knows all of them. Files that replace the user's are in `core.files.atomic_write`,
and the cache of tuning and measuring, in `core.files.cache`. This module imports neither torch nor
TVM.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lowerscope.core.files.atomic_write import remove_leftovers
from lowerscope.core.files.in_memory import FOLDER
from lowerscope.core.files.paths import cache_folder, remove
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox import folder as sandbox_folder

COMPILED = "TORCHINDUCTOR_CACHE_DIR"
"""Environment variable with torch's cache folder of compiled code."""

TORCH = "compiled-by-torch"
"""Folder for that in the cache, which code in a sandbox could never write to."""

_PREFIX = "lowerscope-of-"

_TRIES = 10
_PAUSE = 0.05
"""Seconds between attempts: processes that a child had started may still be ending."""


def new_folder() -> str:
    """Make a folder for the temporary files of a child of this process."""
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    """Make temporary files of this process, and of those that it starts, in a folder of its own."""
    before, maker, folder = os.environ.get("TMPDIR"), os.getpid(), new_folder()
    # Code that torch has compiled is not temporary: the next process uses it as well.
    os.environ.setdefault(COMPILED, str(cache_folder() / TORCH))
    _use(folder)
    try:
        yield
    finally:
        _use(before)
        # A forked copy of this process leaves it to the first.
        if os.getpid() == maker:
            remove_folder(folder)


def _use(folder: str | None) -> None:
    """Set the folder of temporary files, or the system's default."""
    if folder is None:
        os.environ.pop("TMPDIR", None)
    else:
        os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # it looks again


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it."""
    for _ in range(_TRIES):
        remove(path)
        if not os.path.lexists(path):
            return
        time.sleep(_PAUSE)


def remove_own() -> None:
    """Remove the folder of this process, whose parent has gone."""
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(_PREFIX):
        remove_folder(str(folder))


def sweep() -> None:
    """Remove the files that killed processes of this user have left."""
    remove_leftovers()
    if bubblewrap.is_inside():
        return  # from where no process can be seen that is outside
    for path in _temporary():
        with contextlib.suppress(OSError):
            if _is_left(path):
                remove_folder(str(path))
    for path in sandbox_folder.folders():
        with contextlib.suppress(OSError):
            if _is_left(path):
                sandbox_folder.finish(path)


def _temporary() -> Iterator[Path]:
    """Yield the files and folders that are named after processes."""
    for prefix in (_PREFIX, FOLDER):
        yield from Path(tempfile.gettempdir()).glob(f"{prefix}*")


def _is_left(path: Path) -> bool:
    """Return whether the process that a file or folder is named after has gone."""
    if sys.platform != "win32" and path.lstat().st_uid != os.getuid():
        return False
    number = next((int(each) for each in path.name.split("-") if each.isdecimal()), None)
    return number is not None and not _is_alive(number)


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

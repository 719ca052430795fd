"""Temporary files, none of which outlive the process that they are for.

Each child of a window, and each command, has a folder of its own, which whoever started it removes
when it has ended: whatever was in there, and however it ended. The name of the folder has the
process that made it, so that the next start of a window or a command can remove those of a process
that was killed. So it is with the other places where something lies for as long as a process needs
it: `sweep` knows all of them. Files that take the place of the user's are `core.unfinished`'s, and
what tuning and measuring keep is `core.cache_limit`'s. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lowerscope.core import sandbox, sandbox_folder, unfinished
from lowerscope.core.directories import remove
from lowerscope.core.sources.handed_over import FOLDER
from lowerscope.core.user_cache import cache_folder

COMPILED = "TORCHINDUCTOR_CACHE_DIR"
"""Says to torch where to keep what it has compiled."""

TORCH = "compiled-by-torch"
"""The folder for that in the cache, where the code that runs in a sandbox never could write."""

_PREFIX = "lowerscope-of-"

_TRIES = 10
_PAUSE = 0.05
"""Seconds between them: what a child had started may still be ending."""


def new_folder() -> str:
    """Make a folder for the temporary files of a child of this process."""
    return tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    """Have this process, and those that it starts, make temporary files in a folder of its own."""
    before, maker, folder = os.environ.get("TMPDIR"), os.getpid(), new_folder()
    # What torch has compiled is no temporary file: it serves the next process as well.
    os.environ.setdefault(COMPILED, str(cache_folder() / TORCH))
    _use(folder)
    try:
        yield
    finally:
        _use(before)
        # A copy of this process leaves it to the first.
        if os.getpid() == maker:
            remove_folder(folder)


def _use(folder: str | None) -> None:
    """Have temporary files made in a folder, or where the system says."""
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
    """Remove the folder of this process: whoever made it has gone."""
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(_PREFIX):
        remove_folder(str(folder))


def sweep() -> None:
    """Remove what processes of this user have left that were killed."""
    unfinished.sweep()
    if sandbox.is_inside():
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
    """Yield what carries the number of the process that it is for."""
    for prefix in (_PREFIX, FOLDER):
        yield from Path(tempfile.gettempdir()).glob(f"{prefix}*")


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

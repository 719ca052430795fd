"""The folder that sandboxed processes may write to, and the import of cache entries from it.

A window, or a command, has one such folder for all of its sandboxes, and removes it at its end. All
else, the user's cache included, is read-only in a sandbox. Nothing outside trusts what is in the
folder: only regular files of this user with names of cache entries are imported, and no link is
followed. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lowerscope.core.files.cache import SANDBOXED, TRACES, read_kept, write_kept
from lowerscope.core.files.directories import (
    CACHE,
    files_below,
    open_directory,
    open_file_below,
    remove,
    user_cache_folder,
)

CODE_CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "torch",
    "TORCH_EXTENSIONS_DIR": "torch-extensions",
    "TRITON_CACHE_DIR": "triton",
}
"""Environment variables that name the caches of compiled code and pickles of libraries, and the
folders for these. Their content is executed, so a sandbox shares none with anybody."""

_FOLDERS = "sandboxes"

_MOST = 64 << 20
"""Maximum size of an imported file, in bytes."""

_VALUES = re.compile(r"peaks-[\w-]{1,80}\.json|tuning/[\w-]{1,80}/(about|f-[\w-]{1,120})\.json")
_TRACES = re.compile(rf"tuning/[\w-]{{1,80}}/({'|'.join(map(re.escape, TRACES))})")


class SandboxFolder:
    """The folder of this process's sandboxes.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self) -> None:
        place = user_cache_folder() / _FOLDERS
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The folder; all of it can be written to in the sandbox.
        self.path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=place))
        # Held by descriptor: this folder is read, whatever replaces it.
        self._opened: int | None = open_directory(self.path)
        self._maker = os.getpid()
        self.cache.mkdir()

    @property
    def cache(self) -> Path:
        """The cache of the processes in the sandbox."""
        return self.path / "cache"

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables of a process in the sandbox that point to the folder."""
        code = {name: str(self.cache / folder) for name, folder in CODE_CACHES.items()}
        return {CACHE: str(self.cache), **code}

    def new_folder(self) -> Path:
        """Make a folder for the files of one request.

        Raises:
            OSError: If it cannot be made.
        """
        return Path(tempfile.mkdtemp(prefix="files-", dir=self.path))

    def take_over(self) -> None:
        """Copy tuning results and measurements to the user's cache, as far as possible."""
        if self._opened is not None:
            _take_over(self._opened)

    def close(self) -> None:
        """Import cache entries, and remove the folder."""
        if self._opened is not None and os.getpid() == self._maker:
            _take_over(self._opened)
            os.close(self._opened)
            self._opened = None
            remove(self.path)


_own: dict[Path, SandboxFolder] = {}
"""Folders by the user's cache, which differs in tests alone."""


def own_folder() -> SandboxFolder:
    """Return the folder of this process's sandboxes, which is removed when the process ends.

    Raises:
        OSError: If it cannot be made.
    """
    place = user_cache_folder()
    if place not in _own:
        _own[place] = SandboxFolder()
        atexit.register(_own[place].close)
    return _own[place]


def folders() -> Iterator[Path]:
    """Yield the folders of all processes, named after them."""
    yield from (user_cache_folder() / _FOLDERS).glob("*")


def finish(path: Path) -> None:
    """Import cache entries of a killed process, and remove its folder."""
    with contextlib.suppress(OSError):
        opened = open_directory(path)
        try:
            _take_over(opened)
        finally:
            os.close(opened)
    remove(path)


def _take_over(folder: int) -> None:
    """Import the values and traces in a folder of a sandbox into the user's cache."""
    with contextlib.suppress(OSError):
        opened = open_directory("cache", folder)
        try:
            for name in _names(opened):
                with contextlib.suppress(OSError):
                    _take_over_file(opened, name)
        finally:
            os.close(opened)


def _names(cache: int) -> Iterator[str]:
    """Yield the names of files that may be imported; compiled code is not among them."""
    with os.scandir(cache) as entries:
        yield from sorted(each.name for each in entries if each.name.startswith("peaks-"))
    with contextlib.suppress(OSError):
        tuned = open_directory("tuning", cache)
        try:
            yield from (f"tuning/{name}" for name in files_below(tuned))
        finally:
            os.close(tuned)


def _take_over_file(cache: int, name: str) -> None:
    if _VALUES.fullmatch(name):
        target = user_cache_folder() / name
    elif _TRACES.fullmatch(name):
        target = user_cache_folder() / SANDBOXED / name
    else:
        return
    with os.fdopen(open_file_below(cache, name), "rb") as file:
        data = file.read(_MOST + 1)
    if len(data) > _MOST:
        return
    with contextlib.suppress(FileNotFoundError):
        if read_kept(target) == data:
            return
    write_kept(target, data)

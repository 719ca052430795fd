"""The folder that sandboxed processes may write to, and what is copied out of it.

A window, or a command, has one such folder for all of its sandboxes, and removes it at its end. All
else, the user's cache included, is read-only in a sandbox. Nothing outside trusts what is in the
folder: cache entries of known names, and the files that were announced before code ran, are copied
out, plain ones only, and no link is followed. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from lowerscope.core.files.atomic_write import copy_below
from lowerscope.core.files.cache import SANDBOXED, TRACES, read_kept, write_kept
from lowerscope.core.files.paths import (
    CACHE,
    files_below,
    open_directory,
    open_file,
    open_file_below,
    open_plain,
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


MODE = 0o644
"""Mode of the copied files."""

Takes = Callable[[str], bool]
"""Predicate on a name, relative to the folder: whether a file of that name was announced."""


class SandboxOutput:
    """A folder for the output of a sandboxed process, and its copying to the user's folder.

    Args:
        place: The folder of the sandboxes.
        target: The user's folder.
        takes: Says which files were announced.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, place: SandboxFolder, target: Path, takes: Takes) -> None:
        self.target = target
        self._takes = takes
        self.folder = place.new_folder()  # The folder to write to.
        # Held by descriptor: this folder is read, whatever replaces it.
        self._opened: int | None = open_directory(self.folder)

    def put_in(self, source: Path) -> None:
        """Copy a file of the user's into the folder, if it exists.

        Raises:
            OSError: If it cannot be read, or written; also if the process has taken its name.
        """
        assert self._opened is not None
        with contextlib.suppress(FileNotFoundError), open_plain(source) as file:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(open_file(source.name, flags, self._opened), "wb") as copy:
                shutil.copyfileobj(file, copy)

    def names(self) -> tuple[str, ...]:
        """Return the names of the announced files that are there, relative to the folder.

        Raises:
            OSError: If the folder cannot be read.
        """
        assert self._opened is not None
        return tuple(name for name in files_below(self._opened) if self._takes(name))

    def others(self) -> tuple[str, ...]:
        """Return the names of files that were not announced."""
        assert self._opened is not None
        return tuple(name for name in files_below(self._opened) if not self._takes(name))

    def copy_out(self, replaceable: Callable[[str], bool]) -> tuple[Path, ...]:
        """Copy the announced files to the user's folder, and return their paths there.

        Args:
            replaceable: Predicate on a name: whether an existing file may be replaced.

        Raises:
            OSError: If one of them is not a regular file, exists by now, or cannot be written;
                earlier copies stay.
        """
        assert self._opened is not None
        names = self.names()
        for name in names:
            if not replaceable(name) and os.path.lexists(self.target / name):
                raise FileExistsError(errno.EEXIST, f"{name} is there by now")
        for name in names:
            with os.fdopen(open_file_below(self._opened, name), "rb") as file:
                copy_below(file.fileno(), self.target, name, MODE)
        return tuple(self.target / name for name in names)

    def close(self) -> None:
        """Remove the folder."""
        if self._opened is not None:
            remove(self.folder)
            with contextlib.suppress(OSError):
                os.close(self._opened)
            self._opened = None


def only(names: Collection[str]) -> Takes:
    """Return a predicate that accepts these names."""
    return frozenset(names).__contains__

"""Copying of files from the sandbox to the user's folders.

The process in the sandbox may run code that nobody has read. So it writes to a folder of its
sandbox, and its parent copies out exactly the files that were announced before it ran: plain ones,
without their modes, and without following a link. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from lowerscope.core.files.atomic_write import copy_below
from lowerscope.core.files.directories import (
    files_below,
    open_directory,
    open_file,
    open_file_below,
    remove,
)
from lowerscope.core.files.paths import open_plain
from lowerscope.core.sandbox.folder import SandboxFolder

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

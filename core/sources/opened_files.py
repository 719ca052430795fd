"""Recording of the files of a folder that a ``with`` block opens for reading."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ACCESS = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


class OpenedFiles:
    """Files below a folder that were opened.

    Parameters
    ----------
    folder
        Absolute.
    """

    def __init__(self, folder: Path) -> None:
        self._below = os.path.join(folder, "")
        self._read: dict[str, None] = {}
        self._written: set[str] = set()

    @property
    def read(self) -> tuple[Path, ...]:
        """Return the existing files that were only read: files that the code wrote are excluded."""
        paths = (Path(name) for name in self._read if name not in self._written)
        return tuple(path for path in paths if path.suffix != ".pyc" and path.is_file())

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Record the files that this thread opens in the body."""
        _install()
        outer = getattr(_watching, "files", None)
        _watching.files = self
        try:
            yield
        finally:
            _watching.files = outer

    def note(self, name: str, mode: str | None, flags: int) -> None:
        """Record one file."""
        path = os.path.abspath(name)
        if not path.startswith(self._below):
            return
        if mode is None:
            writes = flags & _ACCESS != os.O_RDONLY
        else:
            writes = any(letter in mode for letter in "wax+")
        if writes:
            self._written.add(path)
        else:
            self._read[path] = None


_watching = threading.local()
_installing = threading.Lock()
_installed = False


def _install() -> None:
    """Install the audit hook once: Python cannot remove one."""
    global _installed
    with _installing:
        if not _installed:
            sys.addaudithook(_see)
            _installed = True


def _see(event: str, args: tuple[Any, ...]) -> None:
    if event != "open":
        return
    files = getattr(_watching, "files", None)
    if files is not None and isinstance(args[0], (str, bytes)):
        files.note(os.fsdecode(args[0]), args[1], args[2])

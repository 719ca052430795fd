"""Opening of files that others have named: regular files only.

A session may name a pipe, which nobody writes to, or a device that never ends: reading it would
block forever. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags that open a pipe without waiting for a writer, to be recognised as one."""


def open_plain(path: str | Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises
    ------
    OSError, ValueError
        If it cannot be opened, or is not a regular file: a folder, a pipe, a device.
    """
    opened = os.open(path, _FLAGS)
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_plain(path: str | Path) -> bytes:
    """Return the content of a file; see `open_plain`."""
    with open_plain(path) as file:
        return file.read()

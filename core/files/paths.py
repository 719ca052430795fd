"""Paths that a user writes, and the errors of those that cannot be read or written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

from lowerscope.core.model.problems import LowerscopeError

# --- Opening of files that others have named: regular files only ---
#
# A session may name a pipe, which nobody writes to, or a device that never ends: reading it would
# block forever.

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags that open a pipe without waiting for a writer, to be recognised as one."""


def open_plain(path: str | Path) -> BufferedReader:
    """Open a regular file for reading.

    Raises an `OSError` or `ValueError` if it cannot be opened, or is not a regular file: a folder,
    a pipe, a device.
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


def user_path(text: str) -> Path:
    """Return the path that a user wrote, with ``~`` for the home folder where there is one."""
    # With a null byte no such file can exist, and looking for the home folder fails.
    return Path(text if "\0" in text else os.path.expanduser(text))


def check_readable(path: Path, what: str) -> None:
    """Raise a `LowerscopeError` unless `path` is a file that can be opened.

    Args:
        path: The file.
        what: Role of the file: ``"source"``, ``"input"``, …
    """
    match why_unreadable(path):
        case None:
            return
        case FileNotFoundError():
            reason, todo = "there is no such file", f"Check the path of the {what}"
        case IsADirectoryError():
            reason, todo = "this is a folder, not a file", f"Give the file of the {what}"
        case PermissionError():
            reason, todo = "the file may not be read", "Check its permissions"
        case failure:
            said = getattr(failure, "strerror", None) or failure
            reason, todo = f"the file cannot be opened ({said})", f"Check the path of the {what}"
    raise LowerscopeError(reason, where=str(path), todo=todo)


def not_done(what: str, path: Path, error: OSError) -> LowerscopeError:
    """Return the error of a failed action on a file: ``"the file cannot be written"``."""
    return LowerscopeError(
        f"{what} ({error.strerror or error})", where=str(path), todo="Choose another file"
    )


def cannot_write(error: OSError, path: object) -> LowerscopeError:
    """Return the error of a file, or of a folder, that cannot be written."""
    return LowerscopeError(
        f"it cannot be written: {error.strerror or error}",
        where=str(path),
        todo="Choose a folder that you may write to",
    )


def check_not_read(path: Path, where: str, read: Iterable[Path]) -> None:
    """Raise a `LowerscopeError` if writing to `path` would replace one of the files `read`.

    Args:
        where: The path as the user gave it, for the message.
    """
    if any(is_same_file(path, each) for each in read):
        raise LowerscopeError(
            "this file is read by the command, and would be overwritten",
            where=where,
            todo="Choose another place to write to",
        )


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file; not if one of them leads to none."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def why_unreadable(path: Path) -> OSError | ValueError | None:
    """Return why a file cannot be opened for reading; ``None`` if it can."""
    try:
        with open_plain(path):
            return None
    except (OSError, ValueError) as error:
        return error

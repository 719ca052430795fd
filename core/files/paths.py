"""Paths that a user writes, the user's cache folder, and access to what others may have written to.

Directories of sandboxed code are read and removed by descriptor, without following a link, and
never outside of the directory or of its device. Only regular files are opened: a session may name a
pipe, which nobody writes to, or a device that never ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path
from typing import IO

import platformdirs

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _

if sys.platform != "win32":
    import fcntl


_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A pipe is opened without waiting for its other end, to be recognised."""

_DEPTH = 8
"""Maximum depth of the search for files below a directory."""

_MOST = 10_000
"""Maximum number of files found in one directory."""


def open_directory(path: str | Path, dir_fd: int | None = None) -> int:
    """Open a directory of this user, whose last name is not a link; return its descriptor.

    Raises an `OSError` if it is not a directory, or another user's.
    """
    descriptor = os.open(path, _DIRECTORY, dir_fd=dir_fd)
    try:
        _check_owner(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file(path: str | Path, flags: int = os.O_RDONLY, dir_fd: int | None = None) -> int:
    """Open a regular file of this user, whose last name is not a link; return its descriptor.

    Raises an `OSError` if it cannot be opened, is not a regular file, or is another user's.
    """
    descriptor = os.open(path, flags | _FILE, 0o600, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        _check_owner(status, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_file_below(folder: int, name: str) -> int:
    """Open a regular file below an open directory; return its descriptor.

    Raises:
        OSError: As `open_file`; also if a directory on the way is a link.
    """
    *parents, last = Path(name).parts
    with contextlib.ExitStack() as stack:
        for part in parents:
            folder = open_directory(part, folder)
            stack.callback(os.close, folder)
        return open_file(last, dir_fd=folder)


def files_below(folder: int) -> list[str]:
    """Return the sorted names of everything below an open directory except directories.

    Raises an `OSError` if there are implausibly many.
    """
    found: list[str] = []
    for place, directories, files, _other in os.fwalk(dir_fd=folder, follow_symlinks=False):
        found += [str(Path(place, name)) for name in files]
        if len(found) > _MOST or len(directories) > _MOST:
            raise OSError(errno.EMFILE, f"there are more than {_MOST} files")
        if len(Path(place).parts) >= _DEPTH:
            directories.clear()
    return sorted(found)


def remove(path: str | Path) -> None:
    """Remove a file, a link, or a directory with its contents, as far as possible."""
    path = Path(path)
    if sys.platform == "win32":
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        parent = os.open(path.parent, _DIRECTORY & ~os.O_NOFOLLOW)
        try:
            remove_below(parent, path.name)
        finally:
            os.close(parent)


def remove_below(folder: int, name: str) -> None:
    """Remove a name in an open directory, with its contents.

    Raises an `OSError` if part of it cannot be removed, or is on another device.
    """
    if not _is_directory(folder, name):
        os.unlink(name, dir_fd=folder)
        return
    _let_in(folder, name)
    opened = open_directory(name, folder)
    try:
        if os.fstat(opened).st_dev != os.fstat(folder).st_dev:
            raise OSError(errno.EXDEV, "it is on another device", name)
        _empty(opened)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=folder)


def _empty(folder: int) -> None:
    """Remove everything in a directory.

    The contents of subdirectories are moved up first: two are open at once, however deep they are
    nested.
    """
    device = os.fstat(folder).st_dev
    number = 0
    while names := os.listdir(folder):
        for name in names:
            if not _is_directory(folder, name):
                os.unlink(name, dir_fd=folder)
                continue
            _let_in(folder, name)
            opened = open_directory(name, folder)
            try:
                if os.fstat(opened).st_dev != device:
                    raise OSError(errno.EXDEV, "it is on another device", name)
                for inner in os.listdir(opened):
                    if _is_directory(opened, inner):
                        _let_in(opened, inner)
                        number = _free_number(folder, number)
                        os.rename(inner, f"{number}", src_dir_fd=opened, dst_dir_fd=folder)
                    else:
                        os.unlink(inner, dir_fd=opened)
            finally:
                os.close(opened)
            os.rmdir(name, dir_fd=folder)


def _free_number(folder: int, number: int) -> int:
    """Return the first number from `number` on that is not a name in a directory."""
    while True:
        number += 1
        try:
            os.stat(f"{number}", dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return number


def _is_directory(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _let_in(folder: int, name: str) -> None:
    """Let this user list and change a directory, whatever its mode."""
    if sys.platform != "linux":
        return
    # A path's own mode can be changed by its descriptor alone, so that no link is followed.
    opened = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=folder)
    try:
        if os.fstat(opened).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{opened}", 0o700)
    finally:
        os.close(opened)


def _check_owner(status: os.stat_result, path: str | Path) -> None:
    if sys.platform != "win32" and status.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))


CACHE = "LOWERSCOPE_CACHE"
"""Environment variable with the cache folder of this process, in place of the user's."""


def user_cache_folder() -> Path:
    """Return the folder of the user's cache; it may not be there yet."""
    return platformdirs.user_cache_path("lowerscope", appauthor=False)


def cache_folder() -> Path:
    """Return the folder that this process writes to, which is not the user's in a sandbox."""
    return Path(os.environ.get(CACHE) or user_cache_folder())


def fallback_of(file: Path) -> Path | None:
    """Return the file of the user's cache that is read where this process's has none.

    ``None`` where both caches are the same.
    """
    if CACHE not in os.environ:
        return None
    return user_cache_folder() / file.relative_to(cache_folder())


def lock_file(opened: IO[bytes]) -> bool:
    """Lock a file until it is closed or its process exits; return whether that was possible."""
    if sys.platform == "win32":
        return True  # where nobody can remove a file that is open
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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


def check_readable(path: Path) -> None:
    """Raise a `LowerscopeError` unless `path` is a file that can be opened."""
    match why_unreadable(path):
        case None:
            return
        case FileNotFoundError():
            reason, todo = _("there is no such file"), _("Check the path")
        case IsADirectoryError():
            reason, todo = (
                _("this is a folder, not a file"),
                _("Give a file"),
            )
        case PermissionError():
            reason, todo = _("no permission to read the file"), _("Check its permissions")
        case failure:
            said = getattr(failure, "strerror", None) or failure
            reason, todo = (
                _("the file cannot be opened ({said})", said=said),
                _("Check the path"),
            )
    raise LowerscopeError(reason, where=str(path), todo=todo)


def not_done(what: str, path: Path, error: OSError) -> LowerscopeError:
    """Return the error of a failed action on a file: ``"the file cannot be written"``."""
    return LowerscopeError(
        _("{event} ({place})", event=what, place=error.strerror or error),
        where=str(path),
        todo=_("Choose another file"),
    )


def cannot_write(error: OSError, path: object) -> LowerscopeError:
    """Return the error of a file, or of a folder, that cannot be written."""
    return LowerscopeError(
        _("it cannot be written: {strerror}", strerror=error.strerror or error),
        where=str(path),
        todo=_("Choose a writable folder"),
    )


def check_not_read(path: Path, where: str, read: Iterable[Path]) -> None:
    """Raise a `LowerscopeError` if writing to `path` would replace one of the files `read`.

    Args:
        where: The path as the user gave it, for the message.
    """
    if any(is_same_file(path, each) for each in read):
        raise LowerscopeError(
            _("this file is read by the command and would be overwritten"),
            where=where,
            todo=_("Choose another output file"),
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

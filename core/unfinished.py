"""Files that are being written, and what is left of those whose process was killed.

A file gets its name when it is whole: whoever reads it reads the old one or the new one. Until then
it lies beside it under a name of Lowerscope's own. That name is noted in the user's cache, in a
file that its process holds a lock on for as long as it writes, and no longer. The next start, and
the next export, remove what is noted by processes that have gone, and nothing else. This module
imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lowerscope.core.directories import open_directory, open_file, remove
from lowerscope.core.user_cache import cache_folder, lock_file

PREFIX = ".lowerscope-"

WRITES = "LOWERSCOPE_WRITES"
"""Names a folder of the user's that a command in a sandbox writes to, and in a second line the
folder of the sandbox that its files are left in for the user's."""

_NOTES = "unfinished"

_PIECE = 1 << 20

_EMPTY_AFTER = 60.0
"""Seconds until a note that says nothing is one of a process that was killed before it could."""


@contextlib.contextmanager
def whole_file(path: Path, mode: int | None = None, *, parents: bool = False) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of another one when the body has ended.

    If the body fails, the other one is as it was. A link stays one, to the new file, and what is
    no plain file, such as a pipe, is written to directly.

    Parameters
    ----------
    path
        The file. In a sandbox, what `WRITES` names is written to the folder that stands for it.
    mode
        The most that its mode allows; ``None`` for the mode of the file that it replaces.
    parents
        Make the folders that it is in, if they are not there.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    meant = Path(os.path.realpath(path))
    path = destination(meant)
    if parents or path != meant:
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        yield path
        return
    with _made(path.parent, path.suffix) as made:
        made.touch(exist_ok=False)
        yield made
        if mode is not None:
            os.chmod(made, mode)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(made, stat.S_IMODE(path.stat().st_mode) & (0o7777 if mode is None else mode))
        os.replace(made, path)


def destination(path: Path) -> Path:
    """Return the path that is written to where `path` is meant: another one in a sandbox."""
    target, _, folder = os.environ.get(WRITES, "").rpartition("\n")
    if target and path.is_relative_to(target):
        return Path(folder) / path.relative_to(target)
    return path


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which takes the place of an empty one, or none, as `whole_file` does.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with _made(folder.parent) as made:
        made.mkdir()
        yield made
        if folder.exists():
            folder.rmdir()
        made.rename(folder)


def copy_below(source: int, folder: Path, name: str, mode: int) -> None:
    """Copy an open file to a name below a folder, in place of what is there.

    Code that is hostile may be able to write to the folder: no link in it is followed, one with
    the name is replaced. The copy ends where the file ended when it began, and has its holes.

    Parameters
    ----------
    source
        The descriptor of the file, at its start.
    folder
        Where `name` belongs, which is made if it is not there.
    name
        Relative, with the names of folders on the way, which are made as well.
    mode
        The most that the copy's mode allows.

    Raises
    ------
    OSError
        If it cannot be written; what was there is as it was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    *parents, last = Path(name).parts
    part = f"{PREFIX}{secrets.token_hex(6)}"
    with contextlib.ExitStack() as stack:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, opened)
        for each in parents:
            with contextlib.suppress(FileExistsError):
                os.mkdir(each, dir_fd=opened)
            opened = open_directory(each, opened)
            stack.callback(os.close, opened)
        if _is_folder(last, opened):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name))
        stack.enter_context(_noted(folder.joinpath(*parents, part)))
        copy = open_file(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, opened)
        try:
            with os.fdopen(copy, "wb") as file:
                _copy_data(source, file)
                os.fchmod(copy, _mode(last, opened, mode))
            os.replace(part, last, src_dir_fd=opened, dst_dir_fd=opened)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=opened)
            raise


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _mode(name: str, folder: int, most: int) -> int:
    """Return the mode of a file that takes a name: that of a plain file that has it, or `most`."""
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            return stat.S_IMODE(status.st_mode) & most
    return most


def _copy_data(source: int, copy: IO[bytes]) -> None:
    """Copy what a file has at this moment, but for its holes: it may say that it is of any size."""
    size, at = os.fstat(source).st_size, 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole to the end
        while at < end and (data := os.pread(source, min(end - at, _PIECE), at)):
            copy.seek(at)
            copy.write(data)
            at += len(data)
        if at < end:
            break  # it has become shorter
    copy.truncate(size)


def write_text(path: Path, text: str, newline: str | None = None) -> None:
    """Write a text in UTF-8 in place of what is there; see `whole_file`."""
    with whole_file(path) as made:
        made.write_text(text, encoding="utf-8", newline=newline)


def sweep() -> None:
    """Remove what processes that have gone have noted."""
    for note in _notes().glob("*"):
        # It is somebody else's by now, or another process removes it.
        with contextlib.suppress(OSError):
            _sweep(note)


@contextlib.contextmanager
def _made(folder: Path, suffix: str = "") -> Iterator[Path]:
    """Yield a path in a folder that is noted; what is there after an error is removed."""
    made = folder / f"{PREFIX}{secrets.token_hex(6)}{suffix}"
    with _noted(made):
        try:
            yield made
        except BaseException:
            remove(made)
            raise


@contextlib.contextmanager
def _noted(path: Path) -> Iterator[None]:
    note = _notes() / path.name.removeprefix(PREFIX)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        opened = note.open("xb")
    except OSError:
        # There is no place for notes. It is no reason to write nothing.
        yield
        return
    with opened:
        lock_file(opened)
        opened.write(os.fsencode(path))
        opened.flush()
        try:
            yield
        finally:
            note.unlink(missing_ok=True)


def _sweep(note: Path) -> None:
    if sys.platform == "win32":
        return  # where a lock says nothing: see `lock_file`
    with os.fdopen(open_file(note), "rb") as opened:
        if not lock_file(opened):
            return
        path = Path(os.fsdecode(opened.read()))
        if path.name.startswith(PREFIX) and path.is_absolute():
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_uid == os.getuid():
                    remove(path)
        elif time.time() - os.fstat(opened.fileno()).st_mtime < _EMPTY_AFTER:
            return
    note.unlink(missing_ok=True)


def _notes() -> Path:
    return cache_folder() / _NOTES

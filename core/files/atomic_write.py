"""Atomic file writes, and removal of the temporary files of killed processes.

Readers see the old file or the new one. A file is written under a temporary name beside its
destination, and renamed. The temporary name is noted in the user's cache, in a file that is locked
for as long as its process writes. `remove_leftovers` removes what processes that no longer run
have noted, and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from lowerscope.core.files.paths import (
    cache_folder,
    cannot_write,
    lock_file,
    open_directory,
    open_file,
    remove,
)
from lowerscope.core.model.explanation_records import WrittenFile
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _

PREFIX = ".lowerscope-"

WRITES = "LOWERSCOPE_WRITES"
"""Environment variable of a command in a sandbox: a folder that the user lets it write to, and on
a second line the folder of the sandbox in which files for it are left."""

_NOTES = "unfinished"

_PIECE = 1 << 20

_EMPTY_AFTER = 60.0
"""Seconds after which an empty note belongs to a process that was killed before it wrote it."""


def atomic_write(
    path: Path, content: str | bytes, *, durable: bool = False, private: bool = False
) -> None:
    """Replace the content of a file; see `atomic_file`.

    Raises an `OSError` if the file cannot be written; it is unchanged.

    Args:
        path: The file.
        content: A text is written in UTF-8, with its line ends as they are.
        durable: Return once the file would survive a power failure.
        private: See `atomic_file`.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        with atomic_file(path, private=private) as made, made.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        # The system does not name the file that a full disk has no room for.
        error.filename = error.filename or str(path)
        raise
    if durable and hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the name is in it
        finally:
            os.close(folder)


@contextlib.contextmanager
def atomic_file(path: Path, *, parents: bool = False, private: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces a file when the body has ended.

    If the body fails, the file is unchanged. A file keeps its mode. The target of a link is
    replaced, not the link. What is no regular file, such as a pipe, is written to directly.

    Raises an `OSError` if the file cannot be written.

    Args:
        path: The file. In a sandbox, a file in the folder of `WRITES` is written to the folder that
            stands for it.
        parents: Make the folders that it is in.
        private: The file is in Lowerscope's cache: only this user may read it, its folders are
            made, and a link is replaced, not its target.
    """
    meant = path.absolute() if private else Path(os.path.realpath(path))
    path = destination(meant)
    if parents or private or path != meant:
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not (private and path.is_symlink()):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not private and path.exists() and not path.is_file():
        yield path
        return
    with _made(path.parent, path.suffix) as made:
        made.touch(0o600 if private else 0o666, exist_ok=False)
        yield made
        if not private:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(made, stat.S_IMODE(path.stat().st_mode))
        os.replace(made, path)


def destination(path: Path) -> Path:
    """Return the path that stands for `path` in a sandbox; elsewhere, `path`."""
    target, _, folder = os.environ.get(WRITES, "").rpartition("\n")
    if target and path.is_relative_to(target):
        return Path(folder) / path.relative_to(target)
    return path


def copy_below(source: int, folder: Path, name: str, mode: int) -> None:
    """Copy an open file to a name below a folder, in place of what is there.

    Hostile code may be able to write to the folder: no link in it is followed, and one with the
    name is replaced. The copy ends where the file ended at the start, and keeps its holes.

    Raises an `OSError` if it cannot be written; what was there is unchanged.

    Args:
        source: The descriptor of the file, at its start.
        folder: The folder, which is made if it does not exist.
        name: A relative path; its folders are made as well.
        mode: Mask of the copy's mode.
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
        before = _status(last, opened)
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name))
        stack.enter_context(_noted(folder.joinpath(*parents, part)))
        copy = open_file(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, opened)
        try:
            with os.fdopen(copy, "wb") as file:
                _copy_data(source, file)
                before = _status(last, opened)
                if before is not None and stat.S_ISREG(before.st_mode):
                    mode &= stat.S_IMODE(before.st_mode)
                os.fchmod(copy, mode)
            os.replace(part, last, src_dir_fd=opened, dst_dir_fd=opened)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=opened)
            raise


def remove_leftovers() -> None:
    """Remove the temporary files of processes that no longer run."""
    for note in _notes().glob("*"):
        # It is another user's, or another process removes it.
        with contextlib.suppress(OSError):
            _remove_leftover(note)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _copy_data(source: int, copy: IO[bytes]) -> None:
    """Copy the data of a file without its holes: a hostile file may have any size."""
    size, at = os.fstat(source).st_size, 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = min(os.lseek(source, at, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # a hole to the end
        while at < end and (data := os.pread(source, min(end - at, _PIECE), at)):
            copy.seek(at)
            copy.write(data)
            at += len(data)
        if at < end:
            break  # it has become shorter
    copy.truncate(size)


@contextlib.contextmanager
def _made(folder: Path, suffix: str = "") -> Iterator[Path]:
    """Yield a temporary path that is noted; what has it after an error is removed."""
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
    with contextlib.ExitStack() as stack:
        # Without a note, a killed process leaves its file. That is no reason not to write it.
        with contextlib.suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            opened = stack.enter_context(note.open("xb", buffering=0))
            stack.callback(note.unlink, missing_ok=True)
            lock_file(opened)
            opened.write(os.fsencode(path))
        yield


def _remove_leftover(note: Path) -> None:
    if sys.platform == "win32":
        return  # locks tell nothing there: see `lock_file`
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


# --- Files of a reproduction, written by the window and by the command line ---


EXISTS = "exists"
"""Problem code of files that exist."""


def write_reproduction(
    folder: Path, files: Sequence[WrittenFile], *, force: bool = False
) -> tuple[Path, ...]:
    """Write files to a folder and return their paths; those that have their content already stay.

    Raises a `LowerscopeError` if one cannot be written, or, without `force`, exists with another
    content; nothing is written then.
    """
    missing = [each for each in files if _content(folder / each.name) != each.content]
    there = [each.name for each in missing if (folder / each.name).exists()]
    if there and not force:
        raise LowerscopeError(
            _("the file already exists"),
            where=str(folder / there[0]),
            todo=_("Choose another folder"),
            code=EXISTS,
        )
    for each in missing:
        path = folder / each.name
        try:
            with atomic_file(path, parents=True) as made:
                made.write_bytes(each.content)
        except OSError as error:
            raise cannot_write(error, path) from error
    return tuple(folder / each.name for each in files)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

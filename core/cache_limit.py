"""The bound on the user's cache: what is in it, what goes first, and the command that clears it.

What is kept goes whole or not at all, the least recently used first. Each write is followed by a
look at the sum. Windows and commands that run at once take turns by a lock, which is held for as
long as a file is written or removed, and by a second one on what stays in use for longer.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lowerscope.core.directories import open_file
from lowerscope.core.user_cache import cache_folder, fallback_of, lock_file, write_whole

if sys.platform != "win32":
    import fcntl

USUAL_LIMIT = 1 << 30
"""Bytes that are kept unless the user says otherwise."""

IN_USE = "in-use"
"""In a folder whose traces a tuning adds to: locked for as long as it does."""

TRACES = ("database_tuning_record.json", "database_workload.json")
"""TVM's two files, in the order in which they are removed: records say numbers of workloads."""

SANDBOXED = "sandboxed"
"""The folder of those traces that were measured in a sandbox: they are read in sandboxes alone."""

_LOCK, _LIMIT, _ABOUT = "lock", "limit", "about.json"

_TORN_AFTER = 60.0
"""Seconds until a file that was not written to its end counts as left behind."""


@dataclass(frozen=True)
class Cleared:
    """What was removed, and what could not be since it is in use, in bytes."""

    freed: int
    in_use: int


@dataclass(frozen=True)
class _Entry:
    """Files that are kept and removed together.

    Attributes
    ----------
    used
        When that was last, in seconds since 1970.
    shared
        Whether a tuning may be adding to it at the moment.
    """

    files: tuple[Path, ...]
    size: int
    used: float
    shared: bool = False


def cache_size() -> int:
    """Return how many bytes the cache has."""
    return sum(each.size for each in _entries())


def cache_limit() -> int:
    """Return how many bytes the cache may have, for every window and command."""
    try:
        return int(read_kept(cache_folder() / _LIMIT))
    except (OSError, ValueError):
        return USUAL_LIMIT  # nothing was chosen


def set_cache_limit(limit: int) -> Cleared:
    """Choose how many bytes the cache may have, and remove what is over that."""
    with _alone():
        write_whole(cache_folder() / _LIMIT, str(limit).encode())
        return _reduce(limit)


def clear_cache() -> Cleared:
    """Remove all that the cache has, but for what a tuning that runs is adding to."""
    with _alone():
        return _reduce(-1)


def write_kept(file: Path, data: bytes) -> None:
    """Write a file of the cache, and remove what is over the limit then."""
    with _alone():
        try:
            write_whole(file, data)
        except OSError as error:
            # Of a full disk the system does not say which file it was.
            error.filename = error.filename or str(file)
            raise
        _reduce(cache_limit())


def read_kept(file: Path) -> bytes:
    """Return what a file of the cache has, which counts as a use of it.

    Raises
    ------
    OSError
        If there is no such file.
    """
    try:
        descriptor = open_file(file)
    except FileNotFoundError:
        fallback = fallback_of(file)
        if fallback is None:
            raise
        descriptor = open_file(fallback)
    with os.fdopen(descriptor, "rb") as opened:
        _note_use(opened)
        return opened.read()


@contextlib.contextmanager
def adding_traces(folder: Path) -> Iterator[bool]:
    """Keep TVM's files of a folder for as long as they are added to; tell whether that may be done.

    Two processes cannot add to them at once: each has numbers of its own for its workloads.
    """
    with contextlib.ExitStack() as stack:
        with _alone():
            folder.mkdir(parents=True, exist_ok=True)
            opened = stack.enter_context(_opened(folder / IN_USE))
            free = lock_file(opened)
            for name in TRACES if free else ():
                with contextlib.suppress(FileNotFoundError), (folder / name).open("rb") as traces:
                    _note_use(traces)
        yield free
    with _alone():
        _reduce(cache_limit())


def _note_use(opened: IO[bytes]) -> None:
    """Set the time of the last use alone: what is made of the file goes by that of its change."""
    if os.utime not in os.supports_fd:
        return
    # By descriptor: another process may put a new file in its place meanwhile.
    with contextlib.suppress(OSError):  # somebody else's, or on a disk that cannot be written
        changed = os.fstat(opened.fileno()).st_mtime_ns
        os.utime(opened.fileno(), ns=(time.time_ns(), changed))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes, and threads, from writing and removing files of the cache."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / _LOCK) as opened:
        if sys.platform != "win32":
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _opened(lock: Path) -> IO[bytes]:
    """Open a file that is locked, which need not be there yet."""
    return os.fdopen(open_file(lock, os.O_RDWR | os.O_CREAT), "r+b")


def _reduce(limit: int) -> Cleared:
    """Remove what was not used for longest until no more than `limit` bytes are left."""
    entries = sorted(_entries(), key=lambda each: each.used)
    left, freed, kept = sum(each.size for each in entries), 0, 0
    for entry in entries:
        if left <= limit:
            break
        if _remove(entry):
            freed += entry.size
            left -= entry.size
        else:
            kept += entry.size
    if freed:
        _remove_empty_folders()
    return Cleared(freed, kept)


def _remove(entry: _Entry) -> bool:
    if not entry.shared:
        _unlink(entry.files)
        return True
    with _opened(entry.files[0].parent / IN_USE) as opened:
        if not lock_file(opened):
            return False
        _unlink(entry.files)
        return True


def _unlink(files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _remove_empty_folders() -> None:
    """Remove the folders that say what they are about, and have nothing else any more."""
    for folder in filter(Path.is_dir, _tuned()):
        names = {each.name for each in folder.iterdir()}
        if names <= {_ABOUT, IN_USE}:
            if IN_USE in names:
                with _opened(folder / IN_USE) as opened:
                    if not lock_file(opened):
                        continue
            _unlink([folder / name for name in names])
            folder.rmdir()


def _tuned() -> Iterator[Path]:
    """Yield the folders of what was tuned, for one target each."""
    for folder in (cache_folder() / "tuning", cache_folder() / SANDBOXED / "tuning"):
        if not folder.is_symlink():
            yield from (each for each in folder.glob("*") if not each.is_symlink())


def _entries() -> Iterator[_Entry]:
    """Yield all that is kept; what was not written to its end is the oldest of it."""
    for folder in (cache_folder(), *_tuned()):
        traces: list[Path] = []
        for file in sorted(folder.glob("*")):
            if file.name in TRACES:
                traces.append(file)
            elif file.suffix == ".json" and file.name != _ABOUT:
                yield from _entry(file)
            elif file.suffix[1:].isdigit():
                yield from _entry(file, torn=True)
        yield from _entry(*sorted(traces), shared=True)


def _entry(*files: Path, shared: bool = False, torn: bool = False) -> Iterator[_Entry]:
    try:
        states = [each.stat() for each in files]
    except FileNotFoundError:
        return  # it is being written, and has its name now
    if not states or (torn and time.time() - states[0].st_mtime < _TORN_AFTER):
        return
    used = 0.0 if torn else max(max(each.st_atime, each.st_mtime) for each in states)
    yield _Entry(files, sum(each.st_size for each in states), used, shared)

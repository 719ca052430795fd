"""Size limit of the user's cache, eviction, and the command that clears it.

Entries are evicted whole, the least recently used first. The total size is checked after each
write. Concurrent windows and commands synchronise by a lock, which is held while a file is written
or removed, and by a second one on entries that stay in use for longer.
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

from lowerscope.core.files.atomic_write import PREFIX, atomic_write
from lowerscope.core.files.directories import cache_folder, fallback_of, lock_file, open_file

if sys.platform != "win32":
    import fcntl

USUAL_LIMIT = 1_000_000_000
"""Default size limit, in bytes."""

IN_USE = "in-use"
"""Lock file in a folder of traces, held while a tuning adds to them."""

TRACES = ("database_tuning_record.json", "database_workload.json")
"""TVM's two files, in the order of removal: records refer to workloads by number."""

SANDBOXED = "sandboxed"
"""Folder of the traces that were measured in a sandbox: they are read in sandboxes alone."""

_LOCK, _LIMIT, _ABOUT = "lock", "limit", "about.json"


@dataclass(frozen=True)
class Cleared:
    """Bytes that were removed, and bytes that could not be, since they are in use."""

    freed: int
    in_use: int


@dataclass(frozen=True)
class _Entry:
    """Files that are evicted together."""

    files: tuple[Path, ...]
    size: int
    used: float  # time of the last use, in seconds since 1970
    shared: bool = False  # whether a tuning may be adding to it


def cache_size() -> int:
    """Return the size of the cache, in bytes."""
    return sum(each.size for each in _entries())


def cache_limit() -> int:
    """Return the size limit of the cache, in bytes, which all windows and commands share."""
    try:
        return int(read_kept(cache_folder() / _LIMIT))
    except (OSError, ValueError):
        return USUAL_LIMIT  # nothing was chosen


def set_cache_limit(limit: int) -> Cleared:
    """Set the size limit of the cache, in bytes, and evict what exceeds it."""
    with _alone():
        atomic_write(cache_folder() / _LIMIT, str(limit), private=True)
        return _reduce(limit)


def clear_cache() -> Cleared:
    """Remove everything in the cache except what a running tuning is adding to."""
    with _alone():
        return _reduce(-1)


def write_kept(file: Path, data: bytes) -> None:
    """Write a file of the cache, then evict what exceeds the limit."""
    with _alone():
        atomic_write(file, data, private=True)
        _reduce(cache_limit())


def read_kept(file: Path) -> bytes:
    """Return the content of a file of the cache, and mark it as used.

    Raises an `OSError` if there is no such file.
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
    """Lock TVM's files of a folder while they are added to; yield whether that was possible.

    Two processes cannot add to them at once: each numbers its workloads by itself.
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
    """Set the access time alone: what is derived from the file depends on the modification time."""
    if os.utime not in os.supports_fd:
        return
    # By descriptor: another process may replace the file meanwhile.
    with contextlib.suppress(OSError):  # another user's, or on a read-only disk
        changed = os.fstat(opened.fileno()).st_mtime_ns
        os.utime(opened.fileno(), ns=(time.time_ns(), changed))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Exclude other processes and threads from writing and removing files of the cache."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / _LOCK) as opened:
        if sys.platform != "win32":
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _opened(lock: Path) -> IO[bytes]:
    """Open a lock file, which is created if it does not exist."""
    return os.fdopen(open_file(lock, os.O_RDWR | os.O_CREAT), "r+b")


def _reduce(limit: int) -> Cleared:
    """Evict the least recently used entries until no more than `limit` bytes are left."""
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
    """Remove tuning folders without results."""
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
    """Yield the folders of tuning results, one for each target."""
    for folder in (cache_folder() / "tuning", cache_folder() / SANDBOXED / "tuning"):
        if not folder.is_symlink():
            yield from (each for each in folder.glob("*") if not each.is_symlink())


def _entries() -> Iterator[_Entry]:
    """Yield all entries."""
    for folder in (cache_folder(), *_tuned()):
        traces: list[Path] = []
        for file in sorted(folder.glob("*")):
            if file.name.startswith(PREFIX):
                continue  # being written
            if file.name in TRACES:
                traces.append(file)
            elif file.suffix == ".json" and file.name != _ABOUT:
                yield from _entry(file)
        yield from _entry(*sorted(traces), shared=True)


def _entry(*files: Path, shared: bool = False) -> Iterator[_Entry]:
    try:
        states = [each.stat() for each in files]
    except FileNotFoundError:
        return  # it is being written, and has its name now
    if not states:
        return
    used = max(max(each.st_atime, each.st_mtime) for each in states)
    yield _Entry(files, sum(each.st_size for each in states), used, shared)

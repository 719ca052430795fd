"""The user's cache of tuning and measuring: its files, a bound on their size, and its removal.

A write that takes the cache beyond its bound removes the oldest entries, whole. Two processes may
not add to TVM's files of a folder at once, which are locked meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lowerscope.core.files.atomic_write import PREFIX, atomic_write
from lowerscope.core.files.paths import cache_folder, fallback_of, lock_file, open_file

LIMIT = 1_000_000_000
"""Size bound of the cache, in bytes."""

IN_USE = "in-use"
"""Lock file in a folder of traces, held while a tuning adds to them."""

TRACES = ("database_tuning_record.json", "database_workload.json")
"""TVM's two files, in the order of removal: records refer to workloads by number."""

SANDBOXED = "sandboxed"
"""Folder of the traces that were measured in a sandbox: they are read in sandboxes alone."""

_ABOUT = "about.json"


@dataclass(frozen=True)
class Cleared:
    """Bytes that were removed, and bytes that could not be, since they are in use."""

    freed: int
    in_use: int


@dataclass(frozen=True)
class _Entry:
    """Files that are removed together."""

    files: tuple[Path, ...]
    size: int
    written: float  # time of the last change, in seconds since 1970


def cache_size() -> int:
    """Return the size of the cache, in bytes."""
    return sum(each.size for each in _entries())


def clear_cache() -> Cleared:
    """Remove everything in the cache except what a running tuning is adding to."""
    cleared = _reduce(-1)
    for folder in filter(Path.is_dir, _tuned()):
        if not any((folder / name).exists() for name in TRACES):
            (folder / _ABOUT).unlink(missing_ok=True)
    return cleared


def write_kept(file: Path, data: bytes) -> None:
    """Write a file of the cache, then remove what exceeds its bound."""
    atomic_write(file, data, private=True)
    _reduce(LIMIT)


def read_kept(file: Path) -> bytes:
    """Return the content of a file of the cache.

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
        return opened.read()


@contextlib.contextmanager
def adding_traces(folder: Path) -> Iterator[bool]:
    """Lock TVM's files of a folder while they are added to; yield whether that was possible.

    Two processes cannot add to them at once: each numbers its workloads by itself.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / IN_USE) as opened:
        yield lock_file(opened)
    _reduce(LIMIT)


def _opened(lock: Path) -> IO[bytes]:
    """Open a lock file, which is created if it does not exist."""
    return os.fdopen(open_file(lock, os.O_RDWR | os.O_CREAT), "r+b")


def _reduce(limit: int) -> Cleared:
    """Remove the oldest entries until no more than `limit` bytes are left."""
    entries = sorted(_entries(), key=lambda each: each.written)
    left, freed, kept = sum(each.size for each in entries), 0, 0
    for entry in entries:
        if left <= limit:
            break
        if _remove(entry):
            freed += entry.size
            left -= entry.size
        else:
            kept += entry.size
    return Cleared(freed, kept)


def _remove(entry: _Entry) -> bool:
    with contextlib.ExitStack() as stack:
        if entry.files[0].name in TRACES:
            opened = stack.enter_context(_opened(entry.files[0].parent / IN_USE))
            if not lock_file(opened):
                return False
        for file in entry.files:
            file.unlink(missing_ok=True)
    return True


def _tuned() -> Iterator[Path]:
    """Yield the folders of tuning results, one for each target."""
    for folder in (cache_folder() / "tuning", cache_folder() / SANDBOXED / "tuning"):
        if not folder.is_symlink():
            yield from (each for each in folder.glob("*") if not each.is_symlink())


def _entries() -> Iterator[_Entry]:
    for folder in (cache_folder(), *_tuned()):
        yield from _entry(*(folder / name for name in TRACES))
        for file in folder.glob("*.json"):
            # One with the prefix is being written.
            if file.name not in (*TRACES, _ABOUT) and not file.name.startswith(PREFIX):
                yield from _entry(file)


def _entry(*files: Path) -> Iterator[_Entry]:
    states = []
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            states.append(file.stat())
    if states:
        size = sum(each.st_size for each in states)
        yield _Entry(files, size, max(each.st_mtime for each in states))

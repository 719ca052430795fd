"""Tensors of an idle process, in files: their memory is free for other processes.

The engine and the worker of a window both hold a model and its packed weights, and the engine is
idle while the worker runs. The pages of a large tensor become those of a file with the same
content: its address stays, the kernel reads a page when it is used, and what is written to it later
stays in this process. The files have no name, and go with the memory of their tensors. On Linux
only.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lowerscope.core.files.paths import cache_folder

LEAST = 4 << 20
"""Size of a tensor that is moved, in bytes."""

_PIECE = 8 << 20
"""Bytes that are written before it is checked whether the process is wanted."""

_DISKS = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "xfs", "zfs"})
"""File systems on disks of this machine."""

_SPARE = 4
"""Free space of the disk that is required, as a multiple of what is moved."""

_MAP_FIXED = 0x10
_MADV_PAGEOUT = 21

Block = tuple[int, int]
"""An address, and a size in bytes."""


def move_to_files(blocks: Iterable[Block], is_wanted: Callable[[], bool]) -> int:
    """Move tensors that nothing writes to meanwhile, until the process is wanted.

    Small ones stay. Pages of those that are in files already leave the memory again.

    Returns:
        The bytes that were moved.
    """
    if sys.platform != "linux":
        return 0
    with contextlib.suppress(OSError):
        return _move_all(blocks, is_wanted)
    return 0


def _move_all(blocks: Iterable[Block], is_wanted: Callable[[], bool]) -> int:
    memory = list(_anonymous())
    moving: list[Block] = []
    end = 0
    for start, size in sorted({_pages(each) for each in blocks}):
        if size < LEAST or start < end:
            continue
        end = start + size
        if any(low <= start and start + size <= high for low, high in memory):
            moving.append((start, size))
        elif not any(low < start + size and start < high for low, high in memory):
            _c("madvise", ctypes.c_int)(start, size, _MADV_PAGEOUT)
    if not moving or not _has_room(sum(size for _start, size in moving)):
        return 0
    moved = 0
    for start, size in moving:
        if not _move(start, size, is_wanted):
            break
        moved += size
    return moved


def _pages(block: Block) -> Block:
    """Return the whole pages of a block: others have something else in them."""
    page = mmap.PAGESIZE
    start = -(-block[0] // page) * page
    return start, max(0, (block[0] + block[1]) // page * page - start)


def _anonymous() -> Iterator[tuple[int, int]]:
    """Yield the ranges of memory that is this process's alone, and in no file."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            span, rights, _offset, _device, inode, *name = line.split()
            if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                low, high = span.split("-")
                yield int(low, 16), int(high, 16)


def _has_room(size: int) -> bool:
    """Return whether the cache is on a disk, with space to spare."""
    with tempfile.TemporaryFile(dir=cache_folder()) as file:
        state = os.fstatvfs(file.fileno())
        about = Path(f"/proc/self/fdinfo/{file.fileno()}").read_text(encoding="utf-8")
    (mount,) = (line.split()[1] for line in about.splitlines() if line.startswith("mnt_id:"))
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
        parts = [line.split(" - ") for line in mounts]
    kinds = {after.split()[0] for before, after in parts if before.split()[0] == mount}
    return bool(kinds & _DISKS) and state.f_bavail * state.f_frsize >= _SPARE * size


def _move(start: int, size: int, is_wanted: Callable[[], bool]) -> bool:
    """Move whole pages, and return whether that was done."""
    with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=cache_folder()) as file:
        for at in range(0, size, _PIECE):
            if is_wanted():
                return False
            piece = (ctypes.c_char * min(_PIECE, size - at)).from_address(start + at)
            if os.pwrite(file.fileno(), piece, at) != len(piece):
                return False
        return _mapped(start, size, file.fileno())
    return False


def _mapped(start: int, size: int, file: int) -> bool:
    rights, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED
    number = ctypes.c_int
    made: int = _c("mmap", number, number, number, ctypes.c_long)(
        start, size, rights, flags, file, 0
    )
    return made == start


@cache
def _c(name: str, *arguments: type) -> Callable[..., Any]:
    """Return a function of C of an address, a size and more arguments."""
    function = ctypes.CDLL(None)[name]
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *arguments]
    function.restype = ctypes.c_void_p
    return function

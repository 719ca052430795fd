"""Files of NumPy arrays: read as numbers, within bounds, and never as Python's objects.

What a file says of its size is checked against what it has and what this machine has before any
memory is taken: a few kilobytes of an archive can stand for terabytes of zeros.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from lowerscope.core.memory_limit import bytes_text, usual_limit
from lowerscope.core.sources.pickles import import_text, imports_of

Array = np.ndarray[Any, Any]

_SHARE = 3
"""A file may take the third part of what a worker may: its values are copied once or twice."""

_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}

_ENDING = ".npy"


class UnreadableArrays(Exception):
    """A file is damaged, is something else, or holds what is not read; the argument says what."""


def most_bytes() -> int:
    """Return how many bytes the values of one file may take."""
    return usual_limit() // _SHARE


def read_npy(path: Path) -> Array:
    """Read a ``.npy``.

    Raises
    ------
    UnreadableArrays
        If it cannot be read, is too large, or holds objects.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, path.stat().st_size)
    except UnreadableArrays:
        raise
    except Exception as error:  # NumPy raises any type for a damaged header
        raise UnreadableArrays(_sentence(error)) from None


def is_archive(path: Path) -> bool:
    """Return whether a file begins as an archive does."""
    with path.open("rb") as stream:
        return stream.read(2) == b"PK"


def read_npz(
    path: Path, choose: Callable[[Sequence[str]], Collection[str]] | None = None
) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return the names of the arrays in an ``.npz``, and those arrays that `choose` asks for.

    Raises
    ------
    UnreadableArrays
        If it cannot be read, those that are asked for are too large, or hold objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {
                each.filename.removesuffix(_ENDING): each
                for each in archive.infolist()
                if each.filename.endswith(_ENDING)
            }
            if not entries:
                raise UnreadableArrays("it holds no arrays")
            names = tuple(entries)
            chosen = names if choose is None else tuple(choose(names))
            check_bytes(sum(entries[each].file_size for each in chosen))
            arrays = {}
            for name in chosen:
                with archive.open(entries[name]) as stream:
                    arrays[name] = _read(stream, entries[name].file_size)
            return names, arrays
    except UnreadableArrays:
        raise
    except Exception as error:  # zipfile and its decompressors raise any type for damage
        raise UnreadableArrays(_sentence(error)) from None


def check_bytes(count: int) -> None:
    """Raise `UnreadableArrays` if so many bytes are more than one file may take."""
    if count > most_bytes():
        raise UnreadableArrays(
            f"it would take {bytes_text(count)} of memory, and {bytes_text(most_bytes())} is the "
            "most that a file may take on this machine"
        )


def _read(stream: IO[bytes], size: int) -> Array:
    """Read an array from a stream that has `size` bytes, as far as is known."""
    start = stream.read(1)
    stream.seek(0)
    if start == b"\x80":
        raise _objects(stream)
    version = npy.read_magic(stream)
    header = _HEADERS.get(version)
    if header is None:
        raise UnreadableArrays(f"it is of version {version[0]} of the format, which has no numbers")
    shape, _, dtype = header(stream)
    if dtype.hasobject:
        raise _objects(stream)
    count = math.prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or count > size:
        raise UnreadableArrays(f"it says that it has {count} bytes of values, and has {size}")
    check_bytes(count)
    stream.seek(0)
    array: Array = npy.read_array(stream, allow_pickle=False)
    return array


def _objects(stream: IO[bytes]) -> UnreadableArrays:
    """Say what objects of Python would have imported."""
    found = import_text(imports_of(stream.read(most_bytes())))
    reason = f", and would import {found}" if found else ""
    return UnreadableArrays(f"it holds objects of Python{reason}: only numbers are read")


def _sentence(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".: ")
    return line[:160] or type(error).__name__

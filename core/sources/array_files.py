"""Bounded reading of files of NumPy arrays, numeric dtypes only.

The sizes in a file's header are checked against the file's own size and the machine's memory before
anything is allocated: an archive of a few kilobytes can expand to terabytes of zeros.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import usual_limit
from lowerscope.core.sources.pickles import import_text, imports_of

Array = np.ndarray[Any, Any]

_SHARE = 3
"""Divisor of a worker's memory limit: the values of a file are copied once or twice."""

_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
}

_ENDING = ".npy"


class UnreadableArrays(Exception):
    """A file is damaged, of another format, or holds unsupported data; the argument says why."""


def most_bytes() -> int:
    """Return the largest size of the values of one file, in bytes."""
    return usual_limit() // _SHARE


def read_npy(path: Path) -> Array:
    """Read a ``.npy``.

    Raises `UnreadableArrays` if it cannot be read, is too large, or holds objects.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, path.stat().st_size)
    except UnreadableArrays:
        raise
    except Exception as error:  # NumPy raises any type for a damaged header
        raise UnreadableArrays(_sentence(error)) from None


def is_archive(path: Path) -> bool:
    """Return whether a file starts with the signature of an archive."""
    with path.open("rb") as stream:
        return stream.read(2) == b"PK"


def read_npz(
    path: Path, choose: Callable[[Sequence[str]], Collection[str]] | None = None
) -> tuple[tuple[str, ...], dict[str, Array]]:
    """Return the names of the arrays in an ``.npz``, and the arrays selected by `choose`.

    Raises `UnreadableArrays` if it cannot be read, or the selected arrays are too large or hold
    objects.
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
    """Raise `UnreadableArrays` if `count` bytes exceed the limit for one file."""
    if count > most_bytes():
        raise UnreadableArrays(
            f"it would take {bytes_text(count)} of memory, and {bytes_text(most_bytes())} is the "
            "most that a file may take on this machine"
        )


def _read(stream: IO[bytes], size: int) -> Array:
    """Read an array from a stream of `size` bytes, as far as the size is known."""
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
    """Return the error for an array of objects, with the imports that unpickling it would make."""
    found = import_text(imports_of(stream.read(most_bytes())))
    reason = f", and would import {found}" if found else ""
    return UnreadableArrays(f"it holds objects of Python{reason}: only numbers are read")


def _sentence(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".: ")
    return line[:160] or type(error).__name__

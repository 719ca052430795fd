"""Output files, each written to a folder atomically."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from lowerscope.core.files.atomic_write import atomic_file, remove_leftovers
from lowerscope.core.files.paths import cannot_write
from lowerscope.core.model.artifacts import EXISTS
from lowerscope.core.model.problems import LowerscopeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class File:
    """An output file."""

    name: str
    write: Callable[[Path], object]


def text_file(name: str, text: str) -> File:
    """Return a text file."""
    return File(name, lambda path: path.write_text(text, encoding="utf-8"))


def arrays_file(name: str, arrays: Mapping[str, Any]) -> File:
    """Return an ``.npz`` of arrays."""

    def write(path: Path) -> None:
        with path.open("wb") as stream:
            np.savez(stream, **arrays)

    return File(name, write)


def plain_array(tensor: tvm.runtime.Tensor, kinds: Container[str]) -> tuple[Array, str]:
    """Return a tensor as an array that ``numpy.load`` reads, and the call that restores its dtype.

    Args:
        kinds: NumPy's characters of the dtypes that need none; arrays of others are integers.
    """
    array, dtype = tensor.numpy(), str(tensor.dtype)
    if str(array.dtype) == dtype and array.dtype.char in kinds:
        return array, ""
    return array.view(f"u{array.dtype.itemsize}"), f'.view("{dtype}")'


def copied_file(name: str, source: Path) -> File:
    """Return a copy of a file."""
    return File(name, lambda path: path.write_bytes(source.read_bytes()))


def file_name(text: str) -> str:
    """Return a text as a file name, or a part of one, that is valid on any system."""
    plain = _NOT_IN_NAMES.sub("_", text)[:_LONGEST].strip(".") or "_"
    return f"_{plain}" if plain.partition(".")[0].casefold() in _DEVICES else plain


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Return a file name for each text; no two differ by case only."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in dict.fromkeys(texts):
        plain = file_name(text)
        names = chain([plain], (f"{plain}_{number}" for number in count(1)))
        found[text] = next(each for each in names if each.casefold() not in taken)
        taken.add(found[text].casefold())
    return found


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST = 120
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)))
)
"""Names that Windows reserves for devices, whatever the suffix."""


def check_absent(folder: Path, names: Sequence[str], replacing: Sequence[str] = ()) -> None:
    """Raise if files exist other than those of `replacing`.

    Raises a `LowerscopeError` with the code `EXISTS`, and the existing files.
    """
    there = [name for name in names if _is_there(folder / name)]
    if set(there) - set(replacing):
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise LowerscopeError(
            f"the file is there already{more}",
            where=str(folder / there[0]),
            todo="Choose another folder, or add --force to overwrite it",
            code=EXISTS,
            choices=tuple(there),
        )


def write_files(folder: Path, files: Sequence[File]) -> tuple[Path, ...]:
    """Write files to a folder, replacing existing ones; return their paths.

    Raises a `LowerscopeError` if one cannot be written; an existing one is then unchanged.
    """
    remove_leftovers()
    for file in files:
        path = folder / file.name
        try:
            with atomic_file(path, parents=True) as made:
                file.write(made)
        except OSError as error:
            raise cannot_write(error, path) from error
    return tuple(folder / file.name for file in files)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_write(error, path) from error
    return True

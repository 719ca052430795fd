"""Files that are about to be written, and how they get into a folder: all of one, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.catalogue import EXISTS
from lowerscope.core.unfinished import sweep, whole_file


@dataclass(frozen=True)
class File:
    """A file that is about to be written.

    Attributes
    ----------
    name
        With the folders that it is in.
    write
        Writes it to the path that it is given.
    """

    name: str
    write: Callable[[Path], object]


def text_file(name: str, text: str) -> File:
    """Return a file with a text."""
    return File(name, lambda path: path.write_text(text, encoding="utf-8"))


def arrays_file(name: str, arrays: Mapping[str, Any]) -> File:
    """Return an ``.npz`` of arrays."""

    def write(path: Path) -> None:
        with path.open("wb") as stream:
            np.savez(stream, **arrays)

    return File(name, write)


def copied_file(name: str, source: Path) -> File:
    """Return a copy of a file."""
    return File(name, lambda path: path.write_bytes(source.read_bytes()))


def file_name(text: str) -> str:
    """Return a text as the name of a file, or as a part of it, on any system."""
    plain = _NOT_IN_NAMES.sub("_", text)[:_LONGEST].strip(".") or "_"
    return f"_{plain}" if plain.partition(".")[0].casefold() in _DEVICES else plain


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Return a name for the file of each text; no two differ in letters' cases alone."""
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
"""Names that Windows has for devices, whatever their suffix is."""


def check_absent(folder: Path, names: Sequence[str], replacing: Sequence[str] = ()) -> None:
    """Refuse to overwrite files other than those of `replacing`.

    Raises
    ------
    LowerscopeError
        If one is there; with the code `EXISTS`, and those that are.
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
    """Write files to a folder, in place of what is there; return their paths.

    Raises
    ------
    LowerscopeError
        If one cannot be written; it is as it was then.
    """
    sweep()
    for file in files:
        path = folder / file.name
        try:
            with whole_file(path, parents=True) as made:
                file.write(made)
        except OSError as error:
            raise _cannot_write(error, path) from error
    return tuple(folder / file.name for file in files)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_write(error, path) from error
    return True


def _cannot_write(error: OSError, path: Path) -> LowerscopeError:
    return LowerscopeError(
        f"it cannot be written: {error.strerror or error}",
        where=str(path),
        todo="Choose a folder that you may write to",
    )

"""Files that are about to be written, and how they get into a folder: all of one, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    """Return a text as the name of a file."""
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in text) or "_"


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

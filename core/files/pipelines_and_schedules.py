"""JSON files of pipelines and schedules.

This module imports neither torch nor TVM, so that the window can use it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.paths import not_done, read_plain, user_path
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.schedule import Schedule


def file_text(value: Any) -> str:
    """Return the text of a record's file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def save(value: Any, file: str) -> Path:
    """Write a record to a file, which is replaced; return the file's path.

    Raises
    ------
    LowerscopeError
        If the file cannot be written.
    """
    path = user_path(file).absolute()
    try:
        atomic_write(path, file_text(value))
    except OSError as error:
        raise not_done("the file cannot be written", path, error) from None
    return path


@contextlib.contextmanager
def reading(path: Path, wrong: str, todo: str) -> Iterator[bytes]:
    """Yield the content of a file, to be decoded; explain errors.

    Parameters
    ----------
    wrong
        Beginning of the message where it is no such file.
    todo
        What to do then.

    Raises
    ------
    LowerscopeError
        If the file cannot be read, or is no such file.
    """
    try:
        yield read_plain(path)
    except OSError as error:
        raise not_done("the file cannot be read", path, error) from None
    except (*UNREADABLE, OverflowError) as error:
        raise LowerscopeError(f"{wrong}: {error}", where=str(path), todo=todo) from None


# Files of schedules. This module imports neither torch nor TVM, so that the window can use it.

VERSION = 1
"""Version of the file format."""


class _Versioned(msgspec.Struct, frozen=True):
    version: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schedules: tuple[Schedule, ...]
    version: int = VERSION


def save_schedules(schedules: Sequence[Schedule], file: str) -> Path:
    """Write schedules to a JSON file, which is replaced; return the file's path.

    Raises
    ------
    LowerscopeError
        If the file cannot be written.
    """
    return save(_File(tuple(schedules)), file)


def schedules_text(schedules: Sequence[Schedule]) -> str:
    """Return the text of a file of schedules."""
    return file_text(_File(tuple(schedules)))


def load_schedules(file: str) -> tuple[Schedule, ...]:
    """Read what `save_schedules` wrote.

    Primitives and their arguments are checked when they are applied.

    Raises
    ------
    LowerscopeError
        If the file cannot be read, is of another version, or holds no schedules; of a field that is
        wrong, with its place.
    """
    path = user_path(file).absolute()
    todo = "Choose a file that was saved as a schedule"
    with reading(path, "it holds no schedules", todo) as content:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise LowerscopeError(
                f"it is of version {version}, and this Lowerscope reads version {VERSION}",
                where=str(path),
                todo="Open it with the Lowerscope that wrote it"
                if version > VERSION
                else "Save it again",
            )
        schedules = msgspec.json.decode(content, type=_File).schedules
        # The window and its children exchange no numbers of more than 64 bits.
        msgspec.msgpack.encode(schedules)
    if not schedules:
        raise LowerscopeError("there is no schedule in it", where=str(path), todo=todo)
    _check_ids(schedules, path)
    return schedules


def _check_ids(schedules: Sequence[Schedule], path: Path) -> None:
    for schedule in schedules:
        counts = Counter(primitive.id for primitive in schedule.primitives)
        twice = next((each for each, count in counts.items() if count > 1), None)
        if twice is not None:
            raise LowerscopeError(
                f"several steps of the schedule of {schedule.function} are called {twice!r}",
                where=str(path),
                todo="Give each step a name of its own",
            )

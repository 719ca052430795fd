"""Files of schedules. This module imports neither torch nor TVM, so that the window can use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.saved_files import file_text, reading, save
from lowerscope.core.schedules import Schedule
from lowerscope.core.user_paths import user_path

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

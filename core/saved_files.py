"""JSON files of pipelines and schedules.

This module imports neither torch nor TVM, so that the window can use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from lowerscope.core.encoding import UNREADABLE
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.plain_files import read_plain
from lowerscope.core.user_paths import not_done, user_path


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

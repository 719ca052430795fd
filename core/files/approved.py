"""Files whose content the user has read and allowed to run.

The window sends a table of them to each child process. While the table is in force, a user's file
is compiled only if its bytes are those that the table names; any other file is rejected, and the
window shows it. Without a table (the command line, a notebook) every file may run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path

from lowerscope.core.files.sources import neighbours
from lowerscope.core.model.problems import LowerscopeError, Problem, error_of
from lowerscope.core.model.texts import _
from lowerscope.resources import SAMPLES

CODE = "unseen"
"""Problem code of a rejected file; its choices are the files to show, that one first."""

_table: Mapping[str, str] | None = None
_refused: list[Problem] = []


def put_in_force(table: Mapping[str, str] | None) -> None:
    """Run only the files of a table from now on, SHA-256 by absolute path; any file if ``None``."""
    global _table
    _table = table


def approve(path: Path, content: bytes) -> None:
    """Allow a file that Lowerscope itself has written."""
    global _table
    if _table is not None:
        _table = {**_table, os.path.abspath(path): hashlib.sha256(content).hexdigest()}


def check_approved(path: Path, content: bytes, folder: Path) -> None:
    """Reject a file whose content is not in the table in force.

    Raises `LowerscopeError` if it was not approved (``code="unseen"``).
    """
    table = _table
    if table is None or _is_approved(path, content, table):
        return
    beside = (each for each in neighbours(path, folder) if each.suffix.lower() == ".py")
    unseen = [each for each in beside if not _is_approved(each, _content(each), table)]
    error = LowerscopeError(
        _("the file was not approved before it ran, or has changed since"),
        where=str(path),
        todo=_("Open the model again, and check the file when the window shows it"),
        code=CODE,
        choices=tuple(os.path.abspath(each) for each in (path, *unseen)),
    )
    _refused.append(error.problem)
    raise error


def refusals() -> int:
    """Return the number of files rejected so far, for `raise_refused`."""
    return len(_refused)


def raise_refused(since: int) -> None:
    """Raise the first rejection after the first `since`: the user's code may have caught it."""
    if since < len(_refused):
        raise error_of(_refused[since])


def _is_approved(path: Path, content: bytes, table: Mapping[str, str]) -> bool:
    names = os.path.abspath(path), os.path.realpath(path)
    if Path(names[1]).is_relative_to(os.path.realpath(SAMPLES)):
        return True
    digest = hashlib.sha256(content).hexdigest()
    return any(table.get(name) == digest for name in names)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


LONG_LINE = 300
"""Length of a line that may exceed a window's width, in characters."""

_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]+")
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Invisible letters and marks; most are allowed in names."""


def decode_source(content: bytes) -> str:
    """Return the text of a Python file, with line feeds at the ends of lines.

    A comment in a file's first lines selects its encoding: in UTF-7, ``+AAo-`` within a comment is
    the end of the comment.

    Raises `SyntaxError` if it is not text in its declared encoding.
    """
    try:
        return importlib.util.decode_source(content)
    except (LookupError, UnicodeError) as error:
        raise SyntaxError(str(error)) from None


def readable_source(content: bytes) -> str:
    """Return the text of a Python file with an escape for each character that may mislead.

    Some characters are invisible, look like the end of a line without being one, or reverse the
    order in which others are read.

    Bytes that are not text are not run either; they are shown as UTF-8 where possible.
    """
    try:
        text = decode_source(content)
    except SyntaxError:
        text = content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _UNUSUAL.sub(lambda found: "".join(map(_readable, found[0])), text)


def long_lines(text: str) -> tuple[int, ...]:
    """Return the numbers, from 1, of the lines that exceed the width of most windows."""
    lines = text.split("\n")
    return tuple(number for number, line in enumerate(lines, 1) if len(line) > LONG_LINE)


def _readable(character: str) -> str:
    if character.isprintable() and _IGNORED.match(character) is None:
        return character
    return character.encode("unicode_escape").decode()

"""Text of a Python file as Python compiles it, for review before it runs.

A comment in a file's first lines selects its encoding: in UTF-7, ``+AAo-`` within a comment is the
end of the comment. Some characters are invisible, look like the end of a line without being one, or
reverse the order in which others are read. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import importlib.util
import re

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

    Raises
    ------
    SyntaxError
        If it is not text in its declared encoding.
    """
    try:
        return importlib.util.decode_source(content)
    except (LookupError, UnicodeError) as error:
        raise SyntaxError(str(error)) from None


def readable_source(content: bytes) -> str:
    """Return the text of a Python file with an escape for each character that may mislead.

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

"""Output of the command line on standard output and standard error.

All text of a command goes through this module: text from files cannot control the terminal, and
characters that a terminal lacks are replaced.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TextIO

from lowerscope.core.model.progress import Progress, Silent
from lowerscope.core.model.texts import _

MATCH, DIFFER, ERROR = 0, 1, 2
"""Exit codes; see `core.cli`."""

LONGEST_LINE = 4000
"""Length limit of a note or a problem, in characters."""

_PLAIN = {
    "×": "x",
    "·": "*",
    "…": "...",
    "✓": "ok",
    "✗": "x",
    "µ": "u",
    "μ": "u",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "▸": ">",
    "█": "#",
    "±": "+-",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\N{NO-BREAK SPACE}": " ",
    "\N{NARROW NO-BREAK SPACE}": " ",
}
"""ASCII replacements for characters of Lowerscope's own text."""

_ERRORS = "lowerscope.plain"

_UNSAFE = re.compile(r"[^ -~\n\t]+")
"""Pattern of text that may contain control or format characters."""


class Lost(Exception):
    """The streams of the command are no longer its own: they were closed or replaced."""


def escaped(text: str) -> str:
    """Escape the control and format characters of text for a terminal.

    They would move the cursor, change colours or the title, or reverse the reading order.
    """
    return _UNSAFE.sub(lambda found: "".join(map(_escaped, found[0])), text)


def _escaped(character: str) -> str:
    safe = character.isprintable() or unicodedata.category(character) == "Zs"
    return character if safe else character.encode("unicode_escape").decode()


def say(text: str) -> None:
    """Write one line about a command to standard error."""
    line = " ".join(text.splitlines())
    if len(line) > LONGEST_LINE:
        line = _(
            "{line}… ({count:,} more characters)",
            line=line[:LONGEST_LINE],
            count=len(line) - LONGEST_LINE,
        )
    print(f"lowerscope: {escaped(line)}", file=_stream("stderr"), flush=True)


def put_out(text: str) -> None:
    """Write the answer of a command to standard output; on a terminal, `escaped`."""
    stream = _stream("stdout")
    if stream is None:
        return
    try:
        print(escaped(text) if stream.isatty() else text, file=stream, flush=True)
    except BrokenPipeError:
        # A reader such as `head` has closed the pipe; Python would report it again at exit.
        sys.stdout = None


def take_any_text() -> None:
    """Make the streams accept characters that their encoding lacks, whoever writes them."""
    for name in ("stdout", "stderr"):
        _stream(name)


def _stream(name: str) -> TextIO | None:
    """Return `sys.stdout` or `sys.stderr`, ready for any text."""
    descriptor = {"stdout": 1, "stderr": 2}[name]
    if descriptor in _own and (
        _identity(descriptor) != _own[descriptor] or os.getpid() != _own_process
    ):
        raise Lost
    stream: TextIO | None = getattr(sys, name)
    if stream is not None and stream.closed:
        stream = os.fdopen(descriptor, "w", encoding="utf-8", errors=_ERRORS, closefd=False)
        setattr(sys, name, stream)
    if isinstance(stream, io.TextIOWrapper) and stream.errors != _ERRORS:
        stream.reconfigure(errors=_ERRORS)
    return stream


_own: dict[int, tuple[int, int] | None] = {}
_own_process = 0


def watch_streams() -> None:
    """Make `say` and `put_out` raise `Lost` if code has closed or replaced a descriptor."""
    global _own_process
    _own_process = os.getpid()
    _own.update({descriptor: _identity(descriptor) for descriptor in (1, 2)})


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def own_streams() -> Iterator[None]:
    """Restore `sys.stdout` and `sys.stderr` after the body."""
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(
        _PLAIN.get(each) or each.encode("ascii", "backslashreplace").decode() for each in lacking
    ), error.end


codecs.register_error(_ERRORS, _plain)


_BLANK = "\r\x1b[K"
"""Control sequence that erases the terminal's line."""


@contextlib.contextmanager
def on_terminal_line() -> Iterator[Progress]:
    """Yield the progress; the line is erased at the end."""
    if not sys.stderr.isatty():
        yield Silent()
        return
    try:
        yield _Line()
    finally:
        print(_BLANK, end="", file=sys.stderr, flush=True)


class _Line(Silent):
    """Progress that overwrites its previous text."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Write the text."""
        print(f"{_BLANK}{escaped(text)}", end="", file=sys.stderr, flush=True)


def table_lines(rows: Sequence[Sequence[str]], figures: range) -> list[str]:
    """Return a line for each row; the columns `figures` are right-aligned."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            padded(text, width, right=place in figures)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def columns(text: str) -> int:
    """Return the number of columns that a text has in a terminal: a Chinese character has two."""
    return len(text) + sum(unicodedata.east_asian_width(each) in "WF" for each in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text of a number of columns, with blanks behind it or before it."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks

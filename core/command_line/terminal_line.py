"""What is being done, on one line of the terminal; nothing where stderr is none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from lowerscope.core.command_line.console import escaped
from lowerscope.core.progress import Progress, Silent

_BLANK = "\r\x1b[K"
"""Back to the start of a terminal's line, with nothing on it."""


@contextlib.contextmanager
def on_terminal_line() -> Iterator[Progress]:
    """Yield what is told of progress; the line is blank again at the end."""
    if not sys.stderr.isatty():
        yield Silent()
        return
    try:
        yield _Line()
    finally:
        print(_BLANK, end="", file=sys.stderr, flush=True)


class _Line(Silent):
    """Writes what is being done in place of what was written before."""

    def report(self, text: str, fraction: float | None = None) -> None:
        """Write it."""
        print(f"{_BLANK}{escaped(text)}", end="", file=sys.stderr, flush=True)

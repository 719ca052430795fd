"""Progress on one line of the terminal; disabled if stderr is not a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from lowerscope.core.command_line.console import escaped
from lowerscope.core.progress import Progress, Silent

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

"""Sanitised text of a child: printable and short."""

from __future__ import annotations

import re
from unicodedata import category

REASON_CHARACTERS = 300
"""Bound on the description of an invalid message, which may quote it."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Terminal escape sequences that set colours, move the cursor or set a title."""

_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]+")
_BREAK = re.compile(r"\r\n?")


def printable(text: str) -> str:
    """Return a text without control characters and bidirectional overrides.

    Lines and tabs stay, as do the letters of all scripts.
    """
    if "\r" in text:
        text = _BREAK.sub("\n", text)
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _UNUSUAL.sub(_replaced, text)


def _replaced(found: re.Match[str]) -> str:
    run = found[0]
    if run.isprintable():
        return run
    return "".join(
        each if each.isprintable() or category(each) == "Zs" else "\ufffd" for each in run
    )


def shortened(text: str, most: int) -> str:
    """Return a printable text of at most `most` characters, ending in a mark if it was cut."""
    return printable(text) if len(text) <= most else f"{printable(text[: most - 1])}…"

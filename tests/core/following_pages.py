"""Follows a page of the help to the letter: writes its files, makes its edits, runs its commands.

A block of Python or Markdown is written to the file that the words above it name: ``Write `FILE```
makes it, ``In `FILE`, below `LINE```, ``above`` and ``in place of`` edit it. A block of ``sh`` is
run; the block of ``text`` after it has what is printed, line by line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lowerscope.resources import HELP

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WRITE = re.compile(r"[Ww]rite `([^`]+)`[^`]*:\s*$")
_EDIT = re.compile(r"In `([^`]+)`, (below|above|in place of) `([^`]+)`:\s*$")


@dataclass(frozen=True)
class Commands:
    """What is run, and pieces of what that prints, in order."""

    commands: tuple[str, ...]
    shown: tuple[str, ...]


def follow(name: str, folder: Path) -> list[Commands]:
    """Make the files and edits of a page in a folder, and return its commands.

    Raises
    ------
    AssertionError
        If the page says something that cannot be followed.
    """
    text = (HELP / f"{name}.md").read_text("utf-8")
    found: list[Commands] = []
    for match in _BLOCK.finditer(text):
        kind, body, above = match[1], match[2], text[: match.start()].rstrip()
        if kind in ("python", "markdown"):
            _make(above, body, folder)
        elif kind == "sh":
            lines = tuple(line for line in body.splitlines() if line)
            found.append(Commands(lines, _shown(text[match.end() :])))
    assert found, f"{name} has no command"
    return found


def check_printed(step: Commands, text: str) -> None:
    """Check that the lines that the page shows are in what was printed, in order."""
    after = 0
    for line in step.shown:
        place = text.find(line, after)
        assert place >= 0, f"{line!r} is not in what {step.commands} print:\n{text}"
        after = place + len(line)


def _shown(after: str) -> tuple[str, ...]:
    block = re.match(r"\n\n```text\n(.*?)^```$", after, re.MULTILINE | re.DOTALL)
    return () if block is None else tuple(block[1].splitlines())


def _make(above: str, body: str, folder: Path) -> None:
    last = above.rpartition("\n\n")[2].replace("\n", " ")
    if match := _WRITE.search(last):
        path = folder / match[1]
        assert not path.exists(), f"{path} already exists"
        path.write_text(body, "utf-8")
        return
    match = _EDIT.search(last)
    assert match, f"the page does not say where this goes: {last}"
    path = folder / match[1]
    lines = path.read_text("utf-8").splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if line.rstrip("\n") == match[3]]
    assert len(places) == 1, f"{path} has {len(places)} lines {match[3]!r}"
    start = places[0] + (match[2] == "below")
    end = start + (match[2] == "in place of")
    path.write_text("".join([*lines[:start], body, *lines[end:]]), "utf-8")

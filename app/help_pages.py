"""The pages of the help: their list, their sections, and the search in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lowerscope.resources import HELP

CONTENTS = "README"
"""The page that lists all others."""

MOST_HITS = 40

_LINK = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)$")
_HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"[*`|]|\]\([^)]*\)|!?\[|<br>|^#+ ", re.MULTILINE)


@dataclass(frozen=True)
class PageEntry:
    """A page in the list: its group, its name (``timeline``) and its title."""

    group: str
    name: str
    title: str


@dataclass(frozen=True)
class Hit:
    """A section that has all words of a search.

    Attributes
    ----------
    name, title
        Of the page.
    heading
        Of the section; empty for what stands above the first one.
    line
        Where the words stand, in words without marks.
    """

    name: str
    title: str
    heading: str
    line: str


@cache
def entries() -> tuple[PageEntry, ...]:
    """Return all pages, in the order of the list."""
    found, group = [], ""
    for line in text_of(CONTENTS).splitlines():
        if line.startswith("## "):
            group = line.removeprefix("## ")
        elif match := _LINK.match(line):
            found.append(PageEntry(group=group, name=match[2], title=match[1]))
    return tuple(found)


@cache
def text_of(name: str) -> str:
    """Return the Markdown of a page; raise FileNotFoundError if there is none."""
    return (HELP / f"{name}.md").read_text("utf-8")


def is_page(name: str) -> bool:
    """Whether there is a page of this name."""
    return (HELP / f"{name}.md").is_file()


def anchor_of(heading: str) -> str:
    """Return what links call a heading: ``Optimise for CPU`` is ``optimise-for-cpu``."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")


def search(words: Sequence[str]) -> list[Hit]:
    """Return the sections that have all words, those with all in page title or heading first."""
    wanted = [word.lower() for word in words if word]
    if not wanted:
        return []
    ranked: list[tuple[int, Hit]] = []
    for entry in entries():
        for heading, body in _sections(entry.name):
            head = f"{entry.title} {heading}".lower()
            whole = f"{head} {body.lower()}"
            if all(word in whole for word in wanted):
                hit = Hit(entry.name, entry.title, heading, _line_with(body, wanted))
                if all(word in entry.title.lower() for word in wanted):
                    ranked.append((0 if not heading else 2, hit))
                else:
                    ranked.append((1 if all(word in head for word in wanted) else 3, hit))
    ranked.sort(key=lambda each: each[0])
    return [hit for _, hit in ranked[:MOST_HITS]]


@cache
def _sections(name: str) -> tuple[tuple[str, str], ...]:
    """Return the headings of a page, below its title, each with the plain text under it."""
    text = text_of(name)
    # A comment in a block of code is no heading; what a block says is searched as well.
    hidden = _FENCE.sub(lambda block: block[0].replace("#", " "), text)
    marks = [(each.start(), each.end(), each[1], each[2]) for each in _HEADING.finditer(hidden)]
    found = []
    for index, (_, end, level, title) in enumerate(marks):
        last = marks[index + 1][0] if index + 1 < len(marks) else len(text)
        heading = "" if level == "#" else _MARKS.sub("", title)
        found.append((heading, _MARKS.sub(" ", text[end:last])))
    return tuple(found)


def _line_with(body: str, wanted: Sequence[str]) -> str:
    """Return the line of a text that has the most of the words."""
    lines = [" ".join(line.split()) for line in body.splitlines()]
    return max(
        (line for line in lines if line),
        key=lambda line: sum(word in line.lower() for word in wanted),
        default="",
    )

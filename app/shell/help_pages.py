"""Help pages: their list, their sections, and full-text search."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from lowerscope.app.kit.glossary import anchor_of, file_of
from lowerscope.core.model.texts import language
from lowerscope.resources import HELP

CONTENTS = "README"
"""The page that lists all others."""

MOST_HITS = 40

_SHARE = 0.5
"""Minimum share of the words' total weight that a section must contain."""

_SATURATION = 1.2
"""Saturation of repeated words (BM25's k1)."""

_HEADING_COUNTS = 8
"""Weight of a word in a heading, in occurrences."""

_LITTLE = re.compile(
    r"a|an|and|are|at|be|by|can|do|does|for|from|get|have|how|i|in|into|is|it|its|me|my|"
    r"not|of|on|or|own|so|than|that|the|their|them|there|this|to|use|want|was|what|when|where|"
    r"which|why|will|with|would|you|your"
)
"""Stop words."""

_ENDING = re.compile(r"(?<=\w{4})(ing|ed|es|s|e)$")

_LINK = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)$")
_HEADING = re.compile(r"^(#{1,3}) (.+)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"[*`|]|\]\([^)]*\)|!?\[|<br>|^#+ ", re.MULTILINE)


@dataclass(frozen=True)
class PageEntry:
    """A page in the list: its group, its name (``timeline``) and its title."""

    group: str
    name: str
    title: str


@dataclass(frozen=True)
class Hit:
    """A section that contains the words of a search, or most of them."""

    name: str  # Name and title of the page.
    title: str
    heading: str  # Heading of the section; empty for text above the first one.
    anchor: str  # Anchor of the section.
    line: str  # The line that contains the words, as plain text.
    whole: bool  # Whether it contains all words.


@cache
def entries() -> tuple[PageEntry, ...]:
    """Return all pages, in the order of the list."""
    found, group = [], ""
    for line in text_of(CONTENTS).splitlines():
        if line.startswith("## "):
            group = line.removeprefix("## ")
        elif match := _LINK.match(line):
            found.append(PageEntry(group=group, name=name_of(match[2]), title=match[1]))
    return tuple(found)


@cache
def text_of(name: str) -> str:
    """Return the Markdown of a page; raise FileNotFoundError if there is none."""
    return _COMMENT.sub("", file_of(name, language()).read_text("utf-8"))


def name_of(link: str) -> str:
    """Return the name of the page that a link without its anchor leads to: ``../fx.md``, ``fx``."""
    return PurePosixPath(link).stem


def is_page(name: str) -> bool:
    """Return whether there is a page of this name."""
    return (HELP / f"{name}.md").is_file()


@cache
def anchors(name: str) -> tuple[str, ...]:
    """Return the anchors of all headings of a page, in order.

    They are those of the English page: a translation has the same headings in the same order.
    """
    text = _FENCE.sub("", (HELP / f"{name}.md").read_text("utf-8"))
    return tuple(anchor_of(heading[2]) for heading in _HEADING.finditer(text))


def words_of(question: str) -> tuple[str, ...]:
    """Return the words to search for: without stop words and endings."""
    typed = question.lower().replace("?", " ").split()
    telling = [word for word in typed if not _LITTLE.fullmatch(word)] or typed
    return tuple(dict.fromkeys(_ENDING.sub("", word) for word in telling))


def search(words: Sequence[str]) -> list[Hit]:
    """Return the sections that match `words`, the best first.

    First come those with all words in title and heading. The others are ranked by BM25 (Robertson
    and Zaragoza 2009): by how often they have the words that few others have, for their length.

    Args:
        words: As `words_of` returns them.
    """
    sections = [(entry, *section) for entry in entries() for section in _sections(entry.name)]
    heads = [f"{entry.title} {heading}".lower() for entry, heading, *_ in sections]
    bodies = [body.lower() for *_, body in sections]
    weights = {}
    for word in words:
        spread = sum(word in head or word in body for head, body in zip(heads, bodies, strict=True))
        weights[word] = math.log(1 + len(sections) / spread) if spread else 0.0
    usual = sum(map(len, bodies)) / len(bodies)
    ranked: list[tuple[tuple[int, float], Hit]] = []
    for (entry, heading, anchor, body), head, text in zip(sections, heads, bodies, strict=True):
        has = [word for word in words if word in head or word in text]
        share = sum(weights[word] for word in has) / (sum(weights.values()) or 1)
        if share < _SHARE:
            continue
        long = _SATURATION * (0.25 + 0.75 * len(text) / usual)
        score = 0.0
        for word in has:
            times = text.count(word) + _HEADING_COUNTS * head.count(word)
            score += weights[word] * times / (times + long)
        title = entry.title.lower()
        if all(word in title for word in words):
            tier = 0 if not heading else 2
        else:
            tier = 1 if all(word in head for word in words) else 3
        line, whole = _line_with(body, words), len(has) == len(words)
        hit = Hit(entry.name, entry.title, heading, anchor, line, whole)
        ranked.append(((tier, -score * share), hit))
    ranked.sort(key=lambda each: each[0])
    return [hit for _, hit in ranked[:MOST_HITS]]


@cache
def _sections(name: str) -> tuple[tuple[str, str, str], ...]:
    """Return the headings of a page, each with its anchor and the plain text under it."""
    text = text_of(name)
    # A comment in a code block is no heading; the block's text is searched as well.
    hidden = _FENCE.sub(lambda block: block[0].replace("#", " "), text)
    marks = [(each.start(), each.end(), each[1], each[2]) for each in _HEADING.finditer(hidden)]
    found = []
    for index, (anchor, (_, end, level, title)) in enumerate(
        zip(anchors(name), marks, strict=False)
    ):
        last = marks[index + 1][0] if index + 1 < len(marks) else len(text)
        heading = "" if level == "#" else _MARKS.sub("", title)
        found.append((heading, anchor if heading else "", _MARKS.sub(" ", text[end:last])))
    return tuple(found)


def _line_with(body: str, wanted: Sequence[str]) -> str:
    """Return the line of a text that contains the most of the words."""
    lines = [" ".join(line.split()) for line in body.splitlines()]
    return max(
        (line for line in lines if line),
        key=lambda line: sum(word in line.lower() for word in wanted),
        default="",
    )

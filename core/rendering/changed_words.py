"""Word-level differences between a line and the line that it came from."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

Range = tuple[int, int]
"""First column, and the one after the last, from 0."""

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_TOKENS = 400
_ALIKE = 0.35


def changed_words(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Return the parts of `old` that are not in `new`, and the other way round.

    Where the lines have little in common, nothing is marked: the whole line has changed then.
    """
    start = _common_length(old, new)
    if not old[start:] and not new[start:]:
        return (), ()
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(a) > _MOST_TOKENS or len(b) > _MOST_TOKENS:
        return _without_ends(old, new)
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    kept = sum(len("".join(a[i : i + size]).strip()) for i, _, size in blocks)
    if 2 * kept < _ALIKE * (len(old.strip()) + len(new.strip())):
        return (), ()
    ends_a, ends_b = _ends(a), _ends(b)
    olds: list[Range] = []
    news: list[Range] = []
    i = j = 0
    for next_i, next_j, size in blocks:
        _add(olds, ends_a[i], ends_a[next_i], old)
        _add(news, ends_b[j], ends_b[next_j], new)
        i, j = next_i + size, next_j + size
    return tuple(olds), tuple(news)


def _add(ranges: list[Range], start: int, end: int, line: str) -> None:
    """Add a range, as one with that before it where only blanks stand between."""
    if start == end:
        return
    words = line[start:end].strip()
    if words:
        start = line.index(words, start)
        end = start + len(words)
    if ranges and not line[ranges[-1][1] : start].strip():
        ranges[-1] = (ranges[-1][0], end)
    else:
        ranges.append((start, end))


def _ends(tokens: list[str]) -> list[int]:
    """Return the start of each token, and the end of the last one."""
    places = [0]
    for token in tokens:
        places.append(places[-1] + len(token))
    return places


def _without_ends(old: str, new: str) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Mark what lies between the same start and the same end: for lines of thousands of words."""
    start = _common_length(old, new)
    end = _common_length(old[start:][::-1], new[start:][::-1])
    olds = ((start, len(old) - end),) if start < len(old) - end else ()
    news = ((start, len(new) - end),) if start < len(new) - end else ()
    return olds, news


def _common_length(a: str, b: str) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count

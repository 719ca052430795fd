"""What belongs to the lines of a text: spans of entities, and places where a pattern stands."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """The lines of an entity.

    Attributes
    ----------
    entity : str
        Its id.
    first, last : int
        Lines from 1, both included.
    """

    entity: str
    first: int
    last: int


@dataclass(frozen=True)
class Match:
    """A place where a pattern stands: line from 0, and columns from 0 in UTF-16 units."""

    line: int
    start: int
    end: int


class Spans:
    """The spans of a text, and which one is meant at a line."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._spans = tuple(spans)
        self._inner_first = sorted(self._spans, key=lambda span: span.last - span.first)

    def innermost(self, line: int) -> str:
        """The entity of the smallest span that has this line, or ``""``."""
        for span in self._inner_first:
            if span.first <= line <= span.last:
                return span.entity
        return ""

    def of(self, entities: Collection[str]) -> list[Span]:
        """The spans of these entities, in the text's order."""
        return sorted(
            (span for span in self._spans if span.entity in entities),
            key=lambda span: (span.first, span.last),
        )


class LineSet:
    """Some lines of a text, as ranges, so that a whole function costs no more than a line."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(ranges):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def __contains__(self, line: int) -> bool:
        i = bisect_right(self._firsts, line) - 1
        return i >= 0 and line <= self._lasts[i]

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def ranges(self) -> list[tuple[int, int]]:
        """First and last line of each range, in order."""
        return list(zip(self._firsts, self._lasts, strict=True))


def compile_pattern(text: str, match_case: bool, is_regex: bool) -> re.Pattern[str]:
    """The pattern for what was typed; raises ``re.error`` where it is no regular expression."""
    flags = re.MULTILINE | (re.NOFLAG if match_case else re.IGNORECASE)
    return re.compile(text if is_regex else re.escape(text), flags)


def find_all(pattern: re.Pattern[str], lines: Sequence[str], limit: int) -> list[Match]:
    """The places where a pattern stands, none across lines and none empty; at most ``limit``."""
    found: list[Match] = []
    for number, line in enumerate(lines):
        for match in pattern.finditer(line):
            start, end = match.span()
            if start == end:
                continue
            if not line.isascii():
                start, end = _units(line[:start]), _units(line[:end])
            found.append(Match(number, start, end))
            if len(found) == limit:
                return found
    return found


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2

"""What belongs to the lines of a text: spans of entities, and places where a pattern stands."""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


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
        self._of: dict[str, list[Span]] = {}
        # The lines with which another span becomes the smallest one, and these spans.
        self._begins: list[int] = []
        self._innermost: list[str] = []
        self._cut(tuple(spans))

    def innermost(self, line: int) -> str:
        """The entity of the smallest span that has this line, or ``""``; of several with the same
        lines, that of the last."""
        index = bisect_right(self._begins, line) - 1
        return self._innermost[index] if index >= 0 else ""

    def of(self, entities: Collection[str]) -> list[Span]:
        """The spans of these entities, in the text's order."""
        known = [entity for entity in entities if entity in self._of]
        return sorted(
            (span for entity in known for span in self._of[entity]),
            key=lambda span: (span.first, span.last),
        )

    def _cut(self, spans: Sequence[Span]) -> None:
        begins = sorted(range(len(spans)), key=lambda i: spans[i].first)
        lines = sorted({line for span in spans for line in (span.first, span.last + 1)})
        around: list[tuple[int, int]] = []
        following = 0
        for line in lines:
            while following < len(begins) and spans[begins[following]].first == line:
                index = begins[following]
                # Of those with the same lines, the later one is inside.
                heappush(around, (spans[index].last - spans[index].first, -index))
                following += 1
            while around and spans[-around[0][1]].last < line:
                heappop(around)
            entity = spans[-around[0][1]].entity if around else ""
            self._begins.append(line)
            self._innermost.append(entity)
        for span in spans:
            self._of.setdefault(span.entity, []).append(span)


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


def find_all(
    pattern: re.Pattern[str], lines: Iterable[str], limit: int, first: int = 0
) -> list[Match]:
    """The places where a pattern stands, none across lines and none empty; at most ``limit``.

    Parameters
    ----------
    first : int
        Number of the first of these lines.
    """
    found: list[Match] = []
    for number, line in enumerate(lines, first):
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

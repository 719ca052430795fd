"""The marks of lines: spans of entities, selection, changes, and matches of a search."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from lowerscope.app.kit.theme import Theme


@dataclass(frozen=True)
class Span:
    """The lines of an entity."""

    entity: str  # Its id.
    first: int  # Lines from 1, both included.
    last: int


@dataclass(frozen=True)
class Match:
    """A match of a search: line from 0, and columns from 0 in UTF-16 units."""

    line: int
    start: int
    end: int


class Spans:
    """The spans of a text, with the innermost one for each line."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._of: dict[str, list[Span]] = {}
        # Lines where the smallest span changes, and the new smallest spans.
        self._begins: list[int] = []
        self._innermost: list[str] = []
        self._cut(tuple(spans))

    def innermost(self, line: int) -> str:
        """Return the entity of the smallest span around a line, or ``""``.

        Of several with the same lines, the last one counts.
        """
        index = bisect_right(self._begins, line) - 1
        return self._innermost[index] if index >= 0 else ""

    def of(self, entities: Collection[str]) -> list[Span]:
        """Return the spans of these entities, in the text's order."""
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
    """A set of lines stored as ranges, so that a whole function costs no more than a line."""

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
        i = bisect_right(self._firsts, line) - 1 if self._firsts else -1
        return i >= 0 and line <= self._lasts[i]

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def ranges(self) -> list[tuple[int, int]]:
        """Return the first and last line of each range, in order."""
        return list(zip(self._firsts, self._lasts, strict=True))


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Qt counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


Tint = Callable[[str], int | None]
"""Function that returns the palette index of an entity's colour; ``None`` for none."""


class CodeMarks:
    """The marks of a text. Lines count from 0, those of spans and changes from 1.

    Marks are looked up only for lines that are painted.
    """

    def __init__(self) -> None:
        self.tint: Tint | None = None
        self.current_match: Match | None = None
        self._spans = Spans()
        self._selection: frozenset[str] = frozenset()
        self._selected = LineSet()
        self._changed = LineSet()
        self._here = 0
        self._matches: dict[int, list[Match]] = {}

    def clear(self) -> None:
        """Clear the marks of a text; the selection stays."""
        self._spans, self._selected, self._changed = Spans(), LineSet(), LineSet()
        self._matches, self.current_match = {}, None
        self._here = 0

    def set_spans(self, spans: Iterable[Span]) -> None:
        """Set the lines of entities."""
        self._spans = Spans(spans)
        self.select(self._selection)

    def spans_of(self, entity: str) -> list[Span]:
        return self._spans.of((entity,))

    def entity(self, line: int) -> str:
        """Return the innermost entity of a line, or ``""``."""
        return "" if line < 0 else self._spans.innermost(line + 1)

    def select(self, entities: Collection[str]) -> None:
        """Mark the lines of these entities as selected."""
        self._selection = frozenset(entities)
        spans = self._spans.of(self._selection)
        self._selected = LineSet((span.first, span.last) for span in spans)

    def change(self, lines: Iterable[int]) -> None:
        """Mark these lines, from 1, as changed."""
        self._changed = LineSet((line, line) for line in lines)

    def point(self, line: int) -> None:
        """Point at a line, from 1, as the current one; 0 for none.

        The selection is not marked meanwhile, since it may have other lines too.
        """
        self._here = line

    def is_here(self, line: int) -> bool:
        """Return whether a line is the one that is pointed at."""
        return line + 1 == self._here

    def find(self, matches: Sequence[Match], current: Match | None) -> None:
        """Mark the matches of a search, and highlight the current one."""
        by_line: dict[int, list[Match]] = {}
        for match in matches:
            by_line.setdefault(match.line, []).append(match)
        self._matches, self.current_match = by_line, current

    def is_selected(self, line: int) -> bool:
        """Return whether a line belongs to the selection, or is the one that is pointed at."""
        return self.is_here(line) if self._here else line + 1 in self._selected

    def is_changed(self, line: int) -> bool:
        """Return whether a line is marked as changed."""
        return line + 1 in self._changed

    def matches(self, line: int) -> Sequence[Match]:
        return self._matches.get(line, ())

    def tint_of(self, line: int, colours: Theme) -> str:
        """Return the colour of a line's entity in the theme's palette, or ``""``."""
        entity = self.entity(line) if self.tint is not None else ""
        number = self.tint(entity) if self.tint is not None and entity else None
        return "" if number is None else colours.tints[number % len(colours.tints)]

    def ground(self, line: int, colours: Theme) -> str:
        """Return the background colour of a line, or ``""``."""
        if self.is_selected(line):
            return colours.accent_ground
        if self.is_changed(line):
            return colours.changed
        return self.tint_of(line, colours)

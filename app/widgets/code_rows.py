"""Which lines of a text stand in a document, and on which of its rows."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

Range = tuple[int, int]
"""From a line, counted from 0, to another one, excluded."""


class Rows:
    """The rows of a document that leaves some lines of a text out.

    Parameters
    ----------
    count : int
        Lines of the text.
    hidden : sequence of Range
        The lines that are left out: in order, none empty, none touching another. The first line
        of a text is never left out.

    Attributes
    ----------
    hidden : sequence of Range
        As given.
    """

    def __init__(self, count: int = 1, hidden: Sequence[Range] = ()) -> None:
        self.hidden = tuple(hidden)
        self._count = count
        self._firsts = [first for first, _ in self.hidden]
        self._before = [0, *accumulate(end - first for first, end in self.hidden)]
        self._rows = [
            first - before for first, before in zip(self._firsts, self._before, strict=False)
        ]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._count - self._before[-1]

    def line_of(self, row: int) -> int:
        """The line that stands on a row."""
        return row + self._before[bisect_right(self._rows, row)]

    def row_of(self, line: int) -> int:
        """The row of a line, or of the last one above it that is not left out."""
        after = bisect_right(self._firsts, line)
        if after and line < self.hidden[after - 1][1]:
            return self._rows[after - 1] - 1
        return line - self._before[after]

    def shows(self, line: int) -> bool:
        """Whether a line has a row."""
        after = bisect_right(self._firsts, line)
        return not after or line >= self.hidden[after - 1][1]


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order that have the lines of all of these, none touching another."""
    result: list[Range] = []
    for first, end in sorted(ranges):
        if first >= end:
            continue
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((first, end))
    return result


def difference(ranges: Iterable[Range], others: Sequence[Range]) -> Iterator[Range]:
    """Yield the lines of ``ranges`` that are in none of ``others``; all of them are in order."""
    for first, end in ranges:
        at = max(0, bisect_right(others, (first, first)) - 1)
        while at < len(others) and others[at][0] < end:
            if others[at][1] > first:
                if others[at][0] > first:
                    yield first, others[at][0]
                first = others[at][1]
            at += 1
        if first < end:
            yield first, end


def within(ranges: Sequence[Range], first: int, end: int) -> list[Range]:
    """Return the parts of ranges, which are in order, between two lines."""
    at = max(0, bisect_right(ranges, (first, first)) - 1)
    result: list[Range] = []
    while at < len(ranges) and ranges[at][0] < end:
        part = max(first, ranges[at][0]), min(end, ranges[at][1])
        if part[0] < part[1]:
            result.append(part)
        at += 1
    return result


def first_left(hidden: Sequence[Range], count: int, most: int) -> list[Range]:
    """Return the first lines of so many that are not left out, at most a number of them."""
    return beginning(difference([(0, count)], hidden), most)


def beginning(ranges: Iterable[Range], lines: int) -> list[Range]:
    """Return the first ranges, cut where they have more than so many lines."""
    result: list[Range] = []
    for first, end in ranges:
        if lines <= 0:
            break
        result.append((first, min(end, first + lines)))
        lines -= end - first
    return result


def total(ranges: Iterable[Range]) -> int:
    """Return how many lines ranges have."""
    return sum(end - first for first, end in ranges)

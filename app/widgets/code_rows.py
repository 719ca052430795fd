"""Which lines of a text stand in a document, and on which of its rows."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
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


def difference(ranges: Sequence[Range], others: Sequence[Range]) -> list[Range]:
    """Return the lines of ``ranges`` that are in none of ``others``; all of them are in order."""
    result: list[Range] = []
    index = 0
    for first, end in ranges:
        while index < len(others) and others[index][1] <= first:
            index += 1
        at = index
        while at < len(others) and others[at][0] < end:
            if others[at][0] > first:
                result.append((first, others[at][0]))
            first = max(first, others[at][1])
            at += 1
        if first < end:
            result.append((first, end))
    return result


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

"""Which lines of a text stand in a document, and on which of its rows."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import itemgetter, lt, sub

Range = tuple[int, int]
"""From a line, counted from 0, to another one, excluded."""

_FIRST, _END = itemgetter(0), itemgetter(1)


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
        # In C from end to end: there may be 20,000 folded functions.
        self._firsts: list[int] = list(map(_FIRST, self.hidden))
        lengths = map(sub, map(_END, self.hidden), self._firsts)
        self._before: list[int] = list(accumulate(lengths, initial=0))
        self._rows: list[int] = list(map(sub, self._firsts, self._before))

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._count - self._before[-1]

    def line_of(self, row: int) -> int:
        """The line that stands on a row."""
        return row + self._before[bisect_right(self._rows, row)]

    def row_of(self, line: int) -> int:
        """The row of a line, or of the last one above it that is not left out."""
        return self.above(line) - (not self.shows(line))

    def above(self, line: int) -> int:
        """How many rows there are above a line."""
        after = bisect_right(self._firsts, line)
        if after and line < self.hidden[after - 1][1]:
            return self._rows[after - 1]
        return line - self._before[after]

    def lines_of(self, first: int, end: int) -> Iterator[Range]:
        """Yield the lines that stand on rows, from one to another one, excluded."""
        after = bisect_right(self._rows, first)
        while first < end:
            next_fold = self._rows[after] if after < len(self._rows) else end
            last = min(end, next_fold)
            if first < last:
                yield first + self._before[after], last + self._before[after]
            first, after = last, after + 1

    def shows(self, line: int) -> bool:
        """Whether a line has a row."""
        after = bisect_right(self._firsts, line)
        return not after or line >= self.hidden[after - 1][1]


class Layers:
    """The rows of a document that is not filled in yet, of a text some lines of which are folded.

    There may be thousands of folds, and there are few places where something is missing: so these
    are counted in the rows that all lines have that are not folded away, and what is filled in
    costs the same whatever is folded.

    Parameters
    ----------
    unfolded : Rows
        The lines that are not folded away, and the rows that they have in the end.
    missing : sequence of Range
        Those of these rows that the document does not have yet: in order, none touching another.

    Attributes
    ----------
    filled : Rows
        The rows of `unfolded` that the document has, and on which of its own.
    """

    def __init__(self, unfolded: Rows, missing: Sequence[Range] = ()) -> None:
        self.unfolded = unfolded
        self.filled = Rows(unfolded.count, missing)

    @property
    def missing(self) -> Sequence[Range]:
        """As given."""
        return self.filled.hidden

    @property
    def count(self) -> int:
        """How many rows the document has."""
        return self.filled.count

    def line_of(self, row: int) -> int:
        """The line that stands on a row."""
        return self.unfolded.line_of(self.filled.line_of(row))

    def row_of(self, line: int) -> int:
        """The row of a line, or of the last one above it that the document has."""
        return self.filled.row_of(self.unfolded.row_of(line))

    def shows(self, line: int) -> bool:
        """Whether the document has a line."""
        return self.unfolded.shows(line) and self.filled.shows(self.unfolded.row_of(line))

    def missing_lines(self) -> list[Range]:
        """Return the lines between which the document has none, folded or missing."""
        line_of = self.unfolded.line_of
        return [(line_of(first), line_of(end - 1) + 1) for first, end in self.missing]

    def without(self, lines: Iterable[Range]) -> "Layers":
        """Return the same where these lines are missing, those that are folded away aside."""
        above = self.unfolded.above
        return Layers(self.unfolded, union((above(first), above(end)) for first, end in lines))


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return ranges in order that have the lines of all of these, none touching another."""
    given = sorted(ranges)
    ends = list(map(_END, given))
    if all(map(lt, map(_FIRST, given), ends)) and all(map(lt, ends, map(_FIRST, given[1:]))):
        return given
    result: list[Range] = []
    for first, end in given:
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


def total(ranges: Iterable[Range]) -> int:
    """Return how many lines ranges have."""
    return sum(end - first for first, end in ranges)

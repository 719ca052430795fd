"""Lines of a text, and their rows in a document.

Inserting 200,000 lines at once into a document blocks the window for half a second, and hidden
blocks are laid out all the same. So lines that are folded away are not in the document at all, and
a long text is inserted in slices. `Layers` tracks which lines are inserted.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter, lt, sub

from PySide6.QtGui import QTextCursor, QTextDocument

Range = tuple[int, int]
"""First line, from 0, and the line after the last one."""

_FIRST, _END = itemgetter(0), itemgetter(1)


class Rows:
    """Rows of a document that omits some lines of a text.

    Args:
        count: Number of lines of the text.
        hidden: The omitted lines: in order, none empty, none adjacent. The first line of a text is
            never omitted.
    """

    def __init__(self, count: int = 1, hidden: Sequence[Range] = ()) -> None:
        self.hidden = tuple(hidden)  # As given.
        self._count = count
        # `map` runs in C: there may be 20,000 folded functions.
        self._firsts: list[int] = list(map(_FIRST, self.hidden))
        lengths = map(sub, map(_END, self.hidden), self._firsts)
        self._before: list[int] = list(accumulate(lengths, initial=0))
        self._rows: list[int] = list(map(sub, self._firsts, self._before))

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._count - self._before[-1]

    def line_of(self, row: int) -> int:
        """Return the line of a row."""
        return row + self._before[bisect_right(self._rows, row)]

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the last one above it that is not omitted."""
        return self.above(line) - (not self.shows(line))

    def above(self, line: int) -> int:
        """Return the number of rows above a line."""
        after = bisect_right(self._firsts, line)
        if after and line < self.hidden[after - 1][1]:
            return self._rows[after - 1]
        return line - self._before[after]

    def lines_of(self, first: int, end: int) -> Iterator[Range]:
        """Yield the lines of a range of rows."""
        after = bisect_right(self._rows, first)
        while first < end:
            next_fold = self._rows[after] if after < len(self._rows) else end
            last = min(end, next_fold)
            if first < last:
                yield first + self._before[after], last + self._before[after]
            first, after = last, after + 1

    def shows(self, line: int) -> bool:
        """Return whether a line has a row."""
        after = bisect_right(self._firsts, line)
        return not after or line >= self.hidden[after - 1][1]


class Layers:
    """Rows of a partly filled document, of a text with folded lines.

    There may be thousands of folds, but few missing ranges. So missing ranges are counted in rows
    of the unfolded lines, and the cost of filling does not depend on the folds.

    Args:
        unfolded: The lines that are not folded away, and their final rows.
        missing: The ranges of these rows that are not in the document yet: in order, none adjacent.
    """

    def __init__(self, unfolded: Rows, missing: Sequence[Range] = ()) -> None:
        self.unfolded = unfolded
        # The rows of `unfolded` that are in the document, and their numbers there.
        self.filled = Rows(unfolded.count, missing)

    @property
    def missing(self) -> Sequence[Range]:
        """As given."""
        return self.filled.hidden

    @property
    def count(self) -> int:
        """The number of rows of the document."""
        return self.filled.count

    def line_of(self, row: int) -> int:
        """Return the line of a row."""
        return self.unfolded.line_of(self.filled.line_of(row))

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the last one above it that is in the document."""
        return self.filled.row_of(self.unfolded.row_of(line))

    def shows(self, line: int) -> bool:
        """Return whether a line is in the document."""
        return self.unfolded.shows(line) and self.filled.shows(self.unfolded.row_of(line))

    def missing_lines(self) -> list[Range]:
        """Return the ranges of lines that are not in the document, folded or missing."""
        line_of = self.unfolded.line_of
        return [(line_of(first), line_of(end - 1) + 1) for first, end in self.missing]

    def without(self, lines: Iterable[Range]) -> "Layers":
        """Return the same with these lines missing as well, except for folded ones."""
        above = self.unfolded.above
        return Layers(self.unfolded, union((above(first), above(end)) for first, end in lines))


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return the union of ranges, in order, none adjacent."""
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
    """Yield the lines of ``ranges`` that are in none of ``others``; both are in order."""
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
    """Return the parts of ordered ranges between two lines."""
    at = max(0, bisect_right(ranges, (first, first)) - 1)
    result: list[Range] = []
    while at < len(ranges) and ranges[at][0] < end:
        part = max(first, ranges[at][0]), min(end, ranges[at][1])
        if part[0] < part[1]:
            result.append(part)
        at += 1
    return result


def total(ranges: Iterable[Range]) -> int:
    """Return the number of lines in ranges."""
    return sum(end - first for first, end in ranges)


LINE_CHARACTERS = 3_000
"""Characters of a line that are shown: to lay out and colour a line of a megabyte takes seconds."""

MOST_LINES = 250_000
"""Lines that are shown; the others are copied with the last one."""

_CUT = " …"

Part = tuple[int, int]
"""First character in a line, and the one after the last."""


class HiddenText:
    """The lines of a text, each of which may have one hidden part.

    Args:
        text: The whole text.
        hidden: The hidden parts, by line number, from 0.
    """

    def __init__(self, text: str = "", hidden: Mapping[int, Part] | None = None) -> None:
        self.text = text  # The whole text.
        # The last element is the rest of the text.
        # The lines including hidden parts.
        self.whole_lines: Sequence[str] = text.split("\n", MOST_LINES - 1)
        # As given. The ends of lines of more than `LINE_CHARACTERS` are left out as well.
        self.hidden = dict(hidden or {})
        self._left_out = _with_ends_of_long_lines(self.whole_lines, self.hidden)
        self.lines: Sequence[str] = self.whole_lines  # The visible text of each line.
        if self._left_out:
            self.lines = list(self.whole_lines)
            for number in self._left_out:
                self.lines[number] = self._shown(number, self.whole_lines[number])

    def whole_line(self, number: int) -> str:
        """Return the complete text of a line, from 0, that has a hidden part; otherwise ``""``."""
        return self.whole_lines[number].strip() if number in self._left_out else ""

    def whole(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return the text between two positions in the visible lines, including hidden parts.

        Args:
            start, end: Line number and column, from 0.
        """
        first, last = start[0], end[0]
        lines = list(self.whole_lines[first : last + 1])
        # The end first, since both may be in one line.
        lines[-1] = lines[-1][: self._column(*end)]
        lines[0] = lines[0][self._column(*start) :]
        return "\n".join(lines)

    def _shown(self, number: int, line: str) -> str:
        part = self._left_out[number]
        end = line[part[1] :] if part == self.hidden.get(number) else _CUT
        return line[: part[0]] + end

    def _column(self, number: int, column: int) -> int:
        begin, end = self._left_out.get(number, (0, 0))
        return column + end - begin if column > begin else column


def _with_ends_of_long_lines(lines: Sequence[str], hidden: Mapping[int, Part]) -> dict[int, Part]:
    """Return the hidden parts, including the ends of lines that are too long without them."""
    found = dict(hidden)
    if len(lines) == MOST_LINES and "\n" in lines[-1]:
        found[MOST_LINES - 1] = min(lines[-1].index("\n"), LINE_CHARACTERS), len(lines[-1])
    if max(map(len, lines)) <= LINE_CHARACTERS:
        return found
    for number, line in enumerate(lines):
        begin, end = found.get(number, (0, 0))
        if len(line) - (end - begin) > LINE_CHARACTERS:
            begin = min(begin, LINE_CHARACTERS) if end > begin else LINE_CHARACTERS
            found[number] = begin, len(line)
    return found


#: Lines that are inserted at a time; it takes some 2 ms.
SLICE = 1_000
#: For changes of more lines, or of more ranges, starting over is faster.
_MOST_LINES = 5_000
_MOST_RANGES = 200


class CodeDocument:
    """The lines of a text, inserted into a document.

    Args:
        document: The document; only this object changes it.
    """

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self.lines: Sequence[str] = [""]  # All lines of the text.
        self.rows = Layers(Rows())  # Those that are in the document.

    def set_lines(self, lines: Sequence[str], folded: Sequence[Range] = ()) -> None:
        """Set the text and insert its first slice; omit the folded lines."""
        self.lines = lines
        self._begin(union(folded))

    def set_folded(self, ranges: Sequence[Range]) -> bool:
        """Set the folded lines; those unfolded are inserted by `step`.

        Returns:
            Whether the document was rebuilt, so that cursors have lost their positions.
        """
        folded, before = union(ranges), self.rows.unfolded.hidden
        # There may be thousands: process only those that differ.
        if abs(len(folded) - len(before)) > _MOST_RANGES:
            self._begin(folded)
            return True
        kept = set(folded).intersection(before)
        added = [each for each in folded if each not in kept]
        gone = [each for each in before if each not in kept]
        missing = union([*self.rows.missing_lines(), *difference(gone, added)])
        out = list(difference(added, union([*gone, *missing])))
        if total(out) > _MOST_LINES or len(out) + len(missing) > _MOST_RANGES:
            self._begin(folded)
            return True
        self._take_out(out)
        self.rows = Layers(Rows(len(self.lines), folded)).without(missing)
        return False

    @property
    def settled(self) -> bool:
        """Return whether the document is complete."""
        return not self.rows.missing

    def step(self) -> None:
        """Insert one more missing slice."""
        first, end = self.rows.missing[0]
        self._put_in([(first, min(end, first + SLICE))])

    def put_in_near(self, line: int) -> None:
        """Insert a line that is not folded away, and its surroundings, before anything else."""
        if self.rows.unfolded.shows(line) and not self.rows.shows(line):
            place = self.rows.unfolded.row_of(line)
            self._put_in(within(self.rows.missing, max(0, place - SLICE // 2), place + SLICE // 2))

    def _begin(self, folded: Sequence[Range]) -> None:
        """Reset the document to its first rows."""
        unfolded = Rows(len(self.lines), folded)
        end = min(SLICE, unfolded.count)
        self._document.setPlainText("\n".join(self._lines_of(unfolded, (0, end))))
        self.rows = Layers(unfolded, union([(end, unfolded.count)]))

    def _take_out(self, ranges: Sequence[Range]) -> None:
        # From the end, so that `rows` stays valid for the rows before a change.
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for first, end in reversed(ranges):
            cursor.setPosition(self._end_of_row(self.rows.row_of(first) - 1))
            last = self._end_of_row(self.rows.row_of(end - 1))
            cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        cursor.endEditBlock()

    def _put_in(self, places: Sequence[Range]) -> None:
        """Insert missing lines at some places, in rows of the unfolded lines."""
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for place in reversed(places):
            cursor.setPosition(self._end_of_row(self.rows.filled.row_of(place[0])))
            cursor.insertText("\n" + "\n".join(self._lines_of(self.rows.unfolded, place)))
        cursor.endEditBlock()
        self.rows = Layers(self.rows.unfolded, list(difference(self.rows.missing, places)))

    def _lines_of(self, unfolded: Rows, place: Range) -> list[str]:
        parts = unfolded.lines_of(*place)
        return [line for first, end in parts for line in self.lines[first:end]]

    def _end_of_row(self, row: int) -> int:
        block = self._document.findBlockByNumber(row)
        return block.position() + block.length() - 1

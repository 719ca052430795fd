"""What of a text stands in a document: filled in, and folded away, a slice at a time.

A document that is given 200,000 lines at once blocks the window for half a second, and one whose
blocks are hidden lays them out none the less. So lines that are folded away are not in the
document at all, and a long text comes into it in slices. `Rows` says at any time which lines are.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from PySide6.QtGui import QTextCursor, QTextDocument

from lowerscope.app.widgets.code_rows import (
    Range,
    Rows,
    beginning,
    difference,
    first_left,
    total,
    union,
    within,
)

#: Lines that go into the document in one go; it takes some 2 ms.
SLICE = 1_000
#: A change of more lines, or of more ranges of lines, takes longer than to begin anew.
_MOST_LINES = 5_000
_MOST_RANGES = 200


class CodeDocument:
    """The lines of a text in a document.

    Parameters
    ----------
    document : QTextDocument
        Where they stand; nobody else changes it.

    Attributes
    ----------
    lines : sequence of str
        All lines of the text.
    rows : Rows
        Those that are in the document.
    """

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self.lines: Sequence[str] = [""]
        self.rows = Rows()
        self._folded: list[Range] = []

    def set_lines(self, lines: Sequence[str]) -> None:
        """Take another text, of which the first slice is put in."""
        self.lines = lines
        self._folded = []
        self._begin()

    def set_folded(self, ranges: Sequence[Range]) -> bool:
        """Leave these lines out, and have the others put in by `step`.

        Returns
        -------
        bool
            Whether the document had to begin anew: no cursor is where it was.
        """
        self._folded = union(ranges)
        if abs(len(self._folded) - len(self.rows.hidden)) > _MOST_RANGES:
            # There are thousands: finding out what differs would take longer as well.
            self._begin()
            return True
        out = list(difference(self._folded, self.rows.hidden))
        if total(out) > _MOST_LINES or len(out) + len(list(self._missing())) > _MOST_RANGES:
            self._begin()
            return True
        self._take_out(out)
        return False

    @property
    def settled(self) -> bool:
        """Whether the document has all that it is to have."""
        return list(self.rows.hidden) == self._folded

    def step(self) -> None:
        """Put in one more slice of what is missing."""
        self._put_in(beginning(self._missing(), SLICE))

    def put_in_near(self, line: int) -> None:
        """Put in a line that is not folded away, with what is around it, before anything else."""
        if not self.rows.shows(line):
            around = within(self.rows.hidden, max(0, line - SLICE // 2), line + SLICE // 2)
            self._put_in(list(difference(around, self._folded)))

    def _missing(self) -> Iterator[Range]:
        return difference(self.rows.hidden, self._folded)

    def _begin(self) -> None:
        """Have the first rows in the document, and nothing else."""
        count = len(self.lines)
        parts = first_left(self._folded, count, SLICE)
        first = [line for begin, end in parts for line in self.lines[begin:end]]
        self._document.setPlainText("\n".join(first))
        after = parts[-1][1]
        hidden = [part for part in self._folded if part[0] < after]
        self.rows = Rows(count, union([*hidden, (after, count)]))

    def _take_out(self, ranges: Sequence[Range]) -> None:
        # From the end, so that the rows before what is changed are still the ones of `rows`.
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for first, end in reversed(ranges):
            cursor.setPosition(self._end_of_row(self.rows.row_of(first) - 1))
            last = self._end_of_row(self.rows.row_of(end - 1))
            cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        cursor.endEditBlock()
        self.rows = Rows(len(self.lines), union([*self.rows.hidden, *ranges]))

    def _put_in(self, ranges: Sequence[Range]) -> None:
        # What comes below one row goes in at once: there may be thousands of folded functions.
        places = [
            (row, list(parts))
            for row, parts in groupby(ranges, lambda part: self.rows.row_of(part[0]))
        ]
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for row, parts in reversed(places):
            cursor.setPosition(self._end_of_row(row))
            lines = [line for first, end in parts for line in self.lines[first:end]]
            cursor.insertText("\n" + "\n".join(lines))
        cursor.endEditBlock()
        self.rows = Rows(len(self.lines), list(difference(self.rows.hidden, ranges)))

    def _end_of_row(self, row: int) -> int:
        block = self._document.findBlockByNumber(row)
        return block.position() + block.length() - 1

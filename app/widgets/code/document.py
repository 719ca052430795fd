"""What of a text stands in a document: filled in, and folded away, a slice at a time.

A document that is given 200,000 lines at once blocks the window for half a second, and one whose
blocks are hidden lays them out none the less. So lines that are folded away are not in the
document at all, and a long text comes into it in slices. `Layers` says at any time which lines are.
"""

from collections.abc import Sequence

from PySide6.QtGui import QTextCursor, QTextDocument

from lowerscope.app.widgets.code.rows import Layers, Range, Rows, difference, total, union, within

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
    rows : Layers
        Those that are in the document.
    """

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self.lines: Sequence[str] = [""]
        self.rows = Layers(Rows())

    def set_lines(self, lines: Sequence[str]) -> None:
        """Take another text, of which the first slice is put in."""
        self.lines = lines
        self._begin(())

    def set_folded(self, ranges: Sequence[Range]) -> bool:
        """Leave these lines out, and have the others put in by `step`.

        Returns
        -------
        bool
            Whether the document had to begin anew: no cursor is where it was.
        """
        folded, before = union(ranges), self.rows.unfolded.hidden
        # There may be thousands: only what differs is looked at one by one.
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
        """Whether the document has all that it is to have."""
        return not self.rows.missing

    def step(self) -> None:
        """Put in one more slice of what is missing."""
        first, end = self.rows.missing[0]
        self._put_in([(first, min(end, first + SLICE))])

    def put_in_near(self, line: int) -> None:
        """Put in a line that is not folded away, with what is around it, before anything else."""
        if self.rows.unfolded.shows(line) and not self.rows.shows(line):
            place = self.rows.unfolded.row_of(line)
            self._put_in(within(self.rows.missing, max(0, place - SLICE // 2), place + SLICE // 2))

    def _begin(self, folded: Sequence[Range]) -> None:
        """Have the first rows in the document, and nothing else."""
        unfolded = Rows(len(self.lines), folded)
        end = min(SLICE, unfolded.count)
        self._document.setPlainText("\n".join(self._lines_of(unfolded, (0, end))))
        self.rows = Layers(unfolded, union([(end, unfolded.count)]))

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

    def _put_in(self, places: Sequence[Range]) -> None:
        """Put in what is missing at some places, which count the lines that are not folded away."""
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

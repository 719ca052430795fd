"""The rows of a difference: titles, lines of one side or of both, and folds of equal lines."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from lowerscope.app.kit.code.document import MOST_LINES, Range
from lowerscope.app.kit.code.folding import Folding

LineStatus = Literal["same", "changed", "added", "removed"]
RowKind = Literal["title", "fold", "same", "changed", "added", "removed"]
Side = Literal["old", "new", "both"]
"""A column of the two-column view; or the only one, which shows lines of both sides."""

CHANGES = ("changed", "added", "removed")

#: Equal lines that are shown before and after a change.
CONTEXT = 3

#: Fewest lines that a fold stands for.
_SMALLEST_FOLD = 2


class DiffRun(NamedTuple):
    """Consecutive lines of one status: the first on either side, from 1, and their number."""

    status: LineStatus
    old: int
    new: int
    length: int


@dataclass(frozen=True)
class DiffPart:
    """A part of a difference with a title, such as a function."""

    title: str  # Its name.
    status: LineStatus  # Status of the whole part.
    old: Sequence[str]  # The lines of either side.
    new: Sequence[str]
    runs: Sequence[DiffRun]  # All of these lines in order.

    def count(self, status: LineStatus) -> int:
        """Return the number of lines of a status."""
        return sum(run.length for run in self.runs if run.status == status)


class Row(NamedTuple):
    """A row, or several consecutive ones of one kind.

    ``old`` and ``new`` are lines from 1, 0 where a side has none. A fold is one row above the equal
    lines that it stands for; its length is their number. ``partner`` is the counterpart of a
    removed or an added line.
    """

    kind: RowKind
    part: int
    old: int = 0
    new: int = 0
    length: int = 1
    partner: int = 0

    @property
    def is_heading(self) -> bool:
        """Return whether it is a title, or stands for folded lines."""
        return self.kind in ("title", "fold")

    def line(self, side: Side) -> int:
        """Return the line of a side in this row, or 0."""
        if self.is_heading:
            return 0
        return self.old if side == "old" else self.new or (self.old if side == "both" else 0)


class DiffRows:
    """All rows of a difference, including folded ones; rows count from 0.

    They are the regions of a side's text: a title begins the rows of its part, and a fold those of
    its lines.

    Args:
        parts: The parts; each has a title, unless there is one part without a name.
        unified: Whether a changed line is shown as a removed line above an added one.
    """

    def __init__(self, parts: Sequence[DiffPart] = (), unified: bool = False) -> None:
        self.parts = parts
        self.unified = unified
        # The rows, grouped by kind.
        self.runs = [row for number in range(len(parts)) for row in self._of_part(number)]
        lengths = (1 if run.is_heading else run.length for run in self.runs)
        # The first row of each run, and the total number of rows.
        self.starts = list(accumulate(lengths, initial=0))
        sides = (side for part in parts for side in (part.old, part.new) if side)
        # Characters of the longest line of either side.
        self.longest = max((max(map(len, side)) for side in sides), default=0)
        kinds = [run.kind in CHANGES for run in self.runs]
        before = [False, *kinds]
        # The rows at which changes begin.
        self.changes = [
            start
            for start, change, follows in zip(self.starts, kinds, before, strict=False)
            if change and not follows and start < MOST_LINES
        ]

    def row(self, number: int) -> Row:
        """Return a row; the last one for rows beyond it, and an empty one if there are none."""
        if not self.runs:
            return Row("same", 0)
        number = min(number, self.starts[-1] - 1)
        index = self._index(number)
        run, offset = self.runs[index], number - self.starts[index]
        if run.is_heading:
            return run
        old, new, partner = (at + offset if at else 0 for at in (run.old, run.new, run.partner))
        return Row(run.kind, run.part, old, new, 1, partner)

    def texts(self, row: Row) -> tuple[str | None, str | None]:
        """Return the lines of a row on either side."""
        if row.is_heading or not self.parts:
            return None, None
        part = self.parts[row.part]
        old = part.old[row.old - 1] if row.old else None
        return old, part.new[row.new - 1] if row.new else None

    def pair(self, row: Row) -> tuple[str, str] | None:
        """Return both texts of a changed line, for a row that shows it or one side of it."""
        if row.kind != "changed" and not row.partner:
            return None
        part = self.parts[row.part]
        return part.old[(row.old or row.partner) - 1], part.new[(row.new or row.partner) - 1]

    def lines(self, side: Side) -> list[str]:
        """Return the text of a side, one line for each row."""
        lines: list[str] = []
        for run in self.runs:
            first = run.line(side)
            if first:
                part = self.parts[run.part]
                text = part.old if side == "old" or not run.new else part.new
                lines += text[first - 1 : first - 1 + run.length]
            else:
                # A title has a character, whose font determines the row's height.
                filler = " " if run.kind == "title" else ""
                lines += [filler] * (1 if run.is_heading else run.length)
        return lines

    def like(self, row: Row) -> int:
        """Return the first row with the same line, title or fold as a row of another `DiffRows`."""
        for start, run in zip(self.starts, self.runs, strict=False):
            if run[:4] == row[:4]:
                return start
            if run.part != row.part or run.is_heading or row.is_heading:
                continue
            for first, line in ((run.old, row.old), (run.new, row.new)):
                if first and 0 <= line - first < run.length:
                    return start + line - first
        return 0

    def is_title(self, number: int) -> bool:
        """Return whether a row is the title of a part."""
        return self.row(number).kind == "title"

    def title(self, title: str) -> int:
        """Return the row of a part's title, or -1."""
        for start, run in zip(self.starts, self.runs, strict=False):
            if run.kind == "title" and self.parts[run.part].title == title:
                return start
        return -1

    # Regions

    def begins(self, line: int) -> bool:
        return self.row(line).is_heading

    def end(self, line: int) -> int:
        index = self._index(line)
        part, kind = self.runs[index].part, self.runs[index].kind
        following = index + 2
        while kind == "title" and following < len(self.runs) and self.runs[following].part == part:
            following += 1
        return self.starts[min(following, len(self.runs))] - 1

    def around(self, line: int) -> int:
        for index in range(self._index(line), -1, -1):
            if self.begins(self.starts[index]) and self.end(self.starts[index]) >= line:
                return self.starts[index]
        return -1

    def functions(self) -> Iterator[int]:
        return (
            start for start, run in zip(self.starts, self.runs, strict=False) if run.kind == "fold"
        )

    def _index(self, number: int) -> int:
        return max(0, min(bisect_right(self.starts, number), len(self.runs)) - 1)

    def _of_part(self, number: int) -> Iterator[Row]:
        part = self.parts[number]
        if part.title:
            yield Row("title", number)
        for place, (status, old, new, length) in enumerate(part.runs):
            if status == "same":
                before = CONTEXT if place else 0
                after = CONTEXT if place + 1 < len(part.runs) else 0
                yield from _same(number, (old, new, length), before, after)
            elif status == "changed" and self.unified:
                yield Row("removed", number, old, 0, length, new)
                yield Row("added", number, 0, new, length, old)
            elif status == "changed":
                yield Row("changed", number, old, new, length)
            elif status == "removed":
                yield Row("removed", number, old, 0, length)
            else:
                yield Row("added", number, 0, new, length)


def _same(number: int, lines: tuple[int, int, int], before: int, after: int) -> Iterator[Row]:
    """Yield the rows of equal lines: context beside changes, and a fold above the others."""
    old, new, length = lines
    hidden = length - before - after
    if hidden < _SMALLEST_FOLD:
        before, hidden, after = length, 0, 0
    if before:
        yield Row("same", number, old, new, before)
    if hidden:
        yield Row("fold", number, old + before, new + before, hidden)
        yield Row("same", number, old + before, new + before, hidden)
    if after:
        yield Row("same", number, old + length - after, new + length - after, after)


class DiffFolding(Folding):
    """The folds of a difference; a fold has a row only while it is folded.

    Args:
        before: The folds of the same parts with other rows; by default, equal lines are folded, and
            parts without a change are folded to their titles.
    """

    def __init__(self, rows: DiffRows, before: "DiffFolding | None" = None) -> None:
        super().__init__(regions=rows)
        self.rows = rows
        known = set() if before is None else before._folded_runs()
        for start, run in zip(rows.starts, rows.runs, strict=False):
            if before is not None:
                folded = run in known
            else:
                folded = run.kind == "fold" or (
                    run.kind == "title" and rows.parts[run.part].status == "same"
                )
            if folded:
                self.fold(start)

    def _folded_runs(self) -> set[Row]:
        return {self.rows.row(header) for header in self._folded}

    def ranges(self) -> list[Range]:
        # The first row of a text is never omitted.
        opened = (each for each in self.rows.functions() if each and each not in self._folded)
        ranges = [*self._folded.values(), *((header, header + 1) for header in opened)]
        # The last line that is shown contains all lines below it.
        last = MOST_LINES - 1
        return [(first, min(end, last)) for first, end in ranges if first < last]

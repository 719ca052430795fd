"""The rows of a difference: titles, lines of one side or of both, and folds of equal lines."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

LineStatus = Literal["same", "changed", "added", "removed"]
RowKind = Literal["title", "fold", "same", "changed", "added", "removed"]

CHANGES = ("changed", "added", "removed")

#: Equal lines that are shown before and after a change.
CONTEXT = 3

#: A fold stands for so many lines at least.
_SMALLEST_FOLD = 2


class DiffRun(NamedTuple):
    """Lines of one status below one another: the first on either side, from 1, and how many."""

    status: LineStatus
    old: int
    new: int
    length: int


@dataclass(frozen=True)
class DiffPart:
    """A part of a difference with a title, such as a function.

    Attributes
    ----------
    title : str
        Its name.
    status : str
        Of the whole of it.
    old, new : sequence of str
        The lines of either side.
    runs : sequence of DiffRun
        All of these lines in order.
    """

    title: str
    status: LineStatus
    old: Sequence[str]
    new: Sequence[str]
    runs: Sequence[DiffRun]

    def count(self, status: LineStatus) -> int:
        """Number of lines of a status."""
        return sum(run.length for run in self.runs if run.status == status)


class Row(NamedTuple):
    """A row to draw.

    ``old`` and ``new`` are lines from 1, 0 where a side has none; a fold begins with them, and
    stands for ``folded`` lines.
    """

    kind: RowKind
    part: int
    old: int = 0
    new: int = 0
    folded: int = 0


Fold = tuple[int, int]
"""Of a fold: the part, and the first of its lines on the old side."""


def rows_of(
    parts: Sequence[DiffPart],
    unified: bool,
    opened: Collection[Fold] | None = (),
    closed: Collection[int] = (),
) -> list[Row]:
    """The rows of a difference, from its top.

    Parameters
    ----------
    parts : sequence of DiffPart
        The parts; each has a title, unless there is one part without a name.
    unified : bool
        A changed line is a removed one and an added one, below one another.
    opened : collection of (int, int), optional
        Folds that are shown as lines; ``None`` for all.
    closed : collection of int
        Parts of which only the title is shown.
    """
    rows: list[Row] = []
    for number, part in enumerate(parts):
        if part.title:
            rows.append(Row("title", number))
        if number in closed:
            continue
        for place, run in enumerate(part.runs):
            if run.status == "same":
                before = CONTEXT if place else 0
                after = CONTEXT if place + 1 < len(part.runs) else 0
                _add_same(rows, number, run, before, after, opened)
            elif run.status == "changed" and unified:
                rows += [Row("removed", number, run.old + i) for i in range(run.length)]
                rows += [Row("added", number, 0, run.new + i) for i in range(run.length)]
            elif run.status == "changed":
                rows += [
                    Row("changed", number, run.old + i, run.new + i) for i in range(run.length)
                ]
            elif run.status == "removed":
                rows += [Row("removed", number, run.old + i) for i in range(run.length)]
            else:
                rows += [Row("added", number, 0, run.new + i) for i in range(run.length)]
    return rows


def _add_same(
    rows: list[Row],
    number: int,
    run: DiffRun,
    before: int,
    after: int,
    opened: Collection[Fold] | None,
) -> None:
    hidden = run.length - before - after
    first = run.old + before
    if hidden < _SMALLEST_FOLD or opened is None or (number, first) in opened:
        before, hidden, after = run.length, 0, 0
    rows += [Row("same", number, run.old + i, run.new + i) for i in range(before)]
    if hidden:
        rows.append(Row("fold", number, first, run.new + before, hidden))
    start = before + hidden
    rows += [Row("same", number, run.old + i, run.new + i) for i in range(start, start + after)]


def change_starts(rows: Sequence[Row]) -> list[int]:
    """The places of rows at which a change begins."""
    return [
        place
        for place, row in enumerate(rows)
        if row.kind in CHANGES and (place == 0 or rows[place - 1].kind not in CHANGES)
    ]


def partners(parts: Sequence[DiffPart], row: Row) -> tuple[str, str] | None:
    """Both texts of a changed line that this row shows or is a side of; ``None`` for others."""
    part = parts[row.part]
    if row.kind == "changed":
        return part.old[row.old - 1], part.new[row.new - 1]
    for run in part.runs:
        if run.status != "changed":
            continue
        offset = row.old - run.old if row.kind == "removed" else row.new - run.new
        if 0 <= offset < run.length:
            return part.old[run.old + offset - 1], part.new[run.new + offset - 1]
    return None

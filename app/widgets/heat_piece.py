"""What a heat map shows: a part of a matrix in cells, and the colours of its values."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from PySide6.QtGui import QColor

from lowerscope.app.theme_colours import Theme

STEPS = 255
"""Colours of a scale; one more is that of what is not finite."""

_SEQUENTIAL = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#fde725")
"""The colours of viridis: told apart by those who see few colours, and in grey."""


@dataclass(frozen=True)
class HeatPiece:
    """A part of a matrix in cells, each of one element or of several.

    Attributes
    ----------
    row_edges, column_edges : tuple of int
        The first row of each row of cells, and the end of the last; likewise of columns.
    values : sequence of float
        A number for each cell, row by row.
    marked : bytes
        A byte for each cell: 1 where it is out of what is allowed; or none.
    """

    row_edges: tuple[int, ...]
    column_edges: tuple[int, ...]
    values: Sequence[float]
    marked: bytes = b""

    @property
    def height(self) -> int:
        """How many rows of cells."""
        return len(self.row_edges) - 1

    @property
    def width(self) -> int:
        """How many columns of cells."""
        return len(self.column_edges) - 1

    @property
    def is_reduced(self) -> bool:
        """Whether a cell stands for several elements."""
        return any(
            after - before > 1
            for edges in (self.row_edges, self.column_edges)
            for before, after in pairwise(edges)
        )

    def cell_of(self, row: int, column: int) -> tuple[int, int] | None:
        """Return the cell that an element is in; ``None`` where that is not in the piece."""
        i, j = bisect_right(self.row_edges, row) - 1, bisect_right(self.column_edges, column) - 1
        inside = 0 <= i < self.height and 0 <= j < self.width
        return (i, j) if inside else None

    def value(self, i: int, j: int) -> float:
        """Return the value of a cell."""
        return self.values[i * self.width + j]

    def is_marked(self, i: int, j: int) -> bool:
        """Return whether a cell is out of what is allowed."""
        return bool(self.marked) and self.marked[i * self.width + j] != 0


@dataclass(frozen=True)
class HeatScale:
    """The range of the colours; ``diverging`` where they part at zero."""

    low: float
    high: float
    diverging: bool = False

    def step(self, value: float) -> int:
        """Return the number of a value's colour, from 1; 0 for what is not finite."""
        if not isfinite(value):
            return 0
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return 1 + round(min(1.0, max(0.0, share)) * (STEPS - 1))

    def colours(self, theme: Theme) -> list[int]:
        """Return the colours by their numbers, as Qt has them."""
        stops = _diverging(theme) if self.diverging else [QColor(each) for each in _SEQUENTIAL]
        shades = [_between(stops, step / (STEPS - 1)) for step in range(STEPS)]
        return [QColor(theme.wrong).rgb(), *(each.rgb() for each in shades)]


def number_text(value: float) -> str:
    """Return a number as it stands beside colours and in a grid."""
    return f"{value:.3g}"


def _diverging(theme: Theme) -> list[QColor]:
    ends = ("#8ab6ff", "#ffb067") if theme.dark else ("#1d4f9f", "#a94b06")
    inner = ("#41648f", "#8d5f38") if theme.dark else ("#86aee0", "#e3a066")
    middle = theme.ground
    return [QColor(each) for each in (ends[0], inner[0], middle, inner[1], ends[1])]


def _between(stops: Sequence[QColor], share: float) -> QColor:
    place = share * (len(stops) - 1)
    first = min(int(place), len(stops) - 2)
    part = place - first
    one, other = stops[first], stops[first + 1]
    return QColor(
        round(one.red() + (other.red() - one.red()) * part),
        round(one.green() + (other.green() - one.green()) * part),
        round(one.blue() + (other.blue() - one.blue()) * part),
    )

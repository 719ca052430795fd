"""What the user has selected of one side of a difference."""

import re
from collections.abc import Iterator
from typing import Literal

Side = Literal["old", "new", "both"]
"""A column of two; or the only one, which shows lines of both sides."""

Spot = tuple[int, int]
"""Place of a row, and a column, both from 0."""

_TO_THE_END = 1 << 30
_WORD = re.compile(r"\w+")


class DiffSelection:
    """A stretch of text on one side, from one spot to another."""

    def __init__(self) -> None:
        self.side: Side = "new"
        self._anchor: Spot = (0, 0)
        self._end: Spot = (0, 0)

    def clear(self) -> None:
        """Select nothing."""
        self._anchor = self._end = (0, 0)

    def start(self, side: Side, spot: Spot) -> None:
        """Begin anew at a spot."""
        self.side, self._anchor, self._end = side, spot, spot

    def extend(self, spot: Spot) -> None:
        """Select up to a spot."""
        self._end = spot

    def ends_at(self, spot: Spot) -> bool:
        """Whether it was last extended to a spot."""
        return self._end == spot

    def select_word(self, side: Side, row: int, text: str, column: int) -> None:
        """Select the word at a column."""
        for word in _WORD.finditer(text):
            if word.start() <= column <= word.end():
                self.side = side
                self._anchor, self._end = (row, word.start()), (row, word.end())

    def select_all(self, unified: bool, rows: int) -> None:
        """Select a side from top to bottom."""
        if unified or self.side == "both":
            self.side = "both" if unified else "new"
        self._anchor, self._end = (0, 0), (rows, 0)

    def columns(self, place: int) -> tuple[Side, int, int] | None:
        """The columns of a row that are selected, and the side."""
        first, last = sorted((self._anchor, self._end))
        if first == last or not first[0] <= place <= last[0]:
            return None
        start = first[1] if place == first[0] else 0
        end = last[1] if place == last[0] else _TO_THE_END
        return self.side, start, end

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """The rows with the columns of each that are selected."""
        first, last = sorted((self._anchor, self._end))
        for place in range(first[0], last[0] + 1):
            found = self.columns(place)
            if found is not None:
                yield place, found[1], found[2]

    def text_of(self, texts: tuple[str | None, str | None]) -> str | None:
        """The text of the side that is selected, of those of a row."""
        old, new = texts
        if self.side == "both":
            return old if new is None else new
        return old if self.side == "old" else new

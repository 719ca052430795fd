"""A difference as it is shown at the moment: which rows there are, and how high each stands."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from lowerscope.app.widgets.code.hidden_text import LINE_CHARACTERS
from lowerscope.app.widgets.diff.rows import DiffPart, Fold, Row, change_starts, rows_of
from lowerscope.app.widgets.typefaces import code_line

TITLE_HEIGHT = 28


class DiffDocument:
    """Parts, what is folded of them, and the rows that come of that.

    Attributes
    ----------
    parts : sequence of DiffPart
        What is compared.
    rows : list of Row
        All rows, also those that are not in view.
    tops : list of int
        The top of each row in pixels, and the end of the last one.
    changes : list of int
        Places of the rows at which a change begins.
    longest : int
        Characters of the longest line.
    unified : bool
        Whether there is one column.
    """

    def __init__(self) -> None:
        self.parts: Sequence[DiffPart] = ()
        self.rows: list[Row] = []
        self.tops: list[int] = [0]
        self.changes: list[int] = []
        self.longest = 0
        self.unified = False
        self._opened: set[Fold] = set()
        self._closed: set[int] = set()

    def set_parts(self, parts: Sequence[DiffPart]) -> None:
        """Take another difference; parts that are the same show their titles alone."""
        self.parts = parts
        self._opened.clear()
        self._closed = {
            number for number, part in enumerate(parts) if part.title and part.status == "same"
        }
        lines = (line for part in parts for side in (part.old, part.new) for line in side)
        self.longest = min(max(map(len, lines), default=0), LINE_CHARACTERS)
        self._make_rows()

    def set_unified(self, unified: bool) -> None:
        """Have one column, or two."""
        self.unified = unified
        self._make_rows()

    def is_closed(self, part: int) -> bool:
        """Whether only the title of a part is shown."""
        return part in self._closed

    def texts_of(self, row: Row) -> tuple[str | None, str | None]:
        """The lines that a row shows on either side."""
        part = self.parts[row.part]
        code = row.kind not in ("title", "fold")
        old = part.old[row.old - 1] if code and row.old else None
        new = part.new[row.new - 1] if code and row.new else None
        return old, new

    def toggle(self, place: int) -> bool:
        """Unfold equal lines; or show a part's lines, or its title alone; False for other rows."""
        row = self.rows[place]
        if row.kind == "fold":
            self._opened.add((row.part, row.old))
        elif row.kind == "title":
            self._closed ^= {row.part}
        else:
            return False
        self._make_rows()
        return True

    def unfold_all(self) -> None:
        """Show every line."""
        self._closed.clear()
        folds = (row for row in rows_of(self.parts, self.unified) if row.kind == "fold")
        self._opened.update((row.part, row.old) for row in folds)
        self._make_rows()

    def fold_all(self) -> None:
        """Fold all equal lines."""
        self._opened.clear()
        self._make_rows()

    def show_line(self, part: int, side: str, line: int) -> int:
        """Have the row of a line, out of its fold if it is in one; return its place."""
        self._closed.discard(part)
        for row in rows_of(self.parts, self.unified, self._opened, self._closed):
            first = row.old if side == "old" else row.new
            if row.kind == "fold" and row.part == part and first <= line < first + row.folded:
                self._opened.add((part, row.old))
                break
        self._make_rows()
        return next(
            place
            for place, row in enumerate(self.rows)
            if row.part == part and (row.old if side == "old" else row.new) == line
        )

    # Places

    def at(self, y: float) -> int:
        """The place of the row at a height, or of the one that is closest."""
        return max(0, min(bisect_right(self.tops, y) - 1, len(self.rows) - 1))

    def like(self, row: Row) -> int:
        """The place of the row that shows what another one showed, or of one close by."""
        wanted = (row.part, row.new or row.old)
        for place, each in enumerate(self.rows):
            last = (each.new or each.old) + max(0, each.folded - 1)
            if (each.part, last) >= wanted and (each.kind == "title") == (row.kind == "title"):
                return place
        return max(0, len(self.rows) - 1)

    def title(self, title: str) -> int:
        """The place of a part's title, or -1."""
        for place, row in enumerate(self.rows):
            if row.kind == "title" and self.parts[row.part].title == title:
                return place
        return -1

    def _make_rows(self) -> None:
        self.rows = rows_of(self.parts, self.unified, self._opened, self._closed)
        self.changes = change_starts(self.rows)
        self.place_rows()

    def place_rows(self) -> None:
        """Place the rows below each other, at the height that lines of code have now."""
        heights = (TITLE_HEIGHT if row.kind == "title" else code_line() for row in self.rows)
        self.tops = [0, *accumulate(heights)]

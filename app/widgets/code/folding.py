"""Which regions of a text are folded."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lowerscope.app.widgets.code.regions import Regions, regions_of
from lowerscope.app.widgets.code.rows import Range


class Folding:
    """The regions of a text, some of which are folded to their first lines.

    Lines count from 0. A change returns whether something is folded differently now.
    """

    def __init__(self, lines: Sequence[str] = ("",), language: str = "") -> None:
        self._lines = lines
        self._regions: Regions = regions_of(lines, language)
        # Of each first line, the lines that are folded into it.
        self._folded: dict[int, Range] = {}

    def fold_like(self, other: "Folding") -> None:
        """Fold the regions that begin as those that are folded in another text do.

        Of lines that read the same, the second belongs to the second, and so on.
        """
        if not other._folded:
            return
        wanted = {other._begin(header) for header in other._folded}
        headers = {line for line, _ in wanted}
        seen: Counter[str] = Counter()
        for number, line in enumerate(self._lines):
            if line in headers:
                seen[line] += 1
                if (line, seen[line]) in wanted:
                    self.fold(number)

    def _begin(self, header: int) -> tuple[str, int]:
        """A line, and how many lines read like it up to there."""
        line = self._lines[header]
        return line, sum(each == line for each in self._lines[: header + 1])

    def ranges(self) -> list[Range]:
        """The lines that are folded away."""
        return list(self._folded.values())

    def begins(self, line: int) -> bool:
        """Whether a region begins with a line."""
        return self._regions.begins(line)

    def folded(self, line: int) -> int:
        """How many lines are folded into this one."""
        first, end = self._folded.get(line, (0, 0))
        return end - first

    def around(self, line: int) -> int:
        """The first line of the smallest region that is not folded and has a line, or -1."""
        header = self._regions.around(line)
        while header in self._folded:
            header = self._regions.around(header - 1) if header > 0 else -1
            if header >= 0 and self._regions.end(header) < line:
                header = -1
        return header

    def fold(self, header: int) -> bool:
        """Fold the region that begins with a line."""
        if header in self._folded or header < 0 or not self._regions.begins(header):
            return False
        self._folded[header] = (header + 1, self._regions.end(header) + 1)
        return True

    def unfold(self, header: int) -> bool:
        """Unfold the region that begins with a line."""
        return self._folded.pop(header, None) is not None

    def fold_all(self) -> Iterator[int]:
        """Fold all functions, one at a time: each as it is folded."""
        for header in self._regions.functions():
            self.fold(header)
            yield header

    def unfold_all(self) -> bool:
        """Unfold everything."""
        some = bool(self._folded)
        self._folded.clear()
        return some

    def covers(self, line: int) -> bool:
        """Whether a line is folded away."""
        return any(first <= line < end for first, end in self._folded.values())

    def uncover(self, line: int) -> bool:
        """Unfold what a line is folded away in."""
        covering = [header for header, (first, end) in self._folded.items() if first <= line < end]
        for header in covering:
            del self._folded[header]
        return bool(covering)

    def count(self) -> int:
        """How many regions are folded."""
        return len(self._folded)

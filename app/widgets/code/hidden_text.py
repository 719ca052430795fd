"""Parts of lines that are not shown: the lines without them, and the way back to the whole text."""

from collections.abc import Mapping, Sequence

Part = tuple[int, int]
"""From which character of a line to which, the second one excluded."""


class HiddenText:
    """The lines of a text, one part of each of which may be hidden.

    Parameters
    ----------
    text : str
        The whole text.
    hidden : mapping of int to (int, int)
        What to leave out, by the number of the line, from 0.

    Attributes
    ----------
    text : str
        The whole text.
    lines : sequence of str
        The lines that are shown.
    whole_lines : sequence of str
        The lines with what is hidden.
    hidden : mapping of int to (int, int)
        As given.
    """

    def __init__(self, text: str = "", hidden: Mapping[int, Part] | None = None) -> None:
        self.text = text
        self.hidden = dict(hidden or {})
        self.whole_lines: Sequence[str] = text.split("\n")
        self.lines: Sequence[str] = (
            [self._shown(number, line) for number, line in enumerate(self.whole_lines)]
            if self.hidden
            else self.whole_lines
        )

    def whole_line(self, number: int) -> str:
        """The whole of a line, from 0, that has a hidden part; otherwise ``""``."""
        return self.whole_lines[number].strip() if number in self.hidden else ""

    def whole(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """The text between two places among the shown lines, with what is hidden there.

        Parameters
        ----------
        start, end : (int, int)
            Number of a line and column in it, from 0.
        """
        first, last = start[0], end[0]
        lines = list(self.whole_lines[first : last + 1])
        # From the end, since both may be in one line.
        lines[-1] = lines[-1][: self._column(*end)]
        lines[0] = lines[0][self._column(*start) :]
        return "\n".join(lines)

    def _shown(self, number: int, line: str) -> str:
        part = self.hidden.get(number)
        return line if part is None else line[: part[0]] + line[part[1] :]

    def _column(self, number: int, column: int) -> int:
        begin, end = self.hidden.get(number, (0, 0))
        return column + end - begin if column > begin else column

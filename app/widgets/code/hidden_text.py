"""Parts of lines that are not shown: the lines without them, and the way back to the whole text."""

from collections.abc import Mapping, Sequence

LINE_CHARACTERS = 3_000
"""Of a line that are shown: laying out and colouring a line of a megabyte takes seconds."""

MOST_LINES = 250_000
"""Lines that are shown; the others are copied with the last of them."""

_CUT = " …"

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
        As given. The ends of lines of more than `LINE_CHARACTERS` are left out as well.
    """

    def __init__(self, text: str = "", hidden: Mapping[int, Part] | None = None) -> None:
        self.text = text
        # All lines after the last one that is shown are the rest of it.
        self.whole_lines: Sequence[str] = text.split("\n", MOST_LINES - 1)
        self.hidden = dict(hidden or {})
        self._left_out = _with_ends_of_long_lines(self.whole_lines, self.hidden)
        self.lines: Sequence[str] = self.whole_lines
        if self._left_out:
            self.lines = list(self.whole_lines)
            for number in self._left_out:
                self.lines[number] = self._shown(number, self.whole_lines[number])

    def whole_line(self, number: int) -> str:
        """The whole of a line, from 0, that has a hidden part; otherwise ``""``."""
        return self.whole_lines[number].strip() if number in self._left_out else ""

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
        part = self._left_out[number]
        end = line[part[1] :] if part == self.hidden.get(number) else _CUT
        return line[: part[0]] + end

    def _column(self, number: int, column: int) -> int:
        begin, end = self._left_out.get(number, (0, 0))
        return column + end - begin if column > begin else column


def _with_ends_of_long_lines(lines: Sequence[str], hidden: Mapping[int, Part]) -> dict[int, Part]:
    """Return what is hidden, with the ends of the lines that are long without it."""
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

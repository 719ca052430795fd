"""Lines that are shown of a text: shortened, without hidden ones, and wrapped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from lowerscope.core.model.compact_script import CompactScript, Edit, Edits, edited, printed_column

LINE_CHARACTERS = 3_000
"""Characters of a line that are shown: to lay out and colour a line of a megabyte takes seconds."""

MOST_LINES = 250_000
"""Lines that are shown; the others are copied with the last one."""

LEAST_COLUMNS = 24
"""Narrowest width that lines are wrapped to."""

WRAPPED_LINES, WRAPPED_CHARACTERS = 50_000, 300_000
"""Lines of the longest text that is wrapped, and the characters of its lines that are too wide: the
lines after these are as wide as they are."""

_CUT = " …"
_HANG, _HANG_OF_HEADER = 4, 8
_BESIDE_NOTE = 2


class Piece(NamedTuple):
    """A part of a shortened line that is one line on the screen; columns from 0."""

    line: int  # Line of the text.
    start: int
    end: int
    indent: int = 0  # Spaces in front of it.


class ShownLines:
    """The lines of a text as they are shown, and their places in the text.

    Args:
        text: The whole text.
        form: Edits of lines, hidden lines, and notes at the right edge.
        columns: Width that lines are wrapped to; 0 for no wrapping.
        headings: Lines that belong to no text: they are neither numbered nor copied.
    """

    def __init__(
        self,
        text: str = "",
        form: CompactScript | None = None,
        columns: int = 0,
        headings: Collection[int] = (),
    ) -> None:
        self.text = text
        self.form = CompactScript() if form is None else form
        self.columns = columns and max(LEAST_COLUMNS, columns)
        self._left = WRAPPED_CHARACTERS  # Characters that can be wrapped yet.
        self.headings = headings
        # The last element is the rest of the text.
        self.whole_lines: Sequence[str] = text.split("\n", MOST_LINES - 1)
        self._edits = _with_ends_of_long_lines(self.whole_lines, self.form)
        self.lines: Sequence[str] = self.whole_lines  # As shown.
        self._pieces: list[Piece] | None = None  # None where there is one for each line.
        self._firsts: list[int] = []  # For each line of the text, its first piece.
        self._numbers: list[int] = []  # For each line of the text; 0 for headings and hidden lines.
        self._arrange()

    # From shown lines to lines of the text, all from 0

    def line_of(self, shown: int) -> int:
        """Return the line of the text that a shown line is part of."""
        return shown if self._pieces is None else self._pieces[shown].line

    def first_of(self, line: int) -> int:
        """Return the first shown line of a line of the text; for a hidden one, of the next."""
        if self._pieces is None:
            return min(line, len(self.lines) - 1)
        line = max(0, min(line, len(self._firsts) - 2))
        return min(self._firsts[line], len(self._pieces) - 1)

    def last_of(self, line: int) -> int:
        """Return the last shown line of a line of the text; for a hidden one, of that before."""
        if self._pieces is None:
            return min(line, len(self.lines) - 1)
        line = max(0, min(line, len(self._firsts) - 2))
        return max(0, self._firsts[line + 1] - 1)

    def continues(self, shown: int) -> bool:
        """Return whether a shown line continues the one above it."""
        return self._pieces is not None and self._pieces[shown].start > 0

    def number(self, shown: int) -> int:
        """Return the number of a shown line, from 1; 0 for a continuation or a heading."""
        if self._pieces is None:
            return shown + 1
        return 0 if self.continues(shown) else self._numbers[self._pieces[shown].line]

    def numbered(self, number: int) -> int:
        """Return the shown line with a number; the last one beyond the end."""
        if self._pieces is None:
            return max(0, min(number, len(self.lines)) - 1)
        line = next((at for at, each in enumerate(self._numbers) if each >= number), -1)
        return self.first_of(line) if line >= 0 else len(self.lines) - 1

    @property
    def count(self) -> int:
        """The highest number of a line."""
        return len(self.lines) if self._pieces is None else max(self._numbers, default=1)

    def note(self, shown: int) -> str:
        """Return the note at the right edge of a shown line, or ``""``."""
        line = self.line_of(shown)
        note = self.form.notes.get(line, "")
        return note if note and self.last_of(line) == shown else ""

    def whole_line(self, shown: int) -> str:
        """Return the printed text of a line whose types or end are hidden; otherwise ``""``."""
        line = self.line_of(shown)
        edits = self._edits.get(line, ())
        is_cut = bool(edits) and edits[-1].text == _CUT
        return self.whole_lines[line].strip() if is_cut or line in self.form.notes else ""

    def whole(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Return the printed text between two positions, with hidden lines and without headings.

        Args:
            start, end: Shown line and column, from 0.
        """
        first, begin = self._printed(*start, end=False)
        last, stop = self._printed(*end, end=True)
        if start == (0, 0):
            first, begin = 0, 0
        if end == (len(self.lines) - 1, len(self.lines[-1])):
            last = len(self.whole_lines) - 1
            stop = len(self.whole_lines[last])
        lines = list(self.whole_lines[first : last + 1])
        # The end first, since both may be in one line.
        lines[-1] = lines[-1][:stop]
        lines[0] = lines[0][begin:]
        kept = (line for at, line in enumerate(lines, first) if at not in self.headings)
        return "\n".join(kept)

    def _printed(self, shown: int, column: int, *, end: bool) -> tuple[int, int]:
        """Return line and column in the text of a position on the screen."""
        line = shown
        if self._pieces is not None:
            piece = self._pieces[shown]
            line = piece.line
            column = min(piece.end, piece.start + max(0, column - piece.indent))
        return line, printed_column(self._edits.get(line, ()), column, end=end)

    # Arrangement

    def _arrange(self) -> None:
        hidden, headings = self.form.hidden, self.headings
        wraps = bool(self.columns) and len(self.whole_lines) <= WRAPPED_LINES
        if not wraps:
            self._left = 0
        if not (hidden or headings or wraps):
            if self._edits:
                self.lines = list(self.whole_lines)
                for number, edits in self._edits.items():
                    self.lines[number] = edited(self.whole_lines[number], edits)
            return
        pieces: list[Piece] = []
        lines: list[str] = []
        counts: list[int] = []
        number = 0
        for at, whole in enumerate(self.whole_lines):
            number = 0 if at in headings else number
            if at in hidden:
                counts.append(0)
                self._numbers.append(0)
                continue
            line = edited(whole, self._edits.get(at, ()))
            parts = self._wrapped(at, line) if at not in headings else [Piece(at, 0, len(line))]
            counts.append(len(parts))
            number += at not in headings
            self._numbers.append(0 if at in headings else number)
            pieces += parts
            if len(parts) == 1:
                lines.append(line)
            else:
                lines += [" " * part.indent + line[part.start : part.end] for part in parts]
        if not pieces:
            # All lines are hidden: there is always one on the screen.
            pieces, lines = [Piece(0, 0, 0)], [""]
        self._pieces, self.lines = pieces, lines
        self._firsts = list(accumulate(counts, initial=0))

    def _wrapped(self, at: int, line: str) -> list[Piece]:
        columns, note = self.columns, self.form.notes.get(at, "")
        reserved = len(note) + _BESIDE_NOTE if note else 0
        if not columns or len(line) + reserved <= columns or len(line) > self._left:
            return [Piece(at, 0, len(line))]
        self._left -= len(line)
        return [Piece(at, *part) for part in wrap(line, columns, reserved)]


Part = tuple[int, int, int]
"""First column, the one after the last, and the indent."""


def wrap(line: str, columns: int, reserved: int = 0) -> list[Part]:
    """Return the parts that a line of code is wrapped into, with a hanging indent.

    It is broken after commas and opening brackets and before operators, in the outermost brackets
    that fit. A signature has a line for each parameter.

    Args:
        reserved: Columns beside the last part that are left free: the last part may be empty.
    """
    if len(line) + reserved <= columns:
        return [(0, len(line), 0)]
    indent = len(line) - len(line.lstrip(" "))
    opens = line.rstrip().endswith(":")
    hang = indent + (_HANG_OF_HEADER if opens else _HANG)
    hang = min(hang, columns // 2)
    breaks = list(_breaks(line))
    if (signature := _DEFINITION.match(line)) is not None:
        return list(_signature(line, signature.end(), breaks, columns, hang))
    *parts, last = _filled(line, 0, len(line), breaks, columns, 0, hang)
    start, end, left = last
    room = columns - reserved
    ends = [last]
    if left + end - start > room:
        ends = list(_filled(line, start, end, breaks, max(LEAST_COLUMNS, room), left, hang))
    start, end, indent = ends[-1]
    apart = {each.column for each in breaks if each.cost >= _LAST}.isdisjoint(
        each[0] for each in ends[1:]
    )
    if indent + end - start <= room and apart and all(each[2] in (left, hang) for each in ends):
        return [*parts, *ends]
    # A name that is too long to stand beside the note, which gets a line of its own.
    return [*parts, last, *([(last[1], last[1], hang)] if reserved else [])]


class _Break(NamedTuple):
    """A column that a new line may begin at; the lower the cost, the better."""

    column: int
    cost: int


_COLUMN = attrgetter("column")
_DEFINITION = re.compile(r" *(?:async +)?def \w+\(")
_TOKEN = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\])*+"|'(?:\\.|[^'\\])*+')
    |(?P<escape>\\.)  # Outside of a string: of quotes, only the last of a kind can be without end.
    |(?P<comment>\#.*)
    |(?P<arrow>\)\ ->\ )
    |(?P<list>\[)|(?P<open>[({])|(?P<close>[)\]}])
    |(?P<comma>,\ )
    |(?P<equals>\ =\ )
    |(?P<operator>\ (?:[-+*/%&|^<>]+|//|==|!=|<=|>=|and|or|if|else)\ )
    |(?P<space>(?<=\S)\ )""",
    re.VERBOSE,
)


_OUTER = 2
"""Cost of a comma in the outermost brackets: the arguments of a call, the parameters of a def."""

_LAST = 100
"""Cost of a break where a line is not taken apart otherwise."""

_SPACE = re.compile(r"(?<=\S) ")
_SEPARATOR = re.compile(r"[._,:/(]+")


def _breaks(line: str) -> Iterator[_Break]:
    brackets: list[int] = []  # Cost of a comma in each open bracket.
    for token in _TOKEN.finditer(line):
        kind = token.lastgroup
        inside = brackets[-1] if brackets else 0
        if kind in ("open", "list"):
            # Indices and extents stay together.
            cost = inside + (3 * _OUTER if kind == "list" else _OUTER)
            brackets.append(cost)
            if line[token.end() : token.end() + 1] not in ("", ")", "]", "}"):
                is_index = kind == "list" and line[: token.start()][-1:].isalnum()
                yield _Break(token.end(), _LAST + 1 if is_index else cost + 1)
        elif kind == "close" and brackets:
            brackets.pop()
        elif kind == "arrow" and brackets:
            brackets.pop()
            yield _Break(token.start(), 0)
        elif kind == "comma":
            # Those in no brackets are between the variables of a loop.
            yield _Break(token.end(), inside or _OUTER + 1)
        elif kind == "equals":
            yield _Break(token.end(), inside + _OUTER + 1)
        elif kind == "operator":
            yield _Break(token.start() + 1, inside + 1)
        elif kind == "space":
            yield _Break(token.end(), _LAST)
        elif kind == "comment":
            for space in _SPACE.finditer(line, token.start() + 2):
                yield _Break(space.end(), _LAST)


def _filled(
    line: str,
    start: int,
    end: int,
    breaks: Sequence[_Break],
    columns: int,
    indent: int,
    hang: int,
) -> Iterator[Part]:
    """Yield parts of a range of a line, each as long as fits; a long name is indented less."""
    after = bisect_right(breaks, start, key=_COLUMN)
    while start < end:
        after = bisect_right(breaks, start, after, key=_COLUMN)
        following = breaks[after].column if after < len(breaks) else end
        word = line[start : min(end, following)].rstrip()
        indent = min(indent, max(0, columns - len(word)))
        room = columns - indent
        if end - start <= room:
            break
        # Only a space may stand beyond the edge.
        edge = start + room + line[start + room : start + room + 1].isspace()
        fitting = breaks[after : bisect_right(breaks, edge, after, key=_COLUMN)]
        late = [each for each in fitting if each.column - start >= 0.4 * room]
        # Not in the leading spaces.
        blank = room + 1 - len(line[start : start + room + 1].lstrip())
        late = [each for each in late or fitting if each.column - start > blank]
        best = min(late, key=lambda each: (each.cost, -each.column), default=None)
        if best is None:
            # After a separator in a name, or beyond the edge: never within a word.
            parts = _SEPARATOR.finditer(line, start + 1, start + room)
            at = max((each.end() for each in parts), default=following)
        else:
            at = best.column
        if at >= end:
            break
        yield start, start + len(line[start:at].rstrip()), indent
        start, indent = at, hang
    yield start, end, indent


def _signature(
    line: str, begin: int, breaks: Sequence[_Break], columns: int, hang: int
) -> Iterator[Part]:
    """Yield a line for the name, one for each parameter, and one for the result."""
    starts = [
        begin,
        *(each.column for each in breaks if each.cost == _OUTER and each.column > begin),
    ]
    indent = len(line) - len(line.lstrip(" "))
    results = [each.column for each in breaks if each.cost == 0][:1]
    yield 0, begin, 0
    starts = [begin, *(each for each in starts[1:] if not results or each < results[0])]
    ends = [*starts[1:], *results, len(line)]
    for start, end in zip([*starts, *results], ends, strict=True):
        if start < end:
            stop = start + len(line[start:end].rstrip())
            left = indent if start in results else hang
            yield from _filled(line, start, stop, breaks, columns, left, hang + _HANG)


def _with_ends_of_long_lines(lines: Sequence[str], form: CompactScript) -> dict[int, Edits]:
    """Return the edits of lines, including those that cut lines which are too long otherwise."""
    found = dict(form.edits)
    if len(lines) == MOST_LINES and "\n" in lines[-1]:
        last = lines[-1]
        found[MOST_LINES - 1] = [
            Edit(min(last.index("\n"), LINE_CHARACTERS), len(last), _CUT),
        ]
    if max(map(len, lines)) <= LINE_CHARACTERS:
        return found
    for number, line in enumerate(lines):
        if number not in found and len(line) > LINE_CHARACTERS:
            found[number] = [Edit(LINE_CHARACTERS, len(line), _CUT)]
    return found

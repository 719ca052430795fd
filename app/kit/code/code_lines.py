"""Lines of a text, their rows in a document, and folded regions."""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from operator import itemgetter, lt, sub
from typing import Protocol

from PySide6.QtGui import QTextCursor, QTextDocument

Range = tuple[int, int]
"""First line, from 0, and the line after the last one."""

_FIRST, _END = itemgetter(0), itemgetter(1)


class Rows:
    """Rows of a document that omits some lines of a text.

    Args:
        count: Number of lines of the text.
        hidden: The omitted lines: in order, none empty, none adjacent. The first line of a text is
            never omitted.
    """

    def __init__(self, count: int = 1, hidden: Sequence[Range] = ()) -> None:
        self.hidden = tuple(hidden)  # As given.
        self._count = count
        # `map` runs in C: there may be 20,000 folded functions.
        self._firsts: list[int] = list(map(_FIRST, self.hidden))
        lengths = map(sub, map(_END, self.hidden), self._firsts)
        self._before: list[int] = list(accumulate(lengths, initial=0))
        self._rows: list[int] = list(map(sub, self._firsts, self._before))

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._count - self._before[-1]

    def line_of(self, row: int) -> int:
        return row + self._before[bisect_right(self._rows, row)]

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the last one above it that is not omitted."""
        return self.above(line) - (not self.shows(line))

    def above(self, line: int) -> int:
        """Return the number of rows above a line."""
        after = bisect_right(self._firsts, line)
        if after and line < self.hidden[after - 1][1]:
            return self._rows[after - 1]
        return line - self._before[after]

    def lines_of(self, first: int, end: int) -> Iterator[Range]:
        """Yield the lines of a range of rows."""
        after = bisect_right(self._rows, first)
        while first < end:
            next_fold = self._rows[after] if after < len(self._rows) else end
            last = min(end, next_fold)
            if first < last:
                yield first + self._before[after], last + self._before[after]
            first, after = last, after + 1

    def shows(self, line: int) -> bool:
        after = bisect_right(self._firsts, line)
        return not after or line >= self.hidden[after - 1][1]


class Layers:
    """Rows of a partly filled document, of a text with folded lines.

    There may be thousands of folds, but few missing ranges. So missing ranges are counted in rows
    of the unfolded lines, and the cost of filling does not depend on the folds.

    Args:
        unfolded: The lines that are not folded away, and their final rows.
        missing: The ranges of these rows that are not in the document yet: in order, none adjacent.
    """

    def __init__(self, unfolded: Rows, missing: Sequence[Range] = ()) -> None:
        self.unfolded = unfolded
        # The rows of `unfolded` that are in the document, and their numbers there.
        self.filled = Rows(unfolded.count, missing)

    @property
    def missing(self) -> Sequence[Range]:
        """As given."""
        return self.filled.hidden

    @property
    def count(self) -> int:
        """The number of rows of the document."""
        return self.filled.count

    def line_of(self, row: int) -> int:
        return self.unfolded.line_of(self.filled.line_of(row))

    def row_of(self, line: int) -> int:
        """Return the row of a line, or of the last one above it that is in the document."""
        return self.filled.row_of(self.unfolded.row_of(line))

    def shows(self, line: int) -> bool:
        """Return whether a line is in the document."""
        return self.unfolded.shows(line) and self.filled.shows(self.unfolded.row_of(line))

    def missing_lines(self) -> list[Range]:
        """Return the ranges of lines that are not in the document, folded or missing."""
        line_of = self.unfolded.line_of
        return [(line_of(first), line_of(end - 1) + 1) for first, end in self.missing]

    def without(self, lines: Iterable[Range]) -> "Layers":
        """Return the same with these lines missing as well, except for folded ones."""
        above = self.unfolded.above
        return Layers(self.unfolded, union((above(first), above(end)) for first, end in lines))


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return the union of ranges, in order, none adjacent."""
    given = sorted(ranges)
    ends = list(map(_END, given))
    if all(map(lt, map(_FIRST, given), ends)) and all(map(lt, ends, map(_FIRST, given[1:]))):
        return given
    result: list[Range] = []
    for first, end in given:
        if first >= end:
            continue
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((first, end))
    return result


def difference(ranges: Iterable[Range], others: Sequence[Range]) -> Iterator[Range]:
    """Yield the lines of ``ranges`` that are in none of ``others``; both are in order."""
    for first, end in ranges:
        at = max(0, bisect_right(others, (first, first)) - 1)
        while at < len(others) and others[at][0] < end:
            if others[at][1] > first:
                if others[at][0] > first:
                    yield first, others[at][0]
                first = others[at][1]
            at += 1
        if first < end:
            yield first, end


def within(ranges: Sequence[Range], first: int, end: int) -> list[Range]:
    """Return the parts of ordered ranges between two lines."""
    at = max(0, bisect_right(ranges, (first, first)) - 1)
    result: list[Range] = []
    while at < len(ranges) and ranges[at][0] < end:
        part = max(first, ranges[at][0]), min(end, ranges[at][1])
        if part[0] < part[1]:
            result.append(part)
        at += 1
    return result


def total(ranges: Iterable[Range]) -> int:
    """Return the number of lines in ranges."""
    return sum(end - first for first, end in ranges)


#: Lines that are inserted at a time; it takes some 2 ms.
SLICE = 1_000
#: For changes of more lines, or of more ranges, starting over is faster.
_MOST_LINES = 5_000
_MOST_RANGES = 200


class CodeDocument:
    """The lines of a text, inserted into a document.

    Args:
        document: The document; only this object changes it.
        to_start: Moves the caret to the start. Text inserted at the caret moves it to its end, and
            to move it from there lays out all rows: so it is called after the first line.
    """

    def __init__(
        self, document: QTextDocument, to_start: Callable[[], None] = lambda: None
    ) -> None:
        self._document = document
        self._to_start = to_start
        self.lines: Sequence[str] = [""]  # All lines of the text.
        self.rows = Layers(Rows())  # Those that are in the document.

    def set_lines(self, lines: Sequence[str], folded: Sequence[Range] = ()) -> None:
        """Set the text and insert its first slice; omit the folded lines."""
        self.lines = lines
        self._begin(union(folded))

    def set_folded(self, ranges: Sequence[Range]) -> bool:
        """Set the folded lines; those unfolded are inserted by `step`.

        Returns:
            Whether the document was rebuilt, so that cursors have lost their positions.
        """
        folded, before = union(ranges), self.rows.unfolded.hidden
        # There may be thousands: process only those that differ.
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
        self._take_out(out, Layers(Rows(len(self.lines), folded)).without(missing))
        return False

    @property
    def settled(self) -> bool:
        """Return whether the document is complete."""
        return not self.rows.missing

    def step(self) -> None:
        """Insert one more missing slice."""
        first, end = self.rows.missing[0]
        self._put_in([(first, min(end, first + SLICE))])

    def put_in_near(self, line: int) -> None:
        """Insert a line that is not folded away, and its surroundings, before anything else."""
        if self.rows.unfolded.shows(line) and not self.rows.shows(line):
            place = self.rows.unfolded.row_of(line)
            self._put_in(within(self.rows.missing, max(0, place - SLICE // 2), place + SLICE // 2))

    def _begin(self, folded: Sequence[Range]) -> None:
        """Reset the document to its first rows."""
        unfolded = Rows(len(self.lines), folded)
        end = min(SLICE, unfolded.count)
        # Before the document: what follows its changes asks which lines its rows are.
        self.rows = Layers(unfolded, union([(end, unfolded.count)]))
        first, *others = self._lines_of(unfolded, (0, end))
        self._document.setPlainText(first)
        self._to_start()
        cursor = QTextCursor(self._document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText("".join(f"\n{line}" for line in others))
        if not first:
            # The others were inserted at the caret.
            self._to_start()

    def _take_out(self, ranges: Sequence[Range], left: Layers) -> None:
        # From the end, so that `rows` stays valid for the rows before a change.
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for first, end in reversed(ranges):
            cursor.setPosition(self._end_of_row(self.rows.row_of(first) - 1))
            last = self._end_of_row(self.rows.row_of(end - 1))
            cursor.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()
        self.rows = left
        cursor.endEditBlock()

    def _put_in(self, places: Sequence[Range]) -> None:
        """Insert missing lines at some places, in rows of the unfolded lines."""
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        for place in reversed(places):
            cursor.setPosition(self._end_of_row(self.rows.filled.row_of(place[0])))
            cursor.insertText("\n" + "\n".join(self._lines_of(self.rows.unfolded, place)))
        self.rows = Layers(self.rows.unfolded, list(difference(self.rows.missing, places)))
        cursor.endEditBlock()

    def _lines_of(self, unfolded: Rows, place: Range) -> list[str]:
        parts = unfolded.lines_of(*place)
        return [line for first, end in parts for line in self.lines[first:end]]

    def _end_of_row(self, row: int) -> int:
        block = self._document.findBlockByNumber(row)
        return block.position() + block.length() - 1


class Regions(Protocol):
    """The regions of a text; lines count from 0."""

    def begins(self, line: int) -> bool: ...

    def end(self, line: int) -> int:
        """Return the last line of the region that begins on a line."""
        ...

    def around(self, line: int) -> int:
        """Return the first line of the smallest region around a line, or -1."""
        ...

    def functions(self) -> Iterator[int]:
        """Yield the first lines of functions, except for nested ones."""
        ...


def regions_of(lines: Sequence[str], language: str) -> Regions:
    """Return the regions of a text; none for an unknown language."""
    if language in ("tvmscript", "python"):
        return _Indented(_Text(lines))
    return _Labelled(_Text(lines), *_LABELS.get(language, (_NEVER, _NEVER, _NEVER, _NEVER)))


class _Text:
    """Lines, and the text of all of them, which patterns are matched against."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._whole = ""
        #: Position of every `_STRIDE`-th line.
        self._starts: list[int] = []

    def next_with(self, pattern: re.Pattern[str], line: int) -> int:
        """Return the first line below ``line`` that a pattern matches, or the number of lines."""
        self._read()
        found = pattern.search(self._whole, self._end_of(line))
        return len(self.lines) if found is None else self._line_of(found)

    def last_with(self, pattern: re.Pattern[str], line: int) -> int:
        """Return the last line that a pattern matches, down to ``line``, or -1."""
        self._read()
        last = deque(pattern.finditer(self._whole, 0, self._end_of(line)), maxlen=1)
        return self._line_of(last[0]) if last else -1

    def all_with(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """Yield all lines that a pattern matches."""
        self._read()
        return (self._line_of(found) for found in pattern.finditer(self._whole))

    def _line_of(self, found: re.Match[str]) -> int:
        # A pattern begins with the line break before.
        place = found.start() + 1
        before = bisect_right(self._starts, place) - 1
        return before * _STRIDE + self._whole.count("\n", self._starts[before], place)

    def _end_of(self, line: int) -> int:
        before = line // _STRIDE
        lines = self.lines[before * _STRIDE : line + 1]
        return self._starts[before] + sum(map(len, lines)) + len(lines) - 1

    def _read(self) -> None:
        if not self._starts:
            self._whole = "\n" + "\n".join(self.lines)
            # Mostly in C: there may be 200,000 lines.
            parts = (
                self.lines[first : first + _STRIDE] for first in range(0, len(self.lines), _STRIDE)
            )
            lengths = (sum(map(len, part)) + len(part) for part in parts)
            self._starts = list(accumulate(lengths, initial=1))[:-1]


class _Indented:
    """Regions by indentation, for Python and similar languages."""

    def __init__(self, text: _Text) -> None:
        self._text = text
        self._lines = text.lines

    def begins(self, line: int) -> bool:
        header = self._lines[line]
        if not _OPENING.match(header):
            return False
        following = line + 1
        while following < len(self._lines) and not self._lines[following].strip():
            following += 1
        return following < len(self._lines) and (_indent(self._lines[following]) > _indent(header))

    def end(self, line: int) -> int:
        indent = _indent(self._lines[line])
        last = self._text.next_with(_further_out(indent), line) - 1
        while last > line and _is_after(self._lines[last], indent):
            last -= 1
        return last

    def around(self, line: int) -> int:
        if self.begins(line):
            return line
        first = self._lines[line]
        margin = " " * (_indent(first) if first.strip() else 1000)
        if first.strip().startswith((")", "]", "}")):
            margin += " "
        for number in range(line - 1, -1, -1):
            text = self._lines[number]
            if text.startswith(margin) or not text.strip() or text.lstrip()[0] in "#)]}":
                continue
            if self.begins(number) and self.end(number) >= line:
                return number
            margin = " " * _indent(text)
            if not margin:
                break
        return -1

    def functions(self) -> Iterator[int]:
        after = 0
        for line in self._text.all_with(_DEFINITION):
            if line >= after and self.begins(line):
                after = self.end(line) + 1
                yield line


class _Labelled:
    """Regions of languages with functions, and in them blocks that begin with labels.

    Args:
        function, block: Matches the first line of a function or a block.
        after_function, after_block: Matches a line that is no longer part of it; the bracket that
            closes a function is part.
    """

    def __init__(
        self,
        text: _Text,
        function: re.Pattern[str],
        block: re.Pattern[str],
        after_function: re.Pattern[str],
        after_block: re.Pattern[str],
    ) -> None:
        self._text = text
        self._lines = text.lines
        self._function, self._block = function, block
        self._after_function, self._after_block = after_function, after_block

    def begins(self, line: int) -> bool:
        text = "\n" + self._lines[line]
        after = self._after_block
        if self._function.match(text):
            after = self._after_function
        elif not self._block.match(text):
            return False
        return line + 1 < len(self._lines) and not after.match("\n" + self._lines[line + 1])

    def end(self, line: int) -> int:
        function = self._function.match("\n" + self._lines[line])
        last = self._text.next_with(self._after_function if function else self._after_block, line)
        if function and last < len(self._lines) and self._lines[last] == "}":
            return last
        last -= 1
        while last > line and not self._lines[last].strip():
            last -= 1
        return last

    def around(self, line: int) -> int:
        for pattern in (self._block, self._function):
            number = self._text.last_with(pattern, line)
            if number >= 0 and self.begins(number) and self.end(number) >= line:
                return number
        return -1

    def functions(self) -> Iterator[int]:
        return (line for line in self._text.all_with(self._function) if self.begins(line))


_STRIDE = 64
_OPENING = re.compile(
    r" *(?:async +)?(?:def|class|for|while|with|if|elif|else|try|except|finally|match|case)\b"
)
_DEFINITION = re.compile(r"\n *(?:async +)?def ")
_NEVER = re.compile(r"(?!)")
_LABELS = {
    "llvm": (
        re.compile(r"\ndefine "),
        re.compile(r'\n[-\w.$"]+:'),
        re.compile(r"\n(?:\}|define )"),
        re.compile(r'\n(?:\}|define |[-\w.$"]+:)'),
    ),
    "asm": (
        re.compile(r"\n[A-Za-z_$][\w.$@]*:"),
        re.compile(r"\n\.L(?!tmp|func)\w+:"),
        re.compile(r"\n(?:[A-Za-z_$][\w.$@]*:|\.Lfunc_end|\s*\.(?:globl|size|section)\b)"),
        re.compile(
            r"\n(?:[A-Za-z_$][\w.$@]*:|\.L(?!tmp|func_b)\w+:|\s*\.(?:globl|size|section)\b)"
        ),
    ),
    "bytecode": (re.compile(r"\n@[^\n ]+:"), _NEVER, re.compile(r"\n(?=\n|$|@)"), _NEVER),
}


@cache
def _further_out(indent: int) -> re.Pattern[str]:
    """Return a pattern for lines not indented further, except for closing brackets."""
    return re.compile(rf"\n {{0,{indent}}}(?=[^\s#)\]}}])")


def _is_after(text: str, indent: int) -> bool:
    """Return whether a region's last line belongs to what follows: empty, or an outer comment."""
    return not text.strip() or (text.lstrip().startswith("#") and _indent(text) <= indent)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


class Folding:
    """The regions of a text, some of which are folded to their first lines.

    Lines count from 0. A change returns whether the folds have changed.
    """

    def __init__(
        self, lines: Sequence[str] = ("",), language: str = "", regions: Regions | None = None
    ) -> None:
        self._lines = lines
        self._regions = regions_of(lines, language) if regions is None else regions
        # For each first line, the lines folded into it.
        self._folded: dict[int, Range] = {}

    def fold_like(self, other: "Folding") -> None:
        """Fold the regions that begin with the same text as those folded in another text.

        Of equal lines, the second corresponds to the second, and so on.
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
        """Return a line, and the number of equal lines up to it."""
        line = self._lines[header]
        return line, sum(each == line for each in self._lines[: header + 1])

    def headers(self) -> list[int]:
        """Return the first lines of the folded regions."""
        return list(self._folded)

    def fold_those(self, headers: Collection[int]) -> None:
        """Fold the regions that begin on some lines."""
        for header in headers:
            self.fold(header)

    def ranges(self) -> list[Range]:
        """Return the lines that are folded away."""
        return list(self._folded.values())

    def begins(self, line: int) -> bool:
        """Return whether a region begins on a line."""
        return self._regions.begins(line)

    def folded(self, line: int) -> int:
        """Return the number of lines folded into a line."""
        first, end = self._folded.get(line, (0, 0))
        return end - first

    def around(self, line: int) -> int:
        """Return the first line of the smallest unfolded region around a line, or -1."""
        header = self._regions.around(line)
        while header in self._folded:
            header = self._regions.around(header - 1) if header > 0 else -1
            if header >= 0 and self._regions.end(header) < line:
                header = -1
        return header

    def fold(self, header: int) -> bool:
        """Fold the region that begins on a line."""
        if header in self._folded or header < 0 or not self._regions.begins(header):
            return False
        self._folded[header] = (header + 1, self._regions.end(header) + 1)
        return True

    def unfold(self, header: int) -> bool:
        """Unfold the region that begins on a line."""
        return self._folded.pop(header, None) is not None

    def fold_all(self) -> Iterator[int]:
        """Fold all functions, one at a time; yield each once it is folded."""
        for header in self._regions.functions():
            self.fold(header)
            yield header

    def unfold_all(self) -> bool:
        """Unfold everything."""
        some = bool(self._folded)
        self._folded.clear()
        return some

    def covers(self, line: int) -> bool:
        """Return whether a line is folded away."""
        return any(first <= line < end for first, end in self._folded.values())

    def uncover(self, line: int) -> bool:
        """Unfold the regions that hide a line."""
        covering = [header for header, (first, end) in self._folded.items() if first <= line < end]
        for header in covering:
            del self._folded[header]
        return bool(covering)

    def count(self) -> int:
        """Return the number of folded regions."""
        return len(self._folded)

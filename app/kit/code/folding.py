"""The foldable regions of a text, functions and blocks by language, and the folded ones.

Everything is computed lazily, so that opening a long text costs nothing; whole texts are scanned by
regular expressions, not in Python.
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol

from lowerscope.app.kit.code.document import Range


class Regions(Protocol):
    """The regions of a text; lines count from 0."""

    def begins(self, line: int) -> bool:
        """Return whether a region begins on a line."""
        ...

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

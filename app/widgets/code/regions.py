"""The regions of a text that can be folded: functions and blocks, by its language.

Nothing is looked at before it is asked for, so that a long text costs nothing when it is opened;
and the long ways through a text are those of regular expressions, not of Python.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Protocol


class Regions(Protocol):
    """The regions of a text; lines count from 0."""

    def begins(self, line: int) -> bool:
        """Whether a region begins with a line."""
        ...

    def end(self, line: int) -> int:
        """The last line of the region that begins with a line."""
        ...

    def around(self, line: int) -> int:
        """The first line of the smallest region that has a line, or -1."""
        ...

    def functions(self) -> Iterator[int]:
        """The lines with which functions begin, without those inside of others."""
        ...


def regions_of(lines: Sequence[str], language: str) -> Regions:
    """The regions of a text in a language; none where nothing is known of the language."""
    if language in ("tvmscript", "python"):
        return _Indented(_Text(lines))
    return _Labelled(_Text(lines), *_LABELS.get(language, (_NEVER, _NEVER, _NEVER, _NEVER)))


class _Text:
    """Lines, and all of them as one text in which patterns are looked for."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._whole = ""
        #: Where every `_STRIDE`-th line begins.
        self._starts: list[int] = []

    def next_with(self, pattern: re.Pattern[str], line: int) -> int:
        """The first line below ``line`` that a pattern matches, or the number of lines."""
        self._read()
        found = pattern.search(self._whole, self._end_of(line))
        return len(self.lines) if found is None else self._line_of(found)

    def last_with(self, pattern: re.Pattern[str], line: int) -> int:
        """The last line that a pattern matches, down to ``line``, or -1."""
        self._read()
        last = deque(pattern.finditer(self._whole, 0, self._end_of(line)), maxlen=1)
        return self._line_of(last[0]) if last else -1

    def all_with(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """All lines that a pattern matches."""
        self._read()
        return (self._line_of(found) for found in pattern.finditer(self._whole))

    def _line_of(self, found: re.Match[str]) -> int:
        # A pattern begins with the end of the line before.
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
            # In C almost from end to end: there may be 200,000 lines.
            parts = (
                self.lines[first : first + _STRIDE] for first in range(0, len(self.lines), _STRIDE)
            )
            lengths = (sum(map(len, part)) + len(part) for part in parts)
            self._starts = list(accumulate(lengths, initial=1))[:-1]


class _Indented:
    """Python, and what looks like it: a statement has what is indented below it."""

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
    """What has functions, and in them blocks that begin with labels.

    Parameters
    ----------
    function, block : re.Pattern of str
        A line with which a function or a block begins.
    after_function, after_block : re.Pattern of str
        A line that is no longer part of it; a bracket that closes a function is.
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
    """A line that is not indented further; closing brackets belong to the statement above."""
    return re.compile(rf"\n {{0,{indent}}}(?=[^\s#)\]}}])")


def _is_after(text: str, indent: int) -> bool:
    """Whether a region's last line belongs to what follows: empty, or a remark further out."""
    return not text.strip() or (text.lstrip().startswith("#") and _indent(text) <= indent)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))

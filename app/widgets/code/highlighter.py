"""Colours of code, line by line, so that only the lines in view are ever looked at."""

import re
import time
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Protocol

from PySide6.QtGui import QColor, QTextBlock, QTextCharFormat, QTextDocument, QTextLayout

from lowerscope.app.theme_colours import Theme

#: Language to the pygments lexer that reads it; any other language has no colours.
_LEXERS = {
    "tvmscript": ("pygments.lexers.python", "PythonLexer"),
    "python": ("pygments.lexers.python", "PythonLexer"),
    "llvm": ("pygments.lexers.asm", "LlvmLexer"),
    "asm": ("pygments.lexers.asm", "GasLexer"),
    "bytecode": ("lowerscope.app.widgets.code.bytecode_lexer", "BytecodeLexer"),
    "json": ("pygments.lexers.data", "JsonLexer"),
    "c": ("pygments.lexers.c_cpp", "CLexer"),
}

#: Languages whose strings may go on over several lines.
_TRIPLE_QUOTED = {"tvmscript", "python"}

#: Pygments' token, by its name, to a colour of the theme; the longest name that fits wins.
_COLOURS: dict[str, str | None] = {
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Name.Builtin": "builtin",
    "Name.Builtin.Pseudo": None,  # self and cls are names like others
    "Name.Function": "function",
    "Name.Decorator": "decorator",
    "Name.Label": "decorator",
    "Name.Variable": "decorator",
    "Name.Exception": "builtin",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Comment": "comment",
}

_STATES = count(1)

#: So long lines are coloured in one go, in ms.
_SLICE_MS = 8.0
#: So many characters are looked through for strings of several lines in one go.
_PART = 100_000

# What may hide a triple quote, then the triple quotes themselves.
_STRINGS = re.compile(
    r"""("{3}|'{3})|\#[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.VERBOSE
)


class Lexer(Protocol):
    """What is needed of a pygments lexer."""

    def __hash__(self) -> int:
        """One lexer is itself."""
        ...

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Place, type and text of each token."""
        ...


class Highlighter:
    """Gives the blocks of a document their colours, a range of lines at a time.

    Parameters
    ----------
    document : QTextDocument
        The document; its blocks are lines of the text that was last given.
    """

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._lexer: Lexer | None = None
        # Blocks come and go: each knows by itself which colours it was given.
        self._state = next(_STATES)
        self._open_quotes = OpenQuotes("")
        self._formats: dict[str, QTextCharFormat] = {}

    def set_text(self, text: str, language: str) -> None:
        """Take another text: what was coloured is forgotten."""
        self._lexer = _lexer(language)
        self._open_quotes = OpenQuotes(text if language in _TRIPLE_QUOTED else "")
        self._state = next(_STATES)

    def set_theme(self, theme: Theme) -> None:
        """Take another theme's colours."""
        names = {name for name in _COLOURS.values() if name is not None}
        self._formats = {name: QTextCharFormat() for name in names}
        for name, text_format in self._formats.items():
            text_format.setForeground(QColor(getattr(theme, name)))
        self._state = next(_STATES)

    def colour(self, blocks: Iterable[tuple[int, QTextBlock]]) -> bool:
        """Colour blocks, each with the number of its line from 0, where not done yet.

        Returns
        -------
        bool
            False where there was too little time for all of them: call it again.
        """
        if self._lexer is None:
            return True
        start, end = -1, -1
        until = time.perf_counter() + _SLICE_MS / 1000
        done = True
        for number, block in blocks:
            if block.userState() != self._state:
                if time.perf_counter() > until:
                    done = False
                    break
                block.setUserState(self._state)
                ranges = self._ranges(block.text(), self._open_quotes.at(number))
                if ranges:
                    block.layout().setFormats(ranges)
                    start = block.position() if start < 0 else start
                    end = block.position() + block.length()
        if start >= 0:
            self._document.markContentsDirty(start, end - start)
        return done

    def _ranges(self, line: str, quote: str | None) -> list[QTextLayout.FormatRange]:
        assert self._lexer is not None
        ranges: list[QTextLayout.FormatRange] = []
        start = 0
        if quote is not None:
            close = line.find(quote)
            start = len(line) if close < 0 else close + len(quote)
            ranges.append(self._range(0, _units(line[:start]), "string"))
        wide = not line.isascii()
        for offset, length, name in _words(self._lexer, line[start:]):
            begin = start + offset
            if wide:
                length = _units(line[begin : begin + length])
                begin = _units(line[:begin])
            ranges.append(self._range(begin, length, name))
        return ranges

    def _range(self, start: int, length: int, name: str) -> QTextLayout.FormatRange:
        result = QTextLayout.FormatRange()
        result.start = start
        result.length = length
        result.format = self._formats[name]
        return result


class OpenQuotes:
    """The lines of a text that begin inside a string of several lines.

    The text is read as far as it is asked for: one of 11 MB takes 20 ms.

    Parameters
    ----------
    text : str
        Python source, or what looks like it.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[int, str] = {}
        self._read_to = -1
        self._reading = self._read(text)

    def at(self, line: int) -> str | None:
        """The three quotes that will close the string that a line, from 0, begins in."""
        while self._read_to < line and (read_to := next(self._reading, None)) is not None:
            self._read_to = read_to
        return self._lines.get(line)

    def _read(self, text: str) -> Iterator[int]:
        """Yield the line up to which the strings are known."""
        line, counted, position = 0, 0, 0
        while position < len(text):
            end_of_part = text.find("\n", position + _PART)
            part = len(text) if end_of_part < 0 else end_of_part
            candidate = _next_quotes(text, position, part)
            if candidate < 0:
                line, counted, position = line + text.count("\n", counted, part), part, part
                yield line
                continue
            # Only the line that it stands in says whether it opens a string.
            begin = max(position, text.rfind("\n", 0, candidate) + 1)
            end_of_line = text.find("\n", candidate)
            found = _opening(text, begin, len(text) if end_of_line < 0 else end_of_line)
            if found is None:
                position = len(text) if end_of_line < 0 else end_of_line
                continue
            quote = found.group(1)
            line += text.count("\n", counted, found.start())
            close = text.find(quote, found.end())
            end = len(text) if close < 0 else close
            inside = text.count("\n", found.start(), end)
            for number in range(line + 1, line + inside + 1):
                self._lines[number] = quote
            line, counted = line + inside, end
            position = end if close < 0 else end + 3


def _next_quotes(text: str, position: int, end: int) -> int:
    # No pattern: of 11 MB, `find` takes 4 ms, and a pattern 300.
    found = [at for quote in ('"""', "'''") if (at := text.find(quote, position, end)) >= 0]
    return min(found, default=-1)


def _opening(text: str, begin: int, end: int) -> re.Match[str] | None:
    """The first three quotes of a part of a line that are in no comment and no string."""
    for match in _STRINGS.finditer(text, begin, end):
        if match.group(1) is not None:
            return match
    return None


@cache
def _lexer(language: str) -> Lexer | None:
    if language not in _LEXERS:
        return None
    # Pygments takes as long to import as the rest of the widget: only when there is code.
    module_name, class_name = _LEXERS[language]
    lexer: Lexer = getattr(import_module(module_name), class_name)()
    return lexer


@lru_cache(maxsize=4096)
def _words(lexer: Lexer, line: str) -> tuple[tuple[int, int, str], ...]:
    """Place, length and colour of the words of a line: scripts say the same again and again."""
    # Lexers know remarks by the end of their line.
    return tuple(
        (offset, len(value.rstrip("\n")), name)
        for offset, token, value in lexer.get_tokens_unprocessed(f"{line}\n")
        if value.strip() and (name := _colour_of(str(token))) is not None
    )


@lru_cache(maxsize=256)
def _colour_of(token: str) -> str | None:
    parts = token.split(".")[1:]
    while parts:
        name = ".".join(parts)
        if name in _COLOURS:
            return _COLOURS[name]
        parts.pop()
    return None


def _units(text: str) -> int:
    # Qt counts in UTF-16, where a character beyond the first 65,536 is two.
    return len(text) + sum(character > "\uffff" for character in text)


def line_colours(line: str, language: str) -> list[tuple[int, int, str]]:
    """The colours of a line that stands alone.

    Returns
    -------
    list of (int, int, str)
        Start and length in UTF-16 units, and the name of a colour of the theme.
    """
    lexer = _lexer(language)
    result: list[tuple[int, int, str]] = []
    if lexer is None:
        return result
    wide = not line.isascii()
    for start, length, name in _words(lexer, line):
        if wide:
            length = _units(line[start : start + length])
            start = _units(line[:start])
        result.append((start, length, name))
    return result

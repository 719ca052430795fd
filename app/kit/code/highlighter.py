"""Syntax colours of the code view."""

import builtins
import keyword
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Protocol

from PySide6.QtGui import QColor, QFont, QTextBlock, QTextCharFormat, QTextDocument, QTextLayout

from lowerscope.app.kit.code.marks import units
from lowerscope.app.kit.theme import Theme

_HERE = "lowerscope.app.kit.code.highlighter"

#: Language to its lexer, of pygments or of this module; other languages have no colours.
_LEXERS = {
    "tvmscript": (_HERE, "PythonLexer"),
    "python": (_HERE, "PythonLexer"),
    "llvm": ("pygments.lexers.asm", "LlvmLexer"),
    "asm": ("pygments.lexers.asm", "GasLexer"),
    "bytecode": (_HERE, "BytecodeLexer"),
    "json": ("pygments.lexers.data", "JsonLexer"),
    "c": ("pygments.lexers.c_cpp", "CLexer"),
}

#: Languages with strings that span several lines.
_TRIPLE_QUOTED = {"tvmscript", "python"}

#: Name of a pygments token to a colour of the theme; the longest matching name wins.
_COLOURS: dict[str, str | None] = {
    "Keyword": "keyword",
    "Operator.Word": "keyword",
    "Name.Builtin": "builtin",
    "Name.Builtin.Pseudo": None,  # self and cls are names like any other
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

#: Time for colouring lines in one slice, in ms.
_SLICE_MS = 8.0
#: Lines whose colours are kept.
_MOST_MADE = 2_000
#: Characters that are scanned for multi-line strings in one slice.
_PART = 100_000

# Comments and strings that may hide a triple quote; the triple quotes come first.
_STRINGS = re.compile(
    r"""("{3}|'{3})|\#[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.VERBOSE
)


class Lexer(Protocol):
    """Interface of a pygments lexer that is used here."""

    def __hash__(self) -> int: ...

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield place, type and text of each token."""
        ...


class Highlighter:
    """Highlighter of a document's blocks, a range of lines at a time.

    Args:
        document: The document; its blocks are lines of the last text that was set.
    """

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._lexer: Lexer | None = None
        # Blocks come and go: each stores which colours it has.
        self._state = next(_STATES)
        self._open_quotes = OpenQuotes("")
        self._formats: dict[str, QTextCharFormat] = {}
        # Of lines that begin outside of a string: scripts repeat lines, and so do their sides.
        self._made: dict[str, list[QTextLayout.FormatRange]] = {}
        self._is_high: Callable[[int], bool] = _never
        self._high = QTextCharFormat()

    def set_high_lines(self, is_high: Callable[[int], bool], font: QFont) -> None:
        """Set another font for the characters of some lines, by line number."""
        self._is_high = is_high
        self._high.setFont(font)

    def set_text(self, text: str, language: str) -> None:
        """Set another text, and discard its colours."""
        lexer = _lexer(language)
        if lexer is not self._lexer:
            self._made = {}
        self._lexer = lexer
        self._open_quotes = OpenQuotes(text if language in _TRIPLE_QUOTED else "")
        self._state = next(_STATES)

    def set_theme(self, theme: Theme) -> None:
        """Set the colours of another theme."""
        names = {name for name in _COLOURS.values() if name is not None}
        self._formats = {name: QTextCharFormat() for name in names}
        for name, text_format in self._formats.items():
            text_format.setForeground(QColor(getattr(theme, name)))
        self._made = {}
        self._state = next(_STATES)

    def colour(self, blocks: Iterable[tuple[int, QTextBlock]]) -> bool:
        """Colour blocks, given with their line numbers from 0, unless they are coloured already.

        Returns:
            False if time ran out before all were coloured: call it again.
        """
        if self._lexer is None and self._is_high is _never:
            return True
        start, end = -1, -1
        # In processor time: to paint twice takes longer than to colour the lines of a page.
        until = time.thread_time() + _SLICE_MS / 1000
        done = True
        for number, block in blocks:
            if block.userState() != self._state:
                if time.thread_time() > until:
                    done = False
                    break
                block.setUserState(self._state)
                if self._is_high(number):
                    ranges = [_format_range(0, len(block.text()), self._high)]
                else:
                    ranges = self._cached(block.text(), self._open_quotes.at(number))
                if ranges:
                    block.layout().setFormats(ranges)
                    start = block.position() if start < 0 else start
                    end = block.position() + block.length()
        if start >= 0:
            self._document.markContentsDirty(start, end - start)
        return done

    def _cached(self, line: str, quote: str | None) -> list[QTextLayout.FormatRange]:
        if quote is not None:
            return self._ranges(line, quote)
        ranges = self._made.get(line)
        if ranges is None:
            if len(self._made) >= _MOST_MADE:
                self._made = {}
            ranges = self._made[line] = self._ranges(line, None)
        return ranges

    def _ranges(self, line: str, quote: str | None) -> list[QTextLayout.FormatRange]:
        ranges: list[QTextLayout.FormatRange] = []
        if self._lexer is None:
            return ranges
        start = 0
        if quote is not None:
            close = line.find(quote)
            start = len(line) if close < 0 else close + len(quote)
            ranges.append(self._range(0, units(line[:start]), "string"))
        wide = not line.isascii()
        for offset, length, name in _words(self._lexer, line[start:]):
            begin = start + offset
            if wide:
                length = units(line[begin : begin + length])
                begin = units(line[:begin])
            ranges.append(self._range(begin, length, name))
        return ranges

    def _range(self, start: int, length: int, name: str) -> QTextLayout.FormatRange:
        return _format_range(start, length, self._formats[name])


def _format_range(start: int, length: int, text_format: QTextCharFormat) -> QTextLayout.FormatRange:
    result = QTextLayout.FormatRange()
    result.start = start
    result.length = length
    result.format = text_format
    return result


def _never(_line: int) -> bool:
    return False


class OpenQuotes:
    """The lines of a text that begin inside a multi-line string.

    The text is scanned only as far as queried: 11 MB take 20 ms.

    Args:
        text: Python source, or a similar language.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[int, str] = {}
        self._read_to = -1
        self._reading = self._read(text)

    def at(self, line: int) -> str | None:
        """Return the quotes that will close the string that a line, from 0, begins in."""
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
            # Only its own line determines whether it opens a string.
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
    # Not a pattern: for 11 MB, `find` takes 4 ms, and a pattern 300.
    found = [at for quote in ('"""', "'''") if (at := text.find(quote, position, end)) >= 0]
    return min(found, default=-1)


def _opening(text: str, begin: int, end: int) -> re.Match[str] | None:
    """Return the first triple quotes in a part of a line that are in no comment or string."""
    for match in _STRINGS.finditer(text, begin, end):
        if match.group(1) is not None:
            return match
    return None


@cache
def _lexer(language: str) -> Lexer | None:
    if language not in _LEXERS:
        return None
    # Imported on first use: pygments takes as long to import as the rest of the widget.
    module_name, class_name = _LEXERS[language]
    lexer: Lexer = getattr(import_module(module_name), class_name)()
    return lexer


def _words(lexer: Lexer, line: str) -> Iterator[tuple[int, int, str]]:
    """Yield place, length and colour of a line's tokens."""
    # Lexers end comments at the end of the line.
    return (
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


# --- Lexer of a line of Python or TVMScript, for the highlighter: a twentieth of pygments' time ---

_PYTHON = re.compile(
    r"""(?P<Comment>\#.*)
    |(?P<String>(?i:[rbu]|br|rb)?(?:"{3}(?:\\.|.)*?(?:"{3}|$)|'{3}(?:\\.|.)*?(?:'{3}|$)
        |"(?:\\.|[^"\\\n])*(?:"|$)|'(?:\\.|[^'\\\n])*(?:'|$)))
    |(?P<Formatted>(?i:f|fr|rf)(?:"{3}(?:\\.|.)*?(?:"{3}|$)|'{3}(?:\\.|.)*?(?:'{3}|$)
        |"(?:\\.|[^"\\\n])*(?:"|$)|'(?:\\.|[^'\\\n])*(?:'|$)))
    |(?P<Defined>\b(?:def|class)\s+\w+)
    |(?P<Decorator>@[^\W\d]\w*)
    |(?P<Special>(?<!\w)__\w+__(?!\w))
    |(?P<Attribute>\.\s*(?!__)[^\W\d]\w*)
    |(?P<Soft>^\s*(?:match|case)(?=\s.*:\s*(?:\#.*)?$))
    |(?P<Name>[^\W\d]\w*)
    |(?P<Number>0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+
        |(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?[jJ]?)""",
    re.VERBOSE,
)
_FIELD = re.compile(r"\{\{|\}\}|\{((?:\[[^\]]*\]|[^{}\[])*?)(?:![rsa])?(?::[^{}]*)?\}")

_KINDS = {
    "Comment": "Token.Comment",
    "String": "Token.Literal.String",
    "Decorator": "Token.Name.Decorator",
    "Special": "Token.Name.Function",
    "Soft": "Token.Keyword",
    "Number": "Token.Literal.Number",
}
_BUILTINS = (
    name
    for name, each in vars(builtins).items()
    if getattr(each, "__module__", "") == "builtins" and not name.startswith("_")
)
_NAMES = dict.fromkeys(_BUILTINS, "Token.Name.Builtin") | dict.fromkeys(
    keyword.kwlist, "Token.Keyword"
)


class PythonLexer:
    """Lexer of a line of Python; a string without end goes on to the end of the line."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield place, type and text of the tokens that have a colour, as pygments does."""
        for found in _PYTHON.finditer(text):
            start, word, kind = found.start(), found.group(), found.lastgroup or ""
            if kind == "Name":
                if name := _NAMES.get(word):
                    yield start, name, word
            elif kind == "Formatted":
                yield from self._formatted(start, word)
            elif kind == "Defined":
                first, name = word.split(None, 1)
                yield start, "Token.Keyword", first
                if first == "def":
                    yield found.end() - len(name), "Token.Name.Function", name
            elif kind in _KINDS:
                yield start, _KINDS[kind], word

    def _formatted(self, start: int, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield the tokens of a formatted string: those of its fields between parts of it."""
        done = 0
        for field in _FIELD.finditer(text):
            if field.group(1) is None:
                continue
            yield start + done, "Token.Literal.String", text[done : field.start(1)]
            for place, kind, word in self.get_tokens_unprocessed(field.group(1)):
                yield start + field.start(1) + place, kind, word
            done = field.end(1)
        yield start + done, "Token.Literal.String", text[done:]


# --- Lexer of the text form of TVM's virtual machine bytecode, for the highlighter ---

_TOKENS = re.compile(
    r"""(?P<Name_Function>@[^\s:;]+)
    |(?P<Keyword>^\ *(?:call|ret|goto|if)\b)
    |(?P<Operator_Word>\b(?:in|dst|cond|false|true):)
    |(?P<Name_Variable>%\w+)
    |(?P<Name_Label>\b[cf]\[\d+\])
    |(?P<Literal_Number>\bi-?\d+\b|(?<![\w.])-?\d+\b)
    |(?P<Name>[\w.<>$]+)""",
    re.VERBOSE,
)


class BytecodeLexer:
    """Lexer of lines such as ``call  vm.builtin.reshape  in: %0, c[1] dst: %2``."""

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, object, str]]:
        """Yield place, type and text of each token, as a lexer of pygments does."""
        for found in _TOKENS.finditer(text):
            kind = (found.lastgroup or "").replace("_", ".")
            yield found.start(), f"Token.{kind}", found.group()

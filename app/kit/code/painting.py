"""Painting of the code view: syntax colours, matches, folds, and line numbers."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from typing import Protocol

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QEnterEvent,
    QFont,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QTextBlock,
    QTextCharFormat,
    QTextDocument,
    QTextLayout,
)
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.marks import CodeMarks, units
from lowerscope.app.kit.theme import Theme
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font

#: Language to its pygments lexer; other languages have no colours.
_LEXERS = {
    "tvmscript": ("pygments.lexers.python", "PythonLexer"),
    "python": ("pygments.lexers.python", "PythonLexer"),
    "llvm": ("pygments.lexers.asm", "LlvmLexer"),
    "asm": ("pygments.lexers.asm", "GasLexer"),
    "bytecode": ("lowerscope.app.kit.code.editor", "BytecodeLexer"),
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
#: Characters that are scanned for multi-line strings in one slice.
_PART = 100_000

# Comments and strings that may hide a triple quote; the triple quotes come first.
_STRINGS = re.compile(
    r"""("{3}|'{3})|\#[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""", re.VERBOSE
)


class Lexer(Protocol):
    """Interface of a pygments lexer that is used here."""

    def __hash__(self) -> int:
        """Return a hash by identity."""
        ...

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
        self._is_high: Callable[[int], bool] = _never
        self._high = QTextCharFormat()

    def set_high_lines(self, is_high: Callable[[int], bool], font: QFont) -> None:
        """Set another font for the characters of some lines, by line number."""
        self._is_high = is_high
        self._high.setFont(font)

    def set_text(self, text: str, language: str) -> None:
        """Set another text, and discard its colours."""
        self._lexer = _lexer(language)
        self._open_quotes = OpenQuotes(text if language in _TRIPLE_QUOTED else "")
        self._state = next(_STATES)

    def set_theme(self, theme: Theme) -> None:
        """Set the colours of another theme."""
        names = {name for name in _COLOURS.values() if name is not None}
        self._formats = {name: QTextCharFormat() for name in names}
        for name, text_format in self._formats.items():
            text_format.setForeground(QColor(getattr(theme, name)))
        self._state = next(_STATES)

    def colour(self, blocks: Iterable[tuple[int, QTextBlock]]) -> bool:
        """Colour blocks, given with their line numbers from 0, unless they are coloured already.

        Returns:
            False if time ran out before all were coloured: call it again.
        """
        if self._lexer is None and self._is_high is _never:
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
                if self._is_high(number):
                    ranges = [_format_range(0, len(block.text()), self._high)]
                else:
                    ranges = self._ranges(block.text(), self._open_quotes.at(number))
                if ranges:
                    block.layout().setFormats(ranges)
                    start = block.position() if start < 0 else start
                    end = block.position() + block.length()
        if start >= 0:
            self._document.markContentsDirty(start, end - start)
        return done

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


@lru_cache(maxsize=4096)
def _words(lexer: Lexer, line: str) -> tuple[tuple[int, int, str], ...]:
    """Return place, length and colour of a line's tokens; cached, since scripts repeat lines."""
    # Lexers end comments at the end of the line.
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


_GAP = 8
_PADDING = 6


def paint_matches(
    painter: QPainter, marks: CodeMarks, line: int, block: QTextBlock, row: QRectF, colours: Theme
) -> None:
    """Paint the background of the matches in a line; its text begins at ``row``."""
    found = marks.matches(line)
    if not found or block.layout().lineCount() == 0:
        return
    ground, outline = QColor(colours.found), QColor(colours.found)
    for match in found:
        ground.setAlphaF(0.5 if match == marks.current_match else 0.22)
        area = columns_area(match.start, match.end, block, row)
        painter.fillRect(area, ground)
        if match == marks.current_match:
            painter.setPen(outline)
            painter.drawRect(area.adjusted(0, 0, -1, -1))


def fold_mark(block: QTextBlock, row: QRectF, text: str) -> QRectF:
    """Return the area of the mark behind a line that a region is folded into."""
    end = row.left()
    if block.layout().lineCount():
        end += block.layout().lineAt(0).naturalTextWidth()
    width = TextMetrics(ui_font(11)).horizontalAdvance(text) + 2 * _PADDING
    return QRectF(end + _GAP, row.top() + 2, width, row.height() - 4)


def paint_fold(painter: QPainter, area: QRectF, text: str, colours: Theme) -> None:
    """Paint the mark behind a line that a region is folded into."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(colours.line))
    painter.setBrush(QColor(colours.panel))
    painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
    painter.setFont(ui_font(11))
    painter.setPen(QColor(colours.quiet))
    painter.drawText(QPointF(area.left() + _PADDING, area.center().y() + 4), text)
    painter.restore()


def paint_chevron(painter: QPainter, middle: QPointF, folded: bool) -> None:
    """Paint the chevron of a folded or an unfolded region."""
    side, point = (_SIZE, _SIZE / 2) if folded else (_SIZE / 2, _SIZE)
    corners = [(-point, -side), (point, 0.0), (-point, side)]
    if not folded:
        corners = [(-point, -side), (0.0, side), (point, -side)]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.current().quiet), 1.4))
    painter.drawPolyline(QPolygonF([middle + QPointF(x, y) for x, y in corners]))
    painter.restore()


def columns_area(start: int, end: int, block: QTextBlock, row: QRectF) -> QRectF:
    """Return the area of some columns of a line; its text begins at ``row``."""
    text_line = block.layout().lineAt(0)
    left = row.left() + x_of(text_line.cursorToX(start)) - text_line.x()
    right = row.left() + x_of(text_line.cursorToX(end)) - text_line.x()
    return QRectF(left, row.top() + 1, right - left, row.height() - 2)


def x_of(position: object) -> float:
    """Return a position in a line as a number."""
    # PySide returns the position alone, or with the cursor that was passed.
    return float(position[0] if isinstance(position, tuple) else position)  # type: ignore[arg-type]


_BAR = 3
_NUMBER_PIXELS = 10
_DIGIT = 6.02
_LEFT = 21
_RIGHT = 6
_CHEVRON = 12.0
_SIZE = 3.2


class Lines(Protocol):
    """Interface of the editor that a gutter uses; lines count from 0."""

    def visible_lines(self, area: QRect) -> list[tuple[int, QRectF]]:
        """Return number and area of the lines that overlap an area."""
        ...

    def paint_ground(self, painter: QPainter, number: int, row: QRectF) -> None:
        """Paint the background of a line."""
        ...

    def is_selected(self, number: int) -> bool:
        """Return whether a line belongs to the selection."""
        ...

    def is_here(self, number: int) -> bool:
        """Return whether a line is the one that is pointed at."""
        ...

    def can_fold(self, number: int) -> bool:
        """Return whether a region begins on a line."""
        ...

    def is_folded(self, number: int) -> bool:
        """Return whether the region that begins on a line is folded."""
        ...

    def caret_line(self) -> int:
        """Return the caret's line, or -1 without the focus."""
        ...

    def click_line(self, y: float, modifiers: Qt.KeyboardModifier) -> None:
        """Handle a click on the line at this height."""
        ...

    def toggle_fold_at(self, y: float) -> bool:
        """Fold or unfold the region that begins at this height; return False if there is none."""
        ...


class Gutter(QWidget):
    """The strip of line numbers beside the text.

    Args:
        lines: The editor.
        parent: The same, as a widget.
    """

    def __init__(self, lines: Lines, parent: QWidget) -> None:
        super().__init__(parent)
        self._lines = lines
        self._width = 0
        self._hovered = False
        self.font_of_numbers = code_font(_NUMBER_PIXELS)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.set_count(1)

    def set_count(self, count: int) -> int:
        """Reserve room for the line numbers up to `count`; return the width in pixels."""
        digits = max(2, len(str(count)))
        self._width = round(_LEFT + _DIGIT * digits + _RIGHT)
        return self._width

    def _paint_chevron(self, painter: QPainter, number: int, middle: float) -> None:
        folded = self._lines.is_folded(number)
        if not folded and not (self._hovered and self._lines.can_fold(number)):
            return
        paint_chevron(painter, QPointF(_CHEVRON, middle), folded)

    def _paint_arrow(self, painter: QPainter, middle: float) -> None:
        corners = [(-4.0, -4.5), (4.0, 0.0), (-4.0, 4.5)]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.current().accent))
        painter.drawPolygon(QPolygonF([QPointF(_CHEVRON + x, middle + y) for x, y in corners]))
        painter.restore()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(self._width, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(colours.code_ground))
        painter.setFont(self.font_of_numbers)
        metrics = TextMetrics(self.font_of_numbers)
        caret = self._lines.caret_line()
        for number, place in self._lines.visible_lines(event.rect()):
            row = QRectF(0, place.top(), self.width(), place.height())
            self._lines.paint_ground(painter, number, row)
            if self._lines.is_selected(number):
                bar = QRectF(0, place.top(), _BAR, place.height())
                painter.fillRect(bar, QColor(colours.accent))
            if self._lines.is_here(number):
                self._paint_arrow(painter, round(place.center().y()))
            self._paint_chevron(painter, number, round(place.center().y()))
            painter.setPen(QColor(colours.text if number == caret else colours.quiet))
            self.draw_number(painter, metrics, number + 1, self.width() - _RIGHT, place)

    def draw_number(
        self, painter: QPainter, metrics: TextMetrics, number: int, right: float, row: QRectF
    ) -> None:
        """Draw a number right-aligned at ``right``."""
        text = str(number)
        # Digits are 0.73 em high: vertically centred in the row.
        base = row.center().y() + _NUMBER_PIXELS * 0.365
        painter.drawText(QPointF(right - metrics.horizontalAdvance(text), round(base)), text)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._hovered = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = False
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if at.x() < _LEFT and self._lines.toggle_fold_at(at.y()):
            return
        self._lines.click_line(at.y(), event.modifiers())

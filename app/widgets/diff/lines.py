"""How one line of code is drawn in a difference: colours, changed words, what was found."""

from collections import OrderedDict
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QTextCharFormat, QTextLayout, QTextOption

from lowerscope.app import theme
from lowerscope.app.widgets.code.hidden_text import LINE_CHARACTERS
from lowerscope.app.widgets.code.highlighter import line_colours
from lowerscope.app.widgets.typefaces import code_font, code_line

#: Lines that are kept laid out.
_KEPT = 2000

WordRange = tuple[int, int]


class LinePainter:
    """Draws lines, each laid out once while it is looked at."""

    def __init__(self) -> None:
        self._layouts: OrderedDict[str, QTextLayout] = OrderedDict()
        self._language = ""

    def set_language(self, language: str) -> None:
        """Take the colours of another language."""
        if language != self._language:
            self._language = language
            self.forget()

    def forget(self) -> None:
        """Lay everything out anew, as colours are others."""
        self._layouts.clear()

    def draw(self, painter: QPainter, text: str, at: QPointF) -> None:
        """Draw a line with its top left corner at a place."""
        self._layout(text).draw(painter, at)

    def mark(
        self,
        painter: QPainter,
        text: str,
        ranges: Sequence[WordRange],
        at: QPointF,
        colour: QColor,
        outline: QColor | None = None,
    ) -> None:
        """Paint what is behind some columns of a line."""
        line = self._layout(text).lineAt(0)
        for start, end in ranges:
            left = at.x() + x_of(line.cursorToX(_units(text, start)))
            right = at.x() + x_of(line.cursorToX(_units(text, end)))
            area = QRectF(left, at.y() + 1, max(2.0, right - left), code_line() - 2)
            painter.fillRect(area, colour)
            if outline is not None:
                painter.setPen(outline)
                painter.drawRect(area.adjusted(0, 0, -1, -1))

    def column(self, text: str, x: float) -> int:
        """The column, from 0, at a distance from the start of a line."""
        place: int = self._layout(text).lineAt(0).xToCursor(x)
        if text.isascii():
            return place
        return len(text.encode("utf-16-le")[: 2 * place].decode("utf-16-le", "ignore"))

    def _layout(self, text: str) -> QTextLayout:
        text = text[:LINE_CHARACTERS]
        layout = self._layouts.get(text)
        if layout is not None:
            self._layouts.move_to_end(text)
            return layout
        layout = QTextLayout(text, code_font())
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        layout.setTextOption(option)
        layout.setFormats(self._formats(text))
        layout.beginLayout()
        layout.createLine().setLineWidth(1e6)
        layout.endLayout()
        self._layouts[text] = layout
        if len(self._layouts) > _KEPT:
            self._layouts.popitem(last=False)
        return layout

    def _formats(self, text: str) -> list[QTextLayout.FormatRange]:
        colours = theme.current()
        plain = QTextLayout.FormatRange()
        plain.start, plain.length = 0, _units(text, len(text))
        plain.format = _format(colours.text)
        result = [plain]
        for start, length, name in line_colours(text, self._language):
            part = QTextLayout.FormatRange()
            part.start, part.length = start, length
            part.format = _format(getattr(colours, name))
            result.append(part)
        return result


def x_of(found: object) -> float:
    """The place that ``cursorToX`` gives: PySide6 returns it with the cursor."""
    return float(found[0] if isinstance(found, tuple) else found)  # type: ignore[arg-type]


def _format(colour: str) -> QTextCharFormat:
    result = QTextCharFormat()
    result.setForeground(QColor(colour))
    return result


def _units(text: str, column: int) -> int:
    if text.isascii():
        return column
    return len(text[:column].encode("utf-16-le")) // 2

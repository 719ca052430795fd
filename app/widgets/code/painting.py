"""How the code view paints what Qt does not: grounds, places that were found, folded regions."""

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter, QTextBlock

from lowerscope.app.theme_colours import Theme
from lowerscope.app.widgets.code.lines import Match
from lowerscope.app.widgets.code.marks import CodeMarks
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_GAP = 8
_PADDING = 6


def paint_matches(
    painter: QPainter, marks: CodeMarks, line: int, block: QTextBlock, row: QRectF, colours: Theme
) -> None:
    """Paint the ground of what was found in a line; ``row`` begins where its text does."""
    found = marks.matches(line)
    if not found or block.layout().lineCount() == 0:
        return
    ground, outline = QColor(colours.found), QColor(colours.found)
    for match in found:
        ground.setAlphaF(0.5 if match == marks.current_match else 0.22)
        area = _area(match, block, row)
        painter.fillRect(area, ground)
        if match == marks.current_match:
            painter.setPen(outline)
            painter.drawRect(area.adjusted(0, 0, -1, -1))


def fold_mark(block: QTextBlock, row: QRectF, text: str) -> QRectF:
    """Where it is said behind a line that a region is folded into it."""
    end = row.left()
    if block.layout().lineCount():
        end += block.layout().lineAt(0).naturalTextWidth()
    width = TextMetrics(ui_font(11)).horizontalAdvance(text) + 2 * _PADDING
    return QRectF(end + _GAP, row.top() + 2, width, row.height() - 4)


def paint_fold(painter: QPainter, area: QRectF, text: str, colours: Theme) -> None:
    """Say behind a line that a region is folded into it."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(colours.line))
    painter.setBrush(QColor(colours.panel))
    painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
    painter.setFont(ui_font(11))
    painter.setPen(QColor(colours.quiet))
    painter.drawText(QPointF(area.left() + _PADDING, area.center().y() + 4), text)
    painter.restore()


def _area(match: Match, block: QTextBlock, row: QRectF) -> QRectF:
    text_line = block.layout().lineAt(0)
    left = row.left() + x_of(text_line.cursorToX(match.start)) - text_line.x()
    right = row.left() + x_of(text_line.cursorToX(match.end)) - text_line.x()
    return QRectF(left, row.top() + 1, right - left, row.height() - 2)


def x_of(position: object) -> float:
    """A place in a line as a number."""
    # PySide gives the position alone, or with the cursor that it was asked for.
    return float(position[0] if isinstance(position, tuple) else position)  # type: ignore[arg-type]

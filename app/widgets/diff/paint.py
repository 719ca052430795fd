"""How the rows of a difference are painted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen, QPolygonF

from lowerscope.app import theme
from lowerscope.app.widgets.code.hidden_text import LINE_CHARACTERS
from lowerscope.app.widgets.diff.lines import LinePainter, WordRange
from lowerscope.app.widgets.diff.rows import DiffPart, Row
from lowerscope.app.widgets.diff.selection import Side
from lowerscope.app.widgets.typefaces import TextMetrics, code_font, code_line, ui_font

SIGNS = {"added": "+", "removed": "−", "changed": "~"}

_NUMBER_PIXELS = 10
_DIGIT = 6.02
_PAD = 8.0
_SIGN = 16.0
_UI_CAPITALS = 0.364

Words = Callable[[str, str], tuple[Sequence[WordRange], Sequence[WordRange]]]
Found = dict[tuple[int, str, int], list[WordRange]]
Chosen = tuple[Side, int, int] | None


@dataclass(frozen=True)
class Place:
    """The width of the viewport, how far it is scrolled to the right, and how many columns."""

    width: int
    shift: int
    unified: bool


class DiffPainter:
    """Paints rows; what it takes to draw a line is made once.

    Parameters
    ----------
    words : callable
        Says what changed inside of a line.
    """

    def __init__(self, words: Words) -> None:
        self._words = words
        self._parts: Sequence[DiffPart] = ()
        self._digits = 2
        self._changed: dict[tuple[str, str], tuple[Sequence[WordRange], Sequence[WordRange]]] = {}
        self.lines = LinePainter()
        self.matches: Found = {}

    def set_parts(self, parts: Sequence[DiffPart], language: str) -> None:
        """Take another difference."""
        self._parts = parts
        self._changed.clear()
        self.matches = {}
        self.lines.set_language(language)
        longest = max((max(len(part.old), len(part.new)) for part in parts), default=0)
        self._digits = max(2, len(str(longest)))

    def gutter(self, unified: bool) -> float:
        """The room for line numbers and signs, left of a column of code."""
        number = _PAD + _DIGIT * self._digits
        return (2 * number if unified else number) + _SIGN + 4

    def text_width(self, characters: int) -> float:
        """The width of so many characters of code."""
        return characters * TextMetrics(code_font()).horizontalAdvance("0")

    # Rows

    def paint_ground(self, painter: QPainter, area: QRect, place: Place) -> None:
        """Paint what is behind all rows."""
        colours = theme.current()
        painter.fillRect(area, QColor(colours.code_ground))
        if not place.unified:
            middle = (place.width - 1) // 2
            painter.fillRect(QRect(middle, area.top(), 1, area.height()), QColor(colours.line))

    def paint_title(self, painter: QPainter, row: Row, rect: QRectF, closed: bool) -> None:
        """Paint the title of a part: a chevron, its name, its status, numbers of lines."""
        colours = theme.current()
        part = self._parts[row.part]
        painter.fillRect(rect, QColor(colours.panel))
        edges = QColor(colours.line)
        painter.fillRect(QRectF(rect.left(), rect.bottom() - 1, rect.width(), 1), edges)
        if row.part:
            painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), edges)
        _paint_chevron(painter, QPointF(rect.left() + 12, rect.center().y()), closed)
        base = round(rect.center().y() + 13 * _UI_CAPITALS)
        x = self._say(painter, part.title, colours.text, QFont.Weight.DemiBold, 24.0, base)
        for words, colour in _facts(part):
            x = self._say(painter, words, colour, QFont.Weight.Normal, x + 12, base)

    def _say(
        self,
        painter: QPainter,
        words: str,
        colour: str,
        weight: QFont.Weight,
        x: float,
        base: float,
    ) -> float:
        font = ui_font(13, weight, tabular=True)
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.drawText(QPointF(x, base), words)
        return x + TextMetrics(font).horizontalAdvance(words)

    def paint_fold(self, painter: QPainter, row: Row, rect: QRectF) -> None:
        """Paint a fold: how many lines it stands for."""
        colours = theme.current()
        painter.fillRect(rect, QColor(colours.hover))
        _paint_chevron(painter, QPointF(rect.left() + 12, rect.center().y()), closed=True)
        painter.setFont(ui_font(11.5))
        painter.setPen(QColor(colours.quiet))
        text = fold_text(row)
        base = round(rect.center().y() + 11.5 * _UI_CAPITALS)
        painter.drawText(QPointF(24, base), text)

    def paint_line(
        self,
        painter: QPainter,
        row: Row,
        rect: QRectF,
        place: Place,
        pair: tuple[str, str] | None,
        chosen: Chosen,
    ) -> None:
        """Paint a line of code, on the sides that have it.

        Parameters
        ----------
        pair
            The old and the new text of a changed line that this is, or is one side of.
        chosen
            The side and the columns that are selected.
        """
        part = self._parts[row.part]
        old = part.old[row.old - 1] if row.old else None
        new = part.new[row.new - 1] if row.new else None
        words = ((), ()) if pair is None else self.words_of(*pair)
        if place.unified:
            text, side = (new, "new") if new is not None else (old, "old")
            own = words[0] if side == "old" else words[1]
            self._paint_side(painter, row, rect, place, "both", text, own, chosen)
            return
        middle = (place.width - 1) // 2
        left = QRectF(0, rect.top(), middle, rect.height())
        right = QRectF(middle + 1, rect.top(), place.width - middle - 1, rect.height())
        self._paint_side(painter, row, left, place, "old", old, words[0], chosen)
        self._paint_side(painter, row, right, place, "new", new, words[1], chosen)

    def paint_current(self, painter: QPainter, rect: QRectF) -> None:
        """Mark the row that the keyboard is at."""
        painter.fillRect(
            QRectF(rect.left(), rect.top(), 3, rect.height()), QColor(theme.current().accent)
        )

    # Sides

    def _paint_side(
        self,
        painter: QPainter,
        row: Row,
        rect: QRectF,
        place: Place,
        side: Side,
        text: str | None,
        words: Sequence[WordRange],
        chosen: Chosen,
    ) -> None:
        colours = theme.current()
        if text is None:
            painter.fillRect(rect, QColor(colours.ground))
            return
        ground = {
            "added": colours.right_ground,
            "removed": colours.wrong_ground,
            "changed": colours.changed,
        }.get(row.kind)
        if ground is not None:
            painter.fillRect(rect, QColor(ground))
        gutter = self.gutter(place.unified)
        self._paint_gutter(painter, row, rect, side)
        painter.save()
        painter.setClipRect(rect.adjusted(gutter, 0, 0, 0), Qt.ClipOperation.IntersectClip)
        at = QPointF(rect.left() + gutter - place.shift, rect.top())
        old = side == "old" or (side == "both" and row.kind == "removed")
        if words:
            tint = QColor(colours.wrong if old else colours.right)
            tint.setAlphaF(0.32 if colours.dark else 0.22)
            self.lines.mark(painter, text, words, at, tint)
        self._paint_found(painter, row, "old" if old else "new", text, at)
        if chosen is not None and chosen[0] == side:
            tint = QColor(colours.accent)
            tint.setAlphaF(0.35)
            range_ = (min(chosen[1], len(text)), min(chosen[2], len(text)))
            self.lines.mark(painter, text, [range_], at, tint)
        self.lines.draw(painter, text, at)
        painter.restore()

    def _paint_found(self, painter: QPainter, row: Row, side: str, text: str, at: QPointF) -> None:
        found = self.matches.get((row.part, side, row.old if side == "old" else row.new))
        if found:
            ground = QColor(theme.current().found)
            ground.setAlphaF(0.35)
            self.lines.mark(painter, text, found, at, ground, QColor(theme.current().found))

    def _paint_gutter(self, painter: QPainter, row: Row, rect: QRectF, side: Side) -> None:
        colours = theme.current()
        font = code_font(_NUMBER_PIXELS)
        metrics = TextMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(colours.quiet if row.kind == "same" else colours.text))
        # Digits are 0.73 em high: in the middle of the row.
        base = round(rect.top() + code_line() / 2 + _NUMBER_PIXELS * 0.365)
        width = _PAD + _DIGIT * self._digits
        right = rect.left()
        for number in (row.old, row.new) if side == "both" else (getattr(row, side),):
            right += width
            if number:
                text = str(number)
                painter.drawText(QPointF(right - metrics.horizontalAdvance(text), base), text)
        sign = SIGNS.get(row.kind)
        if sign is not None:
            signs = {"added": colours.right, "removed": colours.wrong}
            painter.setFont(code_font())
            painter.setPen(QColor(signs.get(row.kind, colours.text)))
            painter.drawText(QPointF(right + 6, round(rect.top() + code_line() / 2 + 4)), sign)

    def words_of(self, old: str, new: str) -> tuple[Sequence[WordRange], Sequence[WordRange]]:
        """The columns of what changed in an old and a new line."""
        found = self._changed.get((old, new))
        if found is None:
            found = self._changed[old, new] = self._words(
                old[:LINE_CHARACTERS], new[:LINE_CHARACTERS]
            )
        return found


def fold_text(row: Row) -> str:
    """What a fold says."""
    text = QCoreApplication.translate("DiffView", "{0} equal lines")
    return text.format(f"{row.folded:,}")


def title_text(part: DiffPart) -> str:
    """What a title says, for a screen reader."""
    return ", ".join([part.title, *(words for words, _ in _facts(part))])


def _facts(part: DiffPart) -> list[tuple[str, str]]:
    """What stands behind a title, with its colour."""
    colours = theme.current()
    roles = {"added": colours.right, "removed": colours.wrong}
    names = {
        "same": QCoreApplication.translate("DiffView", "same"),
        "changed": QCoreApplication.translate("DiffView", "changed"),
        "added": QCoreApplication.translate("DiffView", "added"),
        "removed": QCoreApplication.translate("DiffView", "removed"),
    }
    facts = [(names[part.status], roles.get(part.status, colours.quiet))]
    if part.status == "changed":
        for status in ("added", "removed", "changed"):
            count = part.count(status)
            if count:
                facts.append((f"{SIGNS[status]}{count:,}", roles.get(status, colours.quiet)))
    return facts


def _paint_chevron(painter: QPainter, middle: QPointF, closed: bool) -> None:
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(QColor(theme.current().quiet), 1.4)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    x, y = middle.x(), middle.y()
    points = ((-1.5, -3.5), (2, 0), (-1.5, 3.5)) if closed else ((-3.5, -1.5), (0, 2), (3.5, -1.5))
    painter.drawPolyline(QPolygonF([QPointF(x + dx, y + dy) for dx, dy in points]))
    painter.restore()

"""What two sides give some classes: for each class a bar of either side, one above the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_HEAD = 20.0
_ROW = 21.0
_BAR = 6.0
_BETWEEN = 1.0
_PAD = 4.0
_GAP = 8.0
_MOST_NAME = 76.0
_FONT_PIXELS = 11.5
_FADED = 0.4


@dataclass(frozen=True)
class ScoreRow:
    """A class, and what each side gives it, from 0 to 1."""

    name: str
    scores: tuple[float, ...]


class ScoreBars(QWidget):
    """Classes below each other, the bars of all of them to the same scale.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    headed : bool
        Whether a line at the top says which colour is which side's.
    parent : QWidget, optional
        The widget that it stands in.
    """

    def __init__(self, name: str, parent: QWidget | None = None, *, headed: bool = True) -> None:
        super().__init__(parent)
        self._head = _HEAD if headed else 0.0
        self._sides: tuple[str, ...] = ()
        self._rows: tuple[ScoreRow, ...] = ()
        self._faded = False
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self._bold = ui_font(_FONT_PIXELS, weight=QFont.Weight.DemiBold, tabular=True)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)

    def set_rows(
        self, sides: Sequence[str], rows: Sequence[ScoreRow], told: Sequence[ScoreRow] = ()
    ) -> None:
        """Show what some sides, one or two by name, give some classes.

        Parameters
        ----------
        told
            Those that a tool tip and a screen reader tell, where that is more than is shown.
        """
        self._sides, self._rows, self._faded = tuple(sides), tuple(rows), False
        words = [f"{each.name}: {', '.join(self._figures(each))}" for each in told or rows]
        self.setAccessibleDescription("; ".join(words))
        self.setToolTip("\n".join(words))
        self.updateGeometry()
        self.update()

    def rows(self) -> tuple[ScoreRow, ...]:
        """The classes that are shown."""
        return self._rows

    def set_faded(self, faded: bool) -> None:
        """Show that these are of before, and others on their way."""
        if faded != self._faded:
            self._faded = faded
            self.update()

    def is_faded(self) -> bool:
        """Whether these are of before."""
        return self._faded

    def _figures(self, row: ScoreRow) -> list[str]:
        pairs = zip(self._sides, row.scores, strict=True)
        return [f"{side} {score_text(score)}" for side, score in pairs]

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(236, int(self._head + len(self._rows) * _ROW))

    def minimumSizeHint(self) -> QSize:
        return QSize(170, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._rows:
            return
        colours = theme.current()
        inks = (colours.accent, colours.neutral)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(_FADED if self._faded else 1.0)
        metrics = TextMetrics(self._font)
        painter.setFont(self._font)
        if self._head:
            self._paint_head(painter, metrics, inks)
        names = max(TextMetrics(self._bold).horizontalAdvance(each.name) for each in self._rows)
        start = _PAD + min(names, _MOST_NAME) + _GAP
        told = [figure_text(each.scores) for each in self._rows]
        figures = max(metrics.horizontalAdvance(each) for each in told)
        room = max(8.0, self.width() - start - _GAP - figures - _PAD)
        for place, (row, text) in enumerate(zip(self._rows, told, strict=True)):
            middle = self._head + (place + 0.5) * _ROW
            base = middle + metrics.capHeight() / 2
            painter.setFont(self._font if place else self._bold)
            painter.setPen(QColor(colours.text))
            words = TextMetrics(painter.font()).elidedText(
                row.name, Qt.TextElideMode.ElideRight, start - _PAD - _GAP
            )
            painter.drawText(QPointF(_PAD, base), words)
            painter.setFont(self._font)
            painter.setPen(QColor(colours.quiet))
            right = self.width() - _PAD - metrics.horizontalAdvance(text)
            painter.drawText(QPointF(right, base), text)
            top = middle - (len(row.scores) * (_BAR + _BETWEEN) - _BETWEEN) / 2
            for score, ink in zip(row.scores, inks, strict=False):
                self._bar(painter, QRectF(start, top, max(1.5, room * score), _BAR), ink)
                top += _BAR + _BETWEEN

    def _paint_head(self, painter: QPainter, metrics: TextMetrics, inks: tuple[str, ...]) -> None:
        left = _PAD
        for side, ink in zip(self._sides, inks, strict=False):
            self._bar(painter, QRectF(left, (_HEAD - _BAR) / 2, 10, _BAR), ink)
            painter.setPen(QColor(theme.current().quiet))
            painter.drawText(QPointF(left + 14, (_HEAD + metrics.capHeight()) / 2), side)
            left += 14 + metrics.horizontalAdvance(side) + 12

    def _bar(self, painter: QPainter, rect: QRectF, ink: str) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ink))
        painter.drawRoundedRect(rect, 1.5, 1.5)


def score_text(score: float) -> str:
    """Return a score from 0 to 1 as ``98.2%``."""
    return f"{score:.1%}"


def figure_text(scores: Sequence[float]) -> str:
    """Return the scores of both sides, once where they read alike: ``98.2%``, ``98.2 · 91.0%``."""
    texts = list(dict.fromkeys(score_text(each) for each in scores))
    return " · ".join([*(each.removesuffix("%") for each in texts[:-1]), texts[-1]])

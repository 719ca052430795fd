"""Rows of a name, one or two bars, and a value: times, and the scores of classes.

They are painted without pyqtgraph: most of it is static text beside bars, and the rows are shown
with every run, which should not wait for pyqtgraph to be imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _, labelled

_HEAD, _ROW, _PAD, _GAP = 20.0, 22.0, 10.0, 8.0
_BAR, _NARROW_BAR = 8.0, 6.0
_MOST_NAME = 0.4
"""Greatest share of the width for names."""
_MOST_SPREAD = 1.3
"""Greatest length of a spread, as a multiple of the longest bar."""
_FONT_PIXELS = 12.0
_FADED = 0.4


@dataclass(frozen=True)
class Bar:
    """A row of the bar chart."""

    name: str  # Its label, and its value as text.
    # The lengths of its bars: ours, and the other implementation's below it.
    values: tuple[float, ...]
    text: str
    role: str = ""  # ``"other"`` for a row of the other implementation alone.
    # A range around the value, drawn across the end of the first bar.
    spread: tuple[float, float] | None = None
    best: bool = False  # Write it in bold.


class Bars(QWidget):
    """Rows below one another, with bars on one scale.

    Args:
        whole: The value of a bar of the full width; 0 for the longest bar.
    """

    def __init__(self, name: str, *, whole: float = 0.0) -> None:
        super().__init__()
        self._whole = whole
        self._bars: tuple[Bar, ...] = ()
        self._legend: tuple[str, ...] = ()
        self._faded = False
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self._bold = ui_font(_FONT_PIXELS, weight=QFont.Weight.DemiBold, tabular=True)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)

    def set_bars(self, bars: Sequence[Bar], legend: Sequence[str] = ()) -> None:
        """Show other rows, below a legend with the names of the implementations, if any."""
        shown = (tuple(bars), tuple(legend))
        if shown != (self._bars, self._legend) or self._faded:
            (self._bars, self._legend), self._faded = shown, False
            words = (labelled(each.name, each.text) for each in self._bars)
            self.setAccessibleDescription(_("; ").join(words))
            self.updateGeometry()
            self.update()

    def bars(self) -> tuple[Bar, ...]:
        """Return the rows that are shown."""
        return self._bars

    def set_faded(self, faded: bool) -> None:
        """Show the rows as outdated, while new ones are pending."""
        if faded != self._faded:
            self._faded = faded
            self.update()

    def is_faded(self) -> bool:
        """Return whether the rows are shown as outdated."""
        return self._faded

    def _top(self) -> float:
        return _HEAD if self._legend else _GAP / 2

    def _most(self) -> float:
        """Return the value of a bar of the full width; longer spreads are cut off."""
        longest = max((value for each in self._bars for value in each.values), default=0.0)
        ends = [each.spread[1] for each in self._bars if each.spread is not None]
        return self._whole or min(max(longest, *ends, 0.0), _MOST_SPREAD * longest) or 1.0

    # Qt

    def sizeHint(self) -> QSize:
        rows = len(self._bars) * _ROW
        return QSize(240, int(self._top() + rows + _GAP / 2) if self._bars else 0)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._bars:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(_FADED if self._faded else 1.0)
        self._paint_legend(painter)
        bold = TextMetrics(self._bold)
        names = max(bold.horizontalAdvance(each.name) for each in self._bars)
        start = _PAD + min(names, _MOST_NAME * self.width()) + _GAP
        end = self.width() - _PAD - max(bold.horizontalAdvance(each.text) for each in self._bars)
        scale = max(1.0, end - _GAP - start) / self._most()
        for number, bar in enumerate(self._bars):
            self._paint_row(painter, bar, self._top() + (number + 0.5) * _ROW, start, scale)

    def _paint_row(
        self, painter: QPainter, bar: Bar, middle: float, start: float, scale: float
    ) -> None:
        colours = theme.current()
        self._write(painter, bar.name, QPointF(_PAD, middle), start - _GAP - _PAD, bar.best)
        metrics = TextMetrics(self._bold if bar.best else self._font)
        right = self.width() - _PAD - metrics.horizontalAdvance(bar.text)
        painter.setFont(self._bold if bar.best else self._font)
        painter.setPen(QColor(colours.text if bar.best else colours.quiet))
        painter.drawText(QPointF(right, middle + metrics.capHeight() / 2), bar.text)
        height = _BAR if len(bar.values) == 1 else _NARROW_BAR
        top = middle - (len(bar.values) * (height + 1) - 1) / 2
        inks = (colours.neutral if bar.role == "other" else colours.accent, colours.neutral)
        for number, (value, ink) in enumerate(zip(bar.values, inks, strict=False)):
            area = QRectF(start, top + number * (height + 1), max(2.0, scale * value), height)
            _paint_bar(painter, area, ink)
        if bar.spread is not None:
            left, far = (
                start + scale * bar.spread[0],
                start + scale * min(bar.spread[1], self._most()),
            )
            painter.setPen(QColor(colours.text))
            painter.drawLine(QLineF(left, middle, far, middle))
            painter.drawLine(QLineF(left, top, left, top + height))
            if bar.spread[1] <= self._most():
                painter.drawLine(QLineF(far, top, far, top + height))

    def _paint_legend(self, painter: QPainter) -> None:
        colours = theme.current()
        left = _PAD
        for side, ink in zip(self._legend, (colours.accent, colours.neutral), strict=False):
            _paint_bar(painter, QRectF(left, (_HEAD - _NARROW_BAR) / 2, 10, _NARROW_BAR), ink)
            room = self._write(painter, side, QPointF(left + 14, _HEAD / 2), self.width() / 2)
            left += 14 + room + 12

    def _write(
        self, painter: QPainter, text: str, place: QPointF, room: float, bold: bool = False
    ) -> float:
        """Draw text, elided to a width and vertically centred at a height; return its width."""
        painter.setFont(self._bold if bold else self._font)
        painter.setPen(QColor(theme.current().text))
        metrics = TextMetrics(painter.font())
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.drawText(place + QPointF(0, metrics.capHeight() / 2), shown)
        return metrics.horizontalAdvance(shown)


def _paint_bar(painter: QPainter, area: QRectF, ink: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(ink))
    painter.drawRoundedRect(area, 2, 2)

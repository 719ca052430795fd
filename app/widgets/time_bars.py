"""Times side by side: a bar each, as long as its time, with its name and its figure."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_ROW = 22.0
_BAR = 8.0
_PAD = 10.0
_GAP = 8.0
_MOST_NAME = 110.0
_MOST_SHARE = 0.4
_LEAST = 2.0
_MOST_SPREAD = 1.3
"""Of the longest bar, how far a spread may reach."""
_FONT_PIXELS = 12.0


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length, its figure, and a role: ``""``, or ``"other"`` for torch.

    ``spread`` is a range around the value, drawn across the end of the bar; the words of the
    ``best`` are bold.
    """

    name: str
    value: float
    text: str
    role: str = ""
    spread: tuple[float, float] | None = None
    best: bool = False


class TimeBars(QWidget):
    """Bars below each other, the longest as wide as there is room.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bars: tuple[Bar, ...] = ()
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self._bold = ui_font(_FONT_PIXELS, weight=QFont.Weight.DemiBold, tabular=True)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)

    def set_bars(self, bars: Sequence[Bar]) -> None:
        """Show other bars."""
        if tuple(bars) != self._bars:
            self._bars = tuple(bars)
            words = (f"{each.name}: {each.text}" for each in self._bars)
            self.setAccessibleDescription("; ".join(words))
            self.updateGeometry()
            self.update()

    def bars(self) -> tuple[Bar, ...]:
        """The bars that are shown."""
        return self._bars

    def bar_rect(self, index: int) -> QRectF:
        """Where a bar stands in the widget."""
        left, pixels = self._scale()
        length = max(_LEAST, pixels * self._bars[index].value)
        return QRectF(left, index * _ROW + (_ROW - _BAR) / 2 + _GAP / 2, length, _BAR)

    def spread_rect(self, index: int) -> QRectF:
        """Where the spread of a bar is drawn; an upper end that is far away is cut off."""
        bar, rect = self._bars[index], self.bar_rect(index)
        if bar.spread is None:
            return QRectF(rect.right(), rect.top(), 0.0, rect.height())
        left, pixels = self._scale()
        low, high = bar.spread[0], min(bar.spread[1], self._most())
        start = left + pixels * low
        return QRectF(start, rect.top(), left + pixels * high - start, rect.height())

    def _most(self) -> float:
        """Return the value at the right end."""
        longest = max((each.value for each in self._bars), default=0.0)
        ends = (each.spread[1] for each in self._bars if each.spread is not None)
        return min(max(longest, *ends, 0.0), _MOST_SPREAD * longest) or 1.0

    def _scale(self) -> tuple[float, float]:
        """Return where the bars begin, and how many pixels one unit has."""
        metrics = TextMetrics(self._bold)
        names = max((metrics.horizontalAdvance(each.name) for each in self._bars), default=0.0)
        texts = max((metrics.horizontalAdvance(each.text) for each in self._bars), default=0.0)
        left = _PAD + min(names, max(_MOST_NAME, _MOST_SHARE * self.width())) + _GAP
        room = max(_LEAST, self.width() - left - _GAP - texts - _PAD)
        return left, room / self._most()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(240, int(len(self._bars) * _ROW + _GAP))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inks = {"": colours.accent, "other": colours.neutral}
        for index, bar in enumerate(self._bars):
            rect = self.bar_rect(index)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(inks[bar.role]))
            painter.drawRoundedRect(rect, 2, 2)
            font = self._bold if bar.best else self._font
            metrics = TextMetrics(font)
            base = rect.center().y() + metrics.ascent() / 2 - 1
            painter.setFont(font)
            painter.setPen(QColor(colours.text))
            room = rect.left() - _GAP - _PAD
            name = metrics.elidedText(bar.name, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(_PAD, base), name)
            painter.setPen(QColor(colours.text if bar.best else colours.quiet))
            spread = self.spread_rect(index)
            painter.drawText(QPointF(max(rect.right(), spread.right()) + _GAP, base), bar.text)
            if bar.spread is not None:
                painter.setPen(QPen(QColor(colours.text), 1))
                middle = spread.center().y()
                painter.drawLine(spread.topLeft(), spread.bottomLeft())
                painter.drawLine(QPointF(spread.left(), middle), QPointF(spread.right(), middle))
                if bar.spread[1] <= self._most():
                    painter.drawLine(spread.topRight(), spread.bottomRight())

"""Times side by side: a bar each, as long as its time, with its name and its figure."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import ui_font

_ROW = 22.0
_BAR = 8.0
_PAD = 10.0
_GAP = 8.0
_MOST_NAME = 110.0
_MOST_SHARE = 0.4
_LEAST = 2.0
_FONT_PIXELS = 12.0


@dataclass(frozen=True)
class Bar:
    """A bar: its name, its length, its figure, and a role: ``""``, ``"best"`` or ``"other"``."""

    name: str
    value: float
    text: str
    role: str = ""


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
        metrics = QFontMetricsF(self._bold)
        names = max((metrics.horizontalAdvance(each.name) for each in self._bars), default=0.0)
        texts = max((metrics.horizontalAdvance(each.text) for each in self._bars), default=0.0)
        left = _PAD + min(names, max(_MOST_NAME, _MOST_SHARE * self.width())) + _GAP
        room = max(_LEAST, self.width() - left - _GAP - texts - _PAD)
        most = max((each.value for each in self._bars), default=0.0) or 1.0
        length = max(_LEAST, room * self._bars[index].value / most)
        return QRectF(left, index * _ROW + (_ROW - _BAR) / 2 + _GAP / 2, length, _BAR)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(240, int(len(self._bars) * _ROW + _GAP))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inks = {"": colours.accent, "best": colours.right, "other": colours.library}
        for index, bar in enumerate(self._bars):
            rect = self.bar_rect(index)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(inks[bar.role]))
            painter.drawRoundedRect(rect, 2, 2)
            font = self._bold if bar.role == "best" else self._font
            metrics = QFontMetricsF(font)
            base = rect.center().y() + metrics.ascent() / 2 - 1
            painter.setFont(font)
            painter.setPen(QColor(colours.text))
            room = rect.left() - _GAP - _PAD
            name = metrics.elidedText(bar.name, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(_PAD, base), name)
            painter.setPen(QColor(inks["best"] if bar.role == "best" else colours.quiet))
            painter.drawText(QPointF(rect.right() + _GAP, base), bar.text)

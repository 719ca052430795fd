"""A histogram: bars over a line, with the ends of the range below it."""

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.focus_ring import came_by_keyboard
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_ROOM = 12.0
_AXIS = 20.0
_ABOVE = 8.0
_HEIGHT = 88
_GAP = 1.0
_LEAST = 1.0
_FONT_PIXELS = 11.5


class Histogram(QWidget):
    """Counts of values between edges.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    logarithmic : bool
        Whether the bars are as high as the logarithms of the counts, so that few values can be
        seen beside many.
    parent : QWidget, optional
        The widget that it stands in.
    """

    def __init__(
        self, name: str, *, logarithmic: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._name = name
        self._logarithmic = logarithmic
        self._edges: tuple[float, ...] = ()
        self._counts: tuple[int, ...] = ()
        self._here = 0
        self._ring = False
        self._font = ui_font(_FONT_PIXELS)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)

    def set_counts(self, edges: Sequence[float], counts: Sequence[int]) -> None:
        """Show counts, each between an edge and the next; none of them for no bars."""
        assert len(edges) == len(counts) + 1 or not counts, (len(edges), len(counts))
        self._edges, self._counts = tuple(edges), tuple(counts)
        self._go(self._here)
        words = self._name
        if self._counts:
            words = self.tr("{0}: {1} values from {2} to {3}").format(
                self._name, f"{sum(self._counts):,}", _number(edges[0]), _number(edges[-1])
            )
        self.setAccessibleName(words)
        self.update()

    def counts(self) -> tuple[int, ...]:
        """The counts that are shown."""
        return self._counts

    def bar_rect(self, index: int) -> QRectF:
        """Where a bar stands in the widget; a count of 0 has a bar without height."""
        plot = self._plot()
        width = plot.width() / len(self._counts)
        count, most = self._counts[index], max(self._counts)
        share = math.log1p(count) / math.log1p(most) if self._logarithmic else count / most
        # What is there can be seen, however little it is.
        height = max(_LEAST, plot.height() * share) if count else 0.0
        gap = _GAP if width > 3 * _GAP else 0.0
        left = plot.left() + index * width
        return QRectF(left, plot.bottom() - height, max(_LEAST, width - gap), height)

    def words_at(self, x: float) -> str:
        """Return what the bar at a place says: its edges and its count; empty outside."""
        plot = self._plot()
        if not self._counts or not plot.left() <= x < plot.right():
            return ""
        return self._words_of(int((x - plot.left()) / plot.width() * len(self._counts)))

    def _words_of(self, index: int) -> str:
        low, high = self._edges[index], self._edges[index + 1]
        return f"{_number(low)} … {_number(high)}: {self._counts[index]:,}"

    def _go(self, index: int) -> None:
        """Go to a bar by keyboard: what it says is shown above it."""
        self._here = max(0, min(index, len(self._counts) - 1))
        self.setAccessibleDescription(self._words_of(self._here) if self._counts else "")
        self.update()

    def _plot(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_ROOM, _ABOVE, -_ROOM, -_AXIS)

    def _paint_here(self, painter: QPainter) -> None:
        """Paint where the keyboard is, and what the bar there says."""
        colours, bar = theme.current(), self.bar_rect(self._here)
        painter.setPen(QPen(QColor(colours.accent), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -1, -1))
        plot = self._plot()
        painter.fillRect(
            QRectF(bar.left(), plot.top(), bar.width(), plot.height()), QColor(colours.hover)
        )
        painter.fillRect(bar, QColor(colours.text))
        painter.setFont(self._font)
        words, metrics = self._words_of(self._here), TextMetrics(self._font)
        left = min(bar.center().x(), plot.right() - metrics.horizontalAdvance(words))
        painter.setPen(QColor(colours.text))
        painter.drawText(QPointF(max(plot.left(), left), plot.top() + metrics.ascent()), words)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(240, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, _HEIGHT)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            words = self.words_at(event.pos().x())
            if words:
                QToolTip.showText(event.globalPos(), words, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Right:
                self._go(self._here + 1)
            case Qt.Key.Key_Left:
                self._go(self._here - 1)
            case Qt.Key.Key_Home:
                self._go(0)
            case Qt.Key.Key_End:
                self._go(len(self._counts) - 1)
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._counts:
            if self._ring and self.hasFocus():
                QPainter(self).drawRect(self.rect().adjusted(0, 0, -1, -1))
            return
        colours = theme.current()
        painter = QPainter(self)
        plot = self._plot()
        for index in range(len(self._counts)):
            painter.fillRect(self.bar_rect(index), QColor(colours.accent))
        painter.setPen(QColor(colours.line))
        painter.drawLine(QPointF(plot.left(), plot.bottom()), QPointF(plot.right(), plot.bottom()))
        low, high = self._edges[0], self._edges[-1]
        painter.setFont(self._font)
        metrics = TextMetrics(self._font)
        base = plot.bottom() + 4 + metrics.ascent()
        left, right = _number(low), _number(high)
        right_at = plot.right() - metrics.horizontalAdvance(right)
        painter.setPen(QColor(colours.quiet))
        painter.drawText(QPointF(plot.left(), base), left)
        painter.drawText(QPointF(right_at, base), right)
        if low < 0 < high:
            at = plot.left() - low / (high - low) * plot.width()
            half = metrics.horizontalAdvance("0") / 2
            ends = plot.left() + metrics.horizontalAdvance(left) + 8
            painter.setPen(QPen(QColor(colours.quiet), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()))
            if ends < at - half and at + half < right_at - 8:
                painter.drawText(QPointF(at - half, base), "0")
        if self._ring and self.hasFocus():
            self._paint_here(painter)


def _number(value: float) -> str:
    return f"{value:.4g}"

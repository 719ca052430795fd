"""Histogram: counts of values in intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import Chart, Value


class Histogram(Chart):
    """Counts of values between edges, as bars; ``logarithmic`` ones on a logarithmic scale."""

    SIZE, SMALLEST = QSize(240, 88), QSize(120, 88)

    def __init__(
        self, name: str, *, logarithmic: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, parent)
        self._logarithmic = logarithmic
        self._edges: tuple[float, ...] = ()
        self._counts: tuple[int, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_counts(self, edges: Sequence[float], counts: Sequence[int]) -> None:
        """Show the count of each interval between edges; no counts for no bars."""
        assert len(edges) == len(counts) + 1 or not counts, (len(edges), len(counts))
        self._edges, self._counts = tuple(edges), tuple(counts)
        self._show([self._value(number) for number in range(len(counts))], self._whole())

    def _whole(self) -> str:
        if not self._counts:
            return ""
        text = self.tr("{0:,} values from {1:.4g} to {2:.4g}")
        return text.format(sum(self._counts), self._edges[0], self._edges[-1])

    def _value(self, number: int) -> Value:
        count, most, log = self._counts[number], max(self._counts), math.log1p
        height = log(count) / (log(most) or 1) if self._logarithmic else count / max(1, most)
        text = f"{self._edges[number]:.4g} … {self._edges[number + 1]:.4g}: {count:,}"
        # Edges are equidistant: a bar is one unit wide, whatever the values are.
        return Value(number, number + 0.5, height, text)

    def counts(self) -> tuple[int, ...]:
        """Return the counts that are shown."""
        return self._counts

    # Chart

    def _draw_plot(self, pg: Any) -> None:
        colours, count = theme.current(), len(self._counts)
        low, high = self._edges[0], self._edges[-1]
        self._axis("bottom", 20, str, ())
        self._set_range(QRectF(0, 0, count, 1), (12, 8, 12, 0))
        left, right = (
            self._to_widget(0, 0) + QPointF(0, 4),
            self._to_widget(count, 0) + QPointF(0, 4),
        )
        self._write(f"{low:.4g}", left, colours.quiet, (0, 0))
        self._write(f"{high:.4g}", right, colours.quiet, (1, 0))
        if low < 0 < high:
            zero = -low / (high - low) * count
            dotted = pg.mkPen(colours.quiet, style=Qt.PenStyle.DotLine)
            self._plot.addItem(pg.InfiniteLine(zero, pen=dotted))
            place, room = self._to_widget(zero, 0) + QPointF(0, 4), self._metrics.horizontalAdvance
            if (
                room(f"{low:.4g} 0")
                < place.x() - left.x()
                < right.x() - left.x() - room(f"0 {high:.4g}")
            ):
                self._write("0", place, colours.quiet, (0.5, 0))
        self._plot.addItem(self._bars(pg, range(count), colours.accent))

    def _bars(self, pg: Any, numbers: Sequence[int], colour: str) -> Any:
        area = self._area()
        gap = len(self._counts) / area.width()
        # A count that is not 0 is visible, however small it is.
        least = 1 / area.height()
        heights = [
            max(least, self._values[each].y) if self._counts[each] else 0 for each in numbers
        ]
        width = 1 - gap if gap < 0.3 else 1
        return pg.BarGraphItem(
            x0=list(numbers), width=width, y0=0, height=heights, brush=colour, pen=None
        )

    def _draw_current(self, pg: Any) -> None:
        colours, area, here = theme.current(), self._area(), self._here
        behind = pg.BarGraphItem(x0=[here], width=1, y0=0, height=1, brush=colours.hover, pen=None)
        behind.setZValue(-1)
        self._mark(behind)
        self._mark(self._bars(pg, [here], colours.text))
        text = self._value_text(here)
        half = self._metrics.horizontalAdvance(text) / 2
        x = min(max(self.place_of(here).x(), area.left() + half), area.right() - half)
        self._write(text, QPointF(x, area.top()), colours.text, (0.5, 0.3), ground=colours.panel)

"""Roofline: the limits of a machine by arithmetic intensity, and measured performance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import Chart, Value

_LINE = 14.0
_NEAR = 9.0
_BESIDE = 9.5

_FORMS = {"here": ("o", 9), "before": ("o", 9), "best": ("d", 11), "other": ("s", 9)}
_STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine)


@dataclass(frozen=True)
class Roofs:
    """The limits: of arithmetic in GFLOP/s, of memory and of the caches in GB/s; 0 for none."""

    gflops: float = 0.0
    memory: float = 0.0
    caches: float = 0.0


@dataclass(frozen=True)
class Mark:
    """A measured point."""

    name: str  # Its label.
    intensity: float  # Operations per byte, and 10⁹ operations per second.
    gflops: float
    role: str  # ``"here"``, ``"before"``, ``"best"`` or ``"other"``: its colour and its form.


class Roofline(Chart):
    """Limits as lines, and marks below them with their names, on two logarithmic scales."""

    SIZE, SMALLEST = QSize(320, 220), QSize(220, 130)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._roofs = Roofs()
        self._shown: tuple[Mark, ...] = ()

    def set_plot(self, roofs: Roofs, marks: Sequence[Mark], empty: str = "") -> None:
        """Show limits and marks; without a limit, show the text `empty`."""
        self._roofs = roofs
        self._shown = tuple(each for each in marks if each.intensity > 0 and each.gflops > 0)
        values = [] if self.is_empty() else [*self._limits(), *map(self._value, self._shown)]
        self._show(values, "; ".join(each.text for each in values))
        self.set_empty(empty)

    def is_empty(self) -> bool:
        """Return whether the text is shown instead."""
        return not (self._roofs.gflops and self._roofs.memory)

    def marks(self) -> tuple[Mark, ...]:
        """Return the marks."""
        return self._shown

    # Chart: the limits, then the marks

    def _limits(self) -> list[Value]:
        """Return the limits: the peak, memory and, if they are known, the caches."""
        peak, memory, caches = self._roofs.gflops, self._roofs.memory, self._roofs.caches
        named = [
            (f"{self.tr('peak')} {_figure(peak)} GFLOP/s", memory),
            (f"{self.tr('memory')} {_figure(memory)} GB/s", memory),
            (f"{self.tr('caches')} {_figure(caches)} GB/s", caches),
        ]
        return [_value(peak / bandwidth, peak, text) for text, bandwidth in named if bandwidth]

    def _value(self, mark: Mark) -> Value:
        text = self.tr("{0}: {1} GFLOP/s at {2} FLOP per byte").format(
            mark.name, _figure(mark.gflops), _figure(mark.intensity)
        )
        return _value(mark.intensity, mark.gflops, text)

    def _number_at(self, place: QPointF) -> int:
        for number in range(len(self._values)):
            if (self.place_of(number) - place).manhattanLength() < _NEAR:
                return number
        return -1

    def _draw_plot(self, pg: Any) -> None:
        colours, line = theme.current(), self._metrics.height()
        places = [(each.x, each.y) for each in self._values]
        # The name of a roof is along its slope, at the left of its corner.
        left, right = min(x for x, _ in places) - 1.6, max(x for x, _ in places) + 0.9
        peak = math.log10(self._roofs.gflops)
        low, high = min(peak - math.log10(30), *(y for _, y in places)) - 0.35, peak + 0.25
        self._axis("left", 28, _power_text, _decades(low, high), grid=True)
        self._axis("bottom", line + 6, _power_text, _decades(left, right), grid=True)
        area = QRectF(left, low, right - left, high - low)
        self._set_range(area, (line + 2, 12, 12, line + 2))
        corner = QPointF(self.width() - 12, self.height() - 2)
        self._write(self.tr("FLOP per byte"), corner, colours.quiet, (1, 1))
        above = QPointF(2 + line / 2, self._area().top())
        self._write("GFLOP/s", above, colours.quiet, (1, 0.5), angle=-90)
        for limit, style in zip(self._limits()[1:], _STYLES, strict=False):
            # Starts outside the view, along a slope of 1.
            x, y = [limit.x - 9, limit.x, right], [peak - 9, peak, peak]
            pen = pg.mkPen(colours.edge, width=1.5, style=style)
            self._plot.addItem(pg.PlotCurveItem(x, y, pen=pen))
            self._write_along(limit.text, limit.x, peak)
        self._draw_marks(pg)

    def _write_along(self, text: str, x: float, y: float) -> None:
        """Write the name of a limit along its line, a little below the corner."""
        corner, below = self._to_widget(x, y), self._to_widget(x - 1, y - 1)
        way, area = corner - below, self._area()
        length = math.hypot(way.x(), way.y())
        shares = (corner.x() - area.left()) / way.x(), (area.bottom() - corner.y()) / -way.y()
        room = length * min(shares) - 20
        angle = math.degrees(math.atan2(way.y(), way.x()))
        end = corner - way * (12 / length)
        self._write(text, end, theme.current().quiet, (1, 1.2), angle=angle, room=room)

    def _draw_marks(self, pg: Any) -> None:
        colours, right = theme.current(), self._area().right()
        taken: list[float] = []
        for mark in sorted(self._shown, key=lambda each: -each.gflops):
            ink = colours.accent if mark.role in ("here", "best") else colours.neutral
            x, y = math.log10(mark.intensity), math.log10(mark.gflops)
            symbol, size = _FORMS[mark.role]
            brush = colours.panel if mark.role == "before" else ink
            pen = pg.mkPen(ink, width=1.6)
            self._plot.addItem(
                pg.ScatterPlotItem([x], [y], symbol=symbol, size=size, pen=pen, brush=brush)
            )
            place, text = self._to_widget(x, y), f"{mark.name} {_figure(mark.gflops)}"
            while any(abs(place.y() - each) < _LINE for each in taken):
                place.setY(place.y() + 1)
            taken.append(place.y())
            fits = place.x() + _BESIDE + self._metrics.horizontalAdvance(text) <= right
            place.setX(place.x() + (_BESIDE if fits else -_BESIDE))
            self._write(text, place, ink, (0 if fits else 1, 0.5), ground=colours.panel)

    def _draw_current(self, pg: Any) -> None:
        x, y = self._place(self._here)
        ring = pg.mkPen(theme.current().text, width=1.5)
        self._mark(pg.ScatterPlotItem([x], [y], size=16, pen=ring, brush=None))


def _value(intensity: float, gflops: float, text: str) -> Value:
    x = math.log10(intensity)
    return Value(x, x, math.log10(gflops), text)


def _decades(low: float, high: float) -> list[float]:
    return [float(power) for power in range(math.ceil(low), math.floor(high) + 1)]


def _power_text(power: float) -> str:
    return _figure(10**power)


def _figure(value: float) -> str:
    """Return about three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

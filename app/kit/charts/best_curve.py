"""The best value so far over a number of trials, with reference values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtWidgets import QGraphicsLineItem, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import Chart, Value

_PAD = 10.0
_MOST_LABELS = 0.4
_TICK_ROOM = 30.0
_LEAST = 1e-12  # Values of 0 and below have no logarithm.
_LINES = Qt.PenStyle
_DASHES = (_LINES.DashLine, _LINES.DotLine, _LINES.DashDotLine, _LINES.DashDotDotLine)


@dataclass(frozen=True)
class CurvePoint:
    """A better value: the number of trials after which it was found, and more about it."""

    trials: int
    value: float
    tooltip: str = ""


@dataclass(frozen=True)
class Level:
    """A reference value, and its name."""

    label: str
    value: float


class BestCurve(Chart):
    """Steps that go down over the trials, and horizontal lines for reference values.

    Values are on a logarithmic scale; `text_of` returns the text of one.
    """

    SIZE, SMALLEST = QSize(420, 180), QSize(220, 90)

    def __init__(
        self, name: str, text_of: Callable[[float], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(name, parent)
        self._text_of = text_of
        self._points: tuple[CurvePoint, ...] = ()
        self._levels: tuple[Level, ...] = ()
        self._at = self._until = 0

    def set_curve(
        self, points: Sequence[CurvePoint], levels: Sequence[Level], at: int, until: int
    ) -> None:
        """Show a curve at trial `at` of `until`; the current point stays."""
        if self._points != tuple(points[: len(self._points)]):
            self._here = -1
        self._points, self._levels = tuple(points), tuple(levels)
        self._at, self._until = at, max(until, at, 1)
        self._show([self._value(each) for each in points], self._whole())

    def _whole(self) -> str:
        if not self._points:
            return ""
        text = self.tr("{0} after {1} of {2} trials")
        (_, best), *levels = self._labels()
        return "; ".join((text.format(best, self._at, self._until), *(each for _, each in levels)))

    def _value(self, point: CurvePoint) -> Value:
        text = self.tr("{0} at trial {1}").format(self._text_of(point.value), point.trials)
        text = f"{text} · {point.tooltip}" if point.tooltip else text
        return Value(point.trials, point.trials, _log(point.value), text)

    def points(self) -> tuple[CurvePoint, ...]:
        """Return the points that are shown."""
        return self._points

    def levels(self) -> tuple[Level, ...]:
        """Return the reference values."""
        return self._levels

    # Chart

    def _labels(self) -> list[tuple[float, str]]:
        """Return the logarithms and texts of the best value and of the levels."""
        named = [(self.tr("best"), self._points[-1].value)]
        named += [(each.label, each.value) for each in self._levels]
        return [(_log(value), f"{name} {self._text_of(value)}") for name, value in named]

    def _draw_plot(self, pg: Any) -> None:
        colours, metrics = theme.current(), self._metrics
        labels = self._labels()
        places = [(each.x, each.y) for each in self._values]
        values = [places[0][1], *(value for value, _ in labels)]
        spare = max(0.05, 0.08 * (max(values) - min(values)))
        low, high = min(values) - spare, max(values) + spare
        ticks = _ticks(low, high, self.height() / _TICK_ROOM)
        right = (
            min(
                max(metrics.horizontalAdvance(text) for _, text in labels),
                _MOST_LABELS * self.width(),
            )
            + 22
        )
        left = max(metrics.horizontalAdvance(self._text_of(10**each)) for each in ticks) + 10
        self._axis("left", left, lambda value: self._text_of(10**value), ticks, grid=True)
        self._axis(
            "bottom", metrics.height() + 6, lambda trials: f"{trials:,.0f}" if trials else ""
        )
        area = QRectF(0, low, self._until, high - low)
        self._set_range(area, (_PAD, _PAD + metrics.height(), right, _PAD / 2))
        # pyqtgraph omits the labels at the ends of an axis.
        start = self._to_widget(0, low) + QPointF(0, 5)
        self._write(self.tr("0 trials"), start, colours.quiet, (0.5, 0))
        for number, (value, _) in enumerate(labels[1:]):
            pen = pg.mkPen(colours.quiet, width=1.3, style=_DASHES[number % len(_DASHES)])
            self._plot.addItem(pg.InfiniteLine(value, angle=0, pen=pen))
        x, y = map(list, zip(*places, (max(self._at, places[-1][0]), places[-1][1]), strict=True))
        pen = pg.mkPen(colours.accent, width=2)
        self._plot.addItem(pg.PlotCurveItem(x, y, stepMode="right", pen=pen))
        self._plot.addItem(pg.ScatterPlotItem(x[:-1], y[:-1], size=7, pen=pen, brush=colours.panel))
        self._write_labels(pg, labels)

    def _write_labels(self, pg: Any, labels: Sequence[tuple[float, str]]) -> None:
        """Write the texts beside their lines, without overlap."""
        colours, right = theme.current(), self._area().right()
        left = right + 12
        ordered = sorted(labels, reverse=True)
        wanted = [self._to_widget(0, value).y() for value, _ in ordered]
        places = _apart(wanted, self._metrics.height(), self.height())
        for label, y, place in zip(ordered, wanted, places, strict=True):
            is_best = label is labels[0]
            if abs(place - y) > 1:
                leader = QGraphicsLineItem(right, y, left - 2, place, self._plot.plotItem)
                leader.setPen(pg.mkPen(colours.accent if is_best else colours.quiet))
                self._added.append(leader)
            ink = colours.accent if is_best else colours.text
            self._write(label[1], QPointF(left, place), ink, room=self.width() - left - _PAD / 2)

    def _draw_current(self, pg: Any) -> None:
        colours = theme.current()
        x, y = self._place(self._here)
        self._mark(pg.ScatterPlotItem([x], [y], size=11, pen=None, brush=colours.accent))
        text = self._value_text(self._here)
        self._write(text, QPointF(_PAD, _PAD), colours.text, room=self.width() - 2 * _PAD)


def _log(value: float) -> float:
    return math.log10(max(value, _LEAST))


def _ticks(low: float, high: float, most: float) -> list[float]:
    """Return logarithms of round values: no more than about `most`, and at least two."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [low, high]
    for digits in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        found = [power + math.log10(digit) for power in powers for digit in digits]
        found = [each for each in found if low <= each <= high]
        if len(found) >= 2 and (ticks == [low, high] or len(found) <= most):
            ticks = found
    return ticks


def _apart(wanted: Sequence[float], room: float, height: float) -> list[float]:
    """Return increasing positions at least `room` from one another, close to those wanted."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + room if places else room / 2))
    limit = height - room / 2
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - room
    return places

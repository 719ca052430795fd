"""Plots: a histogram, the best time of a search, the timeline of a run, and a roofline."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QPolygonF
from PySide6.QtWidgets import QGraphicsLineItem, QGraphicsRectItem, QSizePolicy

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import Chart, Value, ZoomChart
from lowerscope.app.kit.theme import family_colour
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.texts import _, _n


class Histogram(Chart):
    """Counts of values between edges, as bars; ``logarithmic`` ones on a logarithmic scale.

    The edges are equidistant, or their logarithms are: then powers of ten are labelled.
    """

    SIZE, SMALLEST = QSize(240, 88), QSize(120, 88)

    def __init__(self, name: str, *, logarithmic: bool = False) -> None:
        super().__init__(name)
        self._logarithmic = logarithmic
        self._edges: tuple[float, ...] = ()
        self._counts: tuple[int, ...] = ()
        self._limit = 0.0
        self._beyond: Literal["wrong", "unsure"] = "wrong"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_counts(
        self,
        edges: Sequence[float],
        counts: Sequence[int],
        limit: float = 0.0,
        beyond: Literal["wrong", "unsure"] = "wrong",
    ) -> None:
        """Show the count of each interval between edges; no counts for no bars.

        Bars beyond a `limit` have the colour of this role.
        """
        assert len(edges) == len(counts) + 1 or not counts, (len(edges), len(counts))
        self._edges, self._counts, self._limit = tuple(edges), tuple(counts), limit
        self._beyond = beyond
        self._show([self._value(number) for number in range(len(counts))], self._whole())

    def _whole(self) -> str:
        if not self._counts:
            return ""
        return _n(
            "{count:,} value from {low:.4g} to {high:.4g}",
            "{count:,} values from {low:.4g} to {high:.4g}",
            sum(self._counts),
            low=self._edges[0],
            high=self._edges[-1],
        )

    def _value(self, number: int) -> Value:
        count, most, log = self._counts[number], max(self._counts), math.log1p
        height = log(count) / (log(most) or 1) if self._logarithmic else count / max(1, most)
        text = f"{self._edges[number]:.4g} … {self._edges[number + 1]:.4g}: {count:,}"
        # A bar is one unit wide, whatever the values are.
        return Value(number, number + 0.5, height, text)

    def counts(self) -> tuple[int, ...]:
        """Return the counts that are shown."""
        return self._counts

    def _place_of_value(self, value: float) -> float:
        """Return where a value is on the axis, on which a bar is one unit wide."""
        low, high, count = self._edges[0], self._edges[-1], len(self._counts)
        if self._has_powers():
            return count * math.log(value / low) / math.log(high / low)
        return count * (value - low) / (high - low)

    def _has_powers(self) -> bool:
        return self._edges[0] > 0 and self._edges[-1] / self._edges[0] >= 10

    def _ticks(self) -> list[float]:
        """Return the labelled values: both ends and 0, or powers of ten."""
        low, high = self._edges[0], self._edges[-1]
        if not self._has_powers():
            return [low, *([0.0] if low < 0 < high else []), high]
        powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
        return [10.0**each for each in powers]

    # Chart

    def _draw_plot(self, pg: Any) -> None:
        colours, count = theme.current(), len(self._counts)
        self._axis("bottom", 20, str, ())
        self._set_range(QRectF(0, 0, count, 1), (12, 8, 12, 0))
        end = -math.inf
        for value in self._ticks():
            text, at = f"{value:.4g}", self._place_of_value(value)
            # The labels at the ends are inside.
            align = 0.0 if at < 0.01 else 1.0 if at > count - 0.01 else 0.5
            width, x = self._metrics.horizontalAdvance(text), self._to_widget(at, 0).x()
            if x - align * width > end + 4:
                place = QPointF(x, self._to_widget(0, 0).y() + 4)
                self._write(text, place, colours.quiet, (align, 0))
                end = x + (1 - align) * width
            if value == 0:
                self._plot.addItem(pg.InfiniteLine(at, pen=self._dotted(pg)))
        limit = count
        if self._limit > 0:
            limit = sum(each <= self._limit for each in self._edges[1:])
            at = self._place_of_value(self._limit)
            if 0 < at < count:
                self._plot.addItem(pg.InfiniteLine(at, pen=self._dotted(pg)))
                top = self._to_widget(at, 1)
                left = top.x() > self.width() / 2
                place = top + QPointF(-4 if left else 4, 0)
                self._write(_("tolerance"), place, colours.quiet, (1 if left else 0, 0.3))
        self._plot.addItem(self._bars(pg, range(limit), colours.accent))
        self._plot.addItem(self._bars(pg, range(limit, count), getattr(colours, self._beyond)))

    def _dotted(self, pg: Any) -> Any:
        return pg.mkPen(theme.current().quiet, style=Qt.PenStyle.DotLine)

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

    def __init__(self, name: str, text_of: Callable[[float], str]) -> None:
        super().__init__(name)
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
        best, *levels = (text for _value, text in self._labels())
        text = _("{best} after {at} of {until} trials", best=best, at=self._at, until=self._until)
        return _("; ").join((text, *levels))

    def _value(self, point: CurvePoint) -> Value:
        text = _(
            "{text_of} at trial {trials}", text_of=self._text_of(point.value), trials=point.trials
        )
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
        named = [(_("best"), self._points[-1].value)]
        named += [(each.label, each.value) for each in self._levels]
        return [(_log(value), f"{name} {self._text_of(value)}") for name, value in named]

    def _draw_plot(self, pg: Any) -> None:
        colours, metrics = theme.current(), self._metrics
        labels = self._labels()
        places = [(each.x, each.y) for each in self._values]
        values = [places[0][1], *(value for value, _text in labels)]
        spare = max(0.05, 0.08 * (max(values) - min(values)))
        low, high = min(values) - spare, max(values) + spare
        ticks = _ticks(low, high, self.height() / _TICK_ROOM)
        right = (
            min(
                max(metrics.horizontalAdvance(text) for _value, text in labels),
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
        self._write(_("0 trials"), start, colours.quiet, (0.5, 0))
        for number, (value, _text) in enumerate(labels[1:]):
            pen = self._pen(colours.quiet, 1.3, _DASHES[number % len(_DASHES)])
            self._plot.addItem(pg.InfiniteLine(value, angle=0, pen=pen))
        x, y = map(list, zip(*places, (max(self._at, places[-1][0]), places[-1][1]), strict=True))
        pen = self._pen(colours.accent, 2)
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


_RUN_PAD = 12.0
_AXIS, _SPANS, _GAP, _PIECE, _STRIP = 20.0, 22.0, 6.0, 7.0, 3.0
_GROUPS = 18.0
_AMOUNTS = 44.0
_LABELLED = 30.0
_MOST_ZOOM = 5000.0


@dataclass(frozen=True)
class Span:
    """A time span, such as a call."""

    key: str  # Unique.
    length: float  # In milliseconds; each begins where the one before ends.
    title: str  # Its name, and more about it.
    tooltip: str = ""
    family: str = ""  # Family of operators, which gives its colour.
    amount: float = 0.0  # Memory in use while it lasts.


@dataclass(frozen=True)
class Piece:
    """A part of the amounts, in use from one span to another, both included, by their indices."""

    first: int
    last: int
    tooltip: str = ""


@dataclass(frozen=True)
class Group:
    """Consecutive spans with a common name, by the indices of the first and the last."""

    first: int
    last: int
    title: str


class RunChart(ZoomChart):
    """Spans below their groups, the amounts during them, and the pieces that make these up."""

    chosen = Signal(str)  # A span became current, by click or keyboard; the argument is its key.

    SIZE = QSize(400, round(_AXIS + _SPANS + 2 * _GAP + _AMOUNTS + 6 * _PIECE))
    SMALLEST = QSize(160, round(_AXIS + _SPANS + _GAP + 24))

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._spans: tuple[Span, ...] = ()
        self._pieces: tuple[Piece, ...] = ()
        self._groups: tuple[Group, ...] = ()
        self._edges: list[float] = [0.0]
        self._most = ""
        self._pixel = 1.0  # In milliseconds.
        self.pointed.connect(lambda number: self.chosen.emit(self._spans[number].key))

    def set_run(
        self,
        spans: Sequence[Span],
        pieces: Sequence[Piece] = (),
        most: str = "",
        groups: Sequence[Group] = (),
    ) -> None:
        """Show other spans, pieces and groups; `most` labels the amounts."""
        self._spans, self._pieces, self._most = tuple(spans), tuple(pieces), most
        self._groups = tuple(groups)
        self._edges = [0.0, *accumulate(each.length for each in spans)]
        whole = self._edges[-1] or 1.0
        self._set_whole(QRectF(0, 0, whole, 1), QSizeF(whole / _MOST_ZOOM, 1))
        self._here = -1
        values = [
            Value(
                start, start + each.length / 2, self._top() + _SPANS / 2, each.tooltip or each.title
            )
            for start, each in zip(self._edges, self._spans, strict=False)
        ]
        summary = _n(
            "{count} call in {time}",
            "{count} calls in {time}",
            len(spans),
            time=duration_text(self._edges[-1]),
        )
        self._show(values, summary)

    def mark(self, keys: Sequence[str]) -> None:
        """Make the first span with one of these keys the current one."""
        wanted = set(keys)
        found = (number for number, each in enumerate(self._spans) if each.key in wanted)
        here = next(found, -1)
        if here != self._here:
            self._here = here
            self._describe()
            self._draw_mark()
            self._reveal_current()

    def marked(self) -> str:
        """Return the key of the current span, or ``""``."""
        return self._spans[self._here].key if self._here >= 0 else ""

    def shown(self) -> tuple[float, float]:
        """Return the visible range, in milliseconds."""
        return self._part.left(), self._part.right()

    # Chart

    def _tip(self, place: QPointF) -> str:
        point = self._to_plot(place)
        line = int((point.y() - self._piece_top()) // _PIECE)
        if line < 0:
            number = self._number_at(place)
            return self._value_text(number) if number >= 0 else ""
        return "".join(
            piece.tooltip
            for piece in self._pieces[line : line + 1]
            if self._edges[piece.first] <= point.x() <= self._edges[piece.last + 1]
        )

    def _go(self, number: int) -> None:
        super()._go(number)
        self._reveal_current()

    def _reveal_current(self) -> None:
        if self._here >= 0:
            start, end = self._ends(self._here)
            self._reveal(QRectF(start, 0, end - start, 1))

    # Drawing: below the axis, y is in pixels

    def _top(self) -> float:
        """Return the upper end of the spans."""
        return _GROUPS if self._groups else 0.0

    def _amount_top(self) -> float:
        return self._top() + _SPANS + _GAP

    def _piece_top(self) -> float:
        room = self.height() - (_AXIS + self._top() + _SPANS + 2 * _GAP)
        most = _AMOUNTS if self._pieces else 2 * _AMOUNTS
        return self._amount_top() + max(18.0, min(most, room)) + _GAP

    def _draw_plot(self, pg: Any) -> None:
        colours, edges, part = theme.current(), self._edges, self._part
        self._axis("top", _AXIS, duration_text, grid=True)
        area = QRectF(part.left(), 0, part.width(), max(1.0, self.height() - _AXIS))
        self._set_range(area, (_RUN_PAD, 0, _RUN_PAD, 0), down=True)
        self._pixel = part.width() / self._area().width()
        shown = self._in_view()
        by_family: dict[str, list[tuple[float, float]]] = {}
        for number in shown:
            by_family.setdefault(self._spans[number].family, []).append(self._ends(number))
        for family, spans in by_family.items():
            colour = family_colour(colours, family)
            top = self._top()
            self._add_bars(pg, spans, top, _SPANS, _faint(colour, 70), gap=1)
            self._add_bars(pg, spans, top + _SPANS - _STRIP, _STRIP, QColor(colour), gap=1)
        self._draw_groups(pg)
        self._draw_amounts(pg, shown)
        lines = max(0, int((area.height() - self._piece_top()) // _PIECE))
        pieces = [(edges[each.first], edges[each.last + 1]) for each in self._pieces[:lines]]
        ink = _faint(colours.heat, 150)
        self._add_bars(pg, pieces, self._piece_top(), _PIECE - 2, ink, step=_PIECE)
        self._write_titles(shown)

    def _draw_groups(self, pg: Any) -> None:
        ends = [(self._edges[each.first], self._edges[each.last + 1]) for each in self._groups]
        self._add_bars(pg, ends, 0, _GROUPS - 3, QColor(theme.current().ground), gap=2)
        for each, (start, end) in zip(self._groups, ends, strict=True):
            self._write_title(each.title, start, end, (_GROUPS - 3) / 2)

    def _ends(self, number: int) -> tuple[float, float]:
        return self._edges[number], self._edges[number + 1]

    def _in_view(self) -> list[int]:
        """Return the visible spans; of those narrower than a pixel, one per pixel."""
        part, found, drawn = self._part, [], -math.inf
        first = bisect_right(self._edges, part.left()) - 1
        for number in range(max(0, first), len(self._spans)):
            start, end = self._ends(number)
            if start > part.right():
                break
            if end - drawn >= self._pixel:
                found.append(number)
                drawn = end
        return found

    def _add_bars(
        self,
        pg: Any,
        spans: Sequence[tuple[float, float]],
        top: float,
        height: float,
        ink: QColor,
        *,
        gap: float = 0.0,
        step: float = 0.0,
    ) -> None:
        """Add bars for spans of time, each `step` pixels below the previous one."""
        pixel = self._pixel
        lengths = [end - start for start, end in spans]
        widths = [max(pixel, each - (gap * pixel if each > 3 * pixel else 0)) for each in lengths]
        tops = [top + number * step for number in range(len(spans))]
        starts = [start for start, _ in spans]
        if spans:
            bars = pg.BarGraphItem(
                x0=starts, width=widths, y0=tops, height=height, brush=ink, pen=None
            )
            self._plot.addItem(bars)

    def _write_titles(self, shown: Sequence[int]) -> None:
        middle = self._top() + (_SPANS - _STRIP) / 2
        for number in shown:
            self._write_title(self._spans[number].title, *self._ends(number), middle)

    def _write_title(self, title: str, start: float, end: float, middle: float) -> None:
        """Write a title and a time between two points in time, if there is room."""
        colours, part, advance = theme.current(), self._part, self._metrics.horizontalAdvance
        left, right = max(start, part.left()), min(end, part.right())
        room = (right - left) / self._pixel - 10
        if room > _LABELLED:
            place = self._to_widget(left, middle) + QPointF(5, 0)
            self._write(title, place, colours.text, room=room)
            time = duration_text(end - start)
            if advance(f"{title} {time}") + 8 < room:
                self._write(time, place + QPointF(advance(title) + 8, 0), colours.quiet)

    def _draw_amounts(self, pg: Any, shown: Sequence[int]) -> None:
        colours, area, bottom = theme.current(), self._area(), self._piece_top() - _GAP
        most = max(each.amount for each in self._spans)
        if most:
            scale = (bottom - self._amount_top() - 12) / most
            heights = [bottom - scale * self._spans[number].amount for number in shown]
            edges = [self._edges[number] for number in (*shown, shown[-1] + 1)]
            self._plot.addItem(
                pg.PlotCurveItem(
                    edges,
                    heights,
                    stepMode="center",
                    fillLevel=bottom,
                    brush=_faint(colours.heat, 60),
                    pen=self._pen(colours.heat, 1.5),
                )
            )
        place = area.topRight() + QPointF(0, self._amount_top())
        self._write(self._most, place, colours.quiet, (1, 0.2), room=area.width() - _GAP)

    def _draw_current(self, pg: Any) -> None:
        start, end = self._ends(self._here)
        frame = QGraphicsRectItem(QRectF(start, self._top(), max(self._pixel, end - start), _SPANS))
        frame.setPen(self._pen(theme.current().accent, 2))
        self._mark(frame)


def _faint(colour: str, alpha: int) -> QColor:
    faint = QColor(colour)
    faint.setAlpha(alpha)
    return faint


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

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._roofs = Roofs()
        self._shown: tuple[Mark, ...] = ()

    def set_plot(self, roofs: Roofs, marks: Sequence[Mark], empty: str = "") -> None:
        """Show limits and marks; without a limit, show the text `empty`."""
        self.set_empty(empty)
        shown = tuple(each for each in marks if each.intensity > 0 and each.gflops > 0)
        if (roofs, shown) == (self._roofs, self._shown):
            return
        self._roofs, self._shown = roofs, shown
        values = [] if self.is_empty() else [*self._limits(), *map(self._value, shown)]
        self._show(values, _("; ").join(each.text for each in values))

    def is_empty(self) -> bool:
        """Return whether the text is shown instead."""
        return not (self._roofs.gflops and self._roofs.memory)

    def marks(self) -> tuple[Mark, ...]:
        return self._shown

    # Chart: the limits, then the marks

    def _limits(self) -> list[Value]:
        """Return the limits: the peak, memory and, if they are known, the caches."""
        peak, memory, caches = self._roofs.gflops, self._roofs.memory, self._roofs.caches
        named = [
            (_("peak {figure} GFLOP/s", figure=_figure(peak)), memory),
            (_("memory {figure} GB/s", figure=_figure(memory)), memory),
            (_("caches {figure} GB/s", figure=_figure(caches)), caches),
        ]
        return [_value(peak / bandwidth, peak, text) for text, bandwidth in named if bandwidth]

    def _value(self, mark: Mark) -> Value:
        text = _(
            "{name}: {figure} GFLOP/s at {figure2} FLOP per byte",
            name=mark.name,
            figure=_figure(mark.gflops),
            figure2=_figure(mark.intensity),
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
        left, right = min(x for x, _y in places) - 1.6, max(x for x, _y in places) + 0.9
        peak = math.log10(self._roofs.gflops)
        low, high = min(peak - math.log10(30), *(y for _x, y in places)) - 0.6, peak + 0.25
        self._axis("left", 28, _power_text, _decades(low, high), grid=True)
        self._axis("bottom", line + 6, _power_text, _decades(left, right), grid=True)
        area = QRectF(left, low, right - left, high - low)
        self._set_range(area, (line + 2, 12, 12, line + 2))
        corner = QPointF(self.width() - 12, self.height() - 2)
        self._write(_("FLOP per byte"), corner, colours.quiet, (1, 1))
        above = QPointF(2 + line / 2, self._area().top())
        self._write("GFLOP/s", above, colours.quiet, (1, 0.5), angle=-90)
        limits, names = self._limits()[1:], []
        for limit, style in zip(limits, _STYLES, strict=False):
            # Starts outside the view, along a slope of 1.
            x, y = [limit.x - 9, limit.x, right], [peak - 9, peak, peak]
            pen = self._pen(colours.edge, 1.5, style)
            self._plot.addItem(pg.PlotCurveItem(x, y, pen=pen))
            # Between two lines that are close to one another, there is no room for a name.
            near = limit is limits[0] and self._gap(limit.x, limits[-1].x, peak) < 1.2 * line
            below = near and len(limits) > 1
            names.append(self._write_along(limit.text, limit.x, peak, below=below))
        self._draw_marks(pg, names)

    def _gap(self, x: float, other: float, y: float) -> float:
        """Return the distance of the slopes of two roofs, whose corners are at a height."""
        corner, below = self._to_widget(x, y), self._to_widget(x - 1, y - 1)
        way = corner - below
        apart = abs(self._to_widget(other, y).x() - corner.x())
        return apart * abs(way.y()) / math.hypot(way.x(), way.y())

    def _write_along(self, text: str, x: float, y: float, *, below: bool) -> QPolygonF:
        """Write the name of a limit along its line, above or below it, near the corner."""
        corner, area = self._to_widget(x, y), self._area()
        way = corner - self._to_widget(x - 1, y - 1)
        length = math.hypot(way.x(), way.y())
        shares = (corner.x() - area.left()) / way.x(), (area.bottom() - corner.y()) / -way.y()
        room = length * min(shares) - 20
        angle = math.degrees(math.atan2(way.y(), way.x()))
        end = corner - way * (12 / length)
        anchor = (1, -0.2 if below else 1.2)
        if self._metrics.horizontalAdvance(text) > room:
            # Its unit is that of bandwidths; the tooltip has it.
            text = text.rpartition(" ")[0]
        return self._write(text, end, theme.current().quiet, anchor, angle=angle, room=room)

    def _draw_marks(self, pg: Any, taken: list[QPolygonF]) -> None:
        """Draw the marks, with their names where they cover the least of each other and `taken`."""
        colours = theme.current()
        marks = sorted(self._shown, key=lambda each: -each.gflops)
        places = [self._to_widget(math.log10(m.intensity), math.log10(m.gflops)) for m in marks]
        dots = [QPolygonF(_around(place, 10, 10)) for place in places]
        for mark, place in zip(marks, places, strict=True):
            ink = colours.accent if mark.role in ("here", "best") else colours.neutral
            x, y = math.log10(mark.intensity), math.log10(mark.gflops)
            symbol, size = _FORMS[mark.role]
            brush = colours.panel if mark.role == "before" else ink
            pen = self._pen(ink, 1.6)
            self._plot.addItem(
                pg.ScatterPlotItem([x], [y], symbol=symbol, size=size, pen=pen, brush=brush)
            )
            text = f"{mark.name} {_figure(mark.gflops)}"
            middle = self._middle_of_name(place, self._metrics.horizontalAdvance(text), dots, taken)
            taken.append(self._write(text, middle, ink, (0.5, 0.5), ground=colours.panel))

    def _middle_of_name(
        self, place: QPointF, width: float, dots: list[QPolygonF], names: list[QPolygonF]
    ) -> QPointF:
        """Return where near its mark a name of a width covers the least."""
        area, beside = QPolygonF(self._area()), _BESIDE + width / 2
        aside, height = (0.0, width / 2, -width / 2, beside, -beside), self._metrics.height()
        ways = [(beside, 0.0), (-beside, 0.0)]
        rows = (-1, 1, -0.5, 0.5, -1.5, 1.5, -2, 2, -2.5, 2.5, -3, 3)
        ways += [(x, y * _LINE) for y in rows for x in aside]

        def covered(middle: QPointF) -> float:
            name = QPolygonF(_around(middle, width, height))
            outside = width * height - _size(name.intersected(area))
            # A name of which a corner is covered can still be read; a mark has no corner to spare.
            hidden = sum(_size(name.intersected(each)) for each in names)
            return outside + hidden + 4 * sum(_size(name.intersected(each)) for each in dots)

        return min((place + QPointF(*way) for way in ways), key=lambda each: round(covered(each)))

    def _draw_current(self, pg: Any) -> None:
        x, y = self._place(self._here)
        ring = self._pen(theme.current().text, 1.5)
        self._mark(pg.ScatterPlotItem([x], [y], size=16, pen=ring, brush=None))


def _value(intensity: float, gflops: float, text: str) -> Value:
    x = math.log10(intensity)
    return Value(x, x, math.log10(gflops), text)


def _around(middle: QPointF, width: float, height: float) -> QRectF:
    """Return the rectangle of a size around its middle."""
    return QRectF(middle.x() - width / 2, middle.y() - height / 2, width, height)


def _size(area: QPolygonF) -> float:
    """Return the size of an area."""
    corners = area.toList()
    pairs = zip(corners, [*corners[1:], *corners[:1]], strict=True)
    return abs(sum(a.x() * b.y() - b.x() * a.y() for a, b in pairs)) / 2


def _decades(low: float, high: float) -> list[float]:
    return [float(power) for power in range(math.ceil(low), math.floor(high) + 1)]


def _power_text(power: float) -> str:
    return _figure(10**power)


def _figure(value: float) -> str:
    """Return about three digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""Timeline of a run: its calls on one line, and their memory use below."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsRectItem, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.chart import Value, ZoomChart
from lowerscope.app.kit.theme import strategy_colour

_PAD = 12.0
_AXIS, _SPANS, _GAP, _PIECE, _STRIP = 20.0, 22.0, 6.0, 7.0, 3.0
_AMOUNTS, _AMOUNT_TOP = 44.0, _SPANS + _GAP
_LABELLED = 30.0
_MOST_ZOOM = 5000.0


@dataclass(frozen=True)
class Span:
    """A time span, such as a call."""

    key: str  # Unique.
    length: float  # In milliseconds; each begins where the one before ends.
    title: str  # Its name, and more about it.
    tooltip: str = ""
    role: str = ""  # Its colour: ``""``, ``"high-level"``, ``"te"`` or ``"library"``.
    amount: float = 0.0  # Memory in use while it lasts.


@dataclass(frozen=True)
class Piece:
    """A part of the amounts, in use from one span to another, both included, by their indices."""

    first: int
    last: int
    tooltip: str = ""


class RunChart(ZoomChart):
    """Spans, the amounts during them, and the pieces that make up the amounts."""

    chosen = Signal(str)  # A span became current, by click or keyboard; the argument is its key.

    SIZE = QSize(400, round(_AXIS + _SPANS + 2 * _GAP + _AMOUNTS + 6 * _PIECE))
    SMALLEST = QSize(160, round(_AXIS + _SPANS + _GAP + 24))

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._spans: tuple[Span, ...] = ()
        self._pieces: tuple[Piece, ...] = ()
        self._edges: list[float] = [0.0]
        self._most = ""
        self._pixel = 1.0  # In milliseconds.
        self.pointed.connect(lambda number: self.chosen.emit(self._spans[number].key))

    def set_run(self, spans: Sequence[Span], pieces: Sequence[Piece] = (), most: str = "") -> None:
        """Show other spans and pieces; `most` labels the amounts."""
        self._spans, self._pieces, self._most = tuple(spans), tuple(pieces), most
        self._edges = [0.0, *accumulate(each.length for each in spans)]
        whole = self._edges[-1] or 1.0
        self._set_whole(QRectF(0, 0, whole, 1), QSizeF(whole / _MOST_ZOOM, 1))
        self._here = -1
        values = [
            Value(start, start + each.length / 2, _SPANS / 2, each.tooltip or each.title)
            for start, each in zip(self._edges, self._spans, strict=False)
        ]
        summary = self.tr("{0} calls in {1}").format(len(spans), _time(self._edges[-1]))
        self._show(values, summary)

    def spans(self) -> tuple[Span, ...]:
        """Return the spans."""
        return self._spans

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

    def _piece_top(self) -> float:
        room = self.height() - (_AXIS + _SPANS + 2 * _GAP)
        return _AMOUNT_TOP + max(24.0, min(_AMOUNTS, room)) + _GAP

    def _draw_plot(self, pg: Any) -> None:
        colours, edges, part = theme.current(), self._edges, self._part
        self._axis("top", _AXIS, _time, grid=True)
        area = QRectF(part.left(), 0, part.width(), max(1.0, self.height() - _AXIS))
        self._set_range(area, (_PAD, 0, _PAD, 0), down=True)
        self._pixel = part.width() / self._area().width()
        shown = self._in_view()
        by_role: dict[str, list[tuple[float, float]]] = {}
        for number in shown:
            by_role.setdefault(self._spans[number].role, []).append(self._ends(number))
        for role, spans in by_role.items():
            colour = strategy_colour(colours, role)
            self._add_bars(pg, spans, 0, _SPANS, _faint(colour, 70), gap=1)
            self._add_bars(pg, spans, _SPANS - _STRIP, _STRIP, QColor(colour), gap=1)
        self._draw_amounts(pg, shown)
        lines = max(0, int((area.height() - self._piece_top()) // _PIECE))
        pieces = [(edges[each.first], edges[each.last + 1]) for each in self._pieces[:lines]]
        ink = _faint(colours.heat, 150)
        self._add_bars(pg, pieces, self._piece_top(), _PIECE - 2, ink, step=_PIECE)
        self._write_titles(shown)

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
        """Write the titles of spans that are wide enough, and their times."""
        colours, part, advance = theme.current(), self._part, self._metrics.horizontalAdvance
        for number in shown:
            start, end = self._ends(number)
            left, right = max(start, part.left()), min(end, part.right())
            room = (right - left) / self._pixel - 10
            if room > _LABELLED:
                place = self._to_widget(left, (_SPANS - _STRIP) / 2) + QPointF(5, 0)
                title, time = self._spans[number].title, _time(end - start)
                self._write(title, place, colours.text, room=room)
                if advance(f"{title} {time}") + 8 < room:
                    behind = QPointF(advance(title) + 8, 0)
                    self._write(time, place + behind, colours.quiet)

    def _draw_amounts(self, pg: Any, shown: Sequence[int]) -> None:
        colours, area, bottom = theme.current(), self._area(), self._piece_top() - _GAP
        most = max(each.amount for each in self._spans)
        if most:
            scale = (bottom - _AMOUNT_TOP - 12) / most
            heights = [bottom - scale * self._spans[number].amount for number in shown]
            edges = [self._edges[number] for number in (*shown, shown[-1] + 1)]
            self._plot.addItem(
                pg.PlotCurveItem(
                    edges,
                    heights,
                    stepMode="center",
                    fillLevel=bottom,
                    brush=_faint(colours.heat, 60),
                    pen=pg.mkPen(colours.heat, width=1.5),
                )
            )
        place = area.topRight() + QPointF(0, _AMOUNT_TOP)
        self._write(self._most, place, colours.quiet, (1, 0.2), room=area.width() - _GAP)

    def _draw_current(self, pg: Any) -> None:
        start, end = self._ends(self._here)
        frame = QGraphicsRectItem(QRectF(start, 0, max(self._pixel, end - start), _SPANS))
        frame.setPen(pg.mkPen(theme.current().accent, width=2))
        self._mark(frame)


def _faint(colour: str, alpha: int) -> QColor:
    faint = QColor(colour)
    faint.setAlpha(alpha)
    return faint


def _time(milliseconds: float) -> str:
    if milliseconds == 0:
        return "0"
    if milliseconds < 1:
        return f"{milliseconds * 1000:.4g} µs"
    return f"{milliseconds:.4g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.4g} s"

"""The best value so far over a number of trials, beside values that it is compared with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_FONT_PIXELS = 11.0
_PAD, _GAP = 10.0, 6.0
_TICK_ROOM = 30.0
_NEAR = 12.0
_MOST_LABELS = 0.4

_DASHES = (
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DotLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DashDotDotLine,
)


@dataclass(frozen=True)
class CurvePoint:
    """A better value: after how many trials, which, and more about it."""

    trials: int
    value: float
    tooltip: str = ""


@dataclass(frozen=True)
class Level:
    """A value to compare with, and what it is of."""

    label: str
    value: float


class BestCurve(QWidget):
    """Steps that go down over the trials, and lines across for what they are compared with.

    Values are on a logarithmic scale. The arrow keys, Home and End walk the points; so does a
    click.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    text_of : callable
        Returns a value in words.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    pointed(int)
        Another point is looked at, by its place.
    """

    pointed = Signal(int)

    def __init__(
        self, name: str, text_of: Callable[[float], str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._text_of = text_of
        self._points: tuple[CurvePoint, ...] = ()
        self._levels: tuple[Level, ...] = ()
        self._at = self._until = 0
        self._empty = ""
        self._here = -1
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_curve(
        self, points: Sequence[CurvePoint], levels: Sequence[Level], at: int, until: int
    ) -> None:
        """Show a curve that has come to the trial `at` of `until`; the point looked at stays."""
        shown = (tuple(points), tuple(levels), at, max(until, at, 1))
        if shown == (self._points, self._levels, self._at, self._until):
            return
        grows = self._points == shown[0][: len(self._points)]
        self._points, self._levels, self._at, self._until = shown
        if not grows:
            self._here = -1
        self._describe()
        self.update()

    def set_empty(self, text: str) -> None:
        """Say why there is no curve yet."""
        self._empty = text
        self._describe()
        self.update()

    def points(self) -> tuple[CurvePoint, ...]:
        """The points that are shown."""
        return self._points

    def levels(self) -> tuple[Level, ...]:
        """What they are compared with."""
        return self._levels

    def here(self) -> int:
        """Place of the point that is looked at, or -1."""
        return self._here

    def point_place(self, number: int) -> QPointF:
        """Where a point stands in the widget."""
        point = self._points[number]
        return QPointF(self._x(point.trials), self._y(point.value))

    def words(self) -> str:
        """What there is to see, in words."""
        if not self._points:
            return self._empty
        best = self.tr("best {0} after {1} of {2} trials").format(
            self._text_of(self._points[-1].value), self._at, self._until
        )
        return "; ".join((best, *map(self._level_text, self._levels)))

    def _level_text(self, level: Level) -> str:
        return f"{level.label} {self._text_of(level.value)}"

    def _describe(self) -> None:
        words = self.words()
        if self._here >= 0:
            words = f"{self._point_text(self._here)}. {words}"
        self.setAccessibleDescription(words)

    def _point_text(self, number: int) -> str:
        point = self._points[number]
        said = self.tr("{0} at trial {1}").format(self._text_of(point.value), point.trials)
        return f"{said} · {point.tooltip}" if point.tooltip else said

    def _go(self, number: int) -> None:
        if self._points:
            self._here = min(max(0, number), len(self._points) - 1)
            self._describe()
            self.update()
            self.pointed.emit(self._here)

    def _near(self, x: float) -> int:
        """Return the point whose value holds at a horizontal place of the widget, or -1."""
        if not self._points or x < self._x(self._points[0].trials) - _NEAR:
            return -1
        reached = [each for each in self._points if self._x(each.trials) <= x + _NEAR / 2]
        return max(0, len(reached) - 1)

    # Where things stand

    def _metrics(self) -> TextMetrics:
        return TextMetrics(self._font)

    def _values(self) -> list[float]:
        values = [each.value for each in self._points] + [each.value for each in self._levels]
        return [each for each in values if each > 0]

    def _range(self) -> tuple[float, float]:
        """Return the logarithms of the values at the bottom and at the top."""
        values = self._values()
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.05, 0.08 * (high - low))
        return low - room, high + room

    def _labels(self) -> list[tuple[str, float, bool]]:
        """Return what stands at the right: words, value, and whether it is the best's."""
        labels = [(self._level_text(each), each.value, False) for each in self._levels]
        if self._points:
            best = self._points[-1].value
            labels.append((self.tr("best {0}").format(self._text_of(best)), best, True))
        return [each for each in labels if each[1] > 0]

    def plot(self) -> QRectF:
        """Where the curve is drawn: beside its axes and labels."""
        metrics = self._metrics()
        ticks = [self._text_of(10**each) for each in self._range()] if self._values() else []
        left = max((metrics.horizontalAdvance(each) for each in ticks), default=0.0)
        right = max((metrics.horizontalAdvance(text) for text, _, _ in self._labels()), default=0)
        right = min(right, _MOST_LABELS * self.width())
        line = metrics.height()
        return QRectF(self.rect()).adjusted(
            _PAD + left + _GAP, _PAD + line, -(_PAD + right + 2 * _GAP), -(_PAD + line)
        )

    def _x(self, trials: float) -> float:
        plot = self.plot()
        return plot.left() + plot.width() * trials / max(1, self._until)

    def _y(self, value: float) -> float:
        plot, (low, high) = self.plot(), self._range()
        return plot.bottom() - plot.height() * (math.log10(value) - low) / (high - low)

    # Painting

    def _paint_axes(self, painter: QPainter) -> None:
        colours, plot, metrics = theme.current(), self.plot(), self._metrics()
        line, quiet = QColor(colours.line), QColor(colours.quiet)
        for value in _ticks(*self._range(), plot.height() / _TICK_ROOM):
            y = self._y(value)
            painter.setPen(line)
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            text = self._text_of(value)
            painter.setPen(quiet)
            x = plot.left() - _GAP - metrics.horizontalAdvance(text)
            painter.drawText(QPointF(x, y + metrics.ascent() / 2 - 1), text)
        step = _step(self._until * 2 * _TICK_ROOM / max(1.0, plot.width()))
        for trials in range(0, self._until + 1, step):
            x = self._x(trials)
            painter.setPen(line)
            painter.drawLine(QPointF(x, plot.bottom()), QPointF(x, plot.bottom() + 4))
            text = f"{trials:,}" if trials else self.tr("0 trials")
            painter.setPen(quiet)
            start = x - metrics.horizontalAdvance(text) / 2
            place = QPointF(max(_PAD, start), plot.bottom() + 4 + metrics.ascent())
            painter.drawText(place, text)

    def _paint_levels(self, painter: QPainter) -> None:
        plot, ink = self.plot(), QColor(theme.current().quiet)
        for number, level in enumerate(self._levels):
            if level.value > 0:
                painter.setPen(QPen(ink, 1.3, _DASHES[number % len(_DASHES)]))
                y = self._y(level.value)
                painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))

    def _paint_labels(self, painter: QPainter) -> None:
        colours, plot, metrics = theme.current(), self.plot(), self._metrics()
        labels = sorted(self._labels(), key=lambda each: -each[1])
        places = _apart(
            [self._y(value) for _, value, _ in labels], metrics.height(), 0.0, self.height()
        )
        left, room = plot.right() + 2 * _GAP, self.width() - plot.right() - 2 * _GAP - _PAD / 2
        for (text, value, best), y in zip(labels, places, strict=True):
            ink = QColor(colours.accent if best else colours.quiet)
            painter.setPen(QPen(ink, 1))
            if abs(y - self._y(value)) > 1:
                ends = QPointF(plot.right(), self._y(value)), QPointF(left - 2, y)
                painter.drawLine(*ends)
            painter.setPen(QColor(colours.accent if best else colours.text))
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(left, y + metrics.ascent() / 2 - 1), shown)

    def _paint_curve(self, painter: QPainter) -> None:
        colours = theme.current()
        ink = QColor(colours.accent)
        corners: list[QPointF] = []
        for number in range(len(self._points)):
            place = self.point_place(number)
            if corners:
                corners.append(QPointF(place.x(), corners[-1].y()))
            corners.append(place)
        corners.append(QPointF(max(self._x(self._at), corners[-1].x()), corners[-1].y()))
        painter.setPen(QPen(ink, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(corners))
        painter.setBrush(QColor(colours.panel))
        for number in range(len(self._points)):
            painter.setPen(QPen(ink, 1.5))
            painter.drawEllipse(self.point_place(number), 3, 3)
        if self._here >= 0:
            painter.setBrush(ink)
            painter.drawEllipse(self.point_place(self._here), 5, 5)
            painter.setPen(QColor(colours.text))
            room, metrics = self.width() - 2 * _PAD, self._metrics()
            right = Qt.TextElideMode.ElideRight
            text = metrics.elidedText(self._point_text(self._here), right, room)
            painter.drawText(QPointF(_PAD, _PAD + metrics.ascent() - 4), text)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(420, 180)

    def minimumSizeHint(self) -> QSize:
        return QSize(220, 90)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # Where the keyboard is: a menu or a tip that is asked for by key comes up there.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._here >= 0:
            return QRectF(self.point_place(self._here), QSizeF(1, 1)).toRect()
        return super().inputMethodQuery(query)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            number = self._near(event.pos().x())
            text = self._point_text(number) if number >= 0 else self.words()
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        number = self._near(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and number >= 0:
            self._go(number)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._points) - 1
        match event.key():
            case Qt.Key.Key_Right | Qt.Key.Key_Down:
                self._go(self._here + 1)
            case Qt.Key.Key_Left | Qt.Key.Key_Up:
                self._go(last if self._here < 0 else self._here - 1)
            case Qt.Key.Key_Home:
                self._go(0)
            case Qt.Key.Key_End:
                self._go(last)
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._font)
        if self._values():
            self._paint_axes(painter)
            self._paint_levels(painter)
            self._paint_labels(painter)
        if self._points:
            self._paint_curve(painter)
        elif self._empty:
            painter.setPen(QColor(theme.current().quiet))
            centred = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 8, -16, -8), int(centred), self._empty)
        if self.hasFocus():
            painter.setPen(QColor(theme.current().accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)


def _ticks(low: float, high: float, most: float) -> list[float]:
    """Return round values between two logarithms: no more than about `most`, and two at least."""
    bottom, top = 10**low, 10**high
    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks: list[float] = []
    for digits in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
        found = [digit * 10.0**power for power in powers for digit in digits]
        found = [each for each in found if bottom <= each <= top]
        if len(ticks) >= 2 and len(found) > most:
            break
        ticks = found
    return ticks if len(ticks) >= 2 else [bottom, top]


def _step(least: float) -> int:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not less than `least`."""
    power = int(10 ** max(0, math.floor(math.log10(max(1.0, least)))))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= least * (1 - 1e-9))


def _apart(places: Sequence[float], room: float, low: float, high: float) -> list[float]:
    """Return rising places at least `room` from one another, near to those that are wanted."""
    apart: list[float] = []
    for place in places:
        apart.append(max(place, apart[-1] + room if apart else low + room / 2))
    limit = high - room / 2
    for number in reversed(range(len(apart))):
        apart[number] = min(apart[number], limit)
        limit = apart[number] - room
    return apart

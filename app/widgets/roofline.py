"""A roofline: what a machine allows at an intensity, and what was reached, on two log scales."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_LEFT, _ABOVE, _RIGHT, _BELOW = 46.0, 12.0, 12.0, 34.0
_RADIUS = 4.5
_FONT_PIXELS = 11.0
_LINE = 14.0
_NEAR = 9.0


@dataclass(frozen=True)
class Roofs:
    """The limits: of arithmetic in GFLOP/s, of memory and of the caches in GB/s; 0 for none."""

    gflops: float = 0.0
    memory: float = 0.0
    caches: float = 0.0


@dataclass(frozen=True)
class Mark:
    """What was reached.

    Attributes
    ----------
    name : str
        What reached it.
    intensity, gflops : float
        Operations per byte, and 10⁹ operations per second.
    role : str
        ``"here"``, ``"before"``, ``"best"`` or ``"other"``: its colour and its form.
    """

    name: str
    intensity: float
    gflops: float
    role: str


class Roofline(QWidget):
    """Limits as lines, and marks below them with their names.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._roofs = Roofs()
        self._marks: tuple[Mark, ...] = ()
        self._empty = ""
        self._x = (-1.0, 2.0)
        self._y = (-1.0, 3.0)
        self._font = ui_font(_FONT_PIXELS)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_plot(self, roofs: Roofs, marks: Sequence[Mark], empty: str = "") -> None:
        """Show limits and marks; without a limit, the words `empty`."""
        self._roofs, self._empty = roofs, empty
        self._marks = tuple(each for each in marks if each.intensity > 0 and each.gflops > 0)
        if self.is_empty():
            self.setAccessibleDescription(empty)
        else:
            self._scale()
            self.setAccessibleDescription("; ".join(self.texts()))
        self.update()

    def is_empty(self) -> bool:
        """Whether words are shown instead."""
        return not (self._roofs.gflops and self._roofs.memory)

    def marks(self) -> tuple[Mark, ...]:
        """What is marked."""
        return self._marks

    def texts(self) -> tuple[str, ...]:
        """What is drawn, in words: the limits, then the marks."""
        roofs = self._roofs
        words = [
            self.tr("peak {0} GFLOP/s").format(_figure(roofs.gflops)),
            self.tr("memory {0} GB/s").format(_figure(roofs.memory)),
        ]
        if roofs.caches:
            words.append(self.tr("caches {0} GB/s").format(_figure(roofs.caches)))
        return (*words, *(self.words_of(each) for each in self._marks))

    def words_of(self, mark: Mark) -> str:
        """What a mark says."""
        return self.tr("{0}: {1} GFLOP/s at {2} FLOP per byte").format(
            mark.name, _figure(mark.gflops), _figure(mark.intensity)
        )

    def place_of(self, intensity: float, gflops: float) -> QPointF:
        """Where a point of the plot is in the widget."""
        plot = self._plot()
        x = (math.log10(intensity) - self._x[0]) / (self._x[1] - self._x[0])
        y = (math.log10(gflops) - self._y[0]) / (self._y[1] - self._y[0])
        return QPointF(plot.left() + x * plot.width(), plot.bottom() - y * plot.height())

    def _scale(self) -> None:
        """Take in the marks, the corner of each roof, and some room around them."""
        roofs = self._roofs
        corners = [roofs.gflops / each for each in (roofs.memory, roofs.caches) if each]
        at = [*corners, *(each.intensity for each in self._marks)]
        # What a roof is called stands along its slope, at the left of its corner.
        self._x = (math.log10(min(at)) - 1.6, math.log10(max(at)) + 0.9)
        lowest = min([roofs.gflops / 30, *(each.gflops for each in self._marks)])
        self._y = (math.log10(lowest) - 0.35, math.log10(roofs.gflops) + 0.25)

    def _plot(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_LEFT, _ABOVE, -_RIGHT, -_BELOW)

    # Painting

    def _paint_grid(self, painter: QPainter) -> None:
        colours, plot = theme.current(), self._plot()
        metrics = TextMetrics(self._font)
        for value in _decades(*self._x):
            x = self.place_of(value, 10 ** self._y[0]).x()
            painter.setPen(QColor(colours.line))
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            text = _figure(value)
            painter.setPen(QColor(colours.quiet))
            half = metrics.horizontalAdvance(text) / 2
            painter.drawText(QPointF(x - half, plot.bottom() + 3 + metrics.ascent()), text)
        for value in _decades(*self._y):
            y = self.place_of(10 ** self._x[0], value).y()
            painter.setPen(QColor(colours.line))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            text = _figure(value)
            painter.setPen(QColor(colours.quiet))
            left = plot.left() - 6 - metrics.horizontalAdvance(text)
            painter.drawText(QPointF(left, y + metrics.ascent() / 2 - 1), text)
        below = self.tr("FLOP per byte")
        x = plot.right() - metrics.horizontalAdvance(below)
        painter.drawText(QPointF(x, plot.bottom() + 3 + _LINE + metrics.ascent()), below)
        painter.save()
        painter.translate(metrics.ascent(), plot.top() + metrics.horizontalAdvance("GFLOP/s"))
        painter.rotate(-90)
        painter.drawText(QPointF(0, 0), "GFLOP/s")
        painter.restore()

    def _paint_roofs(self, painter: QPainter) -> None:
        colours, plot, roofs = theme.current(), self._plot(), self._roofs
        painter.setClipRect(plot)
        for bandwidth, style, name in (
            (roofs.caches, Qt.PenStyle.DashLine, self.tr("caches")),
            (roofs.memory, Qt.PenStyle.SolidLine, self.tr("memory")),
        ):
            if not bandwidth:
                continue
            low, corner = 10 ** (self._x[0] - 1), roofs.gflops / bandwidth
            line = QPolygonF(
                [
                    self.place_of(low, low * bandwidth),
                    self.place_of(corner, roofs.gflops),
                    self.place_of(10 ** self._x[1], roofs.gflops),
                ]
            )
            painter.setPen(QPen(QColor(colours.edge), 1.5, style))
            painter.drawPolyline(line)
            self._paint_along(painter, bandwidth, name)
        painter.setClipping(False)

    def _paint_along(self, painter: QPainter, bandwidth: float, name: str) -> None:
        """Write a limit's name along its line, a little below the corner."""
        metrics = TextMetrics(self._font)
        corner = self._roofs.gflops / bandwidth
        at = self.place_of(corner, self._roofs.gflops)
        before = self.place_of(corner / 10, self._roofs.gflops / 10)
        rise, run = at.y() - before.y(), at.x() - before.x()
        angle = math.degrees(math.atan2(rise, run))
        plot = self._plot()
        slope = math.hypot(rise, run)
        room = slope * min((at.x() - plot.left()) / run, (plot.bottom() - at.y()) / -rise)
        whole = f"{name} {_figure(bandwidth)} GB/s"
        text = next((each for each in (whole, name) if _fits(metrics, each, room)), "")
        painter.save()
        painter.setPen(QColor(theme.current().quiet))
        painter.translate(at)
        painter.rotate(angle)
        painter.drawText(QPointF(-metrics.horizontalAdvance(text) - 8, -4), text)
        painter.restore()

    def _paint_marks(self, painter: QPainter) -> None:
        colours, plot = theme.current(), self._plot()
        metrics = TextMetrics(self._font)
        inks = {
            "here": colours.accent,
            "before": colours.neutral,
            "best": colours.accent,
            "other": colours.neutral,
        }
        taken: list[float] = []
        for mark in sorted(self._marks, key=lambda each: -each.gflops):
            at, ink = self.place_of(mark.intensity, mark.gflops), QColor(inks[mark.role])
            painter.setPen(QPen(ink, 1.6))
            painter.setBrush(QColor(colours.panel) if mark.role == "before" else ink)
            _paint_form(painter, mark.role, at)
            middle = at.y()
            while any(abs(middle - each) < _LINE for each in taken):
                middle += 1
            taken.append(middle)
            text = f"{mark.name} {_figure(mark.gflops)}"
            width = metrics.horizontalAdvance(text)
            left = at.x() + _RADIUS + 5
            if left + width > plot.right():
                left = at.x() - _RADIUS - 5 - width
            # Lines and their names may be behind it.
            behind = QRectF(left - 2, middle - _LINE / 2, width + 4, _LINE)
            painter.fillRect(behind, QColor(colours.panel))
            painter.setPen(ink)
            painter.drawText(QPointF(left, middle + metrics.ascent() / 2 - 1), text)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(320, 220)

    def minimumSizeHint(self) -> QSize:
        return QSize(220, 130)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            near = [
                self.words_of(mark)
                for mark in self._marks
                if (
                    self.place_of(mark.intensity, mark.gflops) - QPointF(event.pos())
                ).manhattanLength()
                < _NEAR
            ]
            words = "\n".join(near) or ("" if self.is_empty() else "\n".join(self.texts()))
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._font)
        if self.is_empty():
            painter.setPen(QColor(theme.current().quiet))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self._plot(), int(flags), self._empty)
            return
        self._paint_grid(painter)
        self._paint_roofs(painter)
        self._paint_marks(painter)


def _paint_form(painter: QPainter, role: str, at: QPointF) -> None:
    size = _RADIUS
    if role == "other":
        painter.drawRect(QRectF(at.x() - size + 1, at.y() - size + 1, 2 * size - 2, 2 * size - 2))
    elif role == "best":
        steps = ((0.0, -size - 1), (size + 1, 0.0), (0.0, size + 1), (-size - 1, 0.0))
        painter.drawPolygon(QPolygonF([at + QPointF(x, y) for x, y in steps]))
    else:
        painter.drawEllipse(at, size, size)


def _fits(metrics: TextMetrics, text: str, room: float) -> bool:
    # Its upper left corner is nearer to the end of the line than the line of its letters.
    return metrics.horizontalAdvance(text) + 8 + metrics.height() <= room


def _decades(low: float, high: float) -> Iterator[float]:
    for power in range(math.ceil(low), math.floor(high) + 1):
        yield 10.0**power


def _figure(value: float) -> str:
    """Return three digits or so, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

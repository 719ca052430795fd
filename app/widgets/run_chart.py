"""What happened when: spans on one line, and an amount that steps up and down below them."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.time_scale import TimeScale
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_AXIS, _SPANS, _GAP, _PIECE = 18.0, 22.0, 6.0, 7.0
_AMOUNTS = 44.0
_FONT_PIXELS = 11.0
_LEAST = 1.0


@dataclass(frozen=True)
class Span:
    """Something that took time.

    Attributes
    ----------
    key : str
        That no other one has.
    length : float
        In milliseconds; each begins where the one before ends.
    title, tooltip : str
        What it is, and more about it.
    role : str
        Its colour: ``""``, ``"high-level"``, ``"te"`` or ``"library"``.
    amount : float
        What is taken while it lasts.
    """

    key: str
    length: float
    title: str
    tooltip: str = ""
    role: str = ""
    amount: float = 0.0


@dataclass(frozen=True)
class Piece:
    """A part of the amounts: taken from one span to another, both included, by their places."""

    first: int
    last: int
    tooltip: str = ""


class RunChart(QWidget):
    """Spans, the amounts while they last, and the pieces that these are made of.

    The wheel zooms about the mouse, a drag pans, a double click shows all again; so do ``+``, ``-``
    and ``0``. The arrow keys go along the spans.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    chosen(str)
        A span was clicked, or come to by the keyboard: its key.
    """

    chosen = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spans: tuple[Span, ...] = ()
        self._pieces: tuple[Piece, ...] = ()
        self._starts: list[float] = [0.0]
        self._scale = TimeScale(self.width)
        self._most = ""
        self._here = -1
        self._pressed: QPointF | None = None
        self._dragged = False
        self._font = ui_font(_FONT_PIXELS, tabular=True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self.update)

    def set_run(self, spans: Sequence[Span], pieces: Sequence[Piece] = (), most: str = "") -> None:
        """Show other spans and pieces; `most` is said of the amounts."""
        self._spans, self._pieces, self._most = tuple(spans), tuple(pieces), most
        self._starts = [0.0]
        for span in self._spans:
            self._starts.append(self._starts[-1] + span.length)
        self._scale.whole = self._starts[-1]
        self._here = -1
        self._show_all()
        self.setAccessibleDescription(
            self.tr("{0} calls in {1}").format(len(spans), _time(self._starts[-1]))
        )

    def spans(self) -> tuple[Span, ...]:
        """What is shown."""
        return self._spans

    def mark(self, keys: Sequence[str]) -> None:
        """Mark the first span that has one of these keys as the one that is looked at."""
        wanted = set(keys)
        found = (place for place, each in enumerate(self._spans) if each.key in wanted)
        here = next(found, -1)
        if here != self._here:
            self._here = here
            self._reveal()
            self.update()

    def marked(self) -> str:
        """Key of the span that is looked at, or ``""``."""
        return self._spans[self._here].key if self._here >= 0 else ""

    def shown(self) -> tuple[float, float]:
        """The milliseconds at the left and at the right edge."""
        return self._scale.shown

    def span_rect(self, place: int) -> QRectF:
        """Where a span stands in the widget."""
        left, right = self._x(self._starts[place]), self._x(self._starts[place + 1])
        return QRectF(left, _AXIS, max(_LEAST, right - left), _SPANS)

    def span_at(self, x: float) -> int:
        """Place of the span at a horizontal place of the widget, or -1."""
        at = self._scale.time_at(x)
        place = bisect_right(self._starts, at) - 1
        return place if at >= 0 and 0 <= place < len(self._spans) else -1

    def _x(self, time: float) -> float:
        return self._scale.x(time)

    def _show_all(self) -> None:
        self._scale.show_all()
        self.update()

    def _zoom_by(self, factor: float, x: float) -> None:
        self._scale.zoom_by(factor, x)
        self.update()

    def _reveal(self) -> None:
        if self._here >= 0:
            self._scale.reveal(self._starts[self._here], self._starts[self._here + 1])
            self.update()

    def _go(self, place: int) -> None:
        if self._spans:
            self._here = min(max(0, place), len(self._spans) - 1)
            self._reveal()
            self.update()
            self.chosen.emit(self._spans[self._here].key)

    # Painting

    def _paint_axis(self, painter: QPainter) -> None:
        colours = theme.current()
        metrics = TextMetrics(self._font)
        painter.setFont(self._font)
        for time in self._scale.ticks():
            x = self._x(time)
            painter.setPen(QColor(colours.line))
            painter.drawLine(QPointF(x, _AXIS - 4), QPointF(x, self.height()))
            text = _time(time)
            painter.setPen(QColor(colours.quiet))
            if x + metrics.horizontalAdvance(text) < self.width():
                painter.drawText(QPointF(x + 3, _AXIS - 6), text)

    def _paint_spans(self, painter: QPainter) -> None:
        colours = theme.current()
        inks = {
            "": colours.neutral,
            "high-level": colours.accent,
            "te": colours.te,
            "library": colours.library,
        }
        metrics = TextMetrics(self._font)
        for place in self._visible():
            span, rect = self._spans[place], self.span_rect(place)
            ink = QColor(inks[span.role])
            ground = QColor(ink)
            ground.setAlpha(70)
            inner = rect.adjusted(0, 0, -1 if rect.width() > 3 else 0, 0)
            painter.fillRect(inner, ground)
            painter.fillRect(QRectF(inner.left(), inner.bottom() - 3, inner.width(), 3), ink)
            if rect.width() > 40:
                text = metrics.elidedText(
                    span.title, Qt.TextElideMode.ElideRight, rect.width() - 10
                )
                painter.setPen(QColor(colours.text))
                painter.drawText(QPointF(max(rect.left(), 0) + 5, rect.bottom() - 7), text)
        if self._here >= 0:
            rect = self.span_rect(self._here)
            painter.setPen(QPen(QColor(colours.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0, -1, 0, 1))

    def _paint_amounts(self, painter: QPainter) -> None:
        colours = theme.current()
        top = _AXIS + _SPANS + _GAP
        bottom = top + self._amount_height()
        metrics = TextMetrics(self._font)
        painter.setPen(QColor(colours.quiet))
        room = self._scale.right() - _GAP
        words = metrics.elidedText(self._most, Qt.TextElideMode.ElideRight, room)
        right = self._scale.right() - metrics.horizontalAdvance(words)
        painter.drawText(QPointF(right, top + metrics.ascent() - 2), words)
        most = max((each.amount for each in self._spans), default=0.0)
        if not most:
            return
        points = []
        for place in self._visible():
            y = bottom - (bottom - top - 12) * self._spans[place].amount / most
            points += [
                QPointF(self._x(self._starts[place]), y),
                QPointF(self._x(self._starts[place + 1]), y),
            ]
        if not points:
            return
        ground = QColor(colours.heat)
        ground.setAlpha(60)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ground)
        ends = [QPointF(points[-1].x(), bottom), QPointF(points[0].x(), bottom)]
        painter.drawPolygon(QPolygonF([*points, *ends]))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.heat), 1.5))
        painter.drawPolyline(QPolygonF(points))

    def _amount_height(self) -> float:
        room = self.height() - (_AXIS + _SPANS + 2 * _GAP)
        return max(24.0, min(_AMOUNTS, room))

    def piece_rect(self, place: int) -> QRectF:
        """Where a piece stands in the widget; below its edge where there is no room for it."""
        piece = self._pieces[place]
        top = _AXIS + _SPANS + 2 * _GAP + self._amount_height() + place * _PIECE
        left, right = self._x(self._starts[piece.first]), self._x(self._starts[piece.last + 1])
        return QRectF(left, top, max(_LEAST, right - left), _PIECE - 2)

    def _paint_pieces(self, painter: QPainter) -> None:
        ink = QColor(theme.current().heat)
        ink.setAlpha(150)
        for place in range(len(self._pieces)):
            rect = self.piece_rect(place)
            if rect.bottom() > self.height():
                break
            painter.fillRect(rect, ink)

    def _visible(self) -> Iterator[int]:
        """Yield the places of the spans that can be seen; of those below a pixel, one each."""
        drawn = -math.inf
        for place in range(max(0, self.span_at(0)), len(self._spans)):
            left, right = self._x(self._starts[place]), self._x(self._starts[place + 1])
            if left > self.width():
                return
            if right - drawn >= _LEAST / 2 or place == self._here:
                drawn = right
                yield place

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(400, round(_AXIS + _SPANS + 2 * _GAP + _AMOUNTS + 6 * _PIECE))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, round(_AXIS + _SPANS + _GAP + 24))

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # Where the keyboard is: a menu or a tip that is asked for by key comes up there.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._here >= 0:
            return self.span_rect(self._here).toRect()
        return super().inputMethodQuery(query)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = QPointF(event.pos())
            pieces = (
                each.tooltip
                for number, each in enumerate(self._pieces)
                if self.piece_rect(number).contains(place)
            )
            span = self.span_at(place.x()) if place.y() < self.piece_top() else -1
            text = next(pieces, self._spans[span].tooltip if span >= 0 else "")
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

    def piece_top(self) -> float:
        """Where the pieces begin, below the amounts."""
        return _AXIS + _SPANS + 2 * _GAP + self._amount_height()

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120 or event.angleDelta().x() / 120
        self._zoom_by(1.25**steps, event.position().x())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._dragged = event.position(), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None:
            moved = event.position().x() - self._pressed.x()
            if self._dragged or abs(moved) > 3:
                self._dragged = True
                self._pressed = event.position()
                self._scale.pan_by(moved)
                self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is not None and not self._dragged:
            place = self.span_at(event.position().x())
            if place >= 0:
                self._go(place)
        self._pressed = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self._show_all()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        middle = self.width() / 2
        match event.key():
            case Qt.Key.Key_Right:
                self._go(self._here + 1)
            case Qt.Key.Key_Left:
                self._go(self._here - 1)
            case Qt.Key.Key_Home:
                self._go(0)
            case Qt.Key.Key_End:
                self._go(len(self._spans) - 1)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self._zoom_by(1.5, middle)
            case Qt.Key.Key_Minus:
                self._zoom_by(1 / 1.5, middle)
            case Qt.Key.Key_0:
                self._show_all()
            case _:
                super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._spans:
            self._paint_axis(painter)
            self._paint_amounts(painter)
            self._paint_pieces(painter)
            self._paint_spans(painter)
        if self.hasFocus():
            painter.setPen(QColor(theme.current().accent))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 4, 4)


def _time(milliseconds: float) -> str:
    if milliseconds == 0:
        return "0"
    if milliseconds < 1:
        return f"{milliseconds * 1000:.4g} µs"
    return f"{milliseconds:.4g} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.4g} s"

"""A switch with segments side by side, one of which is on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.typefaces import UI_PIXELS, TextMetrics, ui_font

_HEIGHT = 28
_PAD = 12.0
_RADIUS = 6.0


@dataclass(frozen=True)
class Segment:
    """A segment: its key, its label, its meaning, and whether it is enabled."""

    key: str
    label: str
    tooltip: str = ""
    enabled: bool = True


class SegmentedSwitch(QWidget):
    """A switch between segments.

    Args:
        segments: The segments; the first is on.
    """

    changed = Signal(str)  # The user chose another segment; the argument is its key.

    def __init__(
        self, name: str, segments: Sequence[Segment] = (), parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._ring = False
        self._name = name
        self._segments: list[Segment] = []
        self._current = ""
        self._hovered = -1
        self._pressed = -1
        self._plain = ui_font()
        self._strong = ui_font(weight=QFont.Weight.DemiBold)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self.update)
        self.set_segments(segments)

    def set_segments(self, segments: Sequence[Segment]) -> None:
        """Set the segments; the current one stays on if it is among them."""
        self._segments = list(segments)
        if self._current not in [segment.key for segment in segments]:
            self._current = segments[0].key if segments else ""
        self.updateGeometry()
        self._show_current()

    def segments(self) -> list[Segment]:
        """Return the segments."""
        return list(self._segments)

    def current(self) -> str:
        """Return key of the segment that is on, or ``""``."""
        return self._current

    def set_current(self, key: str) -> None:
        """Switch to a segment without a signal; ``""`` for none."""
        self._current = key
        self._show_current()

    def set_segment_enabled(self, key: str, enabled: bool, tooltip: str = "") -> None:
        """Set whether a segment is enabled, and the reason if not."""
        self._segments = [
            replace(segment, enabled=enabled, tooltip=tooltip or segment.tooltip)
            if segment.key == key
            else segment
            for segment in self._segments
        ]
        self.update()

    def segment_rect(self, key: str) -> QRectF:
        """Return the area of a segment in the widget."""
        return self._rects()[[segment.key for segment in self._segments].index(key)]

    def _show_current(self) -> None:
        labels = [segment.label for segment in self._segments if segment.key == self._current]
        self.setAccessibleName(f"{self._name}: {labels[0]}" if labels else self._name)
        self.update()

    def _choose(self, i: int) -> None:
        segment = self._segments[i]
        if self.isEnabled() and segment.enabled and segment.key != self._current:
            self._current = segment.key
            self._show_current()
            self.changed.emit(segment.key)

    def _rects(self) -> list[QRectF]:
        rects = []
        x = 0.0
        metrics = TextMetrics(self._strong)
        for segment in self._segments:
            width = round(metrics.horizontalAdvance(segment.label) + 2 * _PAD)
            rects.append(QRectF(x, 0, width, _HEIGHT))
            x += width
        return rects

    def _at(self, place: QPointF) -> int:
        hits = (i for i, rect in enumerate(self._rects()) if rect.contains(place))
        return next(hits, -1)

    def _step(self, by: int) -> None:
        keys = [segment.key for segment in self._segments]
        i = keys.index(self._current) + by if self._current in keys else 0
        while 0 <= i < len(keys):
            if self._segments[i].enabled:
                self._choose(i)
                return
            i += by or 1

    # Qt

    def sizeHint(self) -> QSize:
        rects = self._rects()
        return QSize(round(rects[-1].right()) if rects else 0, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event)
        super().focusInEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rects = self._rects()
        if not rects:
            return
        outer = QRectF(0.5, 0.5, rects[-1].right() - 1, _HEIGHT - 1)
        shape = QPainterPath()
        shape.addRoundedRect(outer, _RADIUS, _RADIUS)
        painter.fillPath(shape, QColor(colours.panel))
        painter.setClipPath(shape)
        for i, (segment, rect) in enumerate(zip(self._segments, rects, strict=True)):
            chosen = segment.key == self._current
            if chosen:
                painter.fillRect(rect, QColor(colours.accent_ground))
            elif i == self._hovered and segment.enabled and self.isEnabled():
                painter.fillRect(rect, QColor(colours.hover))
            self._paint_word(painter, segment, rect, chosen)
        painter.setClipping(False)
        painter.setPen(QPen(QColor(colours.line), 1))
        for rect in rects[1:]:
            painter.drawLine(QPointF(rect.left() - 0.5, 1), QPointF(rect.left() - 0.5, _HEIGHT - 1))
        if self._ring and self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(shape)

    def _paint_word(self, painter: QPainter, segment: Segment, rect: QRectF, chosen: bool) -> None:
        colours = theme.current()
        font = self._strong if chosen else self._plain
        usable = segment.enabled and self.isEnabled()
        colour = (colours.accent if chosen else colours.text) if usable else colours.faint
        painter.setFont(font)
        painter.setPen(QColor(colour))
        width = TextMetrics(font).horizontalAdvance(segment.label)
        base = round(rect.center().y() + UI_PIXELS * 0.364)
        painter.drawText(QPointF(round(rect.center().x() - width / 2), base), segment.label)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hovered = self._at(event.position())
        if hovered != self._hovered:
            self._hovered = hovered
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed = self._pressed, -1
        if pressed >= 0 and pressed == self._at(event.position()):
            self._choose(pressed)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self._step(-1)
        elif event.key() in (Qt.Key.Key_Right, Qt.Key.Key_Down):
            self._step(1)
        else:
            super().keyPressEvent(event)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> object:
        # The keyboard's position, where menus and tool tips opened by key appear.
        if query == Qt.InputMethodQuery.ImCursorRectangle and self._current:
            return self.segment_rect(self._current).toRect()
        return super().inputMethodQuery(query)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            i = self._at(QPointF(event.pos()))
            text = self._segments[i].tooltip if i >= 0 else ""
            QToolTip.showText(event.globalPos(), text, self)
            return True
        return super().event(event)

"""Minimap: the whole graph in a corner, with its visible part."""

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.canvas.index import GraphIndex
from lowerscope.app.kit.canvas.overlays import (
    FIGURES,
    CanvasShade,
    Colouring,
    node_colour,
    shade_ground,
)
from lowerscope.app.kit.theme import Theme

_WIDEST, _HIGHEST = 168.0, 150.0
_NARROWEST, _LOWEST = 36.0, 24.0
# Shares of the width and height of the canvas.
_SHARE_ACROSS, _SHARE_DOWN = 0.2, 0.3
_MARGIN = 4.0
# The visible part is never drawn smaller than this.
_LEAST_SEEN = 6.0


class Minimap(QWidget):
    """A small picture of a graph with a frame around the visible part, which can be dragged."""

    moved = Signal(QPointF)  # The point of the graph that is to be centred.

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._index: GraphIndex | None = None
        self._colouring: Colouring = "strategy"
        self._shades: Mapping[str, CanvasShade] = {}
        self._seen = QRectF()
        self._grip: QPointF | None = None
        self._picture = QPixmap()
        # The canvas behind it need not be repainted when it changes.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(self.tr("Overview of the graph"))
        self.setToolTip(self.tr("Drag to move (M shows and hides this)"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self._redraw)
        self.hide()

    def show_graph(
        self, index: GraphIndex, colouring: Colouring, shades: Mapping[str, CanvasShade]
    ) -> None:
        """Show another graph, or the same one in other colours."""
        self._index, self._colouring, self._shades = index, colouring, shades
        self._redraw()

    def show_seen(self, seen: QRectF) -> None:
        """Show which part of the graph is visible."""
        if seen != self._seen:
            self._seen = seen
            self.update()

    def seen_rect(self) -> QRectF:
        """Return the area of the frame around the visible part."""
        scale, corner = self._scale()
        rect = QRectF(corner + self._seen.topLeft() * scale, self._seen.size() * scale)
        grow_x = max(0.0, _LEAST_SEEN - rect.width()) / 2
        grow_y = max(0.0, _LEAST_SEEN - rect.height()) / 2
        rect.adjust(-grow_x, -grow_y, grow_x, grow_y)
        return rect & QRectF(self.rect()).adjusted(1, 1, -1, -1)

    def _scale(self) -> tuple[float, QPointF]:
        """Return the scale of the graph, and the position of its origin."""
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return 1.0, QPointF()
        room = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        scale = min(room.width() / bounds.width(), room.height() / bounds.height())
        return scale, room.center() - bounds.center() * scale

    def _redraw(self) -> None:
        self._picture = QPixmap()
        self.update()

    def _draw(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        colours = theme.current()
        picture.fill(QColor(colours.panel))
        if self._index is None:
            return picture
        scale, corner = self._scale()
        painter = QPainter(picture)
        painter.setPen(Qt.PenStyle.NoPen)
        blocks: dict[tuple[str, str, str], list[QRectF]] = {}
        for name, rect in self._index.rects.items():
            node = self._index.nodes[name]
            place = QRectF(corner + rect.topLeft() * scale, rect.size() * scale)
            place.setWidth(max(1.5, place.width()))
            place.setHeight(max(1.0, place.height()))
            ground = self._ground(colours, name)
            blocks.setdefault((ground, node.strategy, node.kind), []).append(place)
        for (ground, strategy, role), places in blocks.items():
            colour = ground or node_colour(colours, strategy, role, self._colouring)
            painter.setBrush(QColor(colour))
            painter.drawRects(places)
        painter.end()
        return picture

    def _ground(self, colours: Theme, name: str) -> str:
        """Return the colour of a node's value, or ``""`` where values are not shown."""
        if self._colouring not in FIGURES:
            return ""
        shade = self._shades.get(name)
        if shade is None:
            return colours.node_line
        return colours.wrong if shade.wrong else shade_ground(colours, shade, self._colouring)

    # Qt

    def sizeHint(self) -> QSize:
        bounds = QRectF() if self._index is None else self._index.bounds()
        if bounds.isEmpty():
            return QSize(0, 0)
        over = self.parentWidget()
        room = QSize() if over is None else over.size()
        widest = min(_WIDEST, room.width() * _SHARE_ACROSS)
        highest = min(_HIGHEST, room.height() * _SHARE_DOWN)
        scale = min(widest / bounds.width(), highest / bounds.height())
        return QSize(
            round(max(_NARROWEST, bounds.width() * scale) + 2 * _MARGIN),
            round(max(_LOWEST, bounds.height() * scale) + 2 * _MARGIN),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture.size() != self.size() * self.devicePixelRatioF():
            self._picture = self._draw()
        colours = theme.current()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colours.line), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        seen = QColor(colours.text)
        seen.setAlphaF(0.07)
        painter.setBrush(seen)
        painter.setPen(QPen(QColor(colours.quiet), 1))
        painter.drawRect(self.seen_rect().toAlignedRect().adjusted(0, 0, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        rect = self.seen_rect()
        place = event.position()
        # A press outside of the frame moves it there first.
        self._grip = place - rect.center() if rect.contains(place) else QPointF()
        if not rect.contains(place):
            self._go(place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is not None:
            self._go(event.position() - self._grip)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None

    def _go(self, place: QPointF) -> None:
        scale, corner = self._scale()
        self.moved.emit((place - corner) / scale)

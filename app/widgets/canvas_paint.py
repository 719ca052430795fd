"""How nodes and edges of a graph are painted."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen

from lowerscope.app.theme import Theme, current, strategy_colour
from lowerscope.app.widgets.canvas_edges import LABEL_PIXELS, EdgePaths
from lowerscope.app.widgets.canvas_graph import CanvasNode, GraphIndex
from lowerscope.app.widgets.typefaces import ui_font

#: Below these scales there are no words and no arrow heads.
TEXT_SCALE = 0.45
ARROW_SCALE = 0.6

RADIUS = 5.0
BAR = 4.0
_LEFT = 14.0
_RIGHT = 9.0
_TITLE_PIXELS = 13.0
_SUBTITLE_PIXELS = 11.0
_BADGE_PIXELS = 10.5
_TITLE_STEP = 14.0
_REGION_LEFT = 12.0
_REGION_BASE = 8.0


@dataclass(frozen=True)
class View:
    """What is seen of a graph: the area, the scale, and which nodes are marked how."""

    area: QRectF
    zoom: float
    selection: frozenset[str]
    hovered: str
    walked: str


class GraphPainter:
    """Paints a graph; what does not change from frame to frame is made once.

    Parameters
    ----------
    index : GraphIndex
        The graph.
    """

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._edges = EdgePaths(index)
        self._words: dict[str, tuple[str, str]] = {}
        self._title = ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)
        self._subtitle = ui_font(_SUBTITLE_PIXELS)
        self._badge = ui_font(_BADGE_PIXELS, QFont.Weight.DemiBold)
        self._label = ui_font(LABEL_PIXELS)

    def paint(self, painter: QPainter, view: View) -> None:
        """Paint what is seen; the painter's coordinates are the graph's."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_regions(painter, view)
        self._paint_edges(painter, view)
        names = self._index.inside(view.area)
        if view.zoom < TEXT_SCALE:
            self._paint_blocks(painter, names, view)
        else:
            for name in names:
                self._paint_node(painter, self._index.nodes[name], view)

    def is_shortened(self, name: str) -> bool:
        """Whether some of a node's words do not fit."""
        node = self._index.nodes[name]
        return self._words_of(node) != (node.title, node.subtitle)

    # Regions

    def _paint_regions(self, painter: QPainter, view: View) -> None:
        theme = current()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setFont(self._subtitle)
        for region in self._index.graph.regions:
            frame = QRectF(
                round(region.x), round(region.y), round(region.width), round(region.height)
            )
            if not frame.intersects(view.area):
                continue
            pen = QPen(QColor(theme.faint), max(1.0, 1 / view.zoom))
            pen.setDashPattern([4.0, 3.0])
            painter.setPen(pen)
            painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS + 3, RADIUS + 3)
            if view.zoom >= TEXT_SCALE:
                painter.setPen(QColor(theme.quiet))
                at = QPointF(frame.left() + _REGION_LEFT, frame.bottom() - _REGION_BASE)
                painter.drawText(at, region.title)

    # Edges

    def _paint_edges(self, painter: QPainter, view: View) -> None:
        theme = current()
        bunches = self._edges.inside(view.area)
        heads = view.zoom >= ARROW_SCALE
        lines = [(bunch.lines, bunch.arrows) for bunch in bunches]
        # A line of one pixel in the middle of a pixel, not between two.
        painter.translate(0.5, 0.0)
        self._stroke(painter, lines, QColor(theme.edge), 1.0, heads, view.zoom)
        painter.translate(-0.5, 0.0)
        for name in view.selection:
            marked = self._edges.of_node(name)
            self._stroke(painter, marked, QColor(theme.accent), 2.0, heads, view.zoom)
        if view.zoom < TEXT_SCALE:
            return
        painter.setFont(self._label)
        descent = QFontMetricsF(self._label).descent()
        for bunch in bunches:
            for text, place in self._edges.labels(bunch, view.area):
                painter.fillRect(place, QColor(theme.panel))
                painter.setPen(QColor(theme.quiet))
                painter.drawText(QPointF(place.left() + 2, place.bottom() - descent), text)

    def _stroke(
        self,
        painter: QPainter,
        paths: Iterable[tuple[QPainterPath, QPainterPath]],
        colour: QColor,
        width: float,
        heads: bool,
        zoom: float,
    ) -> None:
        pen = QPen(colour, max(width, 0.8 / zoom))
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        for line, arrow in paths:
            painter.strokePath(line, pen)
            if heads:
                painter.fillPath(arrow, colour)

    # Nodes

    def _paint_blocks(self, painter: QPainter, names: Collection[str], view: View) -> None:
        """Nodes without words: all of one colour by one call."""
        theme = current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        bodies: list[QRectF] = []
        outlines: list[QLineF] = []
        bars: dict[str, list[QRectF]] = {}
        for name in names:
            rect = self._index.rects[name]
            bodies.append(rect)
            bar = QRectF(rect.left(), rect.top(), max(BAR, 3 / view.zoom), rect.height())
            bars.setdefault(_bar_colour(theme, self._index.nodes[name]), []).append(bar)
            if name in view.selection:
                outlines += _sides(rect)
        pen = QPen(QColor(theme.node_line), 0)
        painter.setPen(pen)
        painter.setBrush(QColor(theme.node))
        painter.drawRects(bodies)
        painter.setPen(Qt.PenStyle.NoPen)
        for colour, rects in bars.items():
            painter.setBrush(QColor(colour))
            painter.drawRects(rects)
        painter.setPen(QPen(QColor(theme.accent), max(2.0, 2 / view.zoom)))
        painter.drawLines(outlines)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _paint_node(self, painter: QPainter, node: CanvasNode, view: View) -> None:
        theme = current()
        rect = self._index.rects[node.id]
        selected = node.id in view.selection
        colour = QColor(_bar_colour(theme, node))
        painter.setBrush(QColor(theme.accent_ground if selected else theme.node))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawRoundedRect(rect, RADIUS, RADIUS)
        painter.fillPath(_bar_path(rect), colour)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if selected:
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.drawRoundedRect(rect, RADIUS, RADIUS)
            painter.fillPath(_bar_path(rect), colour)
        else:
            line = theme.accent if node.id == view.hovered else theme.node_line
            painter.setPen(QPen(QColor(line), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
            painter.fillPath(_bar_path(rect), colour)
        if node.id == view.walked:
            painter.setPen(QPen(QColor(theme.accent), 1, Qt.PenStyle.DotLine))
            painter.drawRoundedRect(rect.adjusted(-3.5, -3.5, 3.5, 3.5), RADIUS + 3, RADIUS + 3)
        self._paint_words(painter, node, rect, colour)

    def _paint_words(
        self, painter: QPainter, node: CanvasNode, rect: QRectF, colour: QColor
    ) -> None:
        theme = current()
        title, subtitle = self._words_of(node)
        left = rect.left() + _LEFT
        # Capitals are 0.727 em high: their middle, not the line's, is put in the middle.
        middle = rect.center().y()
        base = middle + _TITLE_PIXELS * 0.364
        if subtitle:
            base -= _TITLE_STEP / 2 - 0.5
            painter.setFont(self._subtitle)
            painter.setPen(QColor(theme.quiet))
            painter.drawText(QPointF(left, round(base + _TITLE_STEP - 0.5)), subtitle)
        painter.setFont(self._title)
        painter.setPen(QColor(theme.text))
        painter.drawText(QPointF(left, round(base)), title)
        if node.badge:
            painter.setFont(self._badge)
            painter.setPen(colour)
            width = QFontMetricsF(self._badge).horizontalAdvance(node.badge)
            at = QPointF(rect.right() - _RIGHT - width, round(middle + _BADGE_PIXELS * 0.364))
            painter.drawText(at, node.badge)

    def _words_of(self, node: CanvasNode) -> tuple[str, str]:
        words = self._words.get(node.id)
        if words is None:
            room = self._index.rects[node.id].width() - _LEFT - _RIGHT
            if node.badge:
                room -= QFontMetricsF(self._badge).horizontalAdvance(node.badge) + 6
            right = Qt.TextElideMode.ElideRight
            words = (
                QFontMetricsF(self._title).elidedText(node.title, right, room),
                QFontMetricsF(self._subtitle).elidedText(node.subtitle, right, room),
            )
            self._words[node.id] = words
        return words


def _bar_colour(theme: Theme, node: CanvasNode) -> str:
    if node.strategy:
        return strategy_colour(theme, node.strategy)
    return theme.faint if node.role == "constant" else theme.neutral


def _bar_path(rect: QRectF) -> QPainterPath:
    """The bar at a node's left side, with the node's own corners."""
    path = QPainterPath()
    left, top, bottom = rect.left(), rect.top(), rect.bottom()
    path.moveTo(left + BAR, top)
    path.quadTo(left, top, left, top + BAR)
    path.lineTo(left, bottom - BAR)
    path.quadTo(left, bottom, left + BAR, bottom)
    path.closeSubpath()
    return path


def _sides(rect: QRectF) -> list[QLineF]:
    corners = (rect.topLeft(), rect.topRight(), rect.bottomRight(), rect.bottomLeft())
    return [QLineF(corners[i], corners[(i + 1) % 4]) for i in range(4)]

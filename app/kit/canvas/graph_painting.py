"""Painting of a graph: frames, nodes, edges with cached paths, marks, and export as a picture."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from PySide6.QtCore import QLineF, QMarginsF, QPointF, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QImage,
    QPageLayout,
    QPageSize,
    QPaintDevice,
    QPainter,
    QPainterPath,
    QPdfWriter,
    QPen,
)
from PySide6.QtWidgets import QApplication

from lowerscope.app.kit import theme
from lowerscope.app.kit.canvas.graph_geometry import (
    LABEL_PIXELS,
    EdgePaths,
    GraphIndex,
    chevron,
    port_rect,
    region_rect,
    title_bar,
)
from lowerscope.app.kit.canvas.overlays import (
    FIGURES,
    STATUSES,
    CanvasShade,
    Colouring,
    node_colour,
    shade_colour,
    shade_ground,
    status_ground,
)
from lowerscope.app.kit.theme import Theme, current
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics, ui_font
from lowerscope.core.model import graph
from lowerscope.core.model.graph import CHEVRON, GROUPS, TITLE_BAR, Box, GraphRecord, Port, Region

#: Below this scale only titles are drawn: other text would be unreadable.
TEXT_SCALE = 0.5

_TITLE_PIXELS = 11.0
_RADIUS = 8.0
_LEFT = 12.0
_BASE = 8.0
_CAPITAL = 0.364


def paint_frames(
    painter: QPainter, index: GraphIndex, area: QRectF, zoom: float, marked: Collection[str] = ()
) -> None:
    """Paint the frames that overlap an area; with ``marked``, only these, as under the mouse."""
    for region in index.graph.regions:
        if marked and region.id not in marked:
            continue
        frame = region_rect(region)
        if frame.intersects(area):
            if region.id:
                _paint_module(painter, region, frame, zoom, bool(marked))
            else:
                _paint_block(painter, region, frame, zoom)


def _paint_module(
    painter: QPainter, region: Region, frame: QRectF, zoom: float, marked: bool
) -> None:
    """Paint an expanded module: a bar with a chevron and its title, and a frame."""
    theme = current()
    outline = frame.adjusted(0.5, 0.5, -0.5, -0.5)
    path = QPainterPath()
    path.addRoundedRect(outline, _RADIUS, _RADIUS)
    painter.save()
    painter.setClipRect(title_bar(frame), Qt.ClipOperation.IntersectClip)
    painter.fillPath(path, QColor(theme.hover if marked else theme.ground))
    painter.restore()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    colour = theme.accent if marked else theme.node_line
    painter.setPen(QPen(QColor(colour), max(1.0, 1 / zoom)))
    painter.drawPath(path)
    if zoom < TEXT_SCALE:
        return
    bar = title_bar(frame)
    painter.setPen(QPen(QColor(colour), 1))
    painter.drawLine(bar.bottomLeft() + QPointF(1, -0.5), bar.bottomRight() + QPointF(-1, -0.5))
    paint_chevron(painter, chevron(bar), is_open=True)
    _paint_title(painter, region.title, bar, chevron(bar).left() + CHEVRON + 2)


def paint_pinned_titles(painter: QPainter, index: GraphIndex, area: QRectF, zoom: float) -> None:
    """Paint the titles of frames that begin left of an area at its left edge."""
    for region in index.graph.regions if zoom >= TEXT_SCALE else ():
        bar = title_bar(region_rect(region))
        left = area.left() + _LEFT
        if region.id and bar.intersects(area) and chevron(bar).left() < area.left():
            width = TextMetrics(ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)).horizontalAdvance(
                region.title
            )
            # A title that is partly visible must not shine through.
            ground = QRectF(area.left(), bar.top() + 1, CHEVRON + width + 2 * _LEFT, TITLE_BAR - 3)
            painter.fillRect(ground & bar, QColor(current().ground))
            _paint_title(painter, region.title, bar, left)


def _paint_title(painter: QPainter, words: str, bar: QRectF, left: float) -> None:
    room = bar.right() - left - 6
    if room > 0:
        font = ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)
        title = TextMetrics(font).elidedText(words, Qt.TextElideMode.ElideMiddle, room)
        painter.setFont(font)
        painter.setPen(QColor(current().quiet))
        painter.drawText(QPointF(left, round(bar.center().y() + _TITLE_PIXELS * _CAPITAL)), title)


def _paint_block(painter: QPainter, region: Region, frame: QRectF, zoom: float) -> None:
    """Paint a data-flow block: a dashed frame, with its title at the foot."""
    theme = current()
    pen = QPen(QColor(theme.faint), max(1.0, 1 / zoom))
    pen.setDashPattern([4.0, 3.0])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
    if zoom >= TEXT_SCALE:
        painter.setFont(ui_font(_TITLE_PIXELS))
        painter.setPen(QColor(theme.quiet))
        corner = QPointF(frame.left() + _LEFT, frame.bottom() - _BASE)
        painter.drawText(corner, region.title[:SHOWN_CHARACTERS])


def paint_chevron(painter: QPainter, place: QRectF, is_open: bool) -> None:
    """Paint a chevron: to the right if collapsed, down if expanded."""
    x, y = place.center().x(), place.center().y()
    path = QPainterPath()
    if is_open:
        path.moveTo(x - 4, y - 2)
        path.lineTo(x, y + 2)
        path.lineTo(x + 4, y - 2)
    else:
        path.moveTo(x - 2, y - 4)
        path.lineTo(x + 2, y)
        path.lineTo(x - 2, y + 4)
    pen = QPen(QColor(current().quiet), 1.5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)


def paint_ports(
    painter: QPainter,
    index: GraphIndex,
    ports: Collection[Port],
    area: QRectF,
    zoom: float,
    marked: bool = False,
) -> None:
    """Paint the ports that overlap an area; marked ones in the accent colour."""
    theme = current()
    font = ui_font(_TITLE_PIXELS)
    metrics = TextMetrics(font)
    painter.setFont(font)
    for port in ports:
        rect = port_rect(port)
        if not rect.intersects(area):
            continue
        painter.setBrush(QColor(theme.accent_ground if marked else theme.panel))
        painter.setPen(QPen(QColor(theme.accent if marked else theme.edge), max(1.0, 0.8 / zoom)))
        half = rect.height() / 2
        if port.box in index.rects:
            painter.drawLine(_stem(rect, index.rects[port.box], port.side == "in"))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), half, half)
        if zoom >= TEXT_SCALE:
            painter.setPen(QColor(theme.accent if marked else theme.quiet))
            room = rect.width() - 2 * min(half, 6.0)
            text = metrics.elidedText(port.label, Qt.TextElideMode.ElideRight, room + 1)
            left = rect.center().x() - metrics.horizontalAdvance(text) / 2
            painter.drawText(
                QPointF(round(left), round(rect.center().y() + _TITLE_PIXELS * _CAPITAL)), text
            )


def _stem(stub: QRectF, node: QRectF, is_above: bool) -> QLineF:
    """Return the line from a stub to its node, or from the node to it."""
    x = round(max(node.left() + 8, min(stub.center().x(), node.right() - 8))) + 0.5
    if is_above:
        return QLineF(x, stub.bottom(), x, node.top())
    return QLineF(x, node.bottom(), x, stub.top())


RADIUS = 5.0
BAR = 4.0
_NODE_LEFT = 14.0
_RIGHT = 9.0
_NODE_TITLE_PIXELS = 13.0
_SUBTITLE_PIXELS = 11.0
_BADGE_PIXELS = 10.5
_TITLE_STEP = 14.0

# Below this scale nodes have no title either, and neither have those of large graphs: thousands are
# in view.
_TITLE_SCALE = 0.25
_MOST_TITLES = 400
_SMALL_PIXELS = 9.5
# Below this scale nodes have no outline.
_OUTLINE_SCALE = 0.1


class NodePainter:
    """Painter of nodes, with their text where it is readable.

    Args:
        index: The graph.
        colouring: The property that colours show.
        shades: Values to show, by node.
    """

    def __init__(
        self, index: GraphIndex, colouring: Colouring, shades: Mapping[str, CanvasShade]
    ) -> None:
        self._index = index
        self._colouring = colouring
        self._shades = shades
        self._words: dict[str, tuple[str, str]] = {}
        self._title = ui_font(_NODE_TITLE_PIXELS, QFont.Weight.DemiBold)
        self._subtitle = ui_font(_SUBTITLE_PIXELS)
        self._badge = ui_font(_BADGE_PIXELS, QFont.Weight.DemiBold)
        self._title_metrics = TextMetrics(self._title)
        self._subtitle_metrics = TextMetrics(self._subtitle)
        self._badge_metrics = TextMetrics(self._badge)
        self._badge_widths: dict[str, float] = {}

    def paint(self, painter: QPainter, names: Collection[str], zoom: float) -> None:
        """Paint unmarked nodes."""
        if zoom < TEXT_SCALE:
            self._paint_blocks(painter, names, zoom, current().node)
            self._paint_titles(painter, names, zoom)
            return
        for name in names:
            self.paint_at(painter, self._index.nodes[name], self._index.rects[name], zoom)

    def paint_at(self, painter: QPainter, node: Box, rect: QRectF, zoom: float) -> None:
        """Paint a node at this position, while it is animated."""
        theme = current()
        if zoom < TEXT_SCALE:
            painter.fillRect(rect, QColor(theme.node_line))
        else:
            ground = self._ground(theme, node)
            self._paint_body(painter, node, rect, ground, QPen(QColor(theme.node_line), 1))

    def paint_marked(
        self,
        painter: QPainter,
        names: Collection[str],
        zoom: float,
        marks: Marks,
        lit: frozenset[str],
    ) -> None:
        """Paint nodes with their marks; ``lit`` are those at the ends of the hovered port."""
        theme = current()
        selected = [name for name in names if name in marks.selection]
        found = [name for name in names if name in marks.found]
        if zoom < TEXT_SCALE:
            self._paint_blocks(painter, selected, zoom, theme.accent_ground)
            for some, colour in ((selected, theme.accent), (found, theme.text)):
                painter.setPen(_cosmetic(colour, 2.0))
                painter.drawLines(
                    [side for each in some for side in sides(self._index.rects[each])]
                )
            self._paint_titles(painter, names, zoom)
            return
        for name in names:
            rect, node = self._index.rects[name], self._index.nodes[name]
            if name in marks.selection:
                self._paint_body(
                    painter, node, rect, theme.accent_ground, QPen(QColor(theme.accent), 2)
                )
            else:
                here = name == marks.hovered or name in lit
                line = theme.accent if here else theme.node_line
                ground = self._ground(theme, node)
                self._paint_body(painter, node, rect, ground, QPen(QColor(line), 1))
        for name in found:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 2))
            rect = self._index.rects[name].adjusted(-3, -3, 3, 3)
            painter.drawRoundedRect(rect, RADIUS + 3, RADIUS + 3)
        if marks.walked in names:
            self.paint_focus(painter, self._index.rects[marks.walked])

    def paint_focus(self, painter: QPainter, rect: QRectF) -> None:
        """Paint the focus ring around the keyboard's node."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(current().accent), 1, Qt.PenStyle.DotLine))
        painter.drawRoundedRect(rect.adjusted(-3.5, -3.5, 3.5, 3.5), RADIUS + 3, RADIUS + 3)

    def _paint_blocks(
        self, painter: QPainter, names: Collection[str], zoom: float, ground: str
    ) -> None:
        """Paint nodes without text: all of one colour by one call."""
        theme = current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        bodies = [self._index.rects[name] for name in names]
        width = max(BAR, 3 / zoom)
        bars: dict[tuple[str, str], list[QRectF]] = {}
        for name, rect in zip(names, bodies, strict=True):
            node = self._index.nodes[name]
            bar = QRectF(rect.left(), rect.top(), width, rect.height())
            bars.setdefault((node.strategy, node.kind), []).append(bar)
        outlined = zoom >= _OUTLINE_SCALE
        painter.setPen(QPen(QColor(theme.node_line), 0) if outlined else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground if outlined else theme.node_line))
        painter.drawRects(bodies)
        for status in {strategy for strategy, _ in bars} & STATUSES:
            painter.setBrush(QColor(status_ground(theme, status)))
            painter.drawRects(
                [self._index.rects[each] for each in names if self._status_is(each, status)]
            )
        painter.setPen(Qt.PenStyle.NoPen)
        if self._colouring in FIGURES:
            self._paint_shades(painter, names)
        else:
            for (strategy, role), rects in bars.items():
                painter.setBrush(QColor(node_colour(theme, strategy, role, self._colouring)))
                painter.drawRects(rects)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def _paint_titles(self, painter: QPainter, names: Collection[str], zoom: float) -> None:
        """Paint titles enlarged, where all else is too small: those that fit as a whole."""
        if not names or zoom < _TITLE_SCALE or len(self._index.nodes) > _MOST_TITLES:
            return
        lowest = min(self._index.rects[name].height() for name in names)
        pixels = min(_SMALL_PIXELS / zoom, 0.7 * lowest)
        font = ui_font(_NODE_TITLE_PIXELS, QFont.Weight.DemiBold)
        font.setPixelSize(round(pixels))
        metrics = TextMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(current().text))
        for name in names:
            rect, title = self._index.rects[name], self._index.nodes[name].title
            left = max(BAR, 3 / zoom) + 2 / zoom
            if left + metrics.horizontalAdvance(title) + 2 / zoom <= rect.width():
                base = rect.center().y() + pixels * _CAPITAL
                painter.drawText(QPointF(rect.left() + left, base), title)

    def _paint_shades(self, painter: QPainter, names: Collection[str]) -> None:
        """Paint nodes without text that have values: all of one colour by one call."""
        theme = current()
        grounds: dict[str, list[QRectF]] = {}
        for name in names:
            shade = self._shades.get(name)
            if shade is not None:
                # At this size, a wrong one has to stand out.
                ground = theme.wrong if shade.wrong else shade_ground(theme, shade, self._colouring)
                grounds.setdefault(ground, []).append(self._index.rects[name])
        for ground, rects in grounds.items():
            painter.setBrush(QColor(ground))
            painter.drawRects(rects)

    def _ground(self, theme: Theme, node: Box) -> str:
        shade = self._shades.get(node.id)
        if shade is None:
            return status_ground(theme, node.strategy)
        return shade_ground(theme, shade, self._colouring)

    def _status_is(self, name: str, status: str) -> bool:
        return self._index.nodes[name].strategy == status

    def _paint_body(
        self, painter: QPainter, node: Box, rect: QRectF, ground: str, pen: QPen
    ) -> None:
        theme = current()
        shade = self._shades.get(node.id)
        if self._colouring in FIGURES:
            colour = QColor(shade_colour(theme, shade, self._colouring))
        else:
            colour = QColor(node_colour(theme, node.strategy, node.kind, self._colouring))
        inset = 0.5 if pen.width() == 1 else 0.0
        outline = rect.adjusted(inset, inset, -inset, -inset)
        painter.setBrush(QColor(ground))
        painter.setPen(pen)
        if node.kind in GROUPS:
            # Drawn as a stack of cards, since it has contents.
            painter.drawRoundedRect(outline.translated(3, 3), RADIUS, RADIUS)
        painter.drawRoundedRect(outline, RADIUS, RADIUS)
        if shade is not None and shade.wrong:
            hatch = QColor(theme.wrong)
            hatch.setAlphaF(0.35)
            painter.setBrush(QBrush(hatch, Qt.BrushStyle.BDiagPattern))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(outline, RADIUS, RADIUS)
        painter.fillPath(_bar_path(rect), colour)
        self._paint_words(painter, node, rect, colour)

    def _paint_words(self, painter: QPainter, node: Box, rect: QRectF, colour: QColor) -> None:
        theme = current()
        title, subtitle = self._words_of(node)
        left = rect.left() + _left(node)
        if node.kind in GROUPS:
            paint_chevron(painter, chevron(rect), is_open=False)
        # Capitals are 0.727 em high: their middle, not the line's, is centred.
        middle = rect.center().y()
        base = middle + _NODE_TITLE_PIXELS * _CAPITAL
        if subtitle:
            base -= _TITLE_STEP / 2 - 0.5
            painter.setFont(self._subtitle)
            # Secondary text is unreadable on a coloured background.
            painter.setPen(QColor(theme.text if node.id in self._shades else theme.quiet))
            painter.drawText(QPointF(left, round(base + _TITLE_STEP - 0.5)), subtitle)
        painter.setFont(self._title)
        painter.setPen(QColor(theme.text))
        painter.drawText(QPointF(left, round(base)), title)
        badge = self._badge_of(node)
        if badge:
            painter.setFont(self._badge)
            painter.setPen(self._badge_colour(node, colour))
            width = self._badge_width(badge)
            # Values are wider than letters: beside the title they leave the other line its room.
            line = base if self._colouring in FIGURES else middle + _BADGE_PIXELS * _CAPITAL
            painter.drawText(QPointF(rect.right() - _RIGHT - width, round(line)), badge)

    def _badge_of(self, node: Box) -> str:
        """Return the value of a node where values are shown; else its badge."""
        if self._colouring not in FIGURES:
            return node.badge
        shade = self._shades.get(node.id)
        return "" if shade is None else shade.text

    def _badge_colour(self, node: Box, bar: QColor) -> QColor:
        shade = self._shades.get(node.id)
        if self._colouring == "strategy" or (shade is not None and shade.wrong):
            return bar
        return QColor(current().quiet if shade is None else current().text)

    def _badge_width(self, badge: str) -> float:
        width = self._badge_widths.get(badge)
        if width is None:
            width = self._badge_widths[badge] = self._badge_metrics.horizontalAdvance(badge)
        return width

    def _words_of(self, node: Box) -> tuple[str, str]:
        words = self._words.get(node.id)
        if words is None:
            room = self._index.rects[node.id].width() - _left(node) - _RIGHT
            badge = self._badge_of(node)
            beside = room - self._badge_width(badge) - 6 if badge else room
            below = room if self._colouring in FIGURES else beside
            right = Qt.TextElideMode.ElideRight
            words = (
                self._title_metrics.elidedText(node.title, right, beside),
                self._subtitle_metrics.elidedText(node.subtitle, right, below),
            )
            self._words[node.id] = words
        return words


def sides(rect: QRectF) -> list[QLineF]:
    """Return the four sides of a rectangle."""
    corners = (rect.topLeft(), rect.topRight(), rect.bottomRight(), rect.bottomLeft())
    return [QLineF(corners[i], corners[(i + 1) % 4]) for i in range(4)]


def _left(node: Box) -> float:
    return _NODE_LEFT + (CHEVRON if node.kind in GROUPS else 0.0)


def _cosmetic(colour: str, width: float) -> QPen:
    pen = QPen(QColor(colour), width)
    pen.setCosmetic(True)
    return pen


def _bar_path(rect: QRectF) -> QPainterPath:
    """Return the path of the bar at a node's left side, with the node's own corners."""
    path = QPainterPath()
    left, top, bottom = rect.left(), rect.top(), rect.bottom()
    path.moveTo(left + BAR, top)
    path.quadTo(left, top, left, top + BAR)
    path.lineTo(left, bottom - BAR)
    path.quadTo(left, bottom, left + BAR, bottom)
    path.closeSubpath()
    return path


# --- Flags on the nodes of a graph: a disc at the corner of each, at any scale ---

#: Radius of the disc, in the graph's coordinates, and its least radius in pixels, to stay visible.
_FLAG_RADIUS = 6.0
_PIXELS = 3.0


def paint_flags(painter: QPainter, places: Iterable[QRectF], zoom: float) -> None:
    """Paint the flags of the nodes at these places; the painter's coordinates are the graph's."""
    colours = current()
    radius = max(_FLAG_RADIUS, _PIXELS / zoom)
    painter.setPen(QPen(QColor(colours.panel), radius / 3))
    painter.setBrush(QColor(colours.stop))
    for place in places:
        painter.drawEllipse(QPointF(place.left() + 1, place.top() + 1), radius, radius)


#: Scales below which arrow heads, or curves, are omitted.
ARROW_SCALE = 0.6
CURVE_SCALE = 0.25


@dataclass(frozen=True)
class Marks:
    """Marks on the nodes of a graph."""

    selection: frozenset[str] = frozenset()  # Nodes that are selected, and matches of the search.
    found: frozenset[str] = frozenset()
    hovered: str = ""  # The node or frame under the mouse, and the keyboard's, or ``""``.
    walked: str = ""
    port: Port | None = None  # The port under the mouse.
    flags: frozenset[str] = frozenset()  # Nodes with a disc.


class GraphPainter:
    """Painter of a graph; what does not change between frames is cached.

    Args:
        index: The graph.

    Attributes:
        colouring: The property that the colours of nodes show.
        shades: Values to show, by node.
    """

    def __init__(
        self,
        index: GraphIndex,
        labels: bool = True,
        colouring: Colouring = "strategy",
        shades: Mapping[str, CanvasShade] = MappingProxyType({}),
    ) -> None:
        self.labels = labels  # Whether all edges have labels; those of marked nodes always have.
        self._index = index
        self._edges = EdgePaths(index)
        self.nodes = NodePainter(index, colouring, shades)
        self._label = ui_font(LABEL_PIXELS)
        self._descent = TextMetrics(self._label).descent()
        # Cached path of the edges of marked nodes, until the marks change.
        self._marked: tuple[frozenset[str], list[int], QPainterPath, QPainterPath] | None = None

    def paint(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint an area without marks; the painter's coordinates are the graph's."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_frames(painter, self._index, area, zoom)
        self.paint_edges(painter, area, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_ports(painter, self._index, self._index.graph.ports, area, zoom)
        self.nodes.paint(painter, self._index.inside(area), zoom)

    def paint_edges(self, painter: QPainter, area: QRectF, zoom: float) -> None:
        """Paint the edges in an area, and their labels."""
        bunches = self._edges.inside(area)
        colour = QColor(current().edge)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= CURVE_SCALE)
        # A line of one pixel belongs in the middle of a pixel, not between two.
        painter.translate(0.5, 0.0)
        if zoom < CURVE_SCALE:
            painter.setPen(_line_pen(colour, 1.0, zoom))
            for bunch in bunches:
                painter.drawLines(self._edges.straight(bunch))
        else:
            for bunch in bunches:
                _stroke(painter, self._edges.drawn(bunch), colour, 1.0, zoom)
        painter.translate(-0.5, 0.0)
        if self.labels and zoom >= TEXT_SCALE:
            for bunch in bunches:
                self._paint_labels(painter, self._edges.labels(bunch, area))

    def paint_marks(self, painter: QPainter, area: QRectF, zoom: float, marks: Marks) -> None:
        """Paint the marks over the graph."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        index = self._index
        if marks.hovered in index.frames:
            paint_frames(painter, index, area, zoom, (marks.hovered,))
        paint_pinned_titles(painter, index, area, zoom)
        self._paint_marked_edges(painter, area, zoom, marks)
        lit: list[str] = []
        if marks.port is not None:
            lit = [name for name in (marks.port.box, *marks.port.others) if name in index.nodes]
            ports = (marks.port, *index.ends(marks.port))
            paint_ports(painter, index, ports, area, zoom, marked=True)
        names = {*marks.selection, *marks.found, *lit, marks.hovered, marks.walked}
        seen = self._seen(names & index.nodes.keys(), area)
        self.nodes.paint_marked(painter, seen, zoom, marks, frozenset(lit))
        if marks.walked in index.frames:
            self.nodes.paint_focus(painter, index.frames[marks.walked])
        flagged = self._seen(marks.flags & index.nodes.keys(), area)
        paint_flags(painter, [index.rects[name] for name in flagged], zoom)

    def _paint_marked_edges(
        self, painter: QPainter, area: QRectF, zoom: float, marks: Marks
    ) -> None:
        theme = current()
        if marks.hovered in self._index.nodes and marks.hovered not in marks.selection:
            numbers = self._edges.of_nodes((marks.hovered,))
            _stroke(painter, self._edges.together(numbers), QColor(theme.accent), 1.0, zoom)
            self._paint_marked_labels(painter, numbers, area, zoom)
        if not marks.selection:
            return
        if self._marked is None or self._marked[0] != marks.selection:
            numbers = self._edges.of_nodes(marks.selection)
            self._marked = (marks.selection, numbers, *self._edges.together(numbers))
        _, numbers, lines, arrows = self._marked
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, zoom >= CURVE_SCALE)
        _stroke(painter, (lines, arrows), QColor(theme.accent), 2.0, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_marked_labels(painter, numbers, area, zoom)

    def _paint_marked_labels(
        self, painter: QPainter, numbers: Collection[int], area: QRectF, zoom: float
    ) -> None:
        if zoom >= TEXT_SCALE:
            labels = self._edges.labels_of(numbers)
            self._paint_labels(painter, [each for each in labels if each[1].intersects(area)])

    def _paint_labels(self, painter: QPainter, labels: Iterable[tuple[str, QRectF]]) -> None:
        theme = current()
        painter.setFont(self._label)
        painter.setPen(QColor(theme.quiet))
        ground = QColor(theme.panel)
        for text, place in labels:
            painter.fillRect(place, ground)
            corner = QPointF(place.left() + 2, place.bottom() - self._descent)
            painter.drawText(corner, text[:SHOWN_CHARACTERS])

    def _seen(self, names: Collection[str], area: QRectF) -> list[str]:
        if len(names) > 100:
            return [name for name in self._index.inside(area) if name in names]
        return [name for name in names if self._index.rects[name].intersects(area)]


def _stroke(
    painter: QPainter,
    paths: tuple[QPainterPath, QPainterPath],
    colour: QColor,
    width: float,
    zoom: float,
) -> None:
    lines, arrows = paths
    painter.setPen(_line_pen(colour, width, zoom))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(lines)
    if zoom >= ARROW_SCALE:
        painter.fillPath(arrows, colour)


def _line_pen(colour: QColor, width: float, zoom: float) -> QPen:
    """Return a pen for lines, at least a pixel wide, which is what the rasteriser is fast at."""
    pen = QPen(colour, max(1.0, width * zoom))
    pen.setCosmetic(True)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    return pen


# --- Export of a graph, or of its visible part, as SVG, PDF or PNG ---

#: Margin around the drawing, in pixels.
MARGIN = 12.0

#: Pixels per inch that the font sizes of a graph refer to.
_DPI = 96

#: Pixels of a PNG for a pixel of the drawing, and its greatest width and height.
_SCALE = 2.0
_MOST_PIXELS = 16_384


def write_picture(graph: GraphPainter, area: QRectF, path: Path, kind: str, title: str) -> None:
    """Write an area of a graph to a file, in the current theme.

    Args:
        graph: The painter of the graph.
        area: In the graph's own pixels.
        path: The file; an existing one is overwritten.
        kind: ``"svg"``, ``"pdf"`` or ``"png"``.
        title: Title of the document.

    Raises:
        OSError: If the file cannot be written.
    """
    whole = area.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
    if kind == "png":
        _write_image(graph, whole, path)
        return
    device = _svg(whole, path, title) if kind == "svg" else _pdf(whole, path, title)
    _paint(graph, whole, device, 1.0)


def _svg(area: QRectF, path: Path, title: str) -> QPaintDevice:
    # Imported here, since nothing else in the window needs it.
    from PySide6.QtSvg import QSvgGenerator

    size = area.size().toSize()
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setResolution(_DPI)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    return generator


def _pdf(area: QRectF, path: Path, title: str) -> QPaintDevice:
    writer = QPdfWriter(str(path))
    writer.setResolution(_DPI)
    points = QSizeF(area.width(), area.height()) * 72 / _DPI
    # The size as given: Qt would replace it by a paper size that is nearly as large.
    match = QPageSize.SizeMatchPolicy.ExactMatch
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "", match))
    writer.setPageOrientation(QPageLayout.Orientation.Portrait)
    writer.setPageMargins(QMarginsF())
    writer.setTitle(title)
    writer.setCreator("Lowerscope")
    return writer


def _write_image(graph: GraphPainter, area: QRectF, path: Path) -> None:
    longest = max(area.width(), area.height())
    scale = min(_SCALE, _MOST_PIXELS / longest)
    size = QSize(round(area.width() * scale), round(area.height() * scale))
    image = QImage(size, QImage.Format.Format_RGB32)
    if image.isNull():
        raise OSError(f"a picture of {size.width()} × {size.height()} pixels is too large")
    _paint(graph, area, image, scale)
    if not image.save(str(path)):
        raise OSError("Qt cannot write it")


def _paint(graph: GraphPainter, area: QRectF, device: QPaintDevice, scale: float) -> None:
    painter = QPainter()
    if not painter.begin(device):
        raise OSError("Qt cannot write it")
    painter.scale(scale, scale)
    painter.translate(-area.topLeft())
    painter.fillRect(area, QColor(current().panel))
    painter.setClipRect(area)
    # At full scale, whatever the scale of the picture: all text, and all curves.
    graph.paint(painter, area, 1.0)
    if not painter.end():
        raise OSError("Qt cannot write it")


# --- Pictures of graphs for the command line: the window's painter, without a window ---


class GraphPictures:
    """Paints graphs like the window, in its light theme."""

    def __init__(self) -> None:
        if QApplication.instance() is None:
            self._application = QApplication([sys.argv[0], *theme.STYLE])
            theme.start(self._application, "light")

    def metrics(self) -> graph.TextMetrics:
        """Return the character widths that it paints with."""
        return graph.DEFAULT

    def paint(self, graph: GraphRecord, path: Path, kind: str, title: str) -> None:
        """Paint a graph into a file: ``"svg"``, ``"pdf"`` or ``"png"``.

        Raises:
            OSError: If it cannot be written.
        """
        index = GraphIndex(graph)
        write_picture(GraphPainter(index), index.bounds(), path, kind, title)

"""Painting of a graph: frames, nodes, edges with cached paths, marks, and export as a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

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
from lowerscope.app.kit.canvas.colouring import Colours
from lowerscope.app.kit.canvas.detail import (
    BLOCK_SCALE,
    CHEVRON_SCALE,
    DETAIL_SCALE,
    Block,
    Detail,
)
from lowerscope.app.kit.canvas.graph_geometry import (
    LABEL_PIXELS,
    EdgePaths,
    GraphIndex,
    chevron,
    port_rect,
    region_rect,
    title_bar,
)
from lowerscope.app.kit.theme import current, strategy_colour
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics, ui_font
from lowerscope.core.model import graph
from lowerscope.core.model.graph import (
    CHEVRON,
    GROUPS,
    HEADER,
    NAME_LINE,
    PADDING,
    PILLS,
    ROW,
    TITLE_BAR,
    Box,
    Edge,
    GraphRecord,
    Port,
    Region,
)
from lowerscope.core.model.texts import _

# --- Text, in sizes that stay readable at any scale ---

_TITLE, _SMALL, _BADGE = 13.0, 11.0, 10.0
_LEAST_TITLE, _LEAST_SMALL = 10.5, 9.5
_NAMES = (28.0, 22.0, 18.0, 15.0, 12.5, 10.5, 9.5)
"""Sizes in pixels of the name of a block, as far as there is room."""

_CAPITAL = 0.364
_MOST_CUT = 20_000

_RIGHT, _MIDDLE = Qt.TextElideMode.ElideRight, Qt.TextElideMode.ElideMiddle


class Type:
    """A font, with its texts as they are cut to the room that they have."""

    def __init__(self, pixels: float, weight: QFont.Weight) -> None:
        self.pixels = pixels
        self.font = ui_font(pixels, weight)
        self._metrics = TextMetrics(self.font)
        self._widths: dict[str, float] = {}
        self._cut: dict[tuple[str, int], str] = {}

    def width(self, text: str) -> float:
        found = self._widths.get(text)
        if found is None:
            if len(self._widths) > _MOST_CUT:
                self._widths.clear()
            found = self._widths[text] = self._metrics.horizontalAdvance(text)
        return found

    def cut(self, text: str, room: float, mode: Qt.TextElideMode = _RIGHT) -> str:
        """Return a text that fits, at least its first letter."""
        if self.width(text) <= room:
            return text[:SHOWN_CHARACTERS]
        key = text, int(room)
        found = self._cut.get(key)
        if found is None:
            if len(self._cut) > _MOST_CUT:
                self._cut.clear()
            found = self._metrics.elidedText(text, mode, max(0.0, room))
            found = self._cut[key] = text[:1] if found in ("", "…") else found
        return found

    def draw(
        self, painter: QPainter, left: float, middle: float, text: str, colour: QColor
    ) -> None:
        """Draw a text with its capitals centred on a line."""
        painter.setFont(self.font)
        painter.setPen(colour)
        painter.drawText(QPointF(left, round(middle + self.pixels * _CAPITAL)), text)


@cache
def _type(pixels: float, bold: bool) -> Type:
    return Type(pixels, QFont.Weight.DemiBold if bold else QFont.Weight.Normal)


def type_of(pixels: float, least: float = 0.0, *, bold: bool = False) -> Type:
    """Return a typeface of a size, in steps of half a pixel, that is no smaller than another."""
    return _type(max(least, round(2 * pixels) / 2), bold)


Place = Callable[[QRectF], QRectF]
"""Converts a graph's area to the coordinates of a painter."""


@contextmanager
def _sheet(painter: QPainter, zoom: float) -> Iterator[tuple[Place, float]]:
    """Paint boxes in pixels where they are small, so that text has its own size.

    Yields the places of the graph's areas, and the size of a graph's pixel.
    """
    if zoom >= DETAIL_SCALE:
        yield QRectF, 1.0
        return
    transform = painter.worldTransform()
    painter.save()
    painter.resetTransform()
    yield lambda rect: QRectF(transform.mapRect(rect).toRect()), zoom
    painter.restore()


# --- Frames and ports ---

_RADIUS = 8.0


def paint_frames(
    painter: QPainter,
    regions: Iterable[Region],
    area: QRectF,
    zoom: float,
    marked: Collection[str] = (),
) -> None:
    """Paint the frames that overlap an area; with ``marked``, only these, as under the mouse."""
    with _sheet(painter, zoom) as (place, scale):
        for region in regions:
            frame = region_rect(region)
            if frame.intersects(area) and (not marked or region.id in marked):
                paint = _paint_module if region.id else _paint_block
                paint(painter, region, place(frame), scale, bool(marked))


def _paint_module(
    painter: QPainter, region: Region, frame: QRectF, scale: float, marked: bool
) -> None:
    """Paint an expanded module: a bar with a chevron and its title, and a frame."""
    theme = current()
    outline = frame.adjusted(0.5, 0.5, -0.5, -0.5)
    bar = QRectF(frame.left(), frame.top(), frame.width(), TITLE_BAR * scale)
    radius = _RADIUS * scale
    painter.fillPath(_top(bar, radius), QColor(theme.hover if marked else theme.ground))
    colour = QColor(theme.accent if marked else theme.node_line)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, 1))
    painter.drawRoundedRect(outline, radius, radius)
    painter.drawLine(bar.bottomLeft() + QPointF(1, -0.5), bar.bottomRight() + QPointF(-1, -0.5))
    left = bar.left() + PADDING * scale
    if scale >= CHEVRON_SCALE:
        paint_chevron(painter, chevron(bar, scale), is_open=True)
        left = chevron(bar, scale).right() + 4 * scale
    _paint_title(painter, region.title, bar, left, scale)


def paint_pinned_titles(
    painter: QPainter, regions: Iterable[Region], area: QRectF, zoom: float
) -> None:
    """Paint the titles of frames that begin left of an area at its left edge."""
    for region in regions if zoom >= DETAIL_SCALE else ():
        bar = title_bar(region_rect(region))
        left = area.left() + PADDING
        if region.id and bar.intersects(area) and chevron(bar).left() < area.left():
            width = type_of(_SMALL, bold=True).width(region.title)
            # A title that is partly visible must not shine through.
            ground = QRectF(area.left(), bar.top() + 1, CHEVRON + width + 2 * PADDING, bar.height())
            ground.setHeight(bar.height() - 3)
            painter.fillRect(ground & bar, QColor(current().ground))
            _paint_title(painter, region.title, bar, left, 1.0)


def _paint_title(painter: QPainter, words: str, bar: QRectF, left: float, scale: float) -> None:
    room = bar.right() - left - 6 * scale
    if room > 0:
        kind = type_of(_SMALL * scale, _LEAST_SMALL, bold=True)
        text = kind.cut(words, room, _MIDDLE)
        kind.draw(painter, left, bar.center().y(), text, QColor(current().quiet))


def _paint_block(
    painter: QPainter, region: Region, frame: QRectF, scale: float, marked: bool
) -> None:
    """Paint a dataflow block: a dashed frame, with its title at the foot."""
    theme = current()
    pen = QPen(QColor(theme.faint), 1)
    pen.setDashPattern([4.0, 3.0])
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS * scale, _RADIUS * scale)
    kind = type_of(_SMALL * scale, _LEAST_SMALL)
    text = kind.cut(region.title, frame.width() - 2 * PADDING * scale)
    left, middle = frame.left() + PADDING * scale, frame.bottom() - 13 * scale
    kind.draw(painter, left, middle, text, QColor(theme.quiet))


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
    line, ground = (theme.accent, theme.accent_ground) if marked else (theme.edge, theme.panel)
    with _sheet(painter, zoom) as (place, scale):
        kind = type_of(_SMALL * scale, _LEAST_SMALL)
        for port in ports:
            if not port_rect(port).intersects(area):
                continue
            rect = place(port_rect(port))
            painter.setBrush(QColor(ground))
            painter.setPen(QPen(QColor(line), 1))
            half = rect.height() / 2
            if port.box in index.rects:
                painter.drawLine(_stem(rect, place(index.rects[port.box]), port.side == "in"))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), half, half)
            if rect.height() > kind.pixels:
                text = kind.cut(port.label, rect.width() - 2 * min(half, 6.0) + 1)
                left = round(rect.center().x() - kind.width(text) / 2)
                colour = QColor(theme.accent if marked else theme.quiet)
                kind.draw(painter, left, rect.center().y(), text, colour)


def _stem(stub: QRectF, node: QRectF, is_above: bool) -> QLineF:
    """Return the line from a stub to its node, or from the node to it."""
    x = round(max(node.left() + 8, min(stub.center().x(), node.right() - 8))) + 0.5
    if is_above:
        return QLineF(x, stub.bottom(), x, node.top())
    return QLineF(x, node.bottom(), x, stub.top())


# --- Nodes, and the blocks in their place ---

RADIUS = 5.0


@dataclass(frozen=True)
class Outline:
    """Outline of a node."""

    colour: str
    width: int = 1
    halo: bool = False


class Label(NamedTuple):
    """A name in a drawing, with the area of the box or block that it is in."""

    text: str
    pixels: float
    rect: QRectF


class NodePainter:
    """Painter of nodes and blocks.

    Args:
        index: The graph.
        colours: The colours of nodes.
    """

    def __init__(self, index: GraphIndex, colours: Colours) -> None:
        self._index = index
        self._colours = colours

    def paint(
        self,
        painter: QPainter,
        names: Collection[str],
        blocks: Collection[Block],
        zoom: float,
        outline: Outline | None = None,
    ) -> list[Label]:
        """Paint nodes and blocks, by default without marks; return their names."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        line = outline or Outline(current().node_line)
        with _sheet(painter, zoom) as (place, scale):
            labels = [
                self._paint_node(
                    painter, self._index.nodes[name], place(self._index.rects[name]), scale, line
                )
                for name in names
            ]
            return labels + [
                self._paint_block(painter, each, place(each.rect), line) for each in blocks
            ]

    def paint_at(self, painter: QPainter, node: Box, rect: QRectF, zoom: float) -> None:
        """Paint a node at this position, while it is animated."""
        with _sheet(painter, zoom) as (place, scale):
            self._paint_node(painter, node, place(rect), scale, Outline(current().node_line))

    def _paint_node(
        self, painter: QPainter, node: Box, rect: QRectF, scale: float, outline: Outline
    ) -> Label:
        theme = current()
        ink = self._colours.ink(theme, node)
        pill = node.kind in PILLS
        header = 0.0 if pill else min(HEADER * scale, rect.height())
        # Without room for the operator above the name, its colour is that of the whole.
        is_plain = not pill and header < _LEAST_SMALL + 1
        inset = 0.5 if outline.width == 1 else 0.0
        edge = rect.adjusted(inset, inset, -inset, -inset)
        radius = rect.height() / 2 if pill else RADIUS * max(scale, 0.5)
        if outline.halo:
            _paint_halo(painter, rect, radius)
        painter.setBrush(QColor(ink.header if is_plain else ink.body))
        painter.setPen(QPen(QColor(outline.colour), outline.width))
        if node.kind in GROUPS:
            # Drawn as a stack of cards, since it has contents.
            painter.drawRoundedRect(edge.translated(3 * scale, 3 * scale), radius, radius)
        painter.drawRoundedRect(edge, radius, radius)
        shade = self._colours.shade(node.id)
        if shade is not None and shade.wrong:
            hatch = QColor(theme.wrong)
            hatch.setAlphaF(0.35)
            painter.setBrush(QBrush(hatch, Qt.BrushStyle.BDiagPattern))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(edge, radius, radius)
        if pill:
            return self._paint_pill(painter, node, rect, scale)
        if not is_plain:
            bar = QRectF(rect.left() + 1, rect.top() + 1, rect.width() - 2, header - 1)
            painter.fillPath(_top(bar, radius - 1), QColor(ink.header))
            if scale >= DETAIL_SCALE:
                painter.setPen(QPen(QColor(theme.node_line), 1))
                painter.drawLine(
                    bar.bottomLeft() + QPointF(0, -0.5), bar.bottomRight() + QPointF(0, -0.5)
                )
            self._paint_header(painter, node, bar, scale, QColor(ink.text))
        return self._paint_name(painter, node, rect, scale, 0.0 if is_plain else header)

    def _paint_pill(self, painter: QPainter, node: Box, rect: QRectF, scale: float) -> Label:
        theme = current()
        title = type_of(_TITLE * scale, _LEAST_TITLE, bold=True)
        quiet = type_of(_SMALL * scale, _LEAST_SMALL)
        room = rect.width() - 2 * PADDING * scale
        name = title.cut(node.title, max(room, rect.width() - 8), _MIDDLE)
        middle, gap = rect.center().y(), 6.0 * scale
        rest = quiet.cut(node.rows[0][0], room - title.width(name) - gap) if node.rows else ""
        if len(rest) < 2 or scale < DETAIL_SCALE:
            rest = ""
        width = title.width(name) + (gap + quiet.width(rest) if rest else 0.0)
        left = round(rect.center().x() - width / 2)
        title.draw(painter, left, middle, name, QColor(theme.text))
        if rest:
            quiet.draw(painter, left + title.width(name) + gap, middle, rest, QColor(theme.quiet))
        return Label(name, title.pixels, rect)

    def _paint_header(
        self, painter: QPainter, node: Box, bar: QRectF, scale: float, colour: QColor
    ) -> None:
        kind = type_of(_SMALL * scale, _LEAST_SMALL)
        left, right = bar.left() + PADDING * max(scale, 0.5) - 1, bar.right() - 5 * scale
        if node.kind in GROUPS and scale >= CHEVRON_SCALE:
            paint_chevron(painter, chevron(bar, scale), is_open=False)
            left = chevron(bar, scale).right() + 2
        if node.badge:
            width = self._paint_badge(painter, node, bar, right, scale)
            right -= width + 4 * scale
        if right - left > 2 * kind.pixels:
            kind.draw(painter, left, bar.center().y(), kind.cut(node.header, right - left), colour)

    def _paint_badge(
        self, painter: QPainter, node: Box, bar: QRectF, right: float, scale: float
    ) -> float:
        """Paint the strategy of a node at the right of its header; return the width."""
        theme = current()
        kind = type_of(_BADGE * scale, _LEAST_SMALL, bold=True)
        colour = QColor(strategy_colour(theme, node.strategy))
        width = kind.width(node.badge)
        if scale < DETAIL_SCALE:
            if width > bar.width() / 3:
                return 0.0
            kind.draw(painter, right - width, bar.center().y(), node.badge, colour)
            return width
        width += 9
        place = QRectF(round(right - width), round(bar.center().y()) - 8, width, 15)
        painter.setPen(QPen(colour, 1))
        painter.setBrush(QColor(theme.panel))
        painter.drawRoundedRect(place.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        kind.draw(painter, place.left() + 4.5, place.center().y(), node.badge, colour)
        return width

    def _paint_name(
        self, painter: QPainter, node: Box, rect: QRectF, scale: float, header: float
    ) -> Label:
        """Paint the name of a node below its header, its value beside it, and the rows."""
        theme = current()
        kind = type_of(_TITLE * scale, _LEAST_TITLE, bold=True)
        left = rect.left() + PADDING * max(scale, 0.3)
        right = rect.right() - PADDING * max(scale, 0.3)
        is_whole = scale >= DETAIL_SCALE
        line = NAME_LINE * scale if is_whole and node.rows else rect.height() - header
        middle = rect.top() + header + min(line, rect.height() - header) / 2
        room = right - left
        shade = self._colours.shade(node.id)
        if shade is not None and is_whole:
            value = type_of(_SMALL, bold=True)
            width = value.width(shade.text)
            colour = QColor(theme.wrong if shade.wrong else theme.text)
            value.draw(painter, right - width, middle, shade.text, colour)
            room -= width + 6
        name = kind.cut(node.title, room, _MIDDLE)
        kind.draw(painter, left, middle, name, QColor(theme.text))
        if is_whole:
            self._paint_rows(painter, node, QRectF(left, middle + NAME_LINE / 2, right - left, 0))
        return Label(name, kind.pixels, rect)

    def _paint_rows(self, painter: QPainter, node: Box, below: QRectF) -> None:
        theme = current()
        kind = type_of(_SMALL)
        # Secondary text is unreadable on a coloured background.
        shaded = self._colours.shade(node.id) is not None
        quiet, text = QColor(theme.text if shaded else theme.quiet), QColor(theme.text)
        for number, (name, value) in enumerate(node.rows):
            middle = below.top() + ROW * (number + 0.5) - 1
            value = kind.cut(value, below.width() * 0.8)
            name = kind.cut(name, below.width() - (kind.width(value) + 8 if value else 0))
            kind.draw(painter, below.left(), middle, name, quiet)
            if value:
                kind.draw(painter, below.right() - kind.width(value), middle, value, text)

    def _paint_block(
        self, painter: QPainter, block: Block, rect: QRectF, outline: Outline
    ) -> Label:
        """Paint a block with its name, as large as there is room."""
        theme = current()
        nodes = [self._index.nodes[name] for name in block.boxes]
        if outline.halo:
            _paint_halo(painter, rect, 3)
        painter.setBrush(QColor(self._colours.block(theme, nodes, block.family)))
        painter.setPen(QPen(QColor(outline.colour if outline.halo else theme.panel), outline.width))
        painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        title, _, rest = block.title.partition(" · ") if block.frame else (block.title, "", "")
        if rest and rect.height() < 3 * _NAMES[-2]:
            title, rest = block.title, ""
        room, middle, centre = rect.width() - 6, rect.center().y(), rect.center().x()
        sizes = [each for each in _NAMES if each * 1.2 <= max(rect.height() / 2, 12.0)]
        kinds = [type_of(each, bold=True) for each in sizes]
        kind = next((each for each in kinds if each.width(title) <= room), kinds[-1])
        text = kind.cut(title, room, _MIDDLE if block.frame else _RIGHT)
        if rest:
            # The class of a module, below its name.
            small = type_of(_SMALL)
            middle -= small.pixels * 0.7
            class_name = small.cut(rest, room)
            below = middle + kind.pixels / 2 + small.pixels
            left = round(centre - small.width(class_name) / 2)
            small.draw(painter, left, below, class_name, QColor(theme.text))
        left = round(centre - kind.width(text) / 2)
        kind.draw(painter, left, middle, text, QColor(theme.text))
        return Label(text, kind.pixels, rect)


def _paint_halo(painter: QPainter, rect: QRectF, radius: float) -> None:
    halo = QColor(current().accent)
    halo.setAlphaF(0.25)
    painter.setBrush(halo)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.drawRoundedRect(rect.adjusted(-3, -3, 3, 3), radius + 3, radius + 3)


def _paint_ring(painter: QPainter, rect: QRectF, pen: QPen) -> None:
    """Paint an outline around a node."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(pen)
    painter.drawRoundedRect(rect.adjusted(-3.5, -3.5, 3.5, 3.5), RADIUS + 3, RADIUS + 3)


def _top(bar: QRectF, radius: float) -> QPainterPath:
    """Return the path of a bar whose upper corners are round."""
    path = QPainterPath()
    left, top, right, bottom = bar.left(), bar.top(), bar.right(), bar.bottom()
    path.moveTo(left, bottom)
    path.lineTo(left, top + radius)
    path.quadTo(left, top, left + radius, top)
    path.lineTo(right - radius, top)
    path.quadTo(right, top, right, top + radius)
    path.lineTo(right, bottom)
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
        colours: The colours of nodes.
    """

    def __init__(
        self, index: GraphIndex, labels: bool = True, colours: Colours | None = None
    ) -> None:
        self.labels = labels  # Whether all edges have labels; those of marked nodes always have.
        self.detail = Detail(index)
        self._index = index
        self._edges = EdgePaths(index)
        self._label = type_of(LABEL_PIXELS)
        # Cached path of the edges of marked nodes, until the marks change.
        self._marked: tuple[frozenset[str], list[int], QPainterPath, QPainterPath] | None = None
        self.set_colours(colours or Colours())

    def set_colours(self, colours: Colours) -> None:
        """Paint nodes in other colours."""
        self.nodes = NodePainter(self._index, colours)

    def paint(self, painter: QPainter, area: QRectF, zoom: float) -> list[Label]:
        """Paint an area without marks; return the names of its boxes and blocks.

        The painter's coordinates are the graph's.
        """
        level = self.detail.at(zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_frames(painter, level.frames, area, zoom)
        self.paint_edges(painter, area, zoom)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if zoom >= BLOCK_SCALE:
            paint_ports(painter, self._index, self._index.graph.ports, area, zoom)
        return self.nodes.paint(painter, level.boxes_in(area), level.blocks_in(area), zoom)

    def edge_at(self, point: QPointF, near: float) -> Edge | None:
        """Return the edge at a position, or at most `near` beside it."""
        return self._edges.at(point, near)

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
        if self.labels and zoom >= DETAIL_SCALE:
            for bunch in bunches:
                self._paint_labels(painter, self._edges.labels(bunch, area))

    def paint_marks(self, painter: QPainter, area: QRectF, zoom: float, marks: Marks) -> None:
        """Paint the marks over the graph."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        index, level = self._index, self.detail.at(zoom)
        if marks.hovered in index.frames:
            paint_frames(painter, level.frames, area, zoom, (marks.hovered,))
        paint_pinned_titles(painter, level.frames, area, zoom)
        self._paint_marked_edges(painter, area, zoom, marks)
        lit: list[str] = []
        if marks.port is not None:
            lit = [name for name in (marks.port.box, *marks.port.others) if name in index.nodes]
            ports = (marks.port, *index.ends(marks.port))
            paint_ports(painter, index, ports, area, zoom, marked=True)
        theme = current()
        selected = Outline(theme.accent, 2, halo=True)
        for names, outline in (
            ({marks.hovered, *lit} - marks.selection, Outline(theme.accent)),
            (marks.selection, selected),
        ):
            boxes, blocks = self._drawn(names, area, zoom)
            self.nodes.paint(painter, boxes, blocks, zoom, outline)
        with _sheet(painter, zoom) as (place, _):
            for rect in self._rects(marks.found, area, zoom):
                _paint_ring(painter, place(rect), QPen(QColor(theme.text), 2))
            for rect in self._rects({marks.walked}, area, zoom):
                _paint_ring(
                    painter, place(rect), QPen(QColor(theme.accent), 1, Qt.PenStyle.DotLine)
                )
        flagged = self._seen(marks.flags & index.nodes.keys(), area)
        paint_flags(painter, [index.rects[name] for name in flagged], zoom)

    def _drawn(
        self, names: Collection[str], area: QRectF, zoom: float
    ) -> tuple[list[str], list[Block]]:
        """Return the boxes and blocks in an area that some nodes are, or are in."""
        level = self.detail.at(zoom)
        blocks = level.blocks_of(names) if level.blocks else []
        inside = {name for block in blocks for name in block.boxes}
        boxes = self._seen({*names} & self._index.nodes.keys() - inside, area)
        return boxes, [block for block in blocks if block.rect.intersects(area)]

    def _rects(self, names: Collection[str], area: QRectF, zoom: float) -> list[QRectF]:
        """Return the areas of the boxes, blocks and frames that some names stand for."""
        boxes, blocks = self._drawn(names, area, zoom)
        frames = {*names} & self._index.frames.keys() - {block.frame for block in blocks}
        return [
            *(self._index.rects[name] for name in boxes),
            *(block.rect for block in blocks),
            *(self._index.frames[name] for name in frames),
        ]

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
        if zoom >= DETAIL_SCALE:
            labels = self._edges.labels_of(numbers)
            self._paint_labels(painter, [each for each in labels if each[1].intersects(area)])

    def _paint_labels(self, painter: QPainter, labels: Iterable[tuple[str, QRectF]]) -> None:
        theme = current()
        ground, colour = QColor(theme.panel), QColor(theme.quiet)
        for text, place in labels:
            painter.fillRect(place, ground)
            text = text[:SHOWN_CHARACTERS]
            self._label.draw(painter, place.left() + 2, place.center().y(), text, colour)

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
        raise OSError(
            _(
                "a picture of {width} × {height} pixels is too large",
                width=size.width(),
                height=size.height(),
            )
        )
    _paint(graph, area, image, scale)
    if not image.save(str(path)):
        raise OSError(_("Qt cannot write it"))


def _paint(graph: GraphPainter, area: QRectF, device: QPaintDevice, scale: float) -> None:
    painter = QPainter()
    if not painter.begin(device):
        raise OSError(_("Qt cannot write it"))
    painter.scale(scale, scale)
    painter.translate(-area.topLeft())
    painter.fillRect(area, QColor(current().panel))
    painter.setClipRect(area)
    # At full scale, whatever the scale of the picture: all text, and all curves.
    graph.paint(painter, area, 1.0)
    if not painter.end():
        raise OSError(_("Qt cannot write it"))


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

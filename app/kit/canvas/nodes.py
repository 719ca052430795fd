"""Painting of a graph's nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QPainter, QPainterPath, QPen

from lowerscope.app.kit.canvas.frames import TEXT_SCALE, paint_chevron
from lowerscope.app.kit.canvas.index import GraphIndex, chevron
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
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.graph import CHEVRON, GROUPS, Box

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.paint import Marks

RADIUS = 5.0
BAR = 4.0
_LEFT = 14.0
_RIGHT = 9.0
_TITLE_PIXELS = 13.0
_SUBTITLE_PIXELS = 11.0
_BADGE_PIXELS = 10.5
_TITLE_STEP = 14.0
_CAPITAL = 0.364
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
        self._title = ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)
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
        font = ui_font(_TITLE_PIXELS, QFont.Weight.DemiBold)
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
        base = middle + _TITLE_PIXELS * _CAPITAL
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
    return _LEFT + (CHEVRON if node.kind in GROUPS else 0.0)


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

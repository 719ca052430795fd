"""Edges of a graph as painter's paths, and places for their labels."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QPainterPath, QPolygonF

from lowerscope.app.widgets.canvas_graph import CanvasEdge, GraphIndex, cells_of
from lowerscope.app.widgets.typefaces import ui_font

LABEL_PIXELS = 11.0
_ARROW_LENGTH = 7.0
_ARROW_HALF_WIDTH = 3.5
_CORNER = 8.0
_LABEL_GAP = 7.0


@dataclass
class Bunch:
    """Edges that start in one cell, as one path, so that they are drawn by one call."""

    edges: list[int] = field(default_factory=list)
    lines: QPainterPath = field(default_factory=QPainterPath)
    arrows: QPainterPath = field(default_factory=QPainterPath)
    bounds: QRectF = field(default_factory=QRectF)


class EdgePaths:
    """The paths of a graph's edges, each made once.

    Parameters
    ----------
    index : GraphIndex
        The graph and where its nodes are.
    """

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._edges = index.graph.edges
        self._lines = [line_path(edge.points) for edge in self._edges]
        self._arrows = [arrow_path(edge.points) for edge in self._edges]
        self._bunches: dict[tuple[int, int], Bunch] = {}
        self._of_node: dict[str, list[int]] = {}
        self._labelled: set[int] = set()
        self._labels: dict[int, QRectF] = {}
        # What flows out of a node is the same on all its edges: said once.
        seen = {(edge.source, edge.label) for edge in self._edges if edge.label_at}
        for i, edge in enumerate(self._edges):
            start = QPointF(*edge.points[0])
            cell = next(cells_of(QRectF(start, start)))
            bunch = self._bunches.setdefault(cell, Bunch())
            bunch.edges.append(i)
            bunch.lines.addPath(self._lines[i])
            bunch.arrows.addPath(self._arrows[i])
            for name in {edge.source, edge.target}:
                self._of_node.setdefault(name, []).append(i)
            if edge.label and (edge.label_at or (edge.source, edge.label) not in seen):
                seen.add((edge.source, edge.label))
                self._labelled.add(i)
        for bunch in self._bunches.values():
            bunch.bounds = bunch.lines.boundingRect().adjusted(-80, -8, 80, 8)

    def inside(self, area: QRectF) -> list[Bunch]:
        """The bunches that touch an area."""
        return [bunch for bunch in self._bunches.values() if bunch.bounds.intersects(area)]

    def of_node(self, name: str) -> list[tuple[QPainterPath, QPainterPath]]:
        """Line and arrow of each edge at a node."""
        return [(self._lines[i], self._arrows[i]) for i in self._of_node.get(name, ())]

    def labels(self, bunch: Bunch, area: QRectF) -> list[tuple[str, QRectF]]:
        """The labels of a bunch that touch an area, with their places."""
        result = []
        for i in bunch.edges:
            if i in self._labelled:
                if i not in self._labels:
                    self._labels[i] = self._place_label(i)
                if self._labels[i].intersects(area):
                    result.append((self._edges[i].label, self._labels[i]))
        return result

    def _place_label(self, i: int) -> QRectF:
        """Where it was said, or beside the line, where it meets no node and no other label."""
        metrics = QFontMetricsF(ui_font(LABEL_PIXELS))
        width = metrics.horizontalAdvance(self._edges[i].label) + 4
        height = metrics.height()
        said = self._edges[i].label_at
        if said is not None:
            return QRectF(said[0] - 2, said[1] - height / 2, width, height)
        first = QRectF()
        for at in label_points(self._edges[i]):
            for left in (at.x() + _LABEL_GAP - 2, at.x() - _LABEL_GAP + 2 - width):
                place = QRectF(left, at.y() - height / 2, width, height)
                if first.isNull():
                    first = place
                if self._is_free(place, i):
                    return place
        return first

    def _is_free(self, place: QRectF, own: int) -> bool:
        if self._index.inside(place.adjusted(-2, -2, 2, 2)):
            return False
        if any(other.intersects(place) for other in self._labels.values()):
            return False
        for bunch in self.inside(place):
            for i in bunch.edges:
                path = self._lines[i]
                if (
                    i != own
                    and path.boundingRect().adjusted(-1, -1, 1, 1).intersects(place)
                    and path.intersects(place)
                ):
                    return False
        return True


def label_points(edge: CanvasEdge) -> list[QPointF]:
    """Places on an edge for its label, the best first: the middle of its longest upright parts."""
    parts = [(abs(y1 - y0), x0, y0, x1, y1) for (x0, y0), (x1, y1) in pairwise(edge.points)]
    parts.sort(key=lambda part: (part[1] == part[3], part[0]), reverse=True)
    places = []
    for _, x0, y0, x1, y1 in parts[:3]:
        for share in (0.45, 0.3, 0.65):
            # On a curve with upright ends: an S, whose middle is the middle of the straight line.
            bend = share * share * (3 - 2 * share)
            places.append(QPointF(x0 + (x1 - x0) * bend, y0 + (y1 - y0) * share))
    return places


def line_path(points: tuple[tuple[float, float], ...]) -> QPainterPath:
    """The line through the points: curves that leave and arrive upright, or rounded corners."""
    shortened = _without_arrow(points)
    path = QPainterPath(QPointF(*shortened[0]))
    if any(_is_level(a, b) for a, b in pairwise(shortened)):
        _add_corners(path, shortened)
        return path
    for (x0, y0), (x1, y1) in pairwise(shortened):
        if abs(x1 - x0) < 0.5:
            path.lineTo(x1, y1)
        else:
            # A wide step keeps upright for longer, or it would begin with a kink.
            bend = (y1 - y0) * (0.9 if abs(x1 - x0) > abs(y1 - y0) else 0.5)
            path.cubicTo(x0, y0 + bend, x1, y1 - bend, x1, y1)
    return path


def arrow_path(points: tuple[tuple[float, float], ...]) -> QPainterPath:
    """The head at the end of the line."""
    x, y = points[-1]
    dx, dy = _direction(points)
    bx, by = x - dx * _ARROW_LENGTH, y - dy * _ARROW_LENGTH
    across_x, across_y = -dy * _ARROW_HALF_WIDTH, dx * _ARROW_HALF_WIDTH
    path = QPainterPath()
    path.addPolygon(
        QPolygonF(
            [
                QPointF(x, y),
                QPointF(bx + across_x, by + across_y),
                QPointF(bx - across_x, by - across_y),
                QPointF(x, y),
            ]
        )
    )
    return path


def _direction(points: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    """How the line arrives: level where its last part is level, else upright."""
    (x0, y0), (x1, y1) = points[-2], points[-1]
    if _is_level(points[-2], points[-1]) and x0 != x1:
        return (1.0 if x1 > x0 else -1.0), 0.0
    return 0.0, (1.0 if y1 >= y0 else -1.0)


def _without_arrow(points: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    dx, dy = _direction(points)
    x, y = points[-1]
    back = _ARROW_LENGTH - 1
    return [*points[:-1], (x - dx * back, y - dy * back)]


def _is_level(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return abs(a[1] - b[1]) < 0.5


def _add_corners(path: QPainterPath, points: list[tuple[float, float]]) -> None:
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        path.lineTo(*_towards(corner, before))
        path.quadTo(QPointF(*corner), QPointF(*_towards(corner, after)))
    path.lineTo(*points[-1])


def _towards(corner: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    length = hypot(end[0] - corner[0], end[1] - corner[1])
    share = min(_CORNER, length / 2) / length if length else 0.0
    return corner[0] + (end[0] - corner[0]) * share, corner[1] + (end[1] - corner[1]) * share

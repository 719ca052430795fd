"""Edges of a graph as painter's paths, and places for their labels."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainterPath

from lowerscope.app.kit.canvas.index import MOST_CELLS, GraphIndex
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.graph import Edge

LABEL_PIXELS = 11.0
_ARROW_LENGTH = 7.0
_ARROW_HALF_WIDTH = 3.5
_CORNER = 8.0
_LABEL_GAP = 7.0
_WIDEST_LETTER = 9.0
_CELL = 400.0
_LARGE_CELL = 1600.0


class Bunch:
    """Edges that start in one cell, and are drawn by one call."""

    def __init__(self) -> None:
        self.edges: list[int] = []  # Their indices.
        self.left: float = math.inf  # The extent of them and their labels.
        self.top: float = math.inf
        self.right: float = -math.inf
        self.bottom: float = -math.inf

    def add(self, number: int, edge: Edge) -> None:
        """Add an edge by its index."""
        self.edges.append(number)
        xs, ys = [x for x, _ in edge.points], [y for _, y in edge.points]
        beside = _LABEL_GAP + _WIDEST_LETTER * len(edge.label)
        if edge.label_at is not None:
            xs.append(edge.label_at[0])
        self.left = min(self.left, min(xs) - beside)
        self.right = max(self.right, max(xs) + beside)
        self.top = min(self.top, *ys)
        self.bottom = max(self.bottom, *ys)

    def cells(self) -> Iterator[tuple[int, int]]:
        """Return the large cells that it overlaps."""
        return _cells(self.left, self.top, self.right, self.bottom)


class EdgePaths:
    """The paths of a graph's edges, created when they are first visible.

    Args:
        index: The graph and the positions of its nodes.
    """

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._edges = index.graph.edges
        self._paths: dict[int, tuple[QPainterPath, QPainterPath]] = {}
        self._drawn: dict[int, tuple[QPainterPath, QPainterPath]] = {}
        self._straight: dict[int, list[QLineF]] = {}
        self._labels: dict[int, QRectF] = {}
        self._metrics = TextMetrics(ui_font(LABEL_PIXELS))
        self._at: dict[str, list[int]] = {}
        # The edge that has the label, for each source and label: the output of a node is the same
        # on all its edges, and is labelled once.
        placed: dict[tuple[str, str], int] = {}
        others: dict[tuple[str, str], int] = {}
        bunches: dict[tuple[int, int], Bunch] = {}
        for number, edge in enumerate(self._edges):
            x, y = edge.points[0]
            bunches.setdefault((int(x // _CELL), int(y // _CELL)), Bunch()).add(number, edge)
            self._at.setdefault(edge.source, []).append(number)
            self._at.setdefault(edge.target, []).append(number)
            if edge.label:
                said = others if edge.label_at is None else placed
                said.setdefault((edge.source, edge.label), number)
        self._labelled_for = {**others, **placed}
        self._labelled = frozenset(self._labelled_for.values())
        self._bunches = list(bunches.values())
        # Spatial index, so that a small area is not tested against every bunch.
        self._cells: dict[tuple[int, int], list[Bunch]] = {}
        room = MOST_CELLS
        for bunch in self._bunches:
            for cell in islice(bunch.cells(), room):
                self._cells.setdefault(cell, []).append(bunch)
                room -= 1

    def inside(self, area: QRectF) -> list[Bunch]:
        """Return the bunches that overlap an area."""
        left, top, right, bottom = area.left(), area.top(), area.right(), area.bottom()
        cells = list(_cells(left, top, right, bottom)) if area.width() < 20 * _LARGE_CELL else []
        near: Iterable[Bunch] = self._bunches
        if 0 < len(cells) < len(self._cells):
            near = dict.fromkeys(each for at in cells for each in self._cells.get(at, ()))
        return [
            bunch
            for bunch in near
            if bunch.left < right
            and bunch.right > left
            and bunch.top < bottom
            and bunch.bottom > top
        ]

    def drawn(self, bunch: Bunch) -> tuple[QPainterPath, QPainterPath]:
        """Return the lines and arrows of a bunch, each as one path."""
        found = self._drawn.get(id(bunch))
        if found is None:
            found = self._drawn[id(bunch)] = self.together(bunch.edges)
        return found

    def straight(self, bunch: Bunch) -> list[QLineF]:
        """Return the lines of a bunch without curves, for a small scale."""
        found = self._straight.get(id(bunch))
        if found is None:
            found = self._straight[id(bunch)] = [
                QLineF(*a, *b)
                for number in bunch.edges
                for a, b in pairwise(self._edges[number].points)
            ]
        return found

    def of_nodes(self, names: Iterable[str]) -> list[int]:
        """Return the indices of the edges of some nodes."""
        found = {number: None for name in names for number in self._at.get(name, ())}
        return list(found)

    def together(self, numbers: Iterable[int]) -> tuple[QPainterPath, QPainterPath]:
        """Return the lines and arrows of these edges, each as one path."""
        lines, arrows = QPainterPath(), QPainterPath()
        for number in numbers:
            line, arrow = self._path(number)
            lines.addPath(line)
            arrows.addPath(arrow)
        return lines, arrows

    def labels(self, bunch: Bunch, area: QRectF) -> list[tuple[str, QRectF]]:
        """Return the labels of a bunch that overlap an area, with their positions."""
        labelled = [number for number in bunch.edges if number in self._labelled]
        return [each for each in self.labels_of(labelled) if each[1].intersects(area)]

    def labels_of(self, numbers: Iterable[int]) -> list[tuple[str, QRectF]]:
        """Return the labels of these edges, each text once, with their positions."""
        said: dict[tuple[str, str], int] = {}
        for number in numbers:
            edge = self._edges[number]
            if edge.label:
                said.setdefault((edge.source, edge.label), number)
        result = []
        for key, number in said.items():
            at = self._labelled_for.get(key, number)
            if at not in self._labels:
                self._labels[at] = self._place_label(at)
            result.append((key[1], self._labels[at]))
        return result

    def _path(self, number: int) -> tuple[QPainterPath, QPainterPath]:
        found = self._paths.get(number)
        if found is None:
            points = self._edges[number].points
            found = self._paths[number] = line_path(points), arrow_path(points)
        return found

    def _place_label(self, number: int) -> QRectF:
        """Return the label's position: as before, or beside the line, clear of nodes and labels."""
        metrics = self._metrics
        edge = self._edges[number]
        width = metrics.horizontalAdvance(edge.label) + 4
        height = metrics.height()
        said = edge.label_at
        if said is not None:
            return QRectF(said[0] - 2, said[1] - height / 2, width, height)
        first = QRectF()
        for at in label_points(edge):
            for left in (at.x() + _LABEL_GAP - 2, at.x() - _LABEL_GAP + 2 - width):
                place = QRectF(left, at.y() - height / 2, width, height)
                if first.isNull():
                    first = place
                if self._is_free(place, number):
                    return place
        return first

    def _is_free(self, place: QRectF, own: int) -> bool:
        if self._index.inside(place.adjusted(-2, -2, 2, 2)):
            return False
        if any(other.intersects(place) for other in self._labels.values()):
            return False
        for bunch in self.inside(place):
            for number in bunch.edges:
                line, _ = self._path(number)
                if (
                    number != own
                    and line.boundingRect().adjusted(-1, -1, 1, 1).intersects(place)
                    and line.intersects(place)
                ):
                    return False
        return True


def _cells(left: float, top: float, right: float, bottom: float) -> Iterator[tuple[int, int]]:
    for x in range(int(left // _LARGE_CELL), int(right // _LARGE_CELL) + 1):
        for y in range(int(top // _LARGE_CELL), int(bottom // _LARGE_CELL) + 1):
            yield x, y


def label_points(edge: Edge) -> list[QPointF]:
    """Return positions on an edge for its label, best first: middles of long vertical parts."""
    parts = [(abs(y1 - y0), x0, y0, x1, y1) for (x0, y0), (x1, y1) in pairwise(edge.points)]
    parts.sort(key=lambda part: (part[1] == part[3], part[0]), reverse=True)
    places = []
    for _, x0, y0, x1, y1 in parts[:3]:
        for share in (0.45, 0.3, 0.65):
            # With vertical ends, the curve is an S, whose middle is that of the straight line.
            bend = share * share * (3 - 2 * share)
            places.append(QPointF(x0 + (x1 - x0) * bend, y0 + (y1 - y0) * share))
    return places


def line_path(points: tuple[tuple[float, float], ...]) -> QPainterPath:
    """Return the line through the points: curves with vertical ends, or rounded corners."""
    shortened = _without_arrow(points)
    path = QPainterPath(QPointF(*shortened[0]))
    if any(_is_level(a, b) for a, b in pairwise(shortened)):
        _add_corners(path, shortened)
        return path
    for (x0, y0), (x1, y1) in pairwise(shortened):
        if abs(x1 - x0) < 0.5:
            path.lineTo(x1, y1)
        else:
            # A wide step stays vertical for longer, or it would begin with a kink.
            bend = (y1 - y0) * (0.9 if abs(x1 - x0) > abs(y1 - y0) else 0.5)
            path.cubicTo(x0, y0 + bend, x1, y1 - bend, x1, y1)
    return path


def arrow_path(points: tuple[tuple[float, float], ...]) -> QPainterPath:
    """Return the arrow head at the end of the line."""
    x, y = points[-1]
    dx, dy = _direction(points)
    bx, by = x - dx * _ARROW_LENGTH, y - dy * _ARROW_LENGTH
    across_x, across_y = -dy * _ARROW_HALF_WIDTH, dx * _ARROW_HALF_WIDTH
    path = QPainterPath()
    path.moveTo(x, y)
    path.lineTo(bx + across_x, by + across_y)
    path.lineTo(bx - across_x, by - across_y)
    path.closeSubpath()
    return path


def _direction(points: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    """Return the direction of the line at its end: horizontal or vertical, as its last part."""
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
    length = math.hypot(end[0] - corner[0], end[1] - corner[1])
    share = min(_CORNER, length / 2) / length if length else 0.0
    return corner[0] + (end[0] - corner[0]) * share, corner[1] + (end[1] - corner[1]) * share

"""Geometry of a graph: places of its parts, neighbours, and paths of edges with their labels."""

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice, pairwise
from typing import Generic, Literal, TypeVar

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QPainterPath, QPainterPathStroker

from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.graph import CHEVRON, GROUPS, TITLE_BAR, Edge, GraphRecord, Port, Region
from lowerscope.core.model.texts import _, _n, joined

Way = Literal["up", "down", "left", "right", "first", "last"]
"""A step of keyboard navigation."""

Key = TypeVar("Key", str, int)

_MOST_CELLS = 200_000
"""Bound on the cells of all areas; those of a layout are in one or two each."""


class Places(Generic[Key]):
    """Spatial index of areas by their keys.

    Args:
        rects: The areas, which are not modified.
        cell: Side of the cells of the index, a few times that of an area.
    """

    def __init__(self, rects: Mapping[Key, QRectF], cell: float) -> None:
        self.rects: Mapping[Key, QRectF] = rects  # The areas by their keys.
        self._cell = cell
        self._cells: dict[tuple[int, int], list[Key]] = {}
        room = _MOST_CELLS
        for key, rect in rects.items():
            for at in islice(self._cells_of(rect), room):
                self._cells.setdefault(at, []).append(key)
                room -= 1

    def at(self, point: QPointF) -> Key | None:
        """Return the uppermost area at a position."""
        cell = (int(point.x() // self._cell), int(point.y() // self._cell))
        keys = reversed(self._cells.get(cell, []))
        return next((key for key in keys if self.rects[key].contains(point)), None)

    def inside(self, area: QRectF) -> list[Key]:
        """Return the areas that overlap another, each once, in their order within a cell."""
        found: dict[Key, None] = {}
        for cell in self._cells_of(area, is_query=True):
            for key in self._cells.get(cell, ()):
                if key not in found and self.rects[key].intersects(area):
                    found[key] = None
        return list(found)

    def _cells_of(self, area: QRectF, is_query: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the cells that an area overlaps; of a huge query, only those that have items."""
        left, right = int(area.left() // self._cell), int(area.right() // self._cell)
        top, bottom = int(area.top() // self._cell), int(area.bottom() // self._cell)
        if is_query and (right - left + 1) * (bottom - top + 1) > 64:
            for x, y in self._cells:
                if left <= x <= right and top <= y <= bottom:
                    yield x, y
            return
        for x in range(left, right + 1):
            for y in range(top, bottom + 1):
                yield x, y


_CELL = 512.0

# Nodes whose centres are less apart than this are in one layer.
_LAYER = 8.0
_CHEVRON_LEFT = 6.0


class GraphIndex:
    """Spatial index of the nodes, frames and ports of a graph, and their neighbours.

    Args:
        graph: The graph, which is not modified.
    """

    def __init__(self, graph: GraphRecord) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.boxes}  # The nodes by their ids.
        # Their areas, in whole pixels, so that an outline is one pixel and not two half ones.
        self.rects = {
            node.id: QRectF(round(node.x), round(node.y), round(node.width), round(node.height))
            for node in graph.boxes
        }
        # The areas of the regions that can be collapsed, by their ids; outer ones first.
        self.frames = {region.id: region_rect(region) for region in graph.regions if region.id}
        self._around = {
            **{node.id: node.group for node in graph.boxes},
            **{region.id: region.group for region in graph.regions if region.id},
        }
        self._places = Places(self.rects, _CELL)

    def bounds(self) -> QRectF:
        """Return the bounds of the whole drawing."""
        return QRectF(0, 0, self.graph.width, self.graph.height)

    def at(self, point: QPointF) -> str:
        """Return the node at a position, or ``""``."""
        return self._places.at(point) or ""

    def inside(self, area: QRectF) -> list[str]:
        """Return the nodes that overlap an area."""
        return self._places.inside(area)

    def bar_at(self, point: QPointF) -> str:
        """Return the frame whose title bar is at a position, or ``""``."""
        for name in reversed(self.frames):
            if title_bar(self.frames[name]).contains(point):
                return name
        return ""

    def chevron_at(self, point: QPointF) -> bool:
        """Return whether the chevron of a group or of a frame is at a position."""
        group, frame = self.at(point), self.bar_at(point)
        if group:
            is_group = self.nodes[group].kind in GROUPS
            return is_group and chevron(self.rects[group]).contains(point)
        return bool(frame) and chevron(title_bar(self.frames[frame])).contains(point)

    def frames_around(self, name: str) -> list[str]:
        """Return the frames around a node or another frame, innermost first."""
        frames = []
        while (name := self._around.get(name, "")) in self.frames and name not in frames:
            frames.append(name)
        return frames

    def port_at(self, point: QPointF) -> Port | None:
        """Return the port at a position."""
        return next((port for port in self.graph.ports if port_rect(port).contains(point)), None)

    def ends(self, port: Port) -> list[Port]:
        """Return the ports at the other ends of one."""
        return [
            other
            for each in port.others
            for other in self.ports_of.get(each, ())
            if port.box in other.others and other.side != port.side
        ]

    def place(self, name: str) -> QRectF | None:
        """Return the area of a node, or of the frame of an expanded module."""
        return self.rects[name] if name in self.rects else self.frames.get(name)

    @cached_property
    def ports_of(self) -> dict[str, list[Port]]:
        """The ports of each node that has any."""
        result: dict[str, list[Port]] = {}
        for port in self.graph.ports:
            result.setdefault(port.box, []).append(port)
        return result

    # Keyboard navigation

    def top(self) -> str:
        """Return the first node of the first layer, or ``""`` in an empty graph."""
        return self._layers[0][0] if self._layers else ""

    def bottom(self) -> str:
        """Return the last node of the last layer, or ``""`` in an empty graph."""
        return self._layers[-1][-1] if self._layers else ""

    def beside(self, here: str, way: Way, before: str = "") -> str:
        """Return the node that a step from a node or frame leads to, or ``""``.

        Args:
            here: The current node; ``""`` for none, which leads to the first node.
            way: Along an edge, within a layer, or to the first or last node.
            before: The previous node: a step along an edge leads back there, if there is such an
                edge.
        """
        if way == "last":
            return self.bottom()
        if way == "first" or not here:
            return self.top()
        if here in self.frames:
            inside = self.inside(self.frames[here])
            return min(inside, key=lambda name: self.rects[name].y(), default="")
        if way in ("left", "right"):
            return self.sibling(here, 1 if way == "right" else -1)
        ends = self.successors(here) if way == "down" else self.predecessors(here)
        return before if before in ends else next(iter(ends), "")

    def successors(self, name: str) -> list[str]:
        """Return the nodes that this node's edges lead to."""
        return self._neighbours[0].get(name, [])

    def predecessors(self, name: str) -> list[str]:
        """Return the nodes whose edges lead to this one."""
        return self._neighbours[1].get(name, [])

    def sibling(self, name: str, step: int) -> str:
        """Return the node `step` places to the right in the same layer, or ``""``."""
        layer = self._layers[self._layer_of[name]]
        place = layer.index(name) + step
        return layer[place] if 0 <= place < len(layer) else ""

    @cached_property
    def _neighbours(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        after: dict[str, list[str]] = {}
        before: dict[str, list[str]] = {}
        flows = [(edge.source, edge.target) for edge in self.graph.edges]
        for port in self.graph.ports:
            if port.side == "out":
                flows += [(port.box, other) for other in port.others]
        for source, target in flows:
            after.setdefault(source, []).append(target)
            before.setdefault(target, []).append(source)
        return after, before

    @cached_property
    def _layers(self) -> list[list[str]]:
        layers: list[list[str]] = []
        last = float("-inf")
        middles = {name: rect.center().y() for name, rect in self.rects.items()}
        for name in sorted(middles, key=lambda name: middles[name]):
            if middles[name] - last > _LAYER:
                layers.append([])
                last = middles[name]
            layers[-1].append(name)
        for layer in layers:
            layer.sort(key=lambda name: self.rects[name].left())
        return layers

    @cached_property
    def _layer_of(self) -> dict[str, int]:
        return {name: i for i, layer in enumerate(self._layers) for name in layer}


def region_rect(region: Region) -> QRectF:
    """Return the area of a frame, in whole pixels."""
    return QRectF(round(region.x), round(region.y), round(region.width), round(region.height))


def port_rect(port: Port) -> QRectF:
    """Return the area of a port, in whole pixels."""
    return QRectF(round(port.x), round(port.y), round(port.width), round(port.height))


def title_bar(frame: QRectF) -> QRectF:
    """Return the bar at the top of a frame that can be collapsed."""
    return QRectF(frame.left(), frame.top(), frame.width(), TITLE_BAR)


def chevron(place: QRectF, scale: float = 1.0) -> QRectF:
    """Return the area of the chevron in a group, or in the title bar of a frame."""
    middle = place.top() + min(place.height(), TITLE_BAR * scale) / 2
    side = CHEVRON * scale
    return QRectF(place.left() + _CHEVRON_LEFT * scale, middle - side / 2, side, side)


def described(
    index: GraphIndex, walked: str, selection: frozenset[str], flags: frozenset[str]
) -> str:
    """Describe the keyboard's position in a graph, or the graph, and the selection."""
    here = index.nodes.get(walked)
    if here is not None:
        flag = _("flagged") if walked in flags else ""
        text = _(", ").join(each for each in (here.title, here.description, flag) if each)
    else:
        text = joined(
            _(", "),
            (
                _n("{count} node", "{count} nodes", len(index.nodes)),
                _n("{count} edge", "{count} edges", len(index.graph.edges)),
            ),
        )
    titles = [index.nodes[name].title for name in sorted(selection)[:20] if name != walked]
    if titles:
        selected = _("selected: {titles}", titles=_(", ").join(titles))
        text += "; " + selected
    return text


LABEL_PIXELS = 11.0
_ARROW_LENGTH = 7.0
_ARROW_HALF_WIDTH = 3.5
_CORNER = 8.0
_LABEL_GAP = 7.0
_WIDEST_LETTER = 9.0
_BUNCH_CELL = 400.0
_LARGE_CELL = 1600.0


def _extent(edge: Edge) -> tuple[float, float, float, float]:
    """Return the left, top, right and bottom of an edge and its label."""
    xs, ys = [x for x, _ in edge.points], [y for _, y in edge.points]
    beside = _LABEL_GAP + _WIDEST_LETTER * len(edge.label)
    if edge.label_at is not None:
        xs.append(edge.label_at[0])
    return min(xs) - beside, min(ys), max(xs) + beside, max(ys)


class EdgePaths:
    """The paths of a graph's edges, created when they are first visible.

    They are drawn in bunches of those that start in one cell, each bunch by one call.

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
        bunches: dict[tuple[int, int], list[int]] = {}
        for number, edge in enumerate(self._edges):
            x, y = edge.points[0]
            bunches.setdefault((int(x // _BUNCH_CELL), int(y // _BUNCH_CELL)), []).append(number)
            self._at.setdefault(edge.source, []).append(number)
            self._at.setdefault(edge.target, []).append(number)
            if edge.label:
                said = others if edge.label_at is None else placed
                said.setdefault((edge.source, edge.label), number)
        self._labelled_for = {**others, **placed}
        self._labelled = frozenset(self._labelled_for.values())
        self._bunches = list(bunches.values())
        self._places = Places(
            {number: self._area(bunch) for number, bunch in enumerate(self._bunches)}, _LARGE_CELL
        )

    def _area(self, bunch: list[int]) -> QRectF:
        extents = [_extent(self._edges[number]) for number in bunch]
        left, top, right, bottom = zip(*extents, strict=True)
        # An edge that runs straight down has an extent as well.
        area = QRectF(QPointF(min(left), min(top)), QPointF(max(right), max(bottom)))
        return area.adjusted(-1, -1, 1, 1)

    def inside(self, area: QRectF) -> list[int]:
        """Return the bunches that overlap an area, by their numbers."""
        return self._places.inside(area)

    def drawn(self, bunch: int) -> tuple[QPainterPath, QPainterPath]:
        """Return the lines and arrows of a bunch, each as one path."""
        found = self._drawn.get(bunch)
        if found is None:
            found = self._drawn[bunch] = self.together(self._bunches[bunch])
        return found

    def straight(self, bunch: int) -> list[QLineF]:
        """Return the lines of a bunch without curves, for a small scale."""
        found = self._straight.get(bunch)
        if found is None:
            found = self._straight[bunch] = [
                QLineF(*a, *b)
                for number in self._bunches[bunch]
                for a, b in pairwise(self._edges[number].points)
            ]
        return found

    def at(self, point: QPointF, near: float) -> Edge | None:
        """Return the edge at a position, or at most `near` beside it."""
        stroker = QPainterPathStroker()
        stroker.setWidth(2 * near)
        around = QRectF(point.x() - near, point.y() - near, 2 * near, 2 * near)
        for bunch in self.inside(around):
            for number in self._bunches[bunch]:
                line, _ = self._path(number)
                # An edge that runs straight down has an extent as well.
                extent = line.boundingRect().adjusted(-1, -1, 1, 1)
                if extent.intersects(around) and stroker.createStroke(line).contains(point):
                    return self._edges[number]
        return None

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

    def labels(self, bunch: int, area: QRectF) -> list[tuple[str, QRectF]]:
        """Return the labels of a bunch that overlap an area, with their positions."""
        labelled = [number for number in self._bunches[bunch] if number in self._labelled]
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
            for number in self._bunches[bunch]:
                line, _ = self._path(number)
                if (
                    number != own
                    and line.boundingRect().adjusted(-1, -1, 1, 1).intersects(place)
                    and line.intersects(place)
                ):
                    return False
        return True


def label_points(edge: Edge) -> list[QPointF]:
    """Return positions on an edge for its label, best first: middles of long vertical parts."""
    parts = [(abs(y1 - y0), x0, y0, x1, y1) for (x0, y0), (x1, y1) in pairwise(edge.points)]
    parts.sort(key=lambda part: (part[1] == part[3], part[0]), reverse=True)
    places = []
    for _height, x0, y0, x1, y1 in parts[:3]:
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

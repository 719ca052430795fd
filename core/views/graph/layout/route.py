"""Vertical coordinates and edge routes of a cluster, from the inside out.

Between two layers of boxes are two zones: in the upper one, edges run straight down beside their
labels; in the lower one, they turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.model.graph import TITLE_BAR
from lowerscope.core.views.graph.layout.position import Problem, horizontal_positions
from lowerscope.core.views.graph.layout.rank import OUT, LayeredCluster, Subgraph

LABEL_ZONE = 26.0
"""Height of the zone for labels below a layer, in pixels."""

TURN_ZONE = 18.0
"""Least height of the zone in which edges turn, in pixels; with the other zone 44."""

_FRAME_ZONE = 12.0
_STRAIGHT_ZONE = 8.0
_HIGHEST_TURN_ZONE = 48.0
_TURN_SLOPE = 0.15
_LABEL_OFFSET = 7.0
_LABEL_DROP = 18.0
_PORT_STEP = 16.0
_PORT_INSET = 12.0
_ROW = 36.0
_BESIDE = 12.0
_STILL = 0.5

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NodeSize:
    """Extents of a box, in pixels.

    `left`, `right`: Least extents of the box and what is attached to it from its middle.
    `above`: height of what is attached to its top.
    `constant`: whether no spine starts at the box.
    """

    id: str
    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    above: float = 0.0
    constant: bool = False


@dataclass(eq=False, slots=True)
class RoutedCluster:
    """A cluster with coordinates, from its own top left corner.

    `corners`: the top left corner of each box or frame, by vertex.
    `entries`, `exits`: the x of the ports, by value.
    `routes`: the points of each value to each of its target vertices.
    `labels`: the left end of the label of each value that has one, by box.
    """

    layered: LayeredCluster
    width: float
    height: float
    corners: list[Point]
    entries: dict[int, float]
    exits: dict[int, float]
    routes: dict[tuple[int, int], list[Point]]
    labels: dict[int, Point]
    frames: dict[int, RoutedCluster]


@dataclass(frozen=True, slots=True)
class _Row:
    """The y of a layer: its top, that of its boxes, its bottom, and that of its turn zone."""

    top: float
    boxes: float
    bottom: float
    turn: float


def route_cluster(
    layered: LayeredCluster,
    sizes: Sequence[NodeSize],
    labels: Sequence[float],
    check: Callable[[], None],
) -> RoutedCluster:
    """Return the coordinates of everything in a cluster.

    `sizes`, `labels`: of all boxes of the graph, and the widths of the labels of their values.
    """
    frames = {
        vertex: route_cluster(frame, sizes, labels, check)
        for vertex, frame in layered.frames.items()
    }
    return _Router(layered, frames, sizes, labels).routed(check)


class _Router:
    def __init__(
        self,
        layered: LayeredCluster,
        frames: dict[int, RoutedCluster],
        sizes: Sequence[NodeSize],
        labels: Sequence[float],
    ) -> None:
        self._layered = layered
        self._frames = frames
        self._graph = graph = layered.graph
        self._values = layered.cluster.values
        self._edges = graph.graph.edges
        self._x: list[float] = []
        self._rows: list[_Row] = []
        self._corners: list[Point] = []
        vertices = len(graph.layer_of)
        self._left, self._right = [0.0] * vertices, [0.0] * vertices
        # Width, height, and the height of what is attached above, of boxes and frames.
        self._sizes: list[tuple[float, float, float]] = []
        self._label_of: dict[int, int] = {}
        for vertex, item in enumerate(layered.cluster.items):
            if not isinstance(item, int):
                width, height, above = frames[vertex].width, frames[vertex].height, 0.0
                left = right = width / 2
            else:
                size = sizes[item]
                width, height, above = size.width, size.height, size.above
                left, right = max(size.left, width / 2), max(size.right, width / 2)
                if labels[item] > 0 and item in layered.cluster.sources:
                    self._label_of[vertex] = item
                    right = max(right, _LABEL_OFFSET + labels[item])
            self._sizes.append((width, height, above))
            self._left[vertex], self._right[vertex] = left, right
        for part, vertex in graph.owner.items():
            self._left[part], self._right[part] = self._left[vertex], self._right[vertex]
        # Distance of each edge's start from the middle of its source.
        self._starts = [
            self._port_offset(edge.source, value, entering=False)
            for edge, value in zip(self._edges, self._values, strict=True)
        ]

    def routed(self, check: Callable[[], None]) -> RoutedCluster:
        graph, cluster = self._graph, self._layered.cluster
        offsets = self._offsets()
        problem = Problem(graph, self._layered.layers, self._left, self._right, offsets, check)
        x = horizontal_positions(problem)
        left, right = self._framed(x, *problem.extent(x))
        self._x = x = [at - left for at in x]
        self._place_rows(offsets)
        check()
        for vertex, (width, height, _) in enumerate(self._sizes):
            top = self._rows[graph.layer_of[vertex]].boxes
            bottom = self._rows[graph.last_layer(vertex)].bottom
            self._corners.append((x[vertex] - width / 2, top + (bottom - top - height) / 2))
        ports = iter(x[graph.boxes : graph.real])
        return RoutedCluster(
            layered=self._layered,
            width=right - left,
            height=self._rows[-1].bottom if self._rows else 0.0,
            corners=self._corners,
            entries={value: next(ports) for value in cluster.entering()},
            exits={value: next(ports) for value in cluster.leaving()},
            routes=self._routes(),
            labels={
                box: (
                    x[vertex] + _LABEL_OFFSET,
                    self._corners[vertex][1] + self._sizes[vertex][1] + _LABEL_DROP,
                )
                for vertex, box in self._label_of.items()
            },
            frames=self._frames,
        )

    def _port_offset(self, vertex: int, value: int, *, entering: bool) -> float:
        """Return the distance of an edge's end from the middle of its vertex."""
        frame = self._frames.get(vertex)
        if frame is None:
            return 0.0
        return (frame.entries if entering else frame.exits)[value] - frame.width / 2

    def _offsets(self) -> dict[tuple[int, int], float]:
        if not self._frames:
            return {}
        graph = self._graph
        offsets: dict[tuple[int, int], float] = {}
        for number, edge in enumerate(self._edges):
            chain, start = graph.chains[number], self._starts[number]
            bottom = graph.bottom[edge.source]
            if chain and start:
                offsets.setdefault((bottom, chain[0]), start)
            for target in edge.targets:
                end = self._port_offset(target, self._values[number], entering=True)
                dummies = graph.layer_of[target] - graph.layer_of[bottom] - 1
                if dummies:
                    offsets.setdefault((chain[dummies - 1], target), -end)
                else:
                    offsets.setdefault((bottom, target), start - end)
        return {edge: offset for edge, offset in offsets.items() if offset}

    def _framed(self, x: list[float], left: float, right: float) -> tuple[float, float]:
        """Return the sides of the frame, with room for the title left of all edges through it."""
        frame, graph = self._layered.cluster.frame, self._graph.graph
        if frame is None:
            return left, right
        first = graph.boxes if frame.bar else graph.boxes + graph.ins
        ports = x[first : first + (graph.ins if frame.bar else graph.outs)]
        left = min([left - _BESIDE, *(port - frame.title_width for port in ports)])
        return left, max(right + _BESIDE, left + frame.title_width)

    # Layers

    def _place_rows(self, offsets: dict[tuple[int, int], float]) -> None:
        graph, layers, x = self._graph, self._layered.layers, self._x
        ending: dict[int, list[int]] = {}
        for vertex in dict.fromkeys(graph.owner.values()):
            ending.setdefault(graph.last_layer(vertex), []).append(vertex)
        frame = self._layered.cluster.frame
        y = 0.0
        for number, layer in enumerate(layers):
            boxes = [vertex for vertex in layer if vertex < graph.boxes]
            above = max([self._sizes[vertex][2] for vertex in boxes], default=0.0)
            height = above + self._row_height(layer)
            for vertex in ending.get(number, ()):
                top = self._rows[graph.layer_of[vertex]].boxes
                height = max(height, top + self._sizes[vertex][1] - y)
            last = frame is not None and number == len(layers) - 1
            turn = y + height + (0.0 if last else self._label_zone(frame, number, boxes))
            self._rows.append(_Row(y, y + above, y + height, turn))
            if not last:
                widest = max(
                    [
                        abs(x[other] - x[vertex] - offsets.get((vertex, other), 0.0))
                        for vertex in layer
                        for other in graph.down[vertex]
                    ],
                    default=0.0,
                )
                y = turn + self._turn_zone(frame, number, widest)

    def _row_height(self, layer: list[int]) -> float:
        graph = self._graph
        heights = [0.0]
        for vertex in layer:
            if vertex in graph.lower_part or vertex in graph.owner:
                heights.append(_ROW)
            elif vertex < graph.boxes:
                heights.append(self._sizes[vertex][1])
        return max(heights)

    def _label_zone(self, frame: Subgraph | None, number: int, boxes: list[int]) -> float:
        if frame is not None and number == 0:
            return TITLE_BAR if frame.bar else _FRAME_ZONE
        if frame is not None and not frame.bar and number == self._graph.count - 2:
            return LABEL_ZONE
        return LABEL_ZONE if any(box not in self._frames for box in boxes) else _FRAME_ZONE

    def _turn_zone(self, frame: Subgraph | None, number: int, widest: float) -> float:
        border = frame is not None and number in (0, self._graph.count - 2)
        if border and widest <= _STILL:
            return _STRAIGHT_ZONE
        return round(min(_HIGHEST_TURN_ZONE, max(TURN_ZONE, _TURN_SLOPE * widest)))

    # Edges

    def _ends(self) -> dict[tuple[int, int], float]:
        """Return the x of the end of each edge, by edge and target vertex.

        An edge from straight above ends in the middle of a box, the others to its left and right.
        """
        graph, x = self._graph, self._x
        into: dict[int, list[tuple[float, int]]] = {}
        ends: dict[tuple[int, int], float] = {}
        for number, edge in enumerate(self._edges):
            first = graph.layer_of[graph.bottom[edge.source]] + 1
            for target in edge.targets:
                if target >= graph.boxes or target in self._frames:
                    offset = self._port_offset(target, self._values[number], entering=True)
                    ends[number, target] = x[target] + offset
                    continue
                dummies = graph.layer_of[target] - first
                above = (
                    x[graph.chains[number][dummies - 1]]
                    if dummies
                    else x[edge.source] + self._starts[number]
                )
                into.setdefault(target, []).append((above, number))
        for target, edges in into.items():
            edges.sort()
            middle = x[target]
            lefts = sum(above < middle - _STILL for above, _ in edges)
            rights = sum(above > middle + _STILL for above, _ in edges)
            if lefts + rights < len(edges):
                begin, reach = -float(lefts), float(max(lefts, rights))
            else:
                begin, reach = -(len(edges) - 1) / 2, (len(edges) - 1) / 2
            inset = max(0.0, self._sizes[target][0] / 2 - _PORT_INSET)
            step = min(_PORT_STEP, inset / max(reach, 1.0))
            for index, (_, number) in enumerate(edges):
                ends[number, target] = middle + step * (begin + index)
        return ends

    def _routes(self) -> dict[tuple[int, int], list[Point]]:
        graph = self._graph
        ends = self._ends()
        routes: dict[tuple[int, int], list[Point]] = {}
        for number, (edge, value) in enumerate(zip(self._edges, self._values, strict=True)):
            trunk = self._trunk(number)
            first = graph.layer_of[graph.bottom[edge.source]] + 1
            for target in edge.targets:
                layer = graph.layer_of[target]
                end = ends[number, target]
                points = list(trunk[layer - first])
                extend(points, (end, self._rows[layer].top))
                if target < graph.boxes:
                    extend(points, (end, self._corners[target][1]))
                routes[value, target if target < graph.boxes else OUT] = points
        return routes

    def _trunk(self, number: int) -> list[list[Point]]:
        """Return the points of an edge up to the turn below its source and each of its dummies."""
        graph, x = self._graph, self._x
        source = self._edges[number].source
        first = graph.last_layer(source)
        start = x[source] + self._starts[number]
        bottom = 0.0
        if source < graph.boxes:
            bottom = self._corners[source][1] + self._sizes[source][1]
        points: list[Point] = [(start, bottom)]
        extend(points, (start, self._rows[first].turn))
        trunk = [points]
        for layer, dummy in enumerate(graph.chains[number], first + 1):
            points = list(points)
            extend(points, (x[dummy], self._rows[layer].top))
            extend(points, (x[dummy], self._rows[layer].turn))
            trunk.append(points)
        return trunk


def extend(points: list[Point], point: Point) -> None:
    """Append a point to a polyline; merge it with a vertical segment before it."""
    if point == points[-1]:
        return
    if len(points) > 1 and points[-2][0] == points[-1][0] == point[0]:
        points[-1] = point
    else:
        points.append(point)

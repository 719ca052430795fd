"""Layout of one connected part of a graph: rows, ports, the paths of edges and their labels.

Between two rows of boxes there are two zones. In the upper one edges run straight down, so that
labels can stand beside them; in the lower one they change sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lowerscope.core.rendering.bands import Bands
from lowerscope.core.rendering.coordinates import coordinates
from lowerscope.core.rendering.layering import Layering, layering
from lowerscope.core.rendering.ordering import order

LABEL_ZONE = 26.0
"""Height of the zone below a row in which labels stand, in pixels."""

TURN_ZONE = 18.0
"""Least height of the zone in which edges change sides, in pixels; with the other zone 44."""

_HIGHEST_TURN_ZONE = 48.0
_TURN_SLOPE = 0.15
_LABEL_OFFSET = 7.0
_LABEL_DROP = 18.0
_LOOP = 18.0
_PORT_STEP = 16.0
_PORT_INSET = 12.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class PartEdge:
    """An edge between numbered boxes; drawn from target to source if it is `backward`."""

    source: int
    target: int
    label_width: float
    backward: bool


@dataclass(frozen=True, slots=True)
class PartLayout:
    """Corners of boxes, and paths and labels of edges, in the order in which they were given."""

    corners: list[Point]
    paths: list[list[Point]]
    labels: list[Point | None]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Rows:
    """The top of each row, its height, and the y below which edges may change sides."""

    tops: list[float]
    heights: list[float]
    turns: list[float]


def lay_out_part(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[PartEdge],
    check: Callable[[], None],
    bands: Bands | None = None,
) -> PartLayout:
    """Lay out the boxes of these widths and heights, which `edges` connect; no margin."""
    loops = {edge.source for edge in edges if edge.source == edge.target}
    forward = [(edge.source, edge.target) for edge in edges if edge.source != edge.target]
    graph = layering(len(sizes), forward, check, bands)
    layers = order(graph, check)

    left = [0.0] * len(graph.layer_of)
    right = [0.0] * len(graph.layer_of)
    for vertex, (width, _) in enumerate(sizes):
        left[vertex] = right[vertex] = width / 2
        if vertex in loops:
            right[vertex] += _LOOP
    labelled = _labelled(edges)
    for vertex, index in labelled.items():
        right[vertex] = max(right[vertex], _LABEL_OFFSET + edges[index].label_width)

    x = coordinates(graph, layers, left, right, check)
    offset = min(x[vertex] - left[vertex] for vertex in range(len(x)))
    x = [value - offset for value in x]
    room = {} if bands is None else bands.room_above(graph.layer_of)
    rows = _rows(graph, layers, x, [height for _, height in sizes], room)
    check()

    corners = [
        (x[vertex] - width / 2, _top(graph, rows, vertex, height))
        for vertex, (width, height) in enumerate(sizes)
    ]
    paths = _paths(graph, rows, x, corners, sizes, edges)
    labels: list[Point | None] = [None] * len(edges)
    for vertex, index in labelled.items():
        row = graph.layer_of[vertex]
        bottom = rows.tops[row] + rows.heights[row]
        labels[index] = (x[vertex] + _LABEL_OFFSET, bottom + _LABEL_DROP)
    return PartLayout(
        corners=corners,
        paths=paths,
        labels=labels,
        width=max(x[vertex] + right[vertex] for vertex in range(len(x))),
        height=rows.tops[-1] + rows.heights[-1],
    )


def _labelled(edges: Sequence[PartEdge]) -> dict[int, int]:
    """Return which edge carries the label of each source: the first with the widest one."""
    chosen: dict[int, int] = {}
    for index, edge in enumerate(edges):
        if edge.label_width <= 0 or edge.source == edge.target or edge.backward:
            continue
        before = chosen.get(edge.source)
        if before is None or edge.label_width > edges[before].label_width:
            chosen[edge.source] = index
    return chosen


def _rows(
    graph: Layering,
    layers: list[list[int]],
    x: list[float],
    box_heights: list[float],
    room: Mapping[int, float],
) -> _Rows:
    tops: list[float] = []
    heights: list[float] = []
    turns: list[float] = []
    y = 0.0
    for number, layer in enumerate(layers):
        y += room.get(number, 0.0)
        height = max((box_heights[vertex] for vertex in layer if vertex < graph.real), default=0.0)
        widest = max(
            (abs(x[vertex] - x[other]) for vertex in layer for other in graph.down[vertex]),
            default=0.0,
        )
        tops.append(y)
        heights.append(height)
        turns.append(y + height + LABEL_ZONE)
        y += height + LABEL_ZONE
        y += round(min(_HIGHEST_TURN_ZONE, max(TURN_ZONE, _TURN_SLOPE * widest)))
    return _Rows(tops, heights, turns)


def _top(graph: Layering, rows: _Rows, vertex: int, height: float) -> float:
    row = graph.layer_of[vertex]
    return rows.tops[row] + (rows.heights[row] - height) / 2


def _ports(
    graph: Layering, x: list[float], sizes: Sequence[tuple[float, float]]
) -> dict[tuple[int, int], float]:
    """Return where edges enter a box, by vertex above it and box: an x for each.

    What comes straight from above enters in the middle, the rest to its left and right.
    """
    ports: dict[tuple[int, int], float] = {}
    for vertex, (width, _) in enumerate(sizes):
        above = sorted(graph.up[vertex], key=lambda other: (x[other], other))
        middle = x[vertex]
        lefts = sum(x[other] < middle - 0.5 for other in above)
        rights = sum(x[other] > middle + 0.5 for other in above)
        if lefts + rights < len(above):
            first, reach = -float(lefts), float(max(lefts, rights))
        else:
            first, reach = -(len(above) - 1) / 2, (len(above) - 1) / 2
        step = min(_PORT_STEP, max(0.0, width / 2 - _PORT_INSET) / max(reach, 1.0))
        for index, other in enumerate(above):
            ports[other, vertex] = middle + step * (first + index)
    return ports


def _paths(
    graph: Layering,
    rows: _Rows,
    x: list[float],
    corners: list[Point],
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[PartEdge],
) -> list[list[Point]]:
    ports = _ports(graph, x, sizes)
    trunks: dict[int, list[list[Point]]] = {}
    paths: list[list[Point]] = []
    for edge in edges:
        source, target = edge.source, edge.target
        top, bottom = corners[target][1], corners[source][1] + sizes[source][1]
        if source == target:
            paths.append(_loop(x[source], sizes[source][0] / 2, top, bottom))
            continue
        if source not in trunks:
            trunks[source] = _trunk(graph, rows, x, source, bottom)
        row = graph.layer_of[target]
        between = row - graph.layer_of[source] - 1
        port = ports[graph.chains[source][between - 1] if between else source, target]
        points = list(trunks[source][between])
        _extend(points, (port, rows.tops[row]))
        _extend(points, (port, top))
        paths.append(points[::-1] if edge.backward else points)
    return paths


def _trunk(
    graph: Layering, rows: _Rows, x: list[float], source: int, bottom: float
) -> list[list[Point]]:
    """Return the line along the dummies of `source`, up to the turn below each of them."""
    row = graph.layer_of[source]
    points: list[Point] = [(x[source], bottom)]
    _extend(points, (x[source], rows.turns[row]))
    trunk = [points]
    for dummy in graph.chains[source]:
        row += 1
        points = list(points)
        _extend(points, (x[dummy], rows.tops[row]))
        _extend(points, (x[dummy], rows.turns[row]))
        trunk.append(points)
    return trunk


def _extend(points: list[Point], point: Point) -> None:
    """Append `point`, in the place of the last one where that stands on a vertical line to it."""
    if point == points[-1]:
        return
    if len(points) > 1 and points[-2][0] == points[-1][0] == point[0]:
        points[-1] = point
    else:
        points.append(point)


def _loop(middle: float, half: float, top: float, bottom: float) -> list[Point]:
    side = middle + half + _LOOP / 2
    return [
        (middle, bottom),
        (middle, bottom + 8),
        (side, bottom + 8),
        (side, top - 8),
        (middle, top - 8),
        (middle, top),
    ]

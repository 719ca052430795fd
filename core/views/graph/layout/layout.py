"""Layered layout of a compound graph from top to bottom (Sugiyama).

The phases are rank assignment, crossing reduction, horizontal coordinates, and routing; each runs
on the clusters of `compound`. This module packs the connected components side by side, and joins
the segments of edges that cross frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.views.graph.layout.order import order_cluster
from lowerscope.core.views.graph.layout.rank import (
    Cluster,
    LayoutItem,
    components,
    nest,
    rank_cluster,
    split_edges,
    subgraphs,
)
from lowerscope.core.views.graph.layout.route import (
    NodeSize,
    Point,
    RoutedCluster,
    extend,
    route_cluster,
)

MARGIN = 24.0
"""Around the whole graph, in pixels."""

COMPONENT_GAP = 48.0
"""Between two connected components, in pixels."""

_ALIKE = 1e-6

Rectangle = tuple[float, float, float, float]
"""Left, top, width and height."""

_Places = dict[Cluster, tuple[RoutedCluster, float, float]]


@dataclass(frozen=True, slots=True)
class EdgePath:
    """The route of an edge.

    `points`: from the bottom edge of the source to the top edge of the target; y never decreases.
        Slanted segments are between two layers of boxes.
    `label_at`: the left end of the edge's label, at half its height; ``None`` for an edge without a
        label, and where another edge from the same source has a label as wide or wider.
    """

    points: tuple[Point, ...]
    label_at: Point | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Coordinates in pixels, from the top left corner of the whole.

    `edges`: the path of each edge, in the given order.
    `frames`: the frames in the given order, outer ones first.
    """

    corners: dict[str, Point]
    edges: tuple[EdgePath, ...]
    frames: tuple[Rectangle, ...]
    width: float
    height: float


def layout(
    nodes: Sequence[NodeSize],
    edges: Sequence[tuple[str, str, float]],
    check: Callable[[], None] = lambda: None,
    items: Sequence[LayoutItem] | None = None,
    bands: Sequence[int] | None = None,
) -> Layout:
    """Lay out a graph from top to bottom; equal graphs get equal layouts.

    Edges from one node carry one value: they form a hyperedge with one start, a common trunk, and
    one label beside the start.

    `edges`: source id, target id, and the width of the label in pixels, 0 for none. There is no
        cycle, not even with each frame contracted to one box.
    `check`: called often; may raise to cancel.
    `items`: the boxes by number, and the frames around some of them; ``None`` if there are no
        frames.
    `bands`: the band of each of `items`, a rank constraint: each band is below the lower ones.
        Connected components are then laid out together.
    """
    number = {node.id: index for index, node in enumerate(nodes)}
    assert len(number) == len(nodes), "two nodes have the same id"
    pairs = [(number[source], number[target]) for source, target, _ in edges]
    # The edge with the label of each source: the first one with the widest label.
    labelled: dict[int, int] = {}
    widths = [0.0] * len(nodes)
    for index, ((source, _), (_, _, width)) in enumerate(zip(pairs, edges, strict=True)):
        if width > widths[source]:
            labelled[source], widths[source] = index, width
    items = range(len(nodes)) if items is None else items
    root, places = nest(items)
    segments = split_edges(pairs, places)
    parts, moved = components(root) if bands is None else ([root], [])
    constants = {index for index, node in enumerate(nodes) if node.constant}
    routed: list[RoutedCluster] = []
    for part in parts:
        check()
        if part.items:
            layered = rank_cluster(part, constants, check, bands)
            order_cluster(layered, check)
            routed.append(route_cluster(layered, nodes, widths, check))
    placed, width, height = _pack(routed)
    corners: dict[str, Point] = {}
    labels: dict[int, Point] = {}
    # By identity: two frames may be equal.
    frames: dict[int, Rectangle] = {}
    for cluster, (inside, x, y) in placed.items():
        for item, (left, top) in zip(cluster.items, inside.corners, strict=True):
            if isinstance(item, int):
                corners[nodes[item].id] = (x + left, y + top)
        for box, (left, top) in inside.labels.items():
            labels[box] = (x + left, y + top)
        frames[id(cluster.frame)] = (x, y, inside.width, inside.height)
    paths: list[EdgePath] = []
    for index, ((value, _), split) in enumerate(zip(pairs, segments, strict=True)):
        points: list[Point] = []
        for cluster, target in split:
            if cluster.parent is None and moved:
                cluster, target = moved[target]
            inside, x, y = placed[cluster]
            for left, top in inside.routes[value, target]:
                _join(points, (x + left, y + top))
        label = labels.get(value) if labelled.get(value) == index else None
        paths.append(EdgePath(tuple(points), label))
    return Layout(
        corners=corners,
        edges=tuple(paths),
        frames=tuple(frames[id(frame)] for frame in subgraphs(items)),
        width=width,
        height=height,
    )


def _pack(routed: Sequence[RoutedCluster]) -> tuple[_Places, float, float]:
    """Pack components in rows; return the place of each cluster, and width and height in all."""
    placed: _Places = {}
    area = sum((part.width + COMPONENT_GAP) * (part.height + COMPONENT_GAP) for part in routed)
    row_width = max([part.width for part in routed] + [1.5 * area**0.5], default=0.0)
    x, y, row_height, width = MARGIN, MARGIN, 0.0, 2 * MARGIN
    for part in routed:
        if x > MARGIN and x - MARGIN + part.width > row_width:
            x, y, row_height = MARGIN, y + row_height + COMPONENT_GAP, 0.0
        _place(part, x, y, placed)
        width = max(width, x + part.width + MARGIN)
        row_height = max(row_height, part.height)
        x += part.width + COMPONENT_GAP
    return placed, width, y + row_height + MARGIN


def _place(part: RoutedCluster, x: float, y: float, placed: _Places) -> None:
    """Add the places of a cluster and of those inside of it."""
    # No closure: its reference to itself would keep all clusters for the garbage collector.
    placed[part.layered.cluster] = (part, x, y)
    for vertex, frame in part.frames.items():
        left, top = part.corners[vertex]
        _place(frame, x + left, y + top, placed)


def _join(points: list[Point], point: Point) -> None:
    """Append a point to a polyline; segments meet up to rounding errors."""
    if not points:
        points.append(point)
        return
    (x, y), (before, above) = point, points[-1]
    if abs(x - before) < _ALIKE:
        x = before
    if abs(y - above) < _ALIKE:
        y = above
    extend(points, (x, y))

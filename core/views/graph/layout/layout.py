"""Layered layout of a compound graph from top to bottom (Sugiyama).

The phases are rank assignment, crossing reduction, horizontal coordinates, and routing; each runs
on the clusters of `compound`. This module packs the connected components side by side, and joins
the segments of edges that cross frames.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.views.graph.layout.rank import (
    Cluster,
    LayeredCluster,
    LayeredGraph,
    LayoutItem,
    components,
    nest,
    rank,
    rank_cluster,
    set_depths,
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

# --- Crossing reduction: the order of the vertices within each layer ---
#
# Barycentre sweeps down and up (Sugiyama, Tagawa and Toda 1981), each followed by adjacent
# exchanges; the order with the fewest crossings is kept.

_SWEEPS = 24
_LARGE = 3000
_HUGE = 60_000


def order_cluster(
    layered: LayeredCluster,
    check: Callable[[], None],
    outside: Sequence[int] = (),
    first: Sequence[int] = (),
    last: Sequence[int] = (),
) -> None:
    """Order the layers from the outside in: the ports of a frame follow the order outside of it.

    `outside`: the depth of each entering value at its source.
    """
    graph, frames = layered.graph, layered.frames
    set_depths(graph, outside, {vertex: frame.graph.count for vertex, frame in frames.items()})
    layers = order(graph, check, first, last)
    if graph.lower_part and _crosses_box(graph, layers):
        # Let each frame be one layer high instead.
        depth = graph.depth
        graph = layered.graph = rank(graph.graph, check)
        graph.depth[:] = depth
        layers = order(graph, check, first, last)
    layered.layers = layers
    if not frames:
        return
    position = graph.positions(layers)
    edges = graph.graph.edges
    number = {value: index for index, value in enumerate(layered.cluster.values)}
    for vertex, frame in frames.items():
        entering = [number[value] for value in frame.cluster.entering()]
        leaving = [number[value] for value in frame.cluster.leaving()]
        above: list[int] = []
        for edge in entering:
            bottom = graph.bottom[edges[edge].source]
            dummies = graph.layer_of[vertex] - 1 - graph.layer_of[bottom]
            above.append(position[graph.chains[edge][dummies - 1] if dummies else bottom])
        below: list[float] = []
        for edge in leaving:
            ends = graph.chains[edge][:1] or edges[edge].targets
            below.append(sum(position[end] for end in ends) / len(ends))
        ports = frame.graph.boxes
        order_cluster(
            frame,
            check,
            [graph.depth[edges[edge].source] for edge in entering],
            [ports + port for port in sorted(range(len(above)), key=above.__getitem__)],
            [
                ports + len(entering) + port
                for port in sorted(range(len(below)), key=below.__getitem__)
            ],
        )


def order(
    graph: LayeredGraph, check: Callable[[], None], first: Sequence[int], last: Sequence[int]
) -> list[list[int]]:
    """Return the vertices of each layer from left to right."""
    layers = _depth_first_order(graph, first)
    fixed: set[int] = set()
    for number, given in ((0, first), (len(layers) - 1, last)):
        if given:
            layers[number] = list(given)
            fixed.add(number)
    position = graph.positions(layers)
    vertices = len(position)
    rounds, patience = (8, 4) if vertices < _LARGE else (1, 2)
    best = [list(layer) for layer in layers]
    fewest = _crossings(graph, layers, position, check)
    failures = 0
    for sweep in range(_SWEEPS if vertices < _HUGE else 2):
        if fewest == 0 or failures == patience:
            break
        downward, to_right = sweep % 2 == 0, sweep % 4 >= 2
        _sweep(graph, layers, position, fixed, check, downward=downward, to_right=to_right)
        _exchange_neighbours(graph, layers, position, fixed, rounds, check)
        number = _crossings(graph, layers, position, check)
        failures += 1
        if number < fewest:
            best, fewest, failures = [list(layer) for layer in layers], number, 0
    return best


def _crosses_box(graph: LayeredGraph, layers: list[list[int]]) -> bool:
    """Return whether an edge crosses a box that spans several layers."""
    position = graph.positions(layers)
    return any(
        (position[vertex] < position[part]) != (position[other] < position[graph.lower_part[part]])
        for layer in layers
        for part in layer
        if part in graph.lower_part
        for vertex in layer
        if vertex != part
        for other in graph.down[vertex]
    )


def _depth_first_order(graph: LayeredGraph, first: Sequence[int]) -> list[list[int]]:
    """Return the initial order, in which branches stay together, the longest one first."""
    layers: list[list[int]] = [[] for _ in range(graph.count)]
    seen = [False] * len(graph.layer_of)

    def longest_first(vertex: int) -> tuple[bool, int]:
        box = graph.owner.get(vertex, vertex)
        dummy = box >= graph.real
        return dummy, 0 if dummy else -graph.height[box]

    starts = sorted(range(graph.real), key=lambda vertex: (graph.layer_of[vertex], vertex))
    for start in (*first, *starts):
        stack = [start]
        while stack:
            vertex = stack.pop()
            if seen[vertex]:
                continue
            seen[vertex] = True
            layers[graph.layer_of[vertex]].append(vertex)
            below = graph.down[vertex]
            stack.extend(
                sorted(below, key=longest_first, reverse=True) if len(below) > 1 else below
            )
    return layers


def _sweep(
    graph: LayeredGraph,
    layers: list[list[int]],
    position: list[int],
    fixed: set[int],
    check: Callable[[], None],
    *,
    downward: bool,
    to_right: bool,
) -> None:
    """Sort each layer by the barycentres of its neighbours in the layer before it."""
    neighbours = graph.up if downward else graph.down
    numbers = range(len(layers))
    for number in numbers[1:] if downward else numbers[-2::-1]:
        check()
        layer = layers[number]
        if len(layer) == 1 or number in fixed:
            continue
        keyed: list[tuple[float, int, int]] = []
        isolated: list[tuple[int, int]] = []
        for index, vertex in enumerate(layer):
            near = neighbours[vertex]
            if near:
                mean = sum([position[other] for other in near]) / len(near)
                keyed.append((mean, -index if to_right else index, vertex))
            else:
                isolated.append((index, vertex))
        keyed.sort()
        layer[:] = [vertex for _, _, vertex in keyed]
        for index, vertex in isolated:
            layer.insert(index, vertex)
        for index, vertex in enumerate(layer):
            position[vertex] = index


def _exchange_neighbours(
    graph: LayeredGraph,
    layers: list[list[int]],
    position: list[int],
    fixed: set[int],
    rounds: int,
    check: Callable[[], None],
) -> None:
    """Exchange adjacent vertices as long as that removes crossings."""
    for _ in range(rounds):
        exchanged = False
        for number, layer in enumerate(layers):
            check()
            if number in fixed:
                continue
            for index in range(len(layer) - 1):
                left, right = layer[index], layer[index + 1]
                gain = 0
                for neighbours in (graph.up, graph.down):
                    ours, theirs = neighbours[left], neighbours[right]
                    if ours and theirs:
                        gain += _gain(
                            [position[other] for other in ours],
                            [position[other] for other in theirs],
                        )
                if gain > 0:
                    layer[index], layer[index + 1] = right, left
                    position[left], position[right] = index + 1, index
                    exchanged = True
        if not exchanged:
            return


def _gain(left: list[int], right: list[int]) -> int:
    """Return the crossings removed by the exchange of vertices with these neighbours."""
    if len(left) == 1 and len(right) == 1:
        return (left[0] > right[0]) - (left[0] < right[0])
    right.sort()
    return sum(
        bisect_left(right, other) - (len(right) - bisect_right(right, other)) for other in left
    )


def _crossings(
    graph: LayeredGraph, layers: list[list[int]], position: list[int], check: Callable[[], None]
) -> int:
    total = 0
    for layer in layers[:-1]:
        check()
        if len(layer) == 1:
            continue
        ends: list[int] = []
        for vertex in layer:
            targets = [position[other] for other in graph.down[vertex]]
            for target in targets:
                total += len(ends) - bisect_right(ends, target)
            for target in targets:
                insort(ends, target)
    return total


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

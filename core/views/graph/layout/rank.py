"""Compound graphs, and the rank of each vertex: its layer, with dummies for edges that span layers.

A cluster is the whole graph, a connected component of it, or the inside of a frame. Values cross a
frame at ports on its border, so each cluster is laid out by itself. Vertices are numbered: boxes,
then ports, then the rest: dummy vertices, and the lower parts of boxes that span several layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

IN, OUT = -1, -2
"""Ends of a hyperedge that are ports, in the place of vertices."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A frame and its items: boxes by number, and frames, in topological order.

    `title_width`: width of the title, in pixels.
    `bar`: whether the title is in a bar at the top; otherwise it is in the bottom left corner.
    """

    title_width: float
    items: tuple[LayoutItem, ...]
    bar: bool = True


LayoutItem: TypeAlias = "int | Subgraph"


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """A value: its source vertex, and its distinct target vertices."""

    source: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """An acyclic graph of boxes (or frames), then ports: the inside of a cluster.

    `edges`: all hyperedges, one per value.
    `ins`, `outs`: number of ports at the upper and at the lower border; numbered after the boxes,
        in this order.
    `framed`: whether the first and the last layer are those of the ports, even without ports.
    `bands`: Rank constraint: the layers of a band are below those of lower bands. ``None`` for
        none.
    `constants`: Boxes that no spine starts at.
    """

    boxes: int
    edges: Sequence[Hyperedge]
    ins: int = 0
    outs: int = 0
    framed: bool = False
    bands: Sequence[int] | None = None
    constants: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Cluster:
    """The inside of a frame, or the whole graph.

    `frame`: ``None`` for the whole graph, or a component of it.
    `parent`, `vertex`, `depth`: the enclosing cluster, the frame's vertex there, and the number of
        enclosing clusters.
    `items`: the vertices: boxes by their number in the whole graph, and clusters.
    `sources`, `targets`: source vertex and target vertices of each value, by the number of the box
        that it is the value of.
    """

    frame: Subgraph | None
    parent: Cluster | None = None
    vertex: int = 0
    depth: int = 0
    items: list[int | Cluster] = field(default_factory=list)
    sources: dict[int, int] = field(default_factory=dict)
    targets: dict[int, dict[int, None]] = field(default_factory=dict)

    @property
    def values(self) -> tuple[int, ...]:
        """The values, in the order of the hyperedges of `graph`."""
        return tuple(self.sources)

    def entering(self) -> tuple[int, ...]:
        """Return the values that come from outside, in the order of their ports."""
        return tuple(value for value, source in self.sources.items() if source == IN)

    def leaving(self) -> tuple[int, ...]:
        """Return the values that are used outside, in the order of their ports."""
        return tuple(value for value, ends in self.targets.items() if OUT in ends)

    def graph(self, constants: Set[int], bands: Sequence[int] | None = None) -> Graph:
        """Return the graph of the cluster's items and ports."""
        count = len(self.items)
        entering, leaving = self.entering(), self.leaving()
        port_in = {value: count + index for index, value in enumerate(entering)}
        port_out = {value: count + len(entering) + index for index, value in enumerate(leaving)}
        edges = [
            Hyperedge(
                port_in[value] if source == IN else source,
                tuple(port_out[value] if end == OUT else end for end in self.targets[value]),
            )
            for value, source in self.sources.items()
        ]
        return Graph(
            boxes=count,
            edges=edges,
            ins=len(entering),
            outs=len(leaving),
            framed=self.frame is not None,
            bands=bands,
            constants=frozenset(
                vertex
                for vertex, item in enumerate(self.items)
                if isinstance(item, int) and item in constants
            ),
        )

    def connect(self, value: int, source: int, target: int) -> None:
        """Add a target to the hyperedge of a value."""
        self.sources.setdefault(value, source)
        self.targets.setdefault(value, {})[target] = None


Segment: TypeAlias = tuple[Cluster, int]
"""The part of an edge inside one cluster: the cluster, and the target vertex in it."""


def nest(items: Sequence[LayoutItem]) -> tuple[Cluster, dict[int, tuple[Cluster, int]]]:
    """Return the cluster of the whole graph, and the cluster and vertex of each box."""
    places: dict[int, tuple[Cluster, int]] = {}

    def fill(cluster: Cluster, inside: Sequence[LayoutItem]) -> Cluster:
        for vertex, item in enumerate(inside):
            if isinstance(item, int):
                places[item] = (cluster, vertex)
                cluster.items.append(item)
            else:
                nested = Cluster(item, cluster, vertex, cluster.depth + 1)
                cluster.items.append(fill(nested, item.items))
        return cluster

    return fill(Cluster(None), items), places


def split_edges(
    edges: Sequence[tuple[int, int]], places: Mapping[int, tuple[Cluster, int]]
) -> list[tuple[Segment, ...]]:
    """Split edges between boxes at the frames that they cross; return the segments of each."""
    split: list[tuple[Segment, ...]] = []
    for value, target in edges:
        upper, source = places[value]
        lower, end = places[target]
        before: list[Segment] = []
        after: list[Segment] = []
        while upper is not lower:
            if upper.depth >= lower.depth:
                assert upper.parent is not None
                upper.connect(value, source, OUT)
                before.append((upper, OUT))
                upper, source = upper.parent, upper.vertex
            else:
                assert lower.parent is not None
                lower.connect(value, IN, end)
                after.append((lower, end))
                lower, end = lower.parent, lower.vertex
        upper.connect(value, source, end)
        split.append((*before, (upper, end), *reversed(after)))
    return split


def components(root: Cluster) -> tuple[list[Cluster], list[Segment]]:
    """Return the connected components of the whole graph, and the place of each vertex in them."""
    parent = list(range(len(root.items)))

    def find(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    for value, source in root.sources.items():
        for target in root.targets[value]:
            one, two = find(source), find(target)
            parent[max(one, two)] = min(one, two)
    found: dict[int, Cluster] = {}
    places: list[Segment] = []
    for vertex, item in enumerate(root.items):
        component = found.setdefault(find(vertex), Cluster(None))
        places.append((component, len(component.items)))
        component.items.append(item)
    for value, source in root.sources.items():
        component, place = places[source]
        component.sources[value] = place
        component.targets[value] = {places[target][1]: None for target in root.targets[value]}
    return list(found.values()), places


def subgraphs(items: Sequence[LayoutItem]) -> Iterator[Subgraph]:
    """Yield all frames, outer ones first."""
    for item in items:
        if isinstance(item, Subgraph):
            yield item
            yield from subgraphs(item.items)


_AFAR = 100_000
"""A path length, in layers, greater than that of any path in a graph."""

_WORTH_SLIDING = 4
"""Least distance, in layers, over which branches are moved away from their common source."""


@dataclass(frozen=True, slots=True)
class LayeredGraph:
    """A proper layering: every edge leads from one layer to the next.

    `boxes`, `real`: number of boxes; number of boxes and ports.
    `layer_of`: the layer of each vertex; the first one for a box that spans several.
    `up`, `down`: Neighbours of each vertex in the layer above and below.
    `chains`: the dummy vertices of each hyperedge, from top to bottom.
    `lower_part`: the next lower part of each part of a box that spans several layers.
    `owner`: the box of each lower part.
    `origin`: the box or port of the value that each vertex carries.
    `bottom`: the lowest part of each box or port.
    `depth`, `height`: Longest paths from a source and to a sink through each box or port, in
        layers; for depths see `set_depths`.
    """

    graph: Graph
    boxes: int
    real: int
    layer_of: list[int]
    count: int
    up: list[list[int]]
    down: list[list[int]]
    chains: list[list[int]]
    lower_part: dict[int, int]
    owner: dict[int, int]
    origin: list[int]
    bottom: list[int]
    depth: list[int]
    height: list[int]

    def last_layer(self, vertex: int) -> int:
        """Return the last layer of a box or a port."""
        return self.layer_of[self.bottom[vertex]]

    def positions(self, layers: Sequence[Sequence[int]]) -> list[int]:
        """Return the position of each vertex within its layer."""
        position = [0] * len(self.layer_of)
        for layer in layers:
            for index, vertex in enumerate(layer):
                position[vertex] = index
        return position


@dataclass(eq=False, slots=True)
class LayeredCluster:
    """A cluster with its layers."""

    cluster: Cluster
    graph: LayeredGraph
    frames: dict[int, LayeredCluster]
    layers: list[list[int]] = field(default_factory=list)


def rank_cluster(
    cluster: Cluster,
    constants: Set[int],
    check: Callable[[], None],
    bands: Sequence[int] | None = None,
) -> LayeredCluster:
    """Assign layers from the inside out: a frame with many layers may span several outside."""
    frames = {
        vertex: rank_cluster(item, constants, check)
        for vertex, item in enumerate(cluster.items)
        if isinstance(item, Cluster)
    }
    graph = cluster.graph(constants, bands)
    layered = rank(graph, check)
    if frames:
        beside = [0] * layered.count
        for layer in layered.layer_of[: graph.boxes]:
            beside[layer] += 1
        spans = [1] * graph.boxes
        for vertex, frame in frames.items():
            if beside[layered.layer_of[vertex]] > 1:
                spans[vertex] = max(1, frame.graph.count - 1)
        if max(spans) > 1:
            layered = rank(graph, check, spans)
    return LayeredCluster(cluster, layered, frames)


def rank(
    graph: Graph, check: Callable[[], None], spans: Sequence[int] | None = None
) -> LayeredGraph:
    """Assign vertices to layers by longest paths, and insert dummy vertices.

    Sources that feed one place, such as constants, are moved down to it. With bands, each of these
    has layers of its own.

    `spans`: number of layers that each box spans; ``None`` for one each.
    """
    real = graph.boxes + graph.ins + graph.outs
    span = [1] * real
    if spans is not None:
        span[: graph.boxes] = spans
    successors: list[list[int]] = [[] for _ in range(real)]
    predecessors: list[list[int]] = [[] for _ in range(real)]
    pairs = ((edge.source, target) for edge in graph.edges for target in edge.targets)
    for source, target in dict.fromkeys(pairs):
        successors[source].append(target)
        predecessors[target].append(source)
    order = _topological_order(successors, predecessors)
    check()
    height = [0] * real
    for vertex in reversed(order):
        for target in successors[vertex]:
            if height[vertex] < height[target] + span[vertex]:
                height[vertex] = height[target] + span[vertex]
    layers = (
        _compact_ranks(order, successors, predecessors, span)
        if graph.bands is None
        else _banded_ranks(order, successors, predecessors, graph.bands, span)
    )
    if graph.framed:
        _place_ports(graph, layers, span)
    check()
    return _insert_dummies(graph, layers, span, height)


def set_depths(layered: LayeredGraph, outside: Sequence[int], rows: Mapping[int, int]) -> None:
    """Set `LayeredGraph.depth`, the longest path from a source; it selects the spine.

    Paths from outside count as longer than all others, and those from constants as shorter.
    """
    graph, depth = layered.graph, layered.depth
    depth[:] = [rows.get(vertex, 1) - 1 for vertex in range(layered.real)]
    for vertex in graph.constants:
        depth[vertex] = -_AFAR
    for port, length in enumerate(outside):
        depth[graph.boxes + port] = length + _AFAR if length >= 0 else length
    reached: set[int] = set()
    for edge in sorted(graph.edges, key=lambda edge: layered.layer_of[edge.source]):
        for target in edge.targets:
            below = depth[edge.source] + rows.get(target, 1)
            depth[target] = max(depth[target], below) if target in reached else below
            reached.add(target)


def _topological_order(successors: list[list[int]], predecessors: list[list[int]]) -> list[int]:
    waiting = [len(sources) for sources in predecessors]
    order = [vertex for vertex, number in enumerate(waiting) if number == 0]
    for vertex in order:
        for target in successors[vertex]:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    assert len(order) == len(successors), "there is a cycle in the graph"
    return order


def _compact_ranks(
    order: list[int], successors: list[list[int]], predecessors: list[list[int]], span: list[int]
) -> list[int]:
    """Return longest-path ranks, with vertices moved down where that shortens edges."""
    layers = [0] * len(order)
    for vertex in order:
        below = layers[vertex] + span[vertex]
        for target in successors[vertex]:
            if layers[target] < below:
                layers[target] = below
    # A vertex whose ancestors feed nothing else moves down to its use.
    movable = [True] * len(order)
    for vertex in order:
        movable[vertex] = all(
            movable[source] and len(successors[source]) == 1 for source in predecessors[vertex]
        )
    for vertex in reversed(order):
        if movable[vertex] and successors[vertex]:
            layers[vertex] = min([layers[target] for target in successors[vertex]]) - span[vertex]
    # A vertex also moves down as far as the edges of all of its sources extend in any case.
    extent = [max([layers[target] for target in near], default=0) for near in successors]
    for vertex in reversed(order):
        if successors[vertex] and predecessors[vertex]:
            lowest = min([layers[target] for target in successors[vertex]]) - span[vertex]
            if lowest > layers[vertex]:
                lowest = min(lowest, min([extent[source] for source in predecessors[vertex]]))
                layers[vertex] = max(layers[vertex], lowest)
    for vertex in reversed(order):
        if len(successors[vertex]) > 1:
            _slide_branches(vertex, successors, predecessors, layers, span)
    used = sorted({layers[v] + part for v in order for part in range(span[v])})
    place = {layer: index for index, layer in enumerate(used)}
    return [place[layer] for layer in layers]


def _slide_branches(
    vertex: int,
    successors: list[list[int]],
    predecessors: list[list[int]],
    layers: list[int],
    span: list[int],
) -> None:
    """Move the branches below `vertex` down where that reduces the number of dummy vertices.

    A layer further down costs one dummy of `vertex`, and saves one per branch with slack; the limit
    is therefore the second greatest slack. It moves the slices of an unrolled loop to their use.
    """
    branches: list[tuple[int, list[int]]] = []
    for start in successors[vertex]:
        if len(predecessors[start]) != 1:
            continue
        branch = [start]
        last = start
        while len(successors[last]) == 1 and len(predecessors[successors[last][0]]) == 1:
            last = successors[last][0]
            branch.append(last)
        if successors[last]:
            lowest = min([layers[target] for target in successors[last]])
            slack = lowest - span[last] - layers[last]
            if slack > 0:
                branches.append((layers[start] + slack, branch))
    if len(branches) < 2:
        return
    limit = sorted(lowest for lowest, _ in branches)[-2]
    if limit - max(layers[target] for target in successors[vertex]) < _WORTH_SLIDING:
        return
    for lowest, branch in branches:
        shift = min(lowest, limit) - layers[branch[0]]
        for member in branch:
            layers[member] += shift


def _banded_ranks(
    order: Sequence[int],
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    bands: Sequence[int],
    span: Sequence[int],
) -> list[int]:
    """Return longest-path ranks, band by band; sources of a band move down to their first use."""
    layers = [0] * len(order)
    base = 0
    for band in sorted(set(bands)):
        members = [vertex for vertex in order if bands[vertex] == band]
        for vertex in members:
            layers[vertex] = max([base, *(layers[e] + span[e] for e in predecessors[vertex])])
        for vertex in reversed(members):
            inside = [layers[each] for each in successors[vertex] if bands[each] == band]
            if inside and not any(bands[each] == band for each in predecessors[vertex]):
                layers[vertex] = max(layers[vertex], min(inside) - span[vertex])
        base = max(layers[vertex] + span[vertex] for vertex in members)
    return layers


def _place_ports(graph: Graph, layers: list[int], span: list[int]) -> None:
    """Assign the first and the last layer to the ports, and those between to the boxes."""
    shift = 1 - min(layers[: graph.boxes])
    layers[: graph.boxes] = [layer + shift for layer in layers[: graph.boxes]]
    last = max(layers[vertex] + span[vertex] for vertex in range(graph.boxes))
    layers[graph.boxes :] = [0] * graph.ins + [last] * graph.outs


def _insert_dummies(
    graph: Graph, layers: list[int], span: list[int], height: list[int]
) -> LayeredGraph:
    """Insert a chain of dummy vertices per hyperedge, and the lower parts of tall boxes."""
    real = len(layers)
    layer_of = list(layers)
    up: list[list[int]] = [[] for _ in range(real)]
    down: list[list[int]] = [[] for _ in range(real)]
    lower_part: dict[int, int] = {}
    owner: dict[int, int] = {}
    origin = list(range(real))
    bottom = list(range(real))

    def add_below(vertex: int, layer: int) -> int:
        added = len(layer_of)
        layer_of.append(layer)
        origin.append(origin[vertex])
        up.append([vertex])
        down.append([])
        down[vertex].append(added)
        return added

    for vertex in range(graph.boxes):
        for part in range(1, span[vertex]):
            lower = add_below(bottom[vertex], layers[vertex] + part)
            lower_part[bottom[vertex]] = lower
            owner[lower] = vertex
            bottom[vertex] = lower
    chains: list[list[int]] = []
    for edge in graph.edges:
        stations = [bottom[edge.source]]
        first = layer_of[stations[0]]
        for layer in range(first + 1, max(layers[target] for target in edge.targets)):
            stations.append(add_below(stations[-1], layer))
        chains.append(stations[1:])
        for target in edge.targets:
            station = stations[layers[target] - first - 1]
            down[station].append(target)
            up[target].append(station)
    count = max([layers[vertex] + span[vertex] for vertex in range(real)], default=0)
    return LayeredGraph(
        graph=graph,
        boxes=graph.boxes,
        real=real,
        layer_of=layer_of,
        count=max(count, 2) if graph.framed else count,
        up=up,
        down=down,
        chains=chains,
        lower_part=lower_part,
        owner=owner,
        origin=origin,
        bottom=bottom,
        depth=[0] * real,
        height=height,
    )

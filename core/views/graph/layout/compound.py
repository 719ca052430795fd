"""Compound graphs: clusters nested in one another, and the hyperedges inside each of them.

A cluster is the whole graph, a connected component of it, or the inside of a frame. Values cross a
frame at ports on its border, so each cluster is laid out by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

IN, OUT = -1, -2
"""Ends of a hyperedge that are ports, in the place of vertices."""


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A frame and its items: boxes by number, and frames, in topological order.

    Attributes
    ----------
    title_width
        Width of the title, in pixels.
    bar
        Whether the title is in a bar at the top; otherwise it is in the bottom left corner.
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

    Attributes
    ----------
    edges
        All hyperedges, one per value.
    ins, outs
        Number of ports at the upper and at the lower border; numbered after the boxes, in this
        order.
    framed
        Whether the first and the last layer are those of the ports, even without ports.
    bands
        Rank constraint: the layers of a band are below those of lower bands. ``None`` for none.
    constants
        Boxes that no spine starts at.
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

    Attributes
    ----------
    frame
        ``None`` for the whole graph, or a component of it.
    parent, vertex, depth
        The enclosing cluster, the frame's vertex there, and the number of enclosing clusters.
    items
        The vertices: boxes by their number in the whole graph, and clusters.
    sources, targets
        Source vertex and target vertices of each value, by the number of the box that it is the
        value of.
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

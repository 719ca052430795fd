"""Which vertices of a layered graph stand straight below one another, whatever else moves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from lowerscope.core.rendering.graph_layout.layering import Layering

_BENDABLE = 4
"""Least number of dummies of a long edge that may bend."""


@dataclass(frozen=True, slots=True)
class Straight:
    """Which vertices stand on one line.

    Attributes
    ----------
    pairs
        From a vertex to the one below it.
    bends
        Dummies that are kept from standing on one line with the dummy below them.
    """

    pairs: dict[int, int]
    bends: frozenset[int]


def straight_pairs(graph: Layering, layers: list[list[int]], check: Callable[[], None]) -> Straight:
    """Choose the pairs of vertices that stand on one line; none cross."""
    position = [0] * len(graph.layer_of)
    for layer in layers:
        for index, vertex in enumerate(layer):
            position[vertex] = index
    pairs: dict[int, int] = {}
    for layer in layers[:-1]:
        check()
        wanted = [
            (rank, position[vertex], vertex, below)
            for vertex in layer
            for rank, below in _wishes(graph, vertex)
        ]
        wanted.sort()
        uppers: list[int] = []
        lowers: list[int] = []
        for _, upper, vertex, below in wanted:
            lower = position[below]
            place = bisect_left(uppers, upper)
            if place < len(uppers) and (uppers[place] == upper or lowers[place] <= lower):
                continue
            if place > 0 and lowers[place - 1] >= lower:
                continue
            uppers.insert(place, upper)
            lowers.insert(place, lower)
            pairs[vertex] = below
    return Straight(pairs, frozenset())


def _wishes(graph: Layering, vertex: int) -> list[tuple[float, int]]:
    """Return the vertices below `vertex` that would stand straight below it; lower is stronger.

    The parts of one box come first. The spine, the longest way through the graph, comes before long
    edges, and those before the beginning of a long edge.
    """
    if vertex in graph.parts:
        return [(float("-inf"), graph.parts[vertex])]
    wishes: list[tuple[float, int]] = []
    below = [other for other in graph.down[vertex] if other < graph.real]
    dummies = [other for other in graph.down[vertex] if other >= graph.real]
    carried = graph.carries[vertex]
    dummy = vertex >= graph.real and vertex not in graph.owner
    best = _only_longest(below, [graph.height[other] for other in below])
    if best is not None and not (dummy and dummies):
        above = graph.up[best]
        depths = [graph.depth[graph.carries[other]] for other in above]
        if _only_longest(above, depths) == vertex:
            length = graph.depth[carried] + graph.height[carried]
            wishes.append((-float(length), best))
    if dummy:
        wishes.extend((1.0, other) for other in dummies)
    elif not below:
        wishes.extend((2.0, other) for other in dummies)
    return wishes


def _only_longest(vertices: list[int], lengths: list[int]) -> int | None:
    """Return the vertex with the greatest length, or ``None`` where several are equal."""
    if not vertices:
        return None
    longest = max(lengths)
    best = [vertex for vertex, length in zip(vertices, lengths, strict=True) if length == longest]
    return best[0] if len(best) == 1 else None


def with_bends(graph: Layering, straight: Straight) -> Straight:
    """Let long edges bend once, in their middle.

    Edges that begin beside one another and end in the opposite order push each other further
    and further aside as long as all of them are straight; so it is in an unrolled recurrence.
    """
    bends = {chain[len(chain) // 2 - 1] for chain in graph.chains if len(chain) >= _BENDABLE}
    pairs = {vertex: below for vertex, below in straight.pairs.items() if vertex not in bends}
    return Straight(pairs, frozenset(bends))

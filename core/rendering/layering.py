"""Layers of a graph from top to bottom, with chains of dummy vertices where edges are long.

Vertices are numbered: first the real ones, then the dummies. All edges that leave one vertex
carry one value, so they share one chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.rendering.bands import Bands, banded_layers

Pair = tuple[int, int]

_WORTH_SLIDING = 4
"""In layers; below that it looks better when branches begin in one row."""


@dataclass(frozen=True, slots=True)
class Layering:
    """A layered graph: every edge leads from one layer to the next.

    Attributes
    ----------
    real
        How many vertices are real; those from there on are dummies.
    layer_of
        The layer of each vertex.
    up, down
        The neighbours of each vertex in the layer above and below it.
    chains
        The dummies below each real vertex, from top to bottom.
    depth, height
        The longest path from a source, and to a sink, through each real vertex, in edges.
    """

    real: int
    layer_of: list[int]
    up: list[list[int]]
    down: list[list[int]]
    chains: list[list[int]]
    depth: list[int]
    height: list[int]


def layering(
    count: int, edges: Sequence[Pair], check: Callable[[], None], bands: Bands | None = None
) -> Layering:
    """Assign the vertices ``0 … count - 1`` to layers; `edges` must have no cycle.

    A vertex is put just below the lowest of its predecessors. What only feeds one place, such
    as a constant, is drawn down to that place. With `bands`, each of these has layers of its own.
    """
    successors: list[list[int]] = [[] for _ in range(count)]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(edges):
        successors[source].append(target)
        predecessors[target].append(source)
    order = _topological(successors, predecessors)
    check()
    depth = [0] * count
    for vertex in order:
        for target in successors[vertex]:
            depth[target] = max(depth[target], depth[vertex] + 1)
    height = [0] * count
    for vertex in reversed(order):
        for target in successors[vertex]:
            height[vertex] = max(height[vertex], height[target] + 1)
    layers = (
        _drawn_down(order, successors, predecessors, depth)
        if bands is None
        else banded_layers(order, successors, predecessors, bands)
    )
    check()
    return _with_chains(layers, successors, depth, height)


def without_cycles(count: int, edges: Sequence[Pair]) -> list[Pair]:
    """Return `edges` with those turned round that close a cycle; loops are left out."""
    successors: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        successors[source].append(target)
    unseen, open_, done = 0, 1, 2
    state = [unseen] * count
    back: set[Pair] = set()
    for start in range(count):
        if state[start] != unseen:
            continue
        state[start] = open_
        stack = [(start, iter(successors[start]))]
        while stack:
            vertex, rest = stack[-1]
            for target in rest:
                if state[target] == open_:
                    back.add((vertex, target))
                elif state[target] == unseen:
                    state[target] = open_
                    stack.append((target, iter(successors[target])))
                    break
            else:
                state[vertex] = done
                stack.pop()
    return [
        (target, source) if (source, target) in back else (source, target)
        for source, target in edges
        if source != target
    ]


def _topological(successors: list[list[int]], predecessors: list[list[int]]) -> list[int]:
    waiting = [len(sources) for sources in predecessors]
    order = [vertex for vertex, number in enumerate(waiting) if number == 0]
    for vertex in order:
        for target in successors[vertex]:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    assert len(order) == len(successors), "a cycle was left in the graph"
    return order


def _drawn_down(
    order: list[int],
    successors: list[list[int]],
    predecessors: list[list[int]],
    depth: list[int],
) -> list[int]:
    """Return the layers, with vertices that have nothing else above them close to their use."""
    movable = [True] * len(order)
    for vertex in order:
        movable[vertex] = all(
            movable[source] and len(successors[source]) == 1 for source in predecessors[vertex]
        )
    layers = list(depth)
    for vertex in reversed(order):
        if movable[vertex] and successors[vertex]:
            layers[vertex] = min(layers[target] for target in successors[vertex]) - 1
    # A vertex may also go as low as every line from above reaches in any case.
    reach = [max((layers[target] for target in near), default=0) for near in successors]
    for vertex in reversed(order):
        if successors[vertex] and predecessors[vertex]:
            lowest = min(layers[target] for target in successors[vertex]) - 1
            lowest = min(lowest, min(reach[source] for source in predecessors[vertex]))
            layers[vertex] = max(layers[vertex], lowest)
    for vertex in reversed(order):
        _slide_together(vertex, successors, predecessors, layers)
    used = {layer: index for index, layer in enumerate(sorted(set(layers)))}
    return [used[layer] for layer in layers]


def _slide_together(
    vertex: int, successors: list[list[int]], predecessors: list[list[int]], layers: list[int]
) -> None:
    """Slide the side branches below `vertex` down, where that makes the lines shorter in sum.

    One step further down costs `vertex` one more dummy, and saves one for every branch that has
    room; so they go as low as two of them can. The slices of an unrolled loop come to stand
    where they are used.
    """
    branches: list[tuple[int, list[int]]] = []
    for start in successors[vertex]:
        branch = [start]
        while (
            len(predecessors[branch[-1]]) == 1
            and len(successors[branch[-1]]) == 1
            and len(predecessors[successors[branch[-1]][0]]) == 1
        ):
            branch.append(successors[branch[-1]][0])
        if len(predecessors[start]) == 1 and successors[branch[-1]]:
            room = min(layers[target] for target in successors[branch[-1]]) - 1 - layers[branch[-1]]
            if room > 0:
                branches.append((layers[start] + room, branch))
    if len(branches) < 2:
        return
    limit = sorted(lowest for lowest, _ in branches)[-2]
    if limit - max(layers[target] for target in successors[vertex]) < _WORTH_SLIDING:
        return
    for lowest, branch in branches:
        shift = min(lowest, limit) - layers[branch[0]]
        for member in branch:
            layers[member] += shift


def _with_chains(
    layers: list[int], successors: list[list[int]], depth: list[int], height: list[int]
) -> Layering:
    count = len(layers)
    layer_of = list(layers)
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    chains: list[list[int]] = [[] for _ in range(count)]
    for vertex in range(count):
        targets = successors[vertex]
        if not targets:
            continue
        stations = [vertex]
        for layer in range(layers[vertex] + 1, max(layers[target] for target in targets)):
            dummy = len(layer_of)
            layer_of.append(layer)
            up.append([stations[-1]])
            down.append([])
            down[stations[-1]].append(dummy)
            stations.append(dummy)
        chains[vertex] = stations[1:]
        for target in targets:
            station = stations[layers[target] - layers[vertex] - 1]
            down[station].append(target)
            up[target].append(station)
    return Layering(count, layer_of, up, down, chains, depth, height)

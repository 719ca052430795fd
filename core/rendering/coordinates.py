"""Where the vertices of a layered graph stand from left to right.

The method is that of Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment"
(2002), with three changes: vertices have true extents to the left and to the right; blocks are
placed by longest paths over the graph of blocks, which has no need of the paper's classes; and
pairs that must be straight (long edges, and the spine of the graph) are chosen beforehand and
hold in all four alignments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from lowerscope.core.rendering.layering import Layering

BOX_GAP = 24.0
"""Between two boxes, in pixels."""

LINE_GAP = 16.0
"""Between a long edge and a box, or between two long edges, in pixels."""


def coordinates(
    graph: Layering,
    layers: list[list[int]],
    left: list[float],
    right: list[float],
    check: Callable[[], None],
) -> list[float]:
    """Return the x of every vertex.

    Parameters
    ----------
    graph, layers
        The layered graph, and the order within its layers.
    left, right
        How far each vertex reaches to either side of its x, in pixels.
    check
        Called now and then; may raise.
    """
    straight = _straight_pairs(graph, layers)
    mirrored = [list(reversed(layer)) for layer in layers]
    runs: list[list[float]] = []
    for downward in (True, False):
        runs.append(_aligned(graph, layers, straight, left, right, downward=downward))
        check()
        other = _aligned(graph, mirrored, straight, right, left, downward=downward)
        runs.append([-x for x in other])
        check()
    return _balanced(runs, left, right)


def _straight_pairs(graph: Layering, layers: list[list[int]]) -> dict[int, int]:
    """Return pairs of a vertex and the one below it that stand on one line; none cross."""
    position = [0] * len(graph.layer_of)
    for layer in layers:
        for index, vertex in enumerate(layer):
            position[vertex] = index
    pairs: dict[int, int] = {}
    for layer in layers[:-1]:
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
    return pairs


def _wishes(graph: Layering, vertex: int) -> list[tuple[float, int]]:
    """Return the vertices below `vertex` that would stand straight below it; lower is stronger.

    The spine, the longest way through the graph, comes before long edges, and those before the
    beginning of a long edge.
    """
    wishes: list[tuple[float, int]] = []
    below = [other for other in graph.down[vertex] if other < graph.real]
    dummies = [other for other in graph.down[vertex] if other >= graph.real]
    if vertex >= graph.real:
        wishes.extend((1.0, other) for other in dummies)
        if not dummies and len(below) == 1 and len(graph.up[below[0]]) == 1:
            wishes.append((2.0, below[0]))
        return wishes
    best = _only_longest(below, graph.height)
    if best is not None:
        above = [other for other in graph.up[best] if other < graph.real]
        if _only_longest(above, graph.depth) == vertex:
            length = graph.depth[vertex] + graph.height[vertex]
            wishes.append((-float(length), best))
    if not below:
        wishes.extend((2.0, other) for other in dummies)
    return wishes


def _only_longest(vertices: list[int], length: list[int]) -> int | None:
    """Return the vertex with the greatest length, or ``None`` where several are equal."""
    if not vertices:
        return None
    longest = max(length[vertex] for vertex in vertices)
    best = [vertex for vertex in vertices if length[vertex] == longest]
    return best[0] if len(best) == 1 else None


def _aligned(
    graph: Layering,
    layers: list[list[int]],
    straight: dict[int, int],
    left: list[float],
    right: list[float],
    *,
    downward: bool,
) -> list[float]:
    """Return one of the four alignments: each vertex below (or above) a median neighbour."""
    position = [0] * len(graph.layer_of)
    for layer in layers:
        for index, vertex in enumerate(layer):
            position[vertex] = index
    if downward:
        neighbours, partner = graph.up, {below: above for above, below in straight.items()}
    else:
        neighbours, partner = graph.down, straight
    root = list(range(len(graph.layer_of)))
    for layer in layers[1:] if downward else layers[-2::-1]:
        _align_layer(layer, neighbours, partner, position, root)
    return _placed(graph, layers, root, left, right)


def _align_layer(
    layer: list[int],
    neighbours: list[list[int]],
    partner: dict[int, int],
    position: list[int],
    root: list[int],
) -> None:
    """Join the vertices of `layer` to the blocks of the layer before it, without crossings."""
    limits: list[float] = []
    limit = float("inf")
    for vertex in reversed(layer):
        limits.append(limit)
        if vertex in partner:
            limit = position[partner[vertex]]
    limits.reverse()
    taken = -1
    for vertex, end in zip(layer, limits, strict=True):
        chosen = partner.get(vertex)
        if chosen is not None:
            root[vertex] = root[chosen]
            taken = position[chosen]
            continue
        near = sorted(neighbours[vertex], key=position.__getitem__)
        if not near:
            continue
        middle = len(near) // 2
        medians = [near[middle]] if len(near) % 2 else [near[middle - 1], near[middle]]
        for candidate in medians:
            if taken < position[candidate] < end:
                root[vertex] = root[candidate]
                taken = position[candidate]
                break


def _placed(
    graph: Layering,
    layers: list[list[int]],
    root: list[int],
    left: list[float],
    right: list[float],
) -> list[float]:
    """Place the blocks as far left as they go, then as far right as their neighbours let them."""
    after: dict[int, dict[int, float]] = {}
    before: dict[int, int] = {}
    for layer in layers:
        for index in range(len(layer) - 1):
            one, two = layer[index], layer[index + 1]
            boxes = one < graph.real and two < graph.real
            apart = right[one] + left[two] + (BOX_GAP if boxes else LINE_GAP)
            first, second = root[one], root[two]
            follows = after.setdefault(first, {})
            if second not in follows:
                follows[second] = apart
                before[second] = before.get(second, 0) + 1
            elif apart > follows[second]:
                follows[second] = apart
    blocks = [block for block in dict.fromkeys(root) if block not in before]
    x = [0.0] * len(root)
    for block in blocks:
        for follower, apart in after.get(block, {}).items():
            x[follower] = max(x[follower], x[block] + apart)
            before[follower] -= 1
            if before[follower] == 0:
                blocks.append(follower)
    for block in reversed(blocks):
        follows = after.get(block, {})
        if follows:
            x[block] = max(
                x[block], min(x[follower] - apart for follower, apart in follows.items())
            )
    return [x[block] for block in root]


def _balanced(runs: list[list[float]], left: list[float], right: list[float]) -> list[float]:
    """Return the mean of the two middle ones of the four x of each vertex.

    The runs are first moved onto the narrowest: those that lean left at its left side, the
    others at its right side.
    """
    vertices = range(len(left))
    starts = [min(x[v] - left[v] for v in vertices) for x in runs]
    ends = [max(x[v] + right[v] for v in vertices) for x in runs]
    narrowest = min(range(4), key=lambda run: ends[run] - starts[run])
    shifts = [
        ends[narrowest] - ends[run] if run % 2 else starts[narrowest] - starts[run]
        for run in range(4)
    ]
    balanced: list[float] = []
    for values in zip(*runs, strict=True):
        ranked = sorted(value + shift for value, shift in zip(values, shifts, strict=True))
        balanced.append((ranked[1] + ranked[2]) / 2)
    return balanced

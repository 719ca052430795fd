"""Where the vertices of a layered graph stand from left to right.

The method is that of Brandes and Köpf, "Fast and Simple Horizontal Coordinate Assignment"
(2002), with four changes: vertices have true extents to the left and to the right; edges may end
beside the middle of a vertex, so that those of a block need not have one x; blocks are placed by
longest paths over the graph of blocks, which has no need of the paper's classes; and pairs that
must be straight (long edges, and the spine of the graph) are chosen beforehand and hold in all four
alignments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from lowerscope.core.rendering.graph_layout.layering import Layering
from lowerscope.core.rendering.graph_layout.straight import Straight, straight_pairs, with_bends

BOX_GAP = 24.0
"""Between two boxes, in pixels."""

LINE_GAP = 16.0
"""Between a long edge and a box, or between two long edges, in pixels."""

Offsets = Mapping[tuple[int, int], float]
"""How far right of a vertex the one below it stands when the edge between them is straight."""

_PULLS = 6
_STILL = 0.5
"""What a vertex would be moved by, in pixels, that is not worth moving it."""

_LARGE = 3000
_TOO_WIDE = 2.0


def coordinates(
    graph: Layering,
    layers: list[list[int]],
    left: list[float],
    right: list[float],
    offsets: Offsets,
    check: Callable[[], None],
) -> list[float]:
    """Return the x of every vertex.

    Parameters
    ----------
    graph, layers
        The layered graph, and the order within its layers.
    left, right
        How far each vertex reaches to either side of its x, in pixels.
    offsets
        For the edges that do not end in the x of both of their vertices.
    check
        Called now and then; may raise.
    """
    if all(len(layer) == 1 for layer in layers):
        return _in_line(graph, layers, offsets)
    straight = straight_pairs(graph, layers, check)
    x = _assigned(graph, layers, straight, left, right, offsets, check)
    if _width(x, left, right) > _TOO_WIDE * _least_width(graph, layers, left, right):
        bent = with_bends(graph, straight)
        other = _assigned(graph, layers, bent, left, right, offsets, check)
        if _width(other, left, right) < _width(x, left, right):
            straight, x = bent, other
    rounds = _PULLS if len(x) < _LARGE else 1
    for _ in range(rounds):
        if not _pull_together(graph, layers, straight, left, right, x, offsets, check):
            break
    return x


def _in_line(graph: Layering, layers: list[list[int]], offsets: Offsets) -> list[float]:
    """Return the x of vertices of which there is one in each layer: every edge is straight."""
    x = [0.0] * len(graph.layer_of)
    for (above,), (below,) in pairwise(layers):
        x[below] = x[above] + offsets.get((above, below), 0.0)
    return x


def _assigned(
    graph: Layering,
    layers: list[list[int]],
    straight: Straight,
    left: list[float],
    right: list[float],
    offsets: Offsets,
    check: Callable[[], None],
) -> list[float]:
    """Return the balanced x of the four alignments."""
    mirrored = [list(reversed(layer)) for layer in layers]
    turned = {edge: -offset for edge, offset in offsets.items()}
    runs: list[list[float]] = []
    for downward in (True, False):
        runs.append(
            _aligned(graph, layers, straight, left, right, offsets, check, downward=downward)
        )
        other = _aligned(graph, mirrored, straight, right, left, turned, check, downward=downward)
        runs.append([-x for x in other])
    return _balanced(runs, left, right)


def _width(x: list[float], left: list[float], right: list[float]) -> float:
    vertices = range(len(x))
    return max(x[v] + right[v] for v in vertices) - min(x[v] - left[v] for v in vertices)


def _least_width(
    graph: Layering, layers: list[list[int]], left: list[float], right: list[float]
) -> float:
    """Return the width of the widest layer when it is packed."""
    return max(
        left[layer[0]]
        + right[layer[-1]]
        + sum(_apart(graph, one, two, left, right) for one, two in pairwise(layer))
        for layer in layers
        if layer
    )


def _aligned(
    graph: Layering,
    layers: list[list[int]],
    straight: Straight,
    left: list[float],
    right: list[float],
    offsets: Offsets,
    check: Callable[[], None],
    *,
    downward: bool,
) -> list[float]:
    """Return one of the four alignments: each vertex below (or above) a median neighbour."""
    position = [0] * len(graph.layer_of)
    for layer in layers:
        for index, vertex in enumerate(layer):
            position[vertex] = index
    if downward:
        neighbours = graph.up
        partner = {below: above for above, below in straight.pairs.items()}
    else:
        neighbours, partner = graph.down, straight.pairs
    root = list(range(len(graph.layer_of)))
    shift = [0.0] * len(root)
    for layer in layers[1:] if downward else layers[-2::-1]:
        check()
        for vertex, chosen in _aligned_pairs(layer, neighbours, partner, position, straight.bends):
            root[vertex] = root[chosen]
            if downward:
                shift[vertex] = shift[chosen] + offsets.get((chosen, vertex), 0.0)
            else:
                shift[vertex] = shift[chosen] - offsets.get((vertex, chosen), 0.0)
    return _placed(graph, layers, root, shift, left, right, check)


def _aligned_pairs(
    layer: list[int],
    neighbours: list[list[int]],
    partner: dict[int, int],
    position: list[int],
    bends: frozenset[int],
) -> Iterator[tuple[int, int]]:
    """Yield vertices of `layer`, and which ones of the layer before they are in line with.

    No two of these pairs cross.
    """
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
            taken = position[chosen]
            yield vertex, chosen
            continue
        near = neighbours[vertex]
        if not near:
            continue
        if len(near) > 1:
            near = sorted(near, key=position.__getitem__)
        middle = len(near) // 2
        medians = [near[middle]] if len(near) % 2 else [near[middle - 1], near[middle]]
        for candidate in medians:
            bent = vertex in bends or candidate in bends
            if taken < position[candidate] < end and not bent:
                taken = position[candidate]
                yield vertex, candidate
                break


def _placed(
    graph: Layering,
    layers: list[list[int]],
    root: list[int],
    shift: list[float],
    left: list[float],
    right: list[float],
    check: Callable[[], None],
) -> list[float]:
    """Place the blocks as far left as they go, then as far right as their neighbours let them."""
    after: dict[int, dict[int, float]] = {}
    before: dict[int, int] = {}
    for layer in layers:
        check()
        for one, two in pairwise(layer):
            apart = _apart(graph, one, two, left, right) + shift[one] - shift[two]
            first, second = root[one], root[two]
            follows = after.setdefault(first, {})
            if second not in follows:
                follows[second] = apart
                before[second] = before.get(second, 0) + 1
            elif apart > follows[second]:
                follows[second] = apart
    blocks = [block for block in dict.fromkeys(root) if block not in before]
    check()
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
    return [x[block] + moved for block, moved in zip(root, shift, strict=True)]


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


def _apart(graph: Layering, one: int, two: int, left: list[float], right: list[float]) -> float:
    """Return how far two neighbours in a layer stand apart at least, middle to middle."""
    boxes = _is_box(graph, one) and _is_box(graph, two)
    return right[one] + left[two] + (BOX_GAP if boxes else LINE_GAP)


def _is_box(graph: Layering, vertex: int) -> bool:
    return vertex < graph.boxes or vertex in graph.owner


def _pull_together(
    graph: Layering,
    layers: list[list[int]],
    straight: Straight,
    left: list[float],
    right: list[float],
    x: list[float],
    offsets: Offsets,
    check: Callable[[], None],
) -> bool:
    """Move straight lines of vertices towards what they are tied to, as far as there is room.

    Returns
    -------
    bool
        Whether anything moved.
    """
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for layer in layers:
        for one, two in pairwise(layer):
            before[two], after[one] = one, two
    pairs = straight.pairs
    lower = set(pairs.values())
    moved = False
    for vertex in (each for layer in layers for each in layer):
        if vertex in lower:
            continue
        check()
        line = [vertex]
        while line[-1] in pairs:
            line.append(pairs[line[-1]])
        here = x[vertex]
        ties: list[float] = []
        for member in line:
            inward = here - x[member]
            ties += [
                x[other] + offsets.get((other, member), 0.0) + inward
                for other in graph.up[member]
                if pairs.get(other) != member
            ]
            ties += [
                x[other] - offsets.get((member, other), 0.0) + inward
                for other in graph.down[member]
                if pairs.get(member) != other
            ]
        if not ties:
            continue
        ties.sort()
        wanted = min(max(here, ties[(len(ties) - 1) // 2]), ties[len(ties) // 2])
        if abs(wanted - here) <= _STILL:
            continue
        for member in line:
            inward = here - x[member]
            if wanted < here and member in before:
                other = before[member]
                nearest = x[other] + _apart(graph, other, member, left, right) + inward
                wanted = min(here, max(wanted, nearest))
            if wanted > here and member in after:
                other = after[member]
                nearest = x[other] - _apart(graph, member, other, left, right) + inward
                wanted = max(here, min(wanted, nearest))
        if abs(wanted - here) > _STILL:
            moved = True
            for member in line:
                x[member] += wanted - here
    return moved

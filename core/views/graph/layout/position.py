"""Horizontal coordinates by the method of Brandes and Köpf (2002), with four changes.

Vertices have extents to the left and to the right. Edges may end beside the middle of a vertex, so
the vertices of a block need not have one x. Blocks are placed by longest paths over the graph of
blocks instead of the paper's classes. Pairs of vertices that must be aligned (those of long edges,
and of the graph's spine) are selected first and hold in all four alignments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from lowerscope.core.views.graph.layout.rank import LayeredGraph

BOX_GAP = 24.0
"""Separation of two boxes, in pixels."""

LINE_GAP = 16.0
"""Separation of a dummy vertex from a box or another dummy vertex, in pixels."""

Offsets = Mapping[tuple[int, int], float]
"""Distance by which the lower vertex of a straight edge is to the right of the upper one."""

_ROUNDS = 6
_STILL = 0.5
"""Least distance, in pixels, by which a vertex is moved."""

_LARGE = 3000
_TOO_WIDE = 2.0
_BENDABLE = 4
"""Least number of dummy vertices of an edge that may bend."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A layered graph whose vertices need an x.

    `left`, `right`: extents of each vertex to either side of its x, in pixels.
    `offsets`: of edges that do not end at the x of both of their vertices.
    """

    graph: LayeredGraph
    layers: list[list[int]]
    left: list[float]
    right: list[float]
    offsets: Offsets
    check: Callable[[], None]

    def mirrored(self) -> Problem:
        """Return the problem with left and right exchanged."""
        return replace(
            self,
            layers=[layer[::-1] for layer in self.layers],
            left=self.right,
            right=self.left,
            offsets={edge: -offset for edge, offset in self.offsets.items()},
        )

    def separation(self, one: int, two: int) -> float:
        """Return the least distance of the x of two neighbours in a layer."""
        graph = self.graph
        boxes = (one < graph.boxes or one in graph.owner) and (
            two < graph.boxes or two in graph.owner
        )
        return self.right[one] + self.left[two] + (BOX_GAP if boxes else LINE_GAP)

    def extent(self, x: list[float]) -> tuple[float, float]:
        """Return the left and the right side of an assignment."""
        return (
            min([at - left for at, left in zip(x, self.left, strict=True)]),
            max([at + right for at, right in zip(x, self.right, strict=True)]),
        )


@dataclass(frozen=True, slots=True)
class _Straight:
    """Vertices that are aligned in all four alignments.

    `pairs`: from a vertex to the one below it.
    `bends`: Dummy vertices that must not be aligned with the dummy below them.
    """

    pairs: dict[int, int]
    bends: frozenset[int] = frozenset()


def horizontal_positions(problem: Problem) -> list[float]:
    """Return the x of every vertex."""
    graph = problem.graph
    if all(len(layer) == 1 for layer in problem.layers):
        x = [0.0] * len(graph.layer_of)
        for (above,), (below,) in pairwise(problem.layers):
            x[below] = x[above] + problem.offsets.get((above, below), 0.0)
        return x
    straight = _straight_pairs(problem)
    x = _four_alignments(problem, straight)
    width = _width(problem, x)
    packed = max(
        problem.left[layer[0]]
        + problem.right[layer[-1]]
        + sum(problem.separation(one, two) for one, two in pairwise(layer))
        for layer in problem.layers
        if layer
    )
    if width > _TOO_WIDE * packed:
        bent = _with_bends(graph, straight)
        other = _four_alignments(problem, bent)
        if _width(problem, other) < width:
            straight, x = bent, other
    for _ in range(_ROUNDS if len(x) < _LARGE else 1):
        if not _shorten_edges(problem, straight.pairs, x):
            break
    return x


def _width(problem: Problem, x: list[float]) -> float:
    start, end = problem.extent(x)
    return end - start


def _straight_pairs(problem: Problem) -> _Straight:
    """Select the pairs of vertices to align, greedily by priority; no two pairs cross."""
    graph = problem.graph
    position = graph.positions(problem.layers)
    pairs: dict[int, int] = {}
    for layer in problem.layers[:-1]:
        problem.check()
        candidates = [
            (priority, position[vertex], vertex, below)
            for vertex in layer
            for priority, below in _candidates(graph, vertex)
        ]
        candidates.sort()
        uppers: list[int] = []
        lowers: list[int] = []
        for _, upper, vertex, below in candidates:
            lower = position[below]
            place = bisect_left(uppers, upper)
            if place < len(uppers) and (uppers[place] == upper or lowers[place] <= lower):
                continue
            if place > 0 and lowers[place - 1] >= lower:
                continue
            uppers.insert(place, upper)
            lowers.insert(place, lower)
            pairs[vertex] = below
    return _Straight(pairs)


def _candidates(graph: LayeredGraph, vertex: int) -> list[tuple[float, int]]:
    """Return priorities, the lowest first, and vertices below `vertex` to align with it.

    The parts of one box come first; then the spine, the longest path through the graph; then the
    dummy vertices of long edges; then the start of a long edge.
    """
    if vertex in graph.lower_part:
        return [(float("-inf"), graph.lower_part[vertex])]
    candidates: list[tuple[float, int]] = []
    below = [other for other in graph.down[vertex] if other < graph.real]
    dummies = [other for other in graph.down[vertex] if other >= graph.real]
    origin = graph.origin[vertex]
    dummy = vertex >= graph.real and vertex not in graph.owner
    best = _only_longest(below, [graph.height[other] for other in below])
    if best is not None and not (dummy and dummies):
        above = graph.up[best]
        depths = [graph.depth[graph.origin[other]] for other in above]
        if _only_longest(above, depths) == vertex:
            length = graph.depth[origin] + graph.height[origin]
            candidates.append((-float(length), best))
    if dummy:
        candidates.extend((1.0, other) for other in dummies)
    elif not below:
        candidates.extend((2.0, other) for other in dummies)
    return candidates


def _only_longest(vertices: list[int], lengths: list[int]) -> int | None:
    """Return the vertex with the greatest length, or ``None`` where several have it."""
    if not vertices:
        return None
    longest = max(lengths)
    return vertices[lengths.index(longest)] if lengths.count(longest) == 1 else None


def _with_bends(graph: LayeredGraph, straight: _Straight) -> _Straight:
    """Let long edges bend once, in their middle.

    Straight edges that start side by side and end in the opposite order, as in an unrolled
    recurrence, would push one another further and further aside.
    """
    bends = {chain[len(chain) // 2 - 1] for chain in graph.chains if len(chain) >= _BENDABLE}
    pairs = {vertex: below for vertex, below in straight.pairs.items() if vertex not in bends}
    return _Straight(pairs, frozenset(bends))


def _four_alignments(problem: Problem, straight: _Straight) -> list[float]:
    """Return the average of the two medians of each vertex's x in the four alignments.

    The alignments are first moved to the narrowest: those to the left at its left side, the others
    at its right side.
    """
    mirrored = problem.mirrored()
    runs: list[list[float]] = []
    for downward in (True, False):
        runs.append(_aligned(problem, straight, downward=downward))
        runs.append([-x for x in _aligned(mirrored, straight, downward=downward)])
    extents = [problem.extent(x) for x in runs]
    start, end = min(extents, key=lambda extent: extent[1] - extent[0])
    shifts = [
        end - ends if run % 2 else start - starts for run, (starts, ends) in enumerate(extents)
    ]
    balanced: list[float] = []
    for values in zip(*runs, strict=True):
        ranked = sorted([value + shift for value, shift in zip(values, shifts, strict=True)])
        balanced.append((ranked[1] + ranked[2]) / 2)
    return balanced


def _aligned(problem: Problem, straight: _Straight, *, downward: bool) -> list[float]:
    """Return one alignment: each vertex is aligned with a median neighbour above, or below."""
    graph, layers, offsets = problem.graph, problem.layers, problem.offsets
    position = graph.positions(layers)
    if downward:
        neighbours = graph.up
        partner = {below: above for above, below in straight.pairs.items()}
    else:
        neighbours, partner = graph.down, straight.pairs
    root = list(range(len(graph.layer_of)))
    shift = [0.0] * len(root)
    for layer in layers[1:] if downward else layers[-2::-1]:
        problem.check()
        for vertex, chosen in _aligned_pairs(layer, neighbours, partner, position, straight.bends):
            root[vertex] = root[chosen]
            if downward:
                shift[vertex] = shift[chosen] + offsets.get((chosen, vertex), 0.0)
            else:
                shift[vertex] = shift[chosen] - offsets.get((vertex, chosen), 0.0)
    return _compacted(problem, root, shift)


def _aligned_pairs(
    layer: list[int],
    neighbours: list[list[int]],
    partner: dict[int, int],
    position: list[int],
    bends: frozenset[int],
) -> Iterator[tuple[int, int]]:
    """Yield vertices of `layer`, each with its aligned neighbour; no two pairs cross."""
    limits: list[float] = []
    limit = float("inf")
    for vertex in reversed(layer):
        limits.append(limit)
        if vertex in partner:
            limit = position[partner[vertex]]
    limits.reverse()
    last = -1
    for vertex, end in zip(layer, limits, strict=True):
        chosen = partner.get(vertex)
        if chosen is not None:
            last = position[chosen]
            yield vertex, chosen
            continue
        near = neighbours[vertex]
        if not near:
            continue
        if len(near) > 1:
            near = sorted(near, key=position.__getitem__)
        middle = len(near) // 2
        medians = [near[middle]] if len(near) % 2 else [near[middle - 1], near[middle]]
        for median in medians:
            bent = vertex in bends or median in bends
            if last < position[median] < end and not bent:
                last = position[median]
                yield vertex, median
                break


def _compacted(problem: Problem, root: list[int], shift: list[float]) -> list[float]:
    """Place the blocks leftmost, then as far to the right as their followers allow."""
    after: dict[int, dict[int, float]] = {}
    before: dict[int, int] = {}
    for layer in problem.layers:
        problem.check()
        for one, two in pairwise(layer):
            apart = problem.separation(one, two) + shift[one] - shift[two]
            first, second = root[one], root[two]
            follows = after.setdefault(first, {})
            if second not in follows:
                follows[second] = apart
                before[second] = before.get(second, 0) + 1
            elif apart > follows[second]:
                follows[second] = apart
    blocks = [block for block in dict.fromkeys(root) if block not in before]
    problem.check()
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


def _shorten_edges(problem: Problem, pairs: dict[int, int], x: list[float]) -> bool:
    """Move straight lines of vertices to the median of their other neighbours, where free.

    Returns whether a vertex moved.
    """
    graph, offsets = problem.graph, problem.offsets
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for layer in problem.layers:
        for one, two in pairwise(layer):
            before[two], after[one] = one, two
    lower = set(pairs.values())
    moved = False
    for vertex in (each for layer in problem.layers for each in layer):
        if vertex in lower:
            continue
        problem.check()
        line = [vertex]
        while line[-1] in pairs:
            line.append(pairs[line[-1]])
        here = x[vertex]
        wishes: list[float] = []
        for member in line:
            inward = here - x[member]
            wishes += [
                x[other] + offsets.get((other, member), 0.0) + inward
                for other in graph.up[member]
                if pairs.get(other) != member
            ]
            wishes += [
                x[other] - offsets.get((member, other), 0.0) + inward
                for other in graph.down[member]
                if pairs.get(member) != other
            ]
        if not wishes:
            continue
        wishes.sort()
        wanted = min(max(here, wishes[(len(wishes) - 1) // 2]), wishes[len(wishes) // 2])
        if abs(wanted - here) <= _STILL:
            continue
        for member in line:
            inward = here - x[member]
            if wanted < here and member in before:
                other = before[member]
                nearest = x[other] + problem.separation(other, member) + inward
                wanted = min(here, max(wanted, nearest))
            if wanted > here and member in after:
                other = after[member]
                nearest = x[other] - problem.separation(member, other) + inward
                wanted = max(here, min(wanted, nearest))
        if abs(wanted - here) > _STILL:
            moved = True
            for member in line:
                x[member] += wanted - here
    return moved

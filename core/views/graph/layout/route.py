"""Vertical coordinates and edge routes of a cluster, from the inside out.

Between two layers of boxes are two zones: in the upper one, edges run straight down beside their
labels; in the lower one, they turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lowerscope.core.model.graph import TITLE_BAR
from lowerscope.core.views.graph.layout.rank import OUT, LayeredCluster, LayeredGraph, Subgraph

# --- Horizontal coordinates by the method of Brandes and Köpf (2002), with four changes ---
# Vertices have extents to the left and to the right. Edges may end beside the middle of a vertex,
# so the vertices of a block need not have one x. Blocks are placed by longest paths over the graph
# of blocks instead of the paper's classes. Pairs of vertices that must be aligned (those of long
# edges, and of the graph's spine) are selected first and hold in all four alignments.

BOX_GAP = 24.0
"""Separation of two boxes, in pixels."""

LINE_GAP = 16.0
"""Separation of a dummy vertex from a box or another dummy vertex, in pixels."""

Offsets = Mapping[tuple[int, int], float]
"""Distance by which the lower vertex of a straight edge is to the right of the upper one."""

_ROUNDS = 6
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


LABEL_ZONE = 26.0
"""Height of the zone for labels below a layer, in pixels."""

TURN_ZONE = 18.0
"""Least height of the zone in which edges turn, in pixels; with the other zone 44."""

_FRAME_ZONE = 12.0
_STRAIGHT_ZONE = 8.0
_HIGHEST_TURN_ZONE = 48.0
_TURN_SLOPE = 0.15
_LABEL_OFFSET = 7.0
_LABEL_DROP = 18.0
_PORT_STEP = 16.0
_PORT_INSET = 12.0
_ROW = 36.0
_BESIDE = 12.0
_STILL = 0.5
"""Least distance, in pixels, by which a vertex is moved."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NodeSize:
    """Extents of a box, in pixels.

    `left`, `right`: Least extents of the box and what is attached to it from its middle.
    `above`: height of what is attached to its top.
    `constant`: whether no spine starts at the box.
    """

    id: str
    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    above: float = 0.0
    constant: bool = False


@dataclass(eq=False, slots=True)
class RoutedCluster:
    """A cluster with coordinates, from its own top left corner.

    `corners`: the top left corner of each box or frame, by vertex.
    `entries`, `exits`: the x of the ports, by value.
    `routes`: the points of each value to each of its target vertices.
    `labels`: the left end of the label of each value that has one, by box.
    """

    layered: LayeredCluster
    width: float
    height: float
    corners: list[Point]
    entries: dict[int, float]
    exits: dict[int, float]
    routes: dict[tuple[int, int], list[Point]]
    labels: dict[int, Point]
    frames: dict[int, RoutedCluster]


@dataclass(frozen=True, slots=True)
class _Row:
    """The y of a layer: its top, that of its boxes, its bottom, and that of its turn zone."""

    top: float
    boxes: float
    bottom: float
    turn: float


def route_cluster(
    layered: LayeredCluster,
    sizes: Sequence[NodeSize],
    labels: Sequence[float],
    check: Callable[[], None],
) -> RoutedCluster:
    """Return the coordinates of everything in a cluster.

    `sizes`, `labels`: of all boxes of the graph, and the widths of the labels of their values.
    """
    frames = {
        vertex: route_cluster(frame, sizes, labels, check)
        for vertex, frame in layered.frames.items()
    }
    return _Router(layered, frames, sizes, labels).routed(check)


class _Router:
    def __init__(
        self,
        layered: LayeredCluster,
        frames: dict[int, RoutedCluster],
        sizes: Sequence[NodeSize],
        labels: Sequence[float],
    ) -> None:
        self._layered = layered
        self._frames = frames
        self._graph = graph = layered.graph
        self._values = layered.cluster.values
        self._edges = graph.graph.edges
        self._x: list[float] = []
        self._rows: list[_Row] = []
        self._corners: list[Point] = []
        vertices = len(graph.layer_of)
        self._left, self._right = [0.0] * vertices, [0.0] * vertices
        # Width, height, and the height of what is attached above, of boxes and frames.
        self._sizes: list[tuple[float, float, float]] = []
        self._label_of: dict[int, int] = {}
        for vertex, item in enumerate(layered.cluster.items):
            if not isinstance(item, int):
                width, height, above = frames[vertex].width, frames[vertex].height, 0.0
                left = right = width / 2
            else:
                size = sizes[item]
                width, height, above = size.width, size.height, size.above
                left, right = max(size.left, width / 2), max(size.right, width / 2)
                if labels[item] > 0 and item in layered.cluster.sources:
                    self._label_of[vertex] = item
                    right = max(right, _LABEL_OFFSET + labels[item])
            self._sizes.append((width, height, above))
            self._left[vertex], self._right[vertex] = left, right
        for part, vertex in graph.owner.items():
            self._left[part], self._right[part] = self._left[vertex], self._right[vertex]
        # Distance of each edge's start from the middle of its source.
        self._starts = [
            self._port_offset(edge.source, value, entering=False)
            for edge, value in zip(self._edges, self._values, strict=True)
        ]

    def routed(self, check: Callable[[], None]) -> RoutedCluster:
        graph, cluster = self._graph, self._layered.cluster
        offsets = self._offsets()
        problem = Problem(graph, self._layered.layers, self._left, self._right, offsets, check)
        x = horizontal_positions(problem)
        left, right = self._framed(x, *problem.extent(x))
        self._x = x = [at - left for at in x]
        self._place_rows(offsets)
        check()
        for vertex, (width, height, _) in enumerate(self._sizes):
            top = self._rows[graph.layer_of[vertex]].boxes
            bottom = self._rows[graph.last_layer(vertex)].bottom
            self._corners.append((x[vertex] - width / 2, top + (bottom - top - height) / 2))
        ports = iter(x[graph.boxes : graph.real])
        return RoutedCluster(
            layered=self._layered,
            width=right - left,
            height=self._rows[-1].bottom if self._rows else 0.0,
            corners=self._corners,
            entries={value: next(ports) for value in cluster.entering()},
            exits={value: next(ports) for value in cluster.leaving()},
            routes=self._routes(),
            labels={
                box: (
                    x[vertex] + _LABEL_OFFSET,
                    self._corners[vertex][1] + self._sizes[vertex][1] + _LABEL_DROP,
                )
                for vertex, box in self._label_of.items()
            },
            frames=self._frames,
        )

    def _port_offset(self, vertex: int, value: int, *, entering: bool) -> float:
        """Return the distance of an edge's end from the middle of its vertex."""
        frame = self._frames.get(vertex)
        if frame is None:
            return 0.0
        return (frame.entries if entering else frame.exits)[value] - frame.width / 2

    def _offsets(self) -> dict[tuple[int, int], float]:
        if not self._frames:
            return {}
        graph = self._graph
        offsets: dict[tuple[int, int], float] = {}
        for number, edge in enumerate(self._edges):
            chain, start = graph.chains[number], self._starts[number]
            bottom = graph.bottom[edge.source]
            if chain and start:
                offsets.setdefault((bottom, chain[0]), start)
            for target in edge.targets:
                end = self._port_offset(target, self._values[number], entering=True)
                dummies = graph.layer_of[target] - graph.layer_of[bottom] - 1
                if dummies:
                    offsets.setdefault((chain[dummies - 1], target), -end)
                else:
                    offsets.setdefault((bottom, target), start - end)
        return {edge: offset for edge, offset in offsets.items() if offset}

    def _framed(self, x: list[float], left: float, right: float) -> tuple[float, float]:
        """Return the sides of the frame, with room for the title left of all edges through it."""
        frame, graph = self._layered.cluster.frame, self._graph.graph
        if frame is None:
            return left, right
        first = graph.boxes if frame.bar else graph.boxes + graph.ins
        ports = x[first : first + (graph.ins if frame.bar else graph.outs)]
        left = min([left - _BESIDE, *(port - frame.title_width for port in ports)])
        return left, max(right + _BESIDE, left + frame.title_width)

    # Layers

    def _place_rows(self, offsets: dict[tuple[int, int], float]) -> None:
        graph, layers, x = self._graph, self._layered.layers, self._x
        ending: dict[int, list[int]] = {}
        for vertex in dict.fromkeys(graph.owner.values()):
            ending.setdefault(graph.last_layer(vertex), []).append(vertex)
        frame = self._layered.cluster.frame
        y = 0.0
        for number, layer in enumerate(layers):
            boxes = [vertex for vertex in layer if vertex < graph.boxes]
            above = max([self._sizes[vertex][2] for vertex in boxes], default=0.0)
            height = above + self._row_height(layer)
            for vertex in ending.get(number, ()):
                top = self._rows[graph.layer_of[vertex]].boxes
                height = max(height, top + self._sizes[vertex][1] - y)
            last = frame is not None and number == len(layers) - 1
            turn = y + height + (0.0 if last else self._label_zone(frame, number, boxes))
            self._rows.append(_Row(y, y + above, y + height, turn))
            if not last:
                widest = max(
                    [
                        abs(x[other] - x[vertex] - offsets.get((vertex, other), 0.0))
                        for vertex in layer
                        for other in graph.down[vertex]
                    ],
                    default=0.0,
                )
                y = turn + self._turn_zone(frame, number, widest)

    def _row_height(self, layer: list[int]) -> float:
        graph = self._graph
        heights = [0.0]
        for vertex in layer:
            if vertex in graph.lower_part or vertex in graph.owner:
                heights.append(_ROW)
            elif vertex < graph.boxes:
                heights.append(self._sizes[vertex][1])
        return max(heights)

    def _label_zone(self, frame: Subgraph | None, number: int, boxes: list[int]) -> float:
        if frame is not None and number == 0:
            return TITLE_BAR if frame.bar else _FRAME_ZONE
        if frame is not None and not frame.bar and number == self._graph.count - 2:
            return LABEL_ZONE
        return LABEL_ZONE if any(box not in self._frames for box in boxes) else _FRAME_ZONE

    def _turn_zone(self, frame: Subgraph | None, number: int, widest: float) -> float:
        border = frame is not None and number in (0, self._graph.count - 2)
        if border and widest <= _STILL:
            return _STRAIGHT_ZONE
        return round(min(_HIGHEST_TURN_ZONE, max(TURN_ZONE, _TURN_SLOPE * widest)))

    # Edges

    def _ends(self) -> dict[tuple[int, int], float]:
        """Return the x of the end of each edge, by edge and target vertex.

        An edge from straight above ends in the middle of a box, the others to its left and right.
        """
        graph, x = self._graph, self._x
        into: dict[int, list[tuple[float, int]]] = {}
        ends: dict[tuple[int, int], float] = {}
        for number, edge in enumerate(self._edges):
            first = graph.layer_of[graph.bottom[edge.source]] + 1
            for target in edge.targets:
                if target >= graph.boxes or target in self._frames:
                    offset = self._port_offset(target, self._values[number], entering=True)
                    ends[number, target] = x[target] + offset
                    continue
                dummies = graph.layer_of[target] - first
                above = (
                    x[graph.chains[number][dummies - 1]]
                    if dummies
                    else x[edge.source] + self._starts[number]
                )
                into.setdefault(target, []).append((above, number))
        for target, edges in into.items():
            edges.sort()
            middle = x[target]
            lefts = sum(above < middle - _STILL for above, _ in edges)
            rights = sum(above > middle + _STILL for above, _ in edges)
            if lefts + rights < len(edges):
                begin, reach = -float(lefts), float(max(lefts, rights))
            else:
                begin, reach = -(len(edges) - 1) / 2, (len(edges) - 1) / 2
            inset = max(0.0, self._sizes[target][0] / 2 - _PORT_INSET)
            step = min(_PORT_STEP, inset / max(reach, 1.0))
            for index, (_, number) in enumerate(edges):
                ends[number, target] = middle + step * (begin + index)
        return ends

    def _routes(self) -> dict[tuple[int, int], list[Point]]:
        graph = self._graph
        ends = self._ends()
        routes: dict[tuple[int, int], list[Point]] = {}
        for number, (edge, value) in enumerate(zip(self._edges, self._values, strict=True)):
            trunk = self._trunk(number)
            first = graph.layer_of[graph.bottom[edge.source]] + 1
            for target in edge.targets:
                layer = graph.layer_of[target]
                end = ends[number, target]
                points = list(trunk[layer - first])
                extend(points, (end, self._rows[layer].top))
                if target < graph.boxes:
                    extend(points, (end, self._corners[target][1]))
                routes[value, target if target < graph.boxes else OUT] = points
        return routes

    def _trunk(self, number: int) -> list[list[Point]]:
        """Return the points of an edge up to the turn below its source and each of its dummies."""
        graph, x = self._graph, self._x
        source = self._edges[number].source
        first = graph.last_layer(source)
        start = x[source] + self._starts[number]
        bottom = 0.0
        if source < graph.boxes:
            bottom = self._corners[source][1] + self._sizes[source][1]
        points: list[Point] = [(start, bottom)]
        extend(points, (start, self._rows[first].turn))
        trunk = [points]
        for layer, dummy in enumerate(graph.chains[number], first + 1):
            points = list(points)
            extend(points, (x[dummy], self._rows[layer].top))
            extend(points, (x[dummy], self._rows[layer].turn))
            trunk.append(points)
        return trunk


def extend(points: list[Point], point: Point) -> None:
    """Append a point to a polyline; merge it with a vertical segment before it."""
    if point == points[-1]:
        return
    if len(points) > 1 and points[-2][0] == points[-1][0] == point[0]:
        points[-1] = point
    else:
        points.append(point)

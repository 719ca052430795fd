"""Crossing reduction: the order of the vertices within each layer.

Barycentre sweeps down and up (Sugiyama, Tagawa and Toda 1981), each followed by adjacent exchanges;
the order with the fewest crossings is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence

from lowerscope.core.views.graph.layout.rank import LayeredCluster, LayeredGraph, rank, set_depths

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

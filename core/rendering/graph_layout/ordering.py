"""The order of the vertices within each layer, with few crossings.

Barycentre sweeps down and up (Sugiyama, Tagawa and Toda 1981), each followed by swaps of
neighbours; the best order that was seen is taken.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence

from lowerscope.core.rendering.graph_layout.layering import Layering

_SWEEPS = 24
_LARGE = 3000
_HUGE = 60_000


def order(
    graph: Layering, check: Callable[[], None], first: Sequence[int], last: Sequence[int]
) -> list[list[int]]:
    """Return the vertices of each layer from left to right.

    Parameters
    ----------
    first, last
        The order of the ports in the first and the last layer, which is given.
    """
    layers = _depth_first(graph, first)
    fixed = _fix(layers, first, last)
    position = [0] * len(graph.layer_of)
    for layer in layers:
        _number(layer, position)
    vertices = len(graph.layer_of)
    swap_rounds, patience = (8, 4) if vertices < _LARGE else (1, 2)
    sweeps = _SWEEPS if vertices < _HUGE else 2
    best = [list(layer) for layer in layers]
    fewest = _crossings(graph, layers, position, check)
    failures = 0
    for sweep in range(sweeps):
        if fewest == 0 or failures == patience:
            break
        downward, to_right = sweep % 2 == 0, sweep % 4 >= 2
        _sweep(graph, layers, position, fixed, check, downward=downward, to_right=to_right)
        _swap_neighbours(graph, layers, position, fixed, swap_rounds, check)
        number = _crossings(graph, layers, position, check)
        failures += 1
        if number < fewest:
            best, fewest, failures = [list(layer) for layer in layers], number, 0
    return best


def _fix(layers: list[list[int]], first: Sequence[int], last: Sequence[int]) -> frozenset[int]:
    """Put the ports in the order that is given; return the layers that keep theirs."""
    fixed: list[int] = []
    for number, given in ((0, first), (len(layers) - 1, last)):
        if given:
            layers[number] = list(given)
            fixed.append(number)
    return frozenset(fixed)


def meets_parts(graph: Layering, layers: list[list[int]]) -> bool:
    """Return whether a line crosses a box that reaches through several layers."""
    position = [0] * len(graph.layer_of)
    for layer in layers:
        _number(layer, position)
    for layer in layers:
        parts = [vertex for vertex in layer if vertex in graph.parts]
        for part in parts:
            here, below = position[part], position[graph.parts[part]]
            for vertex in layer:
                if vertex != part and any(
                    (position[vertex] < here) != (position[other] < below)
                    for other in graph.down[vertex]
                ):
                    return True
    return False


def _number(layer: list[int], position: list[int]) -> None:
    for index, vertex in enumerate(layer):
        position[vertex] = index


def _depth_first(graph: Layering, first: Sequence[int]) -> list[list[int]]:
    """Return a first order, in which every branch stays together; the longest one comes first."""
    layers: list[list[int]] = [[] for _ in range(graph.layers)]
    seen = [False] * len(graph.layer_of)

    def longest_first(vertex: int) -> tuple[bool, int]:
        box = graph.owner.get(vertex, vertex)
        dummy = box >= graph.real
        return dummy, 0 if dummy else -graph.height[box]

    starts = sorted(range(graph.real), key=lambda vertex: (graph.layer_of[vertex], vertex))
    for start in (*first, *starts):
        if seen[start]:
            continue
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
    graph: Layering,
    layers: list[list[int]],
    position: list[int],
    fixed: frozenset[int],
    check: Callable[[], None],
    *,
    downward: bool,
    to_right: bool,
) -> None:
    """Sort each layer by the mean position of its neighbours in the layer before it."""
    neighbours = graph.up if downward else graph.down
    numbers = range(len(layers))
    for number in numbers[1:] if downward else numbers[-2::-1]:
        check()
        layer = layers[number]
        if len(layer) == 1 or number in fixed:
            continue
        keyed: list[tuple[float, int, int]] = []
        alone: list[tuple[int, int]] = []
        for index, vertex in enumerate(layer):
            near = neighbours[vertex]
            if near:
                mean = sum([position[other] for other in near]) / len(near)
                keyed.append((mean, -index if to_right else index, vertex))
            else:
                alone.append((index, vertex))
        keyed.sort()
        layer[:] = [vertex for _, _, vertex in keyed]
        for index, vertex in alone:
            layer.insert(index, vertex)
        _number(layer, position)


def _swap_neighbours(
    graph: Layering,
    layers: list[list[int]],
    position: list[int],
    fixed: frozenset[int],
    rounds: int,
    check: Callable[[], None],
) -> None:
    """Swap vertices that stand side by side as long as that removes crossings."""
    for _ in range(rounds):
        swapped = False
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
                    swapped = True
        if not swapped:
            return


def _gain(left: list[int], right: list[int]) -> int:
    """Return how many crossings go when the vertices with these neighbours change places."""
    if len(left) == 1 and len(right) == 1:
        return (left[0] > right[0]) - (left[0] < right[0])
    right.sort()
    return sum(
        bisect_left(right, other) - (len(right) - bisect_right(right, other)) for other in left
    )


def _crossings(
    graph: Layering, layers: list[list[int]], position: list[int], check: Callable[[], None]
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

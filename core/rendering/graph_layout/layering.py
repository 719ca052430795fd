"""Layers of a graph from top to bottom, with chains of dummy vertices where lines are long.

Vertices are numbered: boxes first, then the ports where lines come in from above and go out below,
then the rest: dummies, and the lower parts of boxes that reach through several layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lowerscope.core.rendering.graph_layout.bands import banded_layers

_AFAR = 100_000
"""A length, in layers, that no path within a graph has."""

_WORTH_SLIDING = 4
"""In layers; below that it looks better when branches begin in one row."""


@dataclass(frozen=True, slots=True)
class Line:
    """A value: the vertex that it comes from, and those that it goes to, each once."""

    source: int
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wiring:
    """Boxes and the lines between them; there is no cycle.

    Attributes
    ----------
    boxes
        How many there are.
    ins, outs
        How many lines come in from above, and go out below, through ports of their own.
    lines
        All lines; ports are numbered after the boxes, the outer ends of `ins` first.
    framed
        Whether there is a frame around it all: a layer of ports at either end, even if it is empty.
    bands
        The band of each box, or nothing: all layers of a band are below those of lower ones.
    constants
        Boxes that no spine begins with.
    """

    boxes: int
    lines: Sequence[Line]
    ins: int = 0
    outs: int = 0
    framed: bool = False
    bands: Sequence[int] | None = None
    constants: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Layering:
    """A layered graph: every edge leads from one layer to the next.

    Attributes
    ----------
    boxes, real
        How many vertices are boxes; how many are boxes or ports.
    layer_of
        The layer of each vertex; of a box that reaches through several, the first.
    layers
        How many there are.
    up, down
        The neighbours of each vertex in the layer above and below it.
    chains
        The dummies of each line, from top to bottom.
    parts
        From a part of a box that reaches through several layers to the part below it.
    owner
        The box that a lower part belongs to.
    carries
        The box or port whose value runs at each vertex.
    bottom
        The lowest part of each box or port.
    depth, height
        The longest path from a source, and to a sink, through each box or port, in layers; what
        comes in from above comes from afar, and constants do not count: see `follow`.
    """

    boxes: int
    real: int
    layer_of: list[int]
    layers: int
    up: list[list[int]]
    down: list[list[int]]
    chains: list[list[int]]
    parts: dict[int, int]
    owner: dict[int, int]
    carries: list[int]
    bottom: list[int]
    depth: list[int]
    height: list[int]

    def reach(self, vertex: int) -> int:
        """Return the last layer of a box or a port."""
        return self.layer_of[self.bottom[vertex]]


def layering(wiring: Wiring, check: Callable[[], None], spans: Sequence[int]) -> Layering:
    """Assign the vertices to layers.

    A box is put just below the lowest of its predecessors. What only feeds one place, such
    as a constant, is drawn down to that place. With bands, each of these has layers of its own.

    Parameters
    ----------
    spans
        Through how many layers each box reaches.
    """
    count = wiring.boxes + wiring.ins + wiring.outs
    span = [*spans, *([1] * (count - wiring.boxes))]
    successors: list[list[int]] = [[] for _ in range(count)]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    pairs = ((line.source, target) for line in wiring.lines for target in line.targets)
    for source, target in dict.fromkeys(pairs):
        successors[source].append(target)
        predecessors[target].append(source)
    order = _topological(successors, predecessors)
    check()
    depth = [0] * count
    for vertex in order:
        below = depth[vertex] + span[vertex]
        for target in successors[vertex]:
            if depth[target] < below:
                depth[target] = below
    height = [0] * count
    for vertex in reversed(order):
        for target in successors[vertex]:
            if height[vertex] < height[target] + span[vertex]:
                height[vertex] = height[target] + span[vertex]
    layers = (
        _drawn_down(order, successors, predecessors, depth, span)
        if wiring.bands is None
        else banded_layers(order, successors, predecessors, wiring.bands, span)
    )
    _place_ports(wiring, layers, span)
    check()
    return _with_chains(wiring, layers, span, height)


def follow(
    graph: Layering, wiring: Wiring, outside: Sequence[int], rows: Mapping[int, int]
) -> None:
    """Fill in `Layering.depth`.

    Parameters
    ----------
    outside
        The depth of each line that comes in, where it comes from.
    rows
        How many layers there are inside of each frame.
    """
    depth = graph.depth
    depth[:] = [rows.get(vertex, 1) - 1 for vertex in range(graph.real)]
    for vertex in wiring.constants:
        depth[vertex] = -_AFAR
    for port, length in enumerate(outside):
        depth[wiring.boxes + port] = length + _AFAR if length >= 0 else length
    reached: set[int] = set()
    for line in sorted(wiring.lines, key=lambda line: graph.layer_of[line.source]):
        for target in line.targets:
            below = depth[line.source] + rows.get(target, 1)
            depth[target] = max(depth[target], below) if target in reached else below
            reached.add(target)


def _topological(successors: list[list[int]], predecessors: list[list[int]]) -> list[int]:
    waiting = [len(sources) for sources in predecessors]
    order = [vertex for vertex, number in enumerate(waiting) if number == 0]
    for vertex in order:
        for target in successors[vertex]:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    assert len(order) == len(successors), "there is a cycle in the graph"
    return order


def _drawn_down(
    order: list[int],
    successors: list[list[int]],
    predecessors: list[list[int]],
    depth: list[int],
    span: list[int],
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
            layers[vertex] = min([layers[target] for target in successors[vertex]]) - span[vertex]
    # A vertex may also go as low as every line from above reaches in any case.
    reach = [max([layers[target] for target in near], default=0) for near in successors]
    for vertex in reversed(order):
        if successors[vertex] and predecessors[vertex]:
            lowest = min([layers[target] for target in successors[vertex]]) - span[vertex]
            if lowest > layers[vertex]:
                lowest = min(lowest, min([reach[source] for source in predecessors[vertex]]))
                layers[vertex] = max(layers[vertex], lowest)
    for vertex in reversed(order):
        if len(successors[vertex]) > 1:
            _slide_together(vertex, successors, predecessors, layers, span)
    used = sorted({layers[v] + part for v in order for part in range(span[v])})
    place = {layer: index for index, layer in enumerate(used)}
    return [place[layer] for layer in layers]


def _slide_together(
    vertex: int,
    successors: list[list[int]],
    predecessors: list[list[int]],
    layers: list[int],
    span: list[int],
) -> None:
    """Slide the side branches below `vertex` down, where that makes the lines shorter in sum.

    One step further down costs `vertex` one more dummy, and saves one for every branch that has
    room; so they go as low as two of them can. The slices of an unrolled loop come to stand
    where they are used.
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
            room = lowest - span[last] - layers[last]
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


def _place_ports(wiring: Wiring, layers: list[int], span: list[int]) -> None:
    """Give the ports the first and the last layer, and put the boxes between them."""
    if not wiring.framed:
        return
    boxes = range(wiring.boxes)
    shift = 1 - min(layers[vertex] for vertex in boxes)
    for vertex in boxes:
        layers[vertex] += shift
    last = max(layers[vertex] + span[vertex] for vertex in boxes)
    for port in range(wiring.ins):
        layers[wiring.boxes + port] = 0
    for port in range(wiring.outs):
        layers[wiring.boxes + wiring.ins + port] = last


def _with_chains(wiring: Wiring, layers: list[int], span: list[int], height: list[int]) -> Layering:
    count = len(layers)
    layer_of = list(layers)
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    parts: dict[int, int] = {}
    owner: dict[int, int] = {}
    carries = list(range(count))
    bottom = list(range(count))

    def below(vertex: int, layer: int) -> int:
        added = len(layer_of)
        layer_of.append(layer)
        carries.append(carries[vertex])
        up.append([vertex])
        down.append([])
        down[vertex].append(added)
        return added

    for vertex in range(wiring.boxes):
        for part in range(1, span[vertex]):
            lower = below(bottom[vertex], layers[vertex] + part)
            parts[bottom[vertex]] = lower
            owner[lower] = vertex
            bottom[vertex] = lower
    chains: list[list[int]] = []
    for line in wiring.lines:
        stations = [bottom[line.source]]
        first = layer_of[stations[0]]
        for layer in range(first + 1, max(layers[target] for target in line.targets)):
            stations.append(below(stations[-1], layer))
        chains.append(stations[1:])
        for target in line.targets:
            station = stations[layers[target] - first - 1]
            down[station].append(target)
            up[target].append(station)
    last = max([layers[vertex] + span[vertex] for vertex in range(count)], default=0)
    return Layering(
        boxes=wiring.boxes,
        real=count,
        layer_of=layer_of,
        layers=max(last, 2) if wiring.framed else last,
        up=up,
        down=down,
        chains=chains,
        parts=parts,
        owner=owner,
        carries=carries,
        bottom=bottom,
        depth=[0] * count,
        height=height,
    )

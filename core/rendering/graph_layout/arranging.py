"""The layers and the order within them, for a scope and all that is inside of it.

The layers are made from the inside out, as a frame with many layers may reach through several of
those around it. The order is made from the outside in: lines come into a frame in the order in
which they run outside, and leave it so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from lowerscope.core.rendering.graph_layout.layering import Layering, Wiring, follow, layering
from lowerscope.core.rendering.graph_layout.ordering import meets_parts, order
from lowerscope.core.rendering.graph_layout.scopes import Scope


@dataclass(eq=False, slots=True)
class Arranged:
    """A scope with its layers.

    Attributes
    ----------
    wiring, graph
        What is inside of it, and the layers of that.
    layers
        The order within each layer.
    frames
        The scopes of the frames in it, by vertex.
    rows
        How many layers of boxes it has, at least.
    """

    scope: Scope
    wiring: Wiring
    graph: Layering
    frames: dict[int, Arranged]
    layers: list[list[int]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Return how many layers of boxes it has, with the room for its own frame."""
        return self.graph.layers


def arranged(
    scope: Scope,
    constants: Set[int],
    check: Callable[[], None],
    bands: Sequence[int] | None = None,
) -> Arranged:
    """Return a scope with its layers, and the order within them; see `Scope.wiring`."""
    result = _layered(scope, constants, check, bands)
    _order(result, (), (), (), check)
    return result


def _layered(
    scope: Scope,
    constants: Set[int],
    check: Callable[[], None],
    bands: Sequence[int] | None = None,
) -> Arranged:
    frames = {
        vertex: _layered(item, constants, check)
        for vertex, item in enumerate(scope.items)
        if isinstance(item, Scope)
    }
    wiring = scope.wiring(constants, bands)
    graph = layering(wiring, check, [1] * wiring.boxes)
    spans = _spans(graph, frames)
    if max(spans, default=1) > 1:
        graph = layering(wiring, check, spans)
    return Arranged(scope, wiring, graph, frames)


def _spans(graph: Layering, frames: dict[int, Arranged]) -> list[int]:
    """Return through how many layers each box reaches: those with many rows beside others."""
    spans = [1] * graph.boxes
    if not frames:
        return spans
    beside: dict[int, int] = {}
    for vertex in range(graph.boxes):
        layer = graph.layer_of[vertex]
        beside[layer] = beside.get(layer, 0) + 1
    for vertex, frame in frames.items():
        if beside[graph.layer_of[vertex]] > 1:
            spans[vertex] = max(1, frame.rows - 1)
    return spans


def _order(
    arranged: Arranged,
    outside: Sequence[int],
    first: Sequence[int],
    last: Sequence[int],
    check: Callable[[], None],
) -> None:
    """Order the layers.

    Parameters
    ----------
    outside
        The depth of each line that comes in, where it comes from.
    first, last
        The order of the lines that come in and go out, which is given.
    """
    graph, wiring = arranged.graph, arranged.wiring
    follow(graph, wiring, outside, {each: arranged.frames[each].rows for each in arranged.frames})
    layers = order(graph, check, first, last)
    if graph.parts and meets_parts(graph, layers):
        # A line would run through a frame: each frame gets a layer of its own height.
        depth = graph.depth
        graph = arranged.graph = layering(wiring, check, [1] * wiring.boxes)
        graph.depth[:] = depth
        layers = order(graph, check, first, last)
    arranged.layers = layers
    if not arranged.frames:
        return
    position = {vertex: place for layer in layers for place, vertex in enumerate(layer)}
    line_of = {value: line for line, value in enumerate(arranged.scope.values)}
    for vertex, frame in arranged.frames.items():
        entering, leaving = frame.scope.entering(), frame.scope.leaving()
        above: list[tuple[int, int]] = []
        below: list[tuple[float, int]] = []
        for index, value in enumerate(entering):
            line = line_of[value]
            station = _station(graph, wiring, line, graph.layer_of[vertex] - 1)
            above.append((position[station], index))
        for index, value in enumerate(leaving):
            line = line_of[value]
            chain = graph.chains[line]
            ends = chain[:1] or wiring.lines[line].targets
            below.append((sum(position[end] for end in ends) / len(ends), index))
        count = frame.wiring.boxes
        sources = [wiring.lines[line_of[value]].source for value in entering]
        _order(
            frame,
            [graph.depth[source] for source in sources],
            [count + index for _, index in sorted(above)],
            [count + len(entering) + index for _, index in sorted(below)],
            check,
        )


def _station(graph: Layering, wiring: Wiring, line: int, layer: int) -> int:
    """Return the vertex at which a line is in a layer."""
    bottom = graph.bottom[wiring.lines[line].source]
    above = layer - graph.layer_of[bottom]
    return graph.chains[line][above - 1] if above else bottom

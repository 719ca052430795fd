"""What stands inside of each frame of a graph, and the values that run there.

A scope is the whole graph, or what an expanded group holds. A value that comes from outside of it
enters through a port at its upper edge, and one that is used outside of it leaves through a port at
its lower edge; so each scope can be laid out by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from lowerscope.core.rendering.graph_layout.layering import Line, Wiring

IN, OUT = -1, -2
"""Stand for the ports of a value, in the place of vertices."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What has a frame around it: boxes by number, and frames, each after those that it reads.

    Attributes
    ----------
    title_width
        Of its title, in pixels.
    bar
        Whether the title stands in a bar at the top; otherwise it is in the bottom left corner.
    """

    title_width: float
    items: tuple[EnclosedItem, ...]
    bar: bool = True


EnclosedItem: TypeAlias = "int | Enclosed"


@dataclass(eq=False, slots=True)
class Scope:
    """The inside of a frame, or the whole graph.

    Attributes
    ----------
    frame
        ``None`` for the whole graph, or a part of it.
    parent, place, depth
        The scope that the frame stands in, the frame's number there, and how many there are around.
    items
        Boxes by their number in the whole graph, and the insides of frames: the vertices, in order.
    sources, targets
        Of each value that runs here, by the box that it comes from: the vertex that it comes from,
        and those that it goes to.
    """

    frame: Enclosed | None
    parent: Scope | None = None
    place: int = 0
    depth: int = 0
    items: list[int | Scope] = field(default_factory=list)
    sources: dict[int, int] = field(default_factory=dict)
    targets: dict[int, dict[int, None]] = field(default_factory=dict)

    @property
    def values(self) -> tuple[int, ...]:
        """The values that run here, in the order of the lines of `wiring`."""
        return tuple(self.sources)

    def entering(self) -> tuple[int, ...]:
        """Return the values that come from outside, in the order of their ports."""
        return tuple(value for value, source in self.sources.items() if source == IN)

    def leaving(self) -> tuple[int, ...]:
        """Return the values that are used outside, in the order of their ports."""
        return tuple(value for value, ends in self.targets.items() if OUT in ends)

    def wiring(self, constants: Set[int], bands: Sequence[int] | None = None) -> Wiring:
        """Return the graph of what is inside.

        Parameters
        ----------
        constants
            The boxes, by number, that no spine begins with.
        bands
            The band of each vertex: all layers of a band are below those of lower ones.
        """
        count = len(self.items)
        entering, leaving = self.entering(), self.leaving()
        port_in = {value: count + index for index, value in enumerate(entering)}
        port_out = {value: count + len(entering) + index for index, value in enumerate(leaving)}
        lines = [
            Line(
                port_in[value] if source == IN else source,
                tuple(port_out[value] if end == OUT else end for end in self.targets[value]),
            )
            for value, source in self.sources.items()
        ]
        return Wiring(
            boxes=count,
            lines=lines,
            ins=len(entering),
            outs=len(leaving),
            framed=self.frame is not None,
            bands=bands,
            constants=frozenset(
                vertex
                for vertex, item in enumerate(self.items)
                if isinstance(item, int) and item in constants
            ),
        )

    def run(self, value: int, source: int, target: int) -> None:
        """Let a value run from one vertex to another."""
        self.sources.setdefault(value, source)
        self.targets.setdefault(value, {})[target] = None


Step: TypeAlias = tuple[Scope, int]
"""A scope that an edge runs through, and the vertex there that it goes to: a part of its way."""


def scopes_of(items: Sequence[EnclosedItem]) -> tuple[Scope, dict[int, tuple[Scope, int]]]:
    """Return the scope of the whole graph, and where each box stands: its scope and vertex."""
    places: dict[int, tuple[Scope, int]] = {}

    def fill(scope: Scope, inside: Sequence[EnclosedItem]) -> Scope:
        for item in inside:
            place = len(scope.items)
            if isinstance(item, int):
                places[item] = (scope, place)
                scope.items.append(item)
            else:
                frame = Scope(item, scope, place, scope.depth + 1)
                scope.items.append(fill(frame, item.items))
        return scope

    return fill(Scope(None), items), places


def connect(
    edges: Sequence[tuple[int, int]], places: Mapping[int, tuple[Scope, int]]
) -> list[tuple[Step, ...]]:
    """Let each edge, from box to box, run through the scopes between them; return its way."""
    ways: list[tuple[Step, ...]] = []
    for value, target in edges:
        upper, source = places[value]
        lower, end = places[target]
        before: list[Step] = []
        after: list[Step] = []
        while upper is not lower:
            if upper.depth >= lower.depth:
                assert upper.parent is not None
                upper.run(value, source, OUT)
                before.append((upper, OUT))
                upper, source = upper.parent, upper.place
            else:
                assert lower.parent is not None
                lower.run(value, IN, end)
                after.append((lower, end))
                lower, end = lower.parent, lower.place
        upper.run(value, source, end)
        ways.append((*before, (upper, end), *reversed(after)))
    return ways


def parts_of(root: Scope) -> tuple[list[Scope], list[Step]]:
    """Return the connected parts of the whole graph, and where each of its vertices is in them."""
    parent = list(range(len(root.items)))

    def find(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    for value, source in root.sources.items():
        for target in root.targets[value]:
            one, two = find(source), find(target)
            parent[max(one, two)] = min(one, two)
    parts: dict[int, Scope] = {}
    moved: list[Step] = []
    for vertex, item in enumerate(root.items):
        part = parts.setdefault(find(vertex), Scope(None))
        moved.append((part, len(part.items)))
        part.items.append(item)
    for value, source in root.sources.items():
        part, place = moved[source]
        part.sources[value] = place
        part.targets[value] = {moved[target][1]: None for target in root.targets[value]}
    return list(parts.values()), moved


def frames_in(items: Sequence[EnclosedItem]) -> Iterator[Enclosed]:
    """Yield all frames, outer ones before those inside of them."""
    for item in items:
        if isinstance(item, Enclosed):
            yield item
            yield from frames_in(item.items)

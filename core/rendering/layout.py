"""Layout of a graph from top to bottom: where its boxes stand and how its edges run.

The layers, the order within them and the coordinates are made by the modules of these names;
this one joins them for every connected part of the graph and sets the parts side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.rendering.bands import Bands
from lowerscope.core.rendering.layering import Pair, without_cycles
from lowerscope.core.rendering.part_layout import PartEdge, PartLayout, lay_out_part

MARGIN = 24.0
"""Around the whole graph, in pixels."""

PART_GAP = 48.0
"""Between two parts of the graph that are not connected, in pixels."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NodeSize:
    """A box that needs a place; its extents in pixels."""

    id: str
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class EdgePath:
    """How an edge runs.

    Attributes
    ----------
    points
        From the bottom edge of the source to the top edge of the target. No point stands above
        the one before it, except along an edge that closes a cycle. Slanted segments lie
        between two rows of boxes.
    label_at
        The left end of the edge's label, at half its height; ``None`` for an edge without a
        label, and where an edge before it from the same source has a label as wide or wider.
    """

    points: tuple[Point, ...]
    label_at: Point | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands, in pixels; the top left corner of the whole is at 0, 0.

    Attributes
    ----------
    corners
        The top left corner of each box, by id.
    edges
        The path of each edge, in the order in which the edges were given.
    width, height
        Of the whole, margins included.
    """

    corners: dict[str, Point]
    edges: tuple[EdgePath, ...]
    width: float
    height: float


def _never() -> None:
    """Take the place of a check for cancellation where nobody cancels."""


def layout(
    nodes: Sequence[NodeSize],
    edges: Sequence[tuple[str, str, float]],
    check: Callable[[], None] = _never,
    bands: Bands | None = None,
) -> Layout:
    """Lay out a graph from top to bottom; equal graphs get equal layouts.

    Edges that leave one node are taken to carry one value: they begin at one point, share one
    line for as long as they run side by side, and have one label, beside that beginning.

    Parameters
    ----------
    nodes
        The boxes; ids are unique.
    edges
        Source id, target id, and the width of the label in pixels, 0 for none.
    check
        Called often; may raise to give up.
    bands
        What has to stand above what; parts that are not connected then stand in one picture.
    """
    number = {node.id: index for index, node in enumerate(nodes)}
    assert len(number) == len(nodes), "two nodes have the same id"
    pairs = [(number[source], number[target]) for source, target, _ in edges]
    parts = _parts(len(nodes), pairs) if bands is None else [list(range(len(nodes)))]
    part_of = [0] * len(nodes)
    place = [0] * len(nodes)
    for index, part in enumerate(parts):
        for position, vertex in enumerate(part):
            part_of[vertex], place[vertex] = index, position
    edges_of: list[list[int]] = [[] for _ in parts]
    for index, (source, _) in enumerate(pairs):
        edges_of[part_of[source]].append(index)

    drawn: list[PartLayout] = []
    for part, numbers in zip(parts, edges_of, strict=True):
        check()
        inner = [(place[pairs[index][0]], place[pairs[index][1]]) for index in numbers]
        drawn.append(
            lay_out_part(
                [(nodes[vertex].width, nodes[vertex].height) for vertex in part],
                _part_edges(len(part), inner, [edges[index][2] for index in numbers]),
                check,
                bands,
            )
        )
    return _joined(nodes, parts, edges_of, drawn)


def _parts(count: int, pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the connected parts of the graph, each in the order of its vertices."""
    parent = list(range(count))

    def find(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    for source, target in pairs:
        one, two = find(source), find(target)
        parent[max(one, two)] = min(one, two)
    parts: dict[int, list[int]] = {}
    for vertex in range(count):
        parts.setdefault(find(vertex), []).append(vertex)
    return list(parts.values())


def _part_edges(count: int, pairs: list[Pair], labels: list[float]) -> list[PartEdge]:
    """Return the edges of a part so that none closes a cycle; a loop has equal ends."""
    turned = iter(without_cycles(count, pairs))
    result: list[PartEdge] = []
    for pair, label in zip(pairs, labels, strict=True):
        source, target = pair if pair[0] == pair[1] else next(turned)
        result.append(PartEdge(source, target, label, backward=(source, target) != pair))
    return result


def _joined(
    nodes: Sequence[NodeSize],
    parts: list[list[int]],
    edges_of: list[list[int]],
    drawn: list[PartLayout],
) -> Layout:
    """Set the parts side by side, in rows where there are many, and number everything back."""
    area = sum((part.width + PART_GAP) * (part.height + PART_GAP) for part in drawn)
    row_width = max([part.width for part in drawn] + [1.5 * area**0.5], default=0.0)
    corners: dict[str, Point] = {}
    paths: dict[int, EdgePath] = {}
    x, y, row_height, width = MARGIN, MARGIN, 0.0, 2 * MARGIN
    for part, numbers, placed in zip(parts, edges_of, drawn, strict=True):
        if x > MARGIN and x - MARGIN + placed.width > row_width:
            x, y, row_height = MARGIN, y + row_height + PART_GAP, 0.0
        for vertex, (left, top) in zip(part, placed.corners, strict=True):
            corners[nodes[vertex].id] = (left + x, top + y)
        for index, points, label in zip(numbers, placed.paths, placed.labels, strict=True):
            paths[index] = EdgePath(
                points=tuple((px + x, py + y) for px, py in points),
                label_at=None if label is None else (label[0] + x, label[1] + y),
            )
        width = max(width, x + placed.width + MARGIN)
        row_height = max(row_height, placed.height)
        x += placed.width + PART_GAP
    return Layout(
        corners=corners,
        edges=tuple(paths[index] for index in range(len(paths))),
        width=width,
        height=y + row_height + MARGIN,
    )

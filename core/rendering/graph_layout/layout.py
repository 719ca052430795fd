"""Layout of a graph from top to bottom: where its boxes and frames stand and how its edges run.

Every connected part of the graph is a scope, and so is the inside of every frame: `arranging` makes
their layers and orders, and `placing` their coordinates. This module sets the parts side by side,
and puts the ways of edges through all frames together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lowerscope.core.rendering.graph_layout.arranging import arranged
from lowerscope.core.rendering.graph_layout.placing import NodeSize, Placed, Point, extend, placed
from lowerscope.core.rendering.graph_layout.scopes import (
    Enclosed,
    EnclosedItem,
    Scope,
    connect,
    frames_in,
    parts_of,
    scopes_of,
)

__all__ = ["EdgePath", "Enclosed", "Layout", "NodeSize", "layout"]

MARGIN = 24.0
"""Around the whole graph, in pixels."""

PART_GAP = 48.0
"""Between two parts of the graph that are not connected, in pixels."""

_ALIKE = 1e-6

Rectangle = tuple[float, float, float, float]
"""Left, top, width and height."""


@dataclass(frozen=True, slots=True)
class EdgePath:
    """How an edge runs.

    Attributes
    ----------
    points
        From the bottom edge of the source to the top edge of the target. No point stands above
        the one before it. Slanted segments lie between two rows of boxes.
    label_at
        The left end of the edge's label, at half its height; ``None`` for an edge without a
        label, and where another edge from the same source has a label as wide or wider.
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
    frames
        The frames, outer ones before those inside of them, in the order in which they were given.
    width, height
        Of the whole, margins included.
    """

    corners: dict[str, Point]
    edges: tuple[EdgePath, ...]
    frames: tuple[Rectangle, ...]
    width: float
    height: float


def _never() -> None:
    """Take the place of a check for cancellation where nobody cancels."""


def layout(
    nodes: Sequence[NodeSize],
    edges: Sequence[tuple[str, str, float]],
    check: Callable[[], None] = _never,
    items: Sequence[EnclosedItem] | None = None,
    bands: Sequence[int] | None = None,
) -> Layout:
    """Lay out a graph from top to bottom; equal graphs get equal layouts.

    Edges that leave one node are taken to carry one value: they begin at one point, share one
    line for as long as they run side by side, and have one label, beside that beginning.

    Parameters
    ----------
    nodes
        The boxes; ids are unique.
    edges
        Source id, target id, and the width of the label in pixels, 0 for none. There is no cycle,
        and none either if every frame is taken for one box.
    check
        Called often; may raise to give up.
    items
        The boxes by number, and the frames around some of them; ``None`` if there are no frames.
    bands
        The band of each of `items`: all of a band stands below those of lower ones. Parts that are
        not connected then stand in one picture.
    """
    number = {node.id: index for index, node in enumerate(nodes)}
    assert len(number) == len(nodes), "two nodes have the same id"
    pairs = [(number[source], number[target]) for source, target, _ in edges]
    labelled = _labelled(pairs, edges)
    widths = [0.0] * len(nodes)
    for box, index in labelled.items():
        widths[box] = edges[index][2]
    items = range(len(nodes)) if items is None else items
    root, places = scopes_of(items)
    ways = connect(pairs, places)
    parts, moved = parts_of(root) if bands is None else ([root], [])
    constants = {index for index, node in enumerate(nodes) if node.constant}
    drawn: list[Placed] = []
    for part in parts:
        check()
        if part.items:
            drawn.append(placed(arranged(part, constants, check, bands), nodes, widths, check))
    return _Joining(nodes, drawn).joined(pairs, ways, moved, labelled, items)


def _labelled(
    pairs: Sequence[tuple[int, int]], edges: Sequence[tuple[str, str, float]]
) -> dict[int, int]:
    """Return which edge carries the label of each source: the first with the widest one."""
    chosen: dict[int, int] = {}
    for index, ((source, _), (_, _, width)) in enumerate(zip(pairs, edges, strict=True)):
        before = chosen.get(source)
        if width > 0 and (before is None or width > edges[before][2]):
            chosen[source] = index
    return chosen


class _Joining:
    """Puts parts, which have coordinates of their own, into one picture."""

    def __init__(self, nodes: Sequence[NodeSize], drawn: Sequence[Placed]) -> None:
        self._nodes = nodes
        self._corners: dict[str, Point] = {}
        self._labels: dict[int, Point] = {}
        # By the identity of the frame: two may be equal.
        self._frames: dict[int, Rectangle] = {}
        self._placed: dict[Scope, tuple[Placed, float, float]] = {}
        area = sum((part.width + PART_GAP) * (part.height + PART_GAP) for part in drawn)
        row_width = max([part.width for part in drawn] + [1.5 * area**0.5], default=0.0)
        x, y, row_height, width = MARGIN, MARGIN, 0.0, 2 * MARGIN
        for part in drawn:
            if x > MARGIN and x - MARGIN + part.width > row_width:
                x, y, row_height = MARGIN, y + row_height + PART_GAP, 0.0
            self._put(part, x, y)
            width = max(width, x + part.width + MARGIN)
            row_height = max(row_height, part.height)
            x += part.width + PART_GAP
        self._width, self._height = width, y + row_height + MARGIN

    def _put(self, part: Placed, x: float, y: float) -> None:
        scope = part.arranged.scope
        self._placed[scope] = (part, x, y)
        for item, (left, top) in zip(scope.items, part.corners, strict=True):
            if isinstance(item, int):
                self._corners[self._nodes[item].id] = (x + left, y + top)
        for box, (left, top) in part.labels.items():
            self._labels[box] = (x + left, y + top)
        for vertex, frame in part.frames.items():
            left, top = x + part.corners[vertex][0], y + part.corners[vertex][1]
            inside = frame.arranged.scope
            self._frames[id(inside.frame)] = (left, top, frame.width, frame.height)
            self._put(frame, left, top)

    def joined(
        self,
        pairs: Sequence[tuple[int, int]],
        ways: Sequence[Sequence[tuple[Scope, int]]],
        moved: Sequence[tuple[Scope, int]],
        labelled: dict[int, int],
        items: Sequence[EnclosedItem],
    ) -> Layout:
        """Return the whole.

        Parameters
        ----------
        ways
            The scopes that each edge runs through.
        moved
            Where each vertex of the whole graph is in its parts; empty if there is one part.
        labelled
            Which edge carries the label of each box's value.
        """
        frames = tuple(self._frames[id(frame)] for frame in frames_in(items))
        paths: list[EdgePath] = []
        for index, ((value, _), way) in enumerate(zip(pairs, ways, strict=True)):
            points: list[Point] = []
            for scope, target in way:
                if scope.parent is None and moved:
                    scope, target = moved[target]
                part, x, y = self._placed[scope]
                for left, top in part.pieces[value, target]:
                    _join(points, (x + left, y + top))
            label = self._labels.get(value) if labelled.get(value) == index else None
            paths.append(EdgePath(tuple(points), label))
        return Layout(
            corners=self._corners,
            edges=tuple(paths),
            frames=frames,
            width=self._width,
            height=self._height,
        )


def _join(points: list[Point], point: Point) -> None:
    """Append `point`, where parts of a way may meet that are not computed alike."""
    if not points:
        points.append(point)
        return
    (x, y), (before, above) = point, points[-1]
    if abs(x - before) < _ALIKE:
        x = before
    if abs(y - above) < _ALIKE:
        y = above
    extend(points, (x, y))

"""Where everything in a scope stands, and how lines run in it: frames first, from the inside out.

Between two rows of boxes there are two zones. In the upper one lines run straight down, so that
labels can stand beside them; in the lower one they change sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lowerscope.core.records.graph import TITLE_BAR
from lowerscope.core.rendering.graph_layout.arranging import Arranged
from lowerscope.core.rendering.graph_layout.coordinates import coordinates
from lowerscope.core.rendering.graph_layout.scopes import OUT, Enclosed

LABEL_ZONE = 26.0
"""Height of the zone below a row in which labels stand, in pixels."""

TURN_ZONE = 18.0
"""Least height of the zone in which edges change sides, in pixels; with the other zone 44."""

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

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NodeSize:
    """A box that needs a place; its extents in pixels.

    What flows from a ``constant`` is not followed in a straight line.
    ``left`` and ``right`` are how far it and what stands beside it reach from its middle at least,
    and ``above`` is the height of what stands on its top.
    """

    id: str
    width: float
    height: float
    left: float = 0.0
    right: float = 0.0
    above: float = 0.0
    constant: bool = False


@dataclass(eq=False, slots=True)
class Placed:
    """A scope with places, from its own top left corner; see `Arranged`.

    Attributes
    ----------
    corners
        The top left corner of each vertex that is a box or a frame.
    entries, exits
        The x of the ports, by value.
    pieces
        How each value runs to each vertex that it goes to.
    labels
        Where the label of each value stands that begins here.
    frames
        The insides of frames, by vertex.
    """

    arranged: Arranged
    width: float
    height: float
    corners: list[Point]
    entries: dict[int, float]
    exits: dict[int, float]
    pieces: dict[tuple[int, int], list[Point]]
    labels: dict[int, Point]
    frames: dict[int, Placed]


def placed(
    arranged: Arranged,
    sizes: Sequence[NodeSize],
    labels: Sequence[float],
    check: Callable[[], None],
) -> Placed:
    """Give everything in a scope its place.

    Parameters
    ----------
    sizes, labels
        Of all boxes of the graph, and the widths of the labels of their values, by box.
    """
    frames = {
        vertex: placed(frame, sizes, labels, check) for vertex, frame in arranged.frames.items()
    }
    return _Placing(arranged, sizes, labels, frames).run(check)


@dataclass(eq=False, slots=True)
class _Rows:
    """The top of each row, its height, of which some is above the boxes, and the y below which
    edges may change sides."""

    tops: list[float] = field(default_factory=list)
    aboves: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)

    def bottom(self, row: int) -> float:
        return self.tops[row] + self.heights[row]


class _Placing:
    """The placing of one scope, of which the frames inside have been placed."""

    def __init__(
        self,
        arranged: Arranged,
        sizes: Sequence[NodeSize],
        labels: Sequence[float],
        frames: dict[int, Placed],
    ) -> None:
        self._arranged = arranged
        self._graph = arranged.graph
        self._layers = arranged.layers
        self._frames = frames
        self._values = arranged.scope.values
        self._lines = arranged.wiring.lines
        count = len(self._graph.layer_of)
        self._left, self._right = [0.0] * count, [0.0] * count
        self._heights = [0.0] * self._graph.boxes
        self._above = [0.0] * self._graph.boxes
        self._widths = [0.0] * self._graph.boxes
        self._label_of: dict[int, int] = {}
        for vertex, item in enumerate(arranged.scope.items):
            if isinstance(item, int):
                self._measure_box(vertex, item, sizes[item], labels[item])
            else:
                self._measure_frame(vertex, frames[vertex])
        for part, vertex in self._graph.owner.items():
            self._left[part], self._right[part] = self._left[vertex], self._right[vertex]

    def _measure_box(self, vertex: int, box: int, size: NodeSize, label: float) -> None:
        self._widths[vertex], self._heights[vertex] = size.width, size.height
        self._above[vertex] = size.above
        self._left[vertex] = max(size.left, size.width / 2)
        self._right[vertex] = max(size.right, size.width / 2)
        if label > 0 and box in self._arranged.scope.sources:
            self._label_of[vertex] = box
            self._right[vertex] = max(self._right[vertex], _LABEL_OFFSET + label)

    def _measure_frame(self, vertex: int, frame: Placed) -> None:
        self._widths[vertex], self._heights[vertex] = frame.width, frame.height
        self._left[vertex] = self._right[vertex] = frame.width / 2

    def run(self, check: Callable[[], None]) -> Placed:
        graph = self._graph
        # How far beside the middle of its ends each line begins, and ends.
        self._begins = [
            self._beside(line.source, value, entering=False)
            for line, value in zip(self._lines, self._values, strict=True)
        ]
        offsets = self._offsets()
        x = coordinates(graph, self._layers, self._left, self._right, offsets, check)
        left = min(x[vertex] - self._left[vertex] for vertex in range(len(x)))
        right = max(x[vertex] + self._right[vertex] for vertex in range(len(x)))
        left, right = self._with_frame(x, left, right)
        self._x = x = [value - left for value in x]
        rows = self._rows(offsets)
        check()
        corners = [
            (x[vertex] - self._widths[vertex] / 2, self._top(rows, vertex))
            for vertex in range(graph.boxes)
        ]
        ports = {
            value: x[graph.boxes + index]
            for index, value in enumerate(self._arranged.scope.entering())
        }
        first_out = graph.boxes + self._arranged.wiring.ins
        exits = {
            value: x[first_out + index]
            for index, value in enumerate(self._arranged.scope.leaving())
        }
        return Placed(
            arranged=self._arranged,
            width=right - left,
            height=rows.bottom(-1) if rows.tops else 0.0,
            corners=corners,
            entries=ports,
            exits=exits,
            pieces=self._pieces(rows, corners),
            labels={
                box: (
                    x[vertex] + _LABEL_OFFSET,
                    corners[vertex][1] + self._heights[vertex] + _LABEL_DROP,
                )
                for vertex, box in self._label_of.items()
            },
            frames=self._frames,
        )

    def _beside(self, vertex: int, value: int, *, entering: bool) -> float:
        """Return how far right of its middle a line begins or ends at a vertex."""
        frame = self._frames.get(vertex)
        if frame is None:
            return 0.0
        return (frame.entries if entering else frame.exits)[value] - frame.width / 2

    def _offsets(self) -> dict[tuple[int, int], float]:
        if not self._frames:
            return {}
        graph = self._graph
        offsets: dict[tuple[int, int], float] = {}
        for number, line in enumerate(self._lines):
            chain = graph.chains[number]
            begin = self._begins[number]
            bottom = graph.bottom[line.source]
            if chain and begin:
                offsets.setdefault((bottom, chain[0]), begin)
            for target in line.targets:
                end = self._beside(target, self._values[number], entering=True)
                between = graph.layer_of[target] - graph.layer_of[bottom] - 1
                if between:
                    offsets.setdefault((chain[between - 1], target), -end)
                else:
                    offsets.setdefault((bottom, target), begin - end)
        return {edge: offset for edge, offset in offsets.items() if offset}

    def _with_frame(self, x: list[float], left: float, right: float) -> tuple[float, float]:
        """Return the sides of the frame, with room for the title left of all lines through it."""
        frame = self._arranged.scope.frame
        if frame is None:
            return left, right
        wiring = self._arranged.wiring
        first = wiring.boxes if frame.bar else wiring.boxes + wiring.ins
        ports = range(first, first + (wiring.ins if frame.bar else wiring.outs))
        left -= _BESIDE
        if ports:
            left = min(left, min(x[port] for port in ports) - frame.title_width)
        return left, max(right + _BESIDE, left + frame.title_width)

    # Rows

    def _rows(self, offsets: dict[tuple[int, int], float]) -> _Rows:
        graph = self._graph
        reaching: dict[int, list[int]] = {}
        for vertex in dict.fromkeys(graph.owner.values()):
            reaching.setdefault(graph.reach(vertex), []).append(vertex)
        rows = _Rows()
        y = 0.0
        frame = self._arranged.scope.frame
        for number, layer in enumerate(self._layers):
            above = max(
                [self._above[vertex] for vertex in layer if vertex < graph.boxes], default=0.0
            )
            height = above + self._row_height(layer)
            for vertex in reaching.get(number, ()):
                top = rows.tops[graph.layer_of[vertex]] + rows.aboves[graph.layer_of[vertex]]
                height = max(height, top + self._heights[vertex] - y)
            widest = max(
                [
                    abs(self._x[other] - self._x[vertex] - offsets.get((vertex, other), 0.0))
                    for vertex in layer
                    for other in graph.down[vertex]
                ],
                default=0.0,
            )
            rows.tops.append(y)
            rows.aboves.append(above)
            rows.heights.append(height)
            last = frame is not None and number == len(self._layers) - 1
            y += height + (0.0 if last else self._label_zone(frame, number, layer))
            rows.turns.append(y)
            if not last:
                y += self._turn_zone(frame, number, widest)
        return rows

    def _row_height(self, layer: list[int]) -> float:
        graph = self._graph
        heights = [0.0]
        for vertex in layer:
            if vertex in graph.parts or vertex in graph.owner:
                heights.append(_ROW)
            elif vertex < graph.boxes:
                heights.append(self._heights[vertex])
        return max(heights)

    def _label_zone(self, frame: Enclosed | None, number: int, layer: list[int]) -> float:
        if frame is not None and number == 0:
            return TITLE_BAR if frame.bar else _FRAME_ZONE
        if frame is not None and not frame.bar and number == len(self._layers) - 2:
            return LABEL_ZONE
        boxes = any(v < self._graph.boxes and v not in self._frames for v in layer)
        return LABEL_ZONE if boxes else _FRAME_ZONE

    def _turn_zone(self, frame: Enclosed | None, number: int, widest: float) -> float:
        edge = frame is not None and number in (0, len(self._layers) - 2)
        if edge and widest <= _STILL:
            return _STRAIGHT_ZONE
        return round(min(_HIGHEST_TURN_ZONE, max(TURN_ZONE, _TURN_SLOPE * widest)))

    def _top(self, rows: _Rows, vertex: int) -> float:
        first, last = self._graph.layer_of[vertex], self._graph.reach(vertex)
        top = rows.tops[first] + rows.aboves[first]
        return top + (rows.bottom(last) - top - self._heights[vertex]) / 2

    # Lines

    def _ends(self) -> dict[tuple[int, int], float]:
        """Return where lines meet what they go to, by line and vertex: an x for each.

        What comes straight from above enters a box in the middle, the rest to its left and right.
        """
        graph, x = self._graph, self._x
        into: dict[int, list[tuple[float, int]]] = {}
        ends: dict[tuple[int, int], float] = {}
        for number, line in enumerate(self._lines):
            chain = graph.chains[number]
            first = graph.layer_of[graph.bottom[line.source]] + 1
            start = x[line.source] + self._begins[number]
            for target in line.targets:
                if target >= graph.boxes or target in self._frames:
                    beside = self._beside(target, self._values[number], entering=True)
                    ends[number, target] = x[target] + beside
                    continue
                between = graph.layer_of[target] - first
                above = x[chain[between - 1]] if between else start
                into.setdefault(target, []).append((above, number))
        for target, lines in into.items():
            lines.sort()
            middle = x[target]
            lefts = sum(above < middle - _STILL for above, _ in lines)
            rights = sum(above > middle + _STILL for above, _ in lines)
            if lefts + rights < len(lines):
                begin, reach = -float(lefts), float(max(lefts, rights))
            else:
                begin, reach = -(len(lines) - 1) / 2, (len(lines) - 1) / 2
            inset = max(0.0, self._widths[target] / 2 - _PORT_INSET)
            step = min(_PORT_STEP, inset / max(reach, 1.0))
            for index, (_, number) in enumerate(lines):
                ends[number, target] = middle + step * (begin + index)
        return ends

    def _pieces(self, rows: _Rows, corners: list[Point]) -> dict[tuple[int, int], list[Point]]:
        graph = self._graph
        ends = self._ends()
        pieces: dict[tuple[int, int], list[Point]] = {}
        for number, (line, value) in enumerate(zip(self._lines, self._values, strict=True)):
            trunk = self._trunk(rows, number, corners)
            first = graph.layer_of[graph.bottom[line.source]] + 1
            for target in line.targets:
                row = graph.layer_of[target]
                end = ends[number, target]
                points = list(trunk[row - first])
                extend(points, (end, rows.tops[row]))
                if target < graph.boxes:
                    extend(points, (end, corners[target][1]))
                    pieces[value, target] = points
                else:
                    pieces[value, OUT] = points
        return pieces

    def _trunk(self, rows: _Rows, number: int, corners: list[Point]) -> list[list[Point]]:
        """Return a line along its dummies, up to the turn below each of them."""
        graph, x = self._graph, self._x
        source = self._lines[number].source
        row = graph.reach(source)
        start = x[source] + self._begins[number]
        bottom = 0.0
        if source < graph.boxes:
            bottom = corners[source][1] + self._heights[source]
        points: list[Point] = [(start, bottom)]
        extend(points, (start, rows.turns[row]))
        trunk = [points]
        for dummy in graph.chains[number]:
            row += 1
            points = list(points)
            extend(points, (x[dummy], rows.tops[row]))
            extend(points, (x[dummy], rows.turns[row]))
            trunk.append(points)
        return trunk


def extend(points: list[Point], point: Point) -> None:
    """Append `point`, in the place of the last one where that stands on a vertical line to it."""
    if point == points[-1]:
        return
    if len(points) > 1 and points[-2][0] == points[-1][0] == point[0]:
        points[-1] = point
    else:
        points.append(point)

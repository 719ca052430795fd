"""Where the parts of a graph are, and what is beside what."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Literal

from PySide6.QtCore import QCoreApplication, QPointF, QRectF

from lowerscope.app.widgets.canvas.graph import GROUPS, CanvasGraph, CanvasPort, CanvasRegion

#: Height of the bar at the top of a frame that can be collapsed.
TITLE_BAR = 26.0
#: Width of the place for a chevron, in that bar and in a group.
CHEVRON = 16.0

Way = Literal["up", "down", "left", "right", "first", "last"]
"""A step of a walk."""

_CELL = 512.0
MOST_CELLS = 200_000
"""Of all nodes, and of all edges: boxes of a layout are in one or two each."""

# Nodes whose middles are less apart than this stand in one layer.
_LAYER = 8.0
_CHEVRON_LEFT = 10.0


class GraphIndex:
    """Where the nodes, frames and ports of a graph are, and what is beside what.

    Parameters
    ----------
    graph : CanvasGraph
        The graph; it is not changed.

    Attributes
    ----------
    nodes : dict of str to CanvasNode
        The nodes by their ids.
    rects : dict of str to QRectF
        Their places, in whole pixels, so that an outline is one pixel and not two half ones.
    frames : dict of str to QRectF
        The places of the regions that can be collapsed, by their ids; outer ones first.
    """

    def __init__(self, graph: CanvasGraph) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.nodes}
        self.rects = {
            node.id: QRectF(round(node.x), round(node.y), round(node.width), round(node.height))
            for node in graph.nodes
        }
        self.frames = {region.id: region_rect(region) for region in graph.regions if region.id}
        self._cells: dict[tuple[int, int], list[str]] = {}
        room = MOST_CELLS
        for name, rect in self.rects.items():
            for cell in islice(cells_of(rect), room):
                self._cells.setdefault(cell, []).append(name)
                room -= 1

    def bounds(self) -> QRectF:
        """The whole drawing."""
        return QRectF(0, 0, self.graph.width, self.graph.height)

    def at(self, point: QPointF) -> str:
        """The node at a place, or ``""``."""
        cell = (int(point.x() // _CELL), int(point.y() // _CELL))
        for name in reversed(self._cells.get(cell, [])):
            if self.rects[name].contains(point):
                return name
        return ""

    def inside(self, area: QRectF) -> list[str]:
        """The nodes that touch an area, each once, in the graph's order within a cell."""
        found: dict[str, None] = {}
        for cell in cells_of(area, self._cells):
            for name in self._cells.get(cell, ()):
                if name not in found and self.rects[name].intersects(area):
                    found[name] = None
        return list(found)

    def bar_at(self, point: QPointF) -> str:
        """The frame whose title bar is at a place, or ``""``."""
        for name in reversed(self.frames):
            if title_bar(self.frames[name]).contains(point):
                return name
        return ""

    def chevron_at(self, point: QPointF) -> bool:
        """Whether a chevron is at a place: of a group, or of a frame."""
        group, frame = self.at(point), self.bar_at(point)
        if group:
            is_group = self.nodes[group].role in GROUPS
            return is_group and chevron(self.rects[group]).contains(point)
        return bool(frame) and chevron(title_bar(self.frames[frame])).contains(point)

    def frames_around(self, name: str) -> list[str]:
        """The frames that a node stands in, or another frame, the innermost first."""
        rect = self.place(name)
        if rect is None:
            return []
        return [
            each
            for each in reversed(self.frames)
            if each != name and self.frames[each].contains(rect)
        ]

    def port_at(self, point: QPointF) -> CanvasPort | None:
        """The port at a place."""
        return next((port for port in self.graph.ports if port_rect(port).contains(point)), None)

    def ends(self, port: CanvasPort) -> list[CanvasPort]:
        """The ports at the other ends of one."""
        return [
            other
            for each in port.others
            for other in self.ports_of.get(each, ())
            if port.node in other.others and other.side != port.side
        ]

    def place(self, name: str) -> QRectF | None:
        """Where a node is, or the frame of a module that is expanded."""
        return self.rects[name] if name in self.rects else self.frames.get(name)

    @cached_property
    def ports_of(self) -> dict[str, list[CanvasPort]]:
        """The ports of each node that has any."""
        result: dict[str, list[CanvasPort]] = {}
        for port in self.graph.ports:
            result.setdefault(port.node, []).append(port)
        return result

    # Walking

    def top(self) -> str:
        """The first node of the first layer, or ``""`` in an empty graph."""
        return self._layers[0][0] if self._layers else ""

    def bottom(self) -> str:
        """The last node of the last layer, or ``""`` in an empty graph."""
        return self._layers[-1][-1] if self._layers else ""

    def beside(self, here: str, way: Way, before: str = "") -> str:
        """The node that one comes to from a node or frame, or ``""``.

        Parameters
        ----------
        here : str
            Where one is; ``""`` for nowhere, which leads to the first node.
        way : str
            Along an edge, within a layer, or to the first or last node.
        before : str
            Where one was before: edges lead back there, if any does.
        """
        if way == "last":
            return self.bottom()
        if way == "first" or not here:
            return self.top()
        if here in self.frames:
            inside = self.inside(self.frames[here])
            return min(inside, key=lambda name: self.rects[name].y(), default="")
        if way in ("left", "right"):
            return self.sibling(here, 1 if way == "right" else -1)
        ends = self.successors(here) if way == "down" else self.predecessors(here)
        return before if before in ends else next(iter(ends), "")

    def successors(self, name: str) -> list[str]:
        """The nodes that this one's edges lead to."""
        return self._neighbours[0].get(name, [])

    def predecessors(self, name: str) -> list[str]:
        """The nodes whose edges lead here."""
        return self._neighbours[1].get(name, [])

    def sibling(self, name: str, step: int) -> str:
        """The node that is so many places to the right in the same layer, or ``""``."""
        layer = self._layers[self._layer_of[name]]
        place = layer.index(name) + step
        return layer[place] if 0 <= place < len(layer) else ""

    @cached_property
    def _neighbours(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        after: dict[str, list[str]] = {}
        before: dict[str, list[str]] = {}
        flows = [(edge.source, edge.target) for edge in self.graph.edges]
        for port in self.graph.ports:
            if port.side == "out":
                flows += [(port.node, other) for other in port.others]
        for source, target in flows:
            after.setdefault(source, []).append(target)
            before.setdefault(target, []).append(source)
        return after, before

    @cached_property
    def _layers(self) -> list[list[str]]:
        layers: list[list[str]] = []
        last = float("-inf")
        middles = {name: rect.center().y() for name, rect in self.rects.items()}
        for name in sorted(middles, key=lambda name: middles[name]):
            if middles[name] - last > _LAYER:
                layers.append([])
                last = middles[name]
            layers[-1].append(name)
        for layer in layers:
            layer.sort(key=lambda name: self.rects[name].left())
        return layers

    @cached_property
    def _layer_of(self) -> dict[str, int]:
        return {name: i for i, layer in enumerate(self._layers) for name in layer}


def cells_of(
    area: QRectF, known: Iterable[tuple[int, int]] | None = None
) -> Iterator[tuple[int, int]]:
    """The grid cells that an area touches; of a huge area only those that are known."""
    left, right = int(area.left() // _CELL), int(area.right() // _CELL)
    top, bottom = int(area.top() // _CELL), int(area.bottom() // _CELL)
    if known is not None and (right - left + 1) * (bottom - top + 1) > 64:
        for x, y in known:
            if left <= x <= right and top <= y <= bottom:
                yield x, y
        return
    for x in range(left, right + 1):
        for y in range(top, bottom + 1):
            yield x, y


def region_rect(region: CanvasRegion) -> QRectF:
    """Where a frame is, in whole pixels."""
    return QRectF(round(region.x), round(region.y), round(region.width), round(region.height))


def port_rect(port: CanvasPort) -> QRectF:
    """Where a port is, in whole pixels."""
    return QRectF(round(port.x), round(port.y), round(port.width), round(port.height))


def title_bar(frame: QRectF) -> QRectF:
    """The bar at the top of a frame that can be collapsed."""
    return QRectF(frame.left(), frame.top(), frame.width(), TITLE_BAR)


def chevron(place: QRectF) -> QRectF:
    """Where the chevron is in a group, or in the title bar of a frame."""
    return QRectF(place.left() + _CHEVRON_LEFT, place.center().y() - 8, CHEVRON, 16)


def described(
    index: GraphIndex, walked: str, selection: frozenset[str], flags: frozenset[str]
) -> str:
    """Say where the keyboard is in a graph, or what there is, and what is selected."""
    here = index.nodes.get(walked)
    if here is not None:
        flag = QCoreApplication.translate("GraphCanvas", "flagged") if walked in flags else ""
        text = ", ".join(each for each in (here.title, here.subtitle, flag) if each)
    else:
        count = QCoreApplication.translate("GraphCanvas", "{0} nodes, {1} edges")
        text = count.format(len(index.nodes), len(index.graph.edges))
    titles = [index.nodes[name].title for name in sorted(selection)[:20] if name != walked]
    if titles:
        selected = QCoreApplication.translate("GraphCanvas", "selected: {0}")
        text += "; " + selected.format(", ".join(titles))
    return text

"""Spatial index of a graph: positions of its parts, and their neighbours."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Literal

from PySide6.QtCore import QCoreApplication, QPointF, QRectF

from lowerscope.core.model.graph import CHEVRON, GROUPS, TITLE_BAR, GraphRecord, Port, Region

Way = Literal["up", "down", "left", "right", "first", "last"]
"""A step of keyboard navigation."""

_CELL = 512.0
MOST_CELLS = 200_000
"""Bound on the cells of all nodes, and of all edges; boxes of a layout are in one or two each."""

# Nodes whose centres are less apart than this are in one layer.
_LAYER = 8.0
_CHEVRON_LEFT = 10.0


class GraphIndex:
    """Spatial index of the nodes, frames and ports of a graph, and their neighbours.

    Args:
        graph: The graph, which is not modified.
    """

    def __init__(self, graph: GraphRecord) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.boxes}  # The nodes by their ids.
        # Their areas, in whole pixels, so that an outline is one pixel and not two half ones.
        self.rects = {
            node.id: QRectF(round(node.x), round(node.y), round(node.width), round(node.height))
            for node in graph.boxes
        }
        # The areas of the regions that can be collapsed, by their ids; outer ones first.
        self.frames = {region.id: region_rect(region) for region in graph.regions if region.id}
        self._cells: dict[tuple[int, int], list[str]] = {}
        room = MOST_CELLS
        for name, rect in self.rects.items():
            for cell in islice(cells_of(rect), room):
                self._cells.setdefault(cell, []).append(name)
                room -= 1

    def bounds(self) -> QRectF:
        """Return the bounds of the whole drawing."""
        return QRectF(0, 0, self.graph.width, self.graph.height)

    def at(self, point: QPointF) -> str:
        """Return the node at a position, or ``""``."""
        cell = (int(point.x() // _CELL), int(point.y() // _CELL))
        for name in reversed(self._cells.get(cell, [])):
            if self.rects[name].contains(point):
                return name
        return ""

    def inside(self, area: QRectF) -> list[str]:
        """Return the nodes that overlap an area, each once, in the graph's order within a cell."""
        found: dict[str, None] = {}
        for cell in cells_of(area, self._cells):
            for name in self._cells.get(cell, ()):
                if name not in found and self.rects[name].intersects(area):
                    found[name] = None
        return list(found)

    def bar_at(self, point: QPointF) -> str:
        """Return the frame whose title bar is at a position, or ``""``."""
        for name in reversed(self.frames):
            if title_bar(self.frames[name]).contains(point):
                return name
        return ""

    def chevron_at(self, point: QPointF) -> bool:
        """Return whether the chevron of a group or of a frame is at a position."""
        group, frame = self.at(point), self.bar_at(point)
        if group:
            is_group = self.nodes[group].kind in GROUPS
            return is_group and chevron(self.rects[group]).contains(point)
        return bool(frame) and chevron(title_bar(self.frames[frame])).contains(point)

    def frames_around(self, name: str) -> list[str]:
        """Return the frames around a node or another frame, innermost first."""
        rect = self.place(name)
        if rect is None:
            return []
        return [
            each
            for each in reversed(self.frames)
            if each != name and self.frames[each].contains(rect)
        ]

    def port_at(self, point: QPointF) -> Port | None:
        """Return the port at a position."""
        return next((port for port in self.graph.ports if port_rect(port).contains(point)), None)

    def ends(self, port: Port) -> list[Port]:
        """Return the ports at the other ends of one."""
        return [
            other
            for each in port.others
            for other in self.ports_of.get(each, ())
            if port.box in other.others and other.side != port.side
        ]

    def place(self, name: str) -> QRectF | None:
        """Return the area of a node, or of the frame of an expanded module."""
        return self.rects[name] if name in self.rects else self.frames.get(name)

    @cached_property
    def ports_of(self) -> dict[str, list[Port]]:
        """The ports of each node that has any."""
        result: dict[str, list[Port]] = {}
        for port in self.graph.ports:
            result.setdefault(port.box, []).append(port)
        return result

    # Keyboard navigation

    def top(self) -> str:
        """Return the first node of the first layer, or ``""`` in an empty graph."""
        return self._layers[0][0] if self._layers else ""

    def bottom(self) -> str:
        """Return the last node of the last layer, or ``""`` in an empty graph."""
        return self._layers[-1][-1] if self._layers else ""

    def beside(self, here: str, way: Way, before: str = "") -> str:
        """Return the node that a step from a node or frame leads to, or ``""``.

        Args:
            here: The current node; ``""`` for none, which leads to the first node.
            way: Along an edge, within a layer, or to the first or last node.
            before: The previous node: a step along an edge leads back there, if there is such an
                edge.
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
        """Return the nodes that this node's edges lead to."""
        return self._neighbours[0].get(name, [])

    def predecessors(self, name: str) -> list[str]:
        """Return the nodes whose edges lead to this one."""
        return self._neighbours[1].get(name, [])

    def sibling(self, name: str, step: int) -> str:
        """Return the node `step` places to the right in the same layer, or ``""``."""
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
                flows += [(port.box, other) for other in port.others]
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
    """Return the grid cells that an area overlaps; of a huge area, only those that have items."""
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


def region_rect(region: Region) -> QRectF:
    """Return the area of a frame, in whole pixels."""
    return QRectF(round(region.x), round(region.y), round(region.width), round(region.height))


def port_rect(port: Port) -> QRectF:
    """Return the area of a port, in whole pixels."""
    return QRectF(round(port.x), round(port.y), round(port.width), round(port.height))


def title_bar(frame: QRectF) -> QRectF:
    """Return the bar at the top of a frame that can be collapsed."""
    return QRectF(frame.left(), frame.top(), frame.width(), TITLE_BAR)


def chevron(place: QRectF) -> QRectF:
    """Return the area of the chevron in a group, or in the title bar of a frame."""
    return QRectF(place.left() + _CHEVRON_LEFT, place.center().y() - 8, CHEVRON, 16)


def described(
    index: GraphIndex, walked: str, selection: frozenset[str], flags: frozenset[str]
) -> str:
    """Describe the keyboard's position in a graph, or the graph, and the selection."""
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

"""A graph that is laid out already, as plain values, and questions about where things are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

_CELL = 512.0
# Nodes whose middles are less apart than this stand in one layer.
_LAYER = 8.0


@dataclass(frozen=True)
class CanvasNode:
    """A node to draw.

    Attributes
    ----------
    id : str
        Its id; each is there once.
    title, subtitle : str
        The two lines in it; both are shortened to fit.
    badge : str
        Two or three letters at the right, in the strategy's colour.
    role : str
        ``"input"``, ``"constant"``, ``"call"`` or ``"output"``.
    strategy : str
        ``"high-level"``, ``"te"``, ``"library"`` or ``""``: the colour of bar and badge.
    x, y, width, height : float
        Its place, from the top left, in pixels at 100 %.
    """

    id: str
    title: str
    subtitle: str
    badge: str
    role: str
    strategy: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class CanvasEdge:
    """An edge to draw.

    Attributes
    ----------
    source, target : str
        Ids of nodes.
    label : str
        What flows, beside the line.
    points : tuple of (float, float)
        From the source's border to the target's, two or more.
    label_at : (float, float), optional
        Left end of the label, at half its height. Without it the canvas finds a place, once for
        each source and label.
    """

    source: str
    target: str
    label: str
    points: tuple[tuple[float, float], ...]
    label_at: tuple[float, float] | None = None


@dataclass(frozen=True)
class CanvasRegion:
    """A frame around nodes that belong together, with a title in its bottom left corner."""

    title: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class CanvasGraph:
    """Nodes and edges in a drawing of this width and height, in pixels at 100 %."""

    nodes: tuple[CanvasNode, ...] = ()
    edges: tuple[CanvasEdge, ...] = ()
    width: float = 0.0
    height: float = 0.0
    regions: tuple[CanvasRegion, ...] = ()


class GraphIndex:
    """Where the nodes of a graph are, and what is beside what.

    Parameters
    ----------
    graph : CanvasGraph
        The graph; it is not changed.
    """

    def __init__(self, graph: CanvasGraph) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.nodes}
        # Whole pixels, so that an outline is one pixel and not two half ones.
        self.rects = {
            node.id: QRectF(round(node.x), round(node.y), round(node.width), round(node.height))
            for node in graph.nodes
        }
        self._cells: dict[tuple[int, int], list[str]] = {}
        for name, rect in self.rects.items():
            for cell in cells_of(rect):
                self._cells.setdefault(cell, []).append(name)
        self._successors: dict[str, list[str]] = {}
        self._predecessors: dict[str, list[str]] = {}
        for edge in graph.edges:
            self._successors.setdefault(edge.source, []).append(edge.target)
            self._predecessors.setdefault(edge.target, []).append(edge.source)
        self._layers, self._layer_of = self._find_layers()

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

    def top(self) -> str:
        """The first node of the first layer, or ``""`` in an empty graph."""
        return self._layers[0][0] if self._layers else ""

    def successor(self, name: str) -> str:
        """The first node that this one's edges lead to, or ``""``."""
        return next(iter(self._successors.get(name, ())), "")

    def predecessor(self, name: str) -> str:
        """The first node whose edges lead here, or ``""``."""
        return next(iter(self._predecessors.get(name, ())), "")

    def sibling(self, name: str, step: int) -> str:
        """The node that is so many places to the right in the same layer, or ``""``."""
        layer = self._layers[self._layer_of[name]]
        place = layer.index(name) + step
        return layer[place] if 0 <= place < len(layer) else ""

    def _find_layers(self) -> tuple[list[list[str]], dict[str, int]]:
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
        return layers, {name: i for i, layer in enumerate(layers) for name in layer}


def cells_of(
    area: QRectF, known: dict[tuple[int, int], list[str]] | None = None
) -> Iterator[tuple[int, int]]:
    """The grid cells that an area touches; of a huge area only those that are known."""
    left, right = int(area.left() // _CELL), int(area.right() // _CELL)
    top, bottom = int(area.top() // _CELL), int(area.bottom() // _CELL)
    if known is not None and (right - left + 1) * (bottom - top + 1) > len(known):
        for x, y in known:
            if left <= x <= right and top <= y <= bottom:
                yield x, y
        return
    for x in range(left, right + 1):
        for y in range(top, bottom + 1):
            yield x, y


def strategies(nodes: Iterable[CanvasNode]) -> set[str]:
    """The strategies that at least one node has."""
    return {node.strategy for node in nodes if node.strategy}

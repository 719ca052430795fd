"""A graph that is laid out already, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

GROUPS = frozenset(("group", "fused"))
"""The roles of nodes that stand for several, and can be expanded."""


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
        ``"input"``, ``"constant"``, ``"call"``, ``"output"``; or one of the `GROUPS`: ``"group"``,
        or ``"fused"`` for a call that stands for several.
    strategy : str
        ``"high-level"``, ``"te"``, ``"library"`` or ``""``: the colour of bar and badge. Or, in a
        difference, ``"added"``, ``"removed"`` or ``"changed"``: that of the ground as well.
    x, y, width, height : float
        Its place, from the top left, in pixels at 100 %.
    members : tuple of str
        Names of what a group stands for; they are found as its title is.
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
    members: tuple[str, ...] = ()


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
class CanvasPort:
    """An end of an edge that is not drawn: a stub at a node, with the name of the other end.

    Attributes
    ----------
    node : str
        Id of the node that it is at.
    others : tuple of str
        Ids of the nodes at the other ends: one source, or all targets.
    label : str
        What is written in it.
    side : str
        ``"in"``: above the node; ``"out"``: below it.
    x, y, width, height : float
        Its place, from the top left.
    """

    node: str
    others: tuple[str, ...]
    label: str
    side: Literal["in", "out"]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class CanvasRegion:
    """A frame around nodes that belong together.

    With an id it can be collapsed, and has its title in a bar at its top; without one, in its
    bottom left corner.
    """

    title: str
    x: float
    y: float
    width: float
    height: float
    id: str = ""


@dataclass(frozen=True)
class CanvasGraph:
    """Nodes and edges in a drawing of this width and height, in pixels at 100 %.

    Outer regions come before those in them.
    """

    nodes: tuple[CanvasNode, ...] = ()
    edges: tuple[CanvasEdge, ...] = ()
    width: float = 0.0
    height: float = 0.0
    regions: tuple[CanvasRegion, ...] = ()
    ports: tuple[CanvasPort, ...] = ()


@dataclass(frozen=True)
class CanvasShade:
    """A figure of a node that its colour shows.

    Attributes
    ----------
    level : float
        From 0, the least of the graph, to 1, the most.
    text : str
        The figure, in place of the badge.
    wrong : bool
        Whether it is one that must not be, whatever the level.
    """

    level: float
    text: str
    wrong: bool = False


@dataclass(frozen=True)
class CanvasFigures:
    """Figures of nodes by id, and what their colours mean: ``"ramp"`` or ``"wrong"``, and words."""

    shades: Mapping[str, CanvasShade] = field(default_factory=dict)
    legend: tuple[tuple[str, str], ...] = ()

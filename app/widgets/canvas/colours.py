"""Colours of nodes, by strategy, kind, or a value such as a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from PySide6.QtGui import QColor

from lowerscope.app.theme_colours import Theme, kind_colour, strategy_colour
from lowerscope.core.model.graph import Box

Colouring = Literal["strategy", "kind", "time", "error"]
"""Property of nodes that colours show; the last two show the values of `CanvasShade`."""

FIGURES: tuple[Colouring, ...] = ("time", "error")
"""Colourings that show values."""


@dataclass(frozen=True)
class CanvasShade:
    """A value of a node that its colour shows.

    Attributes
    ----------
    level : float
        From 0, the least in the graph, to 1, the greatest.
    text : str
        The value as text, in place of the badge.
    wrong : bool
        Whether the value is wrong, whatever the level.
    """

    level: float
    text: str
    wrong: bool = False


@dataclass(frozen=True)
class CanvasFigures:
    """Values of nodes by id, and a legend: ``"ramp"`` or ``"wrong"``, and its text."""

    shades: Mapping[str, CanvasShade] = field(default_factory=dict)
    legend: tuple[tuple[str, str], ...] = ()


_GROUNDS = {"added": "right_ground", "removed": "wrong_ground", "changed": "changed"}

STATUSES = frozenset(_GROUNDS)
"""Strategies that are the status of a node in a difference."""


def node_colour(theme: Theme, strategy: str, role: str, colouring: Colouring) -> str:
    """Return the colour of the bar of a node with a strategy, or none, and a role."""
    if colouring == "strategy" and strategy:
        return strategy_colour(theme, strategy)
    if colouring == "strategy":
        return theme.faint if role == "constant" else theme.neutral
    return kind_colour(theme, role)


def status_ground(theme: Theme, status: str) -> str:
    """Return the background of a node with a status in a difference, or of any other node."""
    name = _GROUNDS.get(status)
    ground: str = theme.node if name is None else getattr(theme, name)
    return ground


def shade_colour(theme: Theme, shade: CanvasShade | None, colouring: Colouring) -> str:
    """Return the colour of the bar of a node with a value, or without one."""
    if shade is None:
        return theme.faint
    if shade.wrong:
        return theme.wrong
    return theme.heat if colouring == "time" else theme.neutral


def shade_ground(theme: Theme, shade: CanvasShade, colouring: Colouring) -> str:
    """Return the background of a node with a value: darker for more, or lighter in a dark theme."""
    if shade.wrong:
        return theme.wrong_ground
    return ramp(theme, shade.level, colouring)


def ramp(theme: Theme, level: float, colouring: Colouring) -> str:
    """Return the background for a level from 0 to 1."""
    least = QColor(theme.node)
    most = QColor(theme.heat_ground if colouring == "time" else theme.error_ground)
    parts = zip(least.getRgb()[:3], most.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * level) for a, b in parts)).name()


def legend_colour(theme: Theme, key: str, colouring: Colouring) -> str:
    """Return the colour of a strategy or a kind, or of wrong values."""
    if key == "wrong":
        return theme.wrong
    if colouring == "strategy":
        return strategy_colour(theme, key)
    return kind_colour(theme, key)


def present(nodes: Iterable[Box], colouring: Colouring) -> set[str]:
    """Return the strategies or kinds that at least one node has."""
    if colouring == "strategy":
        return {node.strategy for node in nodes if node.strategy}
    # Fused nodes are calls, and have their colour.
    return {"call" if node.kind == "fused" else node.kind for node in nodes}

"""What the colours of nodes say: their strategies, their kinds, or figures such as times."""

from collections.abc import Iterable
from typing import Literal

from PySide6.QtGui import QColor

from lowerscope.app.theme_colours import Theme, kind_colour, strategy_colour
from lowerscope.app.widgets.canvas.graph import CanvasNode, CanvasShade

Colouring = Literal["strategy", "kind", "time", "error"]
"""What the colours say: the last two show figures, those of `CanvasShade`."""

FIGURES: tuple[Colouring, ...] = ("time", "error")
"""The colourings that show figures."""

_GROUNDS = {"added": "right_ground", "removed": "wrong_ground", "changed": "changed"}

STATUSES = frozenset(_GROUNDS)
"""Strategies of nodes that say what became of them instead."""


def node_colour(theme: Theme, strategy: str, role: str, colouring: Colouring) -> str:
    """The colour of the bar of a node with a strategy, or none, and a role."""
    if colouring == "strategy" and strategy:
        return strategy_colour(theme, strategy)
    if colouring == "strategy":
        return theme.faint if role == "constant" else theme.neutral
    return kind_colour(theme, role)


def status_ground(theme: Theme, status: str) -> str:
    """The ground of a node with a status in a difference, or of all others."""
    name = _GROUNDS.get(status)
    ground: str = theme.node if name is None else getattr(theme, name)
    return ground


def shade_colour(theme: Theme, shade: CanvasShade | None, colouring: Colouring) -> str:
    """The colour of the bar of a node with a figure, or without one."""
    if shade is None:
        return theme.faint
    if shade.wrong:
        return theme.wrong
    return theme.heat if colouring == "time" else theme.neutral


def shade_ground(theme: Theme, shade: CanvasShade, colouring: Colouring) -> str:
    """The ground of a node with a figure: the darker, or in the dark the lighter, the more."""
    if shade.wrong:
        return theme.wrong_ground
    return ramp(theme, shade.level, colouring)


def ramp(theme: Theme, level: float, colouring: Colouring) -> str:
    """The ground for a level from 0 to 1."""
    least = QColor(theme.node)
    most = QColor(theme.heat_ground if colouring == "time" else theme.error_ground)
    parts = zip(least.getRgb()[:3], most.getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * level) for a, b in parts)).name()


def legend_colour(theme: Theme, key: str, colouring: Colouring) -> str:
    """The colour of a strategy or a kind, or of what must not be."""
    if key == "wrong":
        return theme.wrong
    if colouring == "strategy":
        return strategy_colour(theme, key)
    return kind_colour(theme, key)


def present(nodes: Iterable[CanvasNode], colouring: Colouring) -> set[str]:
    """The strategies or kinds that at least one node has."""
    if colouring == "strategy":
        return {node.strategy for node in nodes if node.strategy}
    # What is fused is a call, of the colour of calls.
    return {"call" if node.role == "fused" else node.role for node in nodes}

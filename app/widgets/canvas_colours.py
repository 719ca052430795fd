"""What the colours of nodes say: their strategies, or their kinds."""

from collections.abc import Iterable
from typing import Literal

from lowerscope.app.theme import Theme, kind_colour, strategy_colour
from lowerscope.app.widgets.canvas_graph import CanvasNode

Colouring = Literal["strategy", "kind"]
"""What the colours say."""

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


def legend_colour(theme: Theme, key: str, colouring: Colouring) -> str:
    """The colour of a strategy or a kind."""
    if colouring == "strategy":
        return strategy_colour(theme, key)
    return kind_colour(theme, key)


def present(nodes: Iterable[CanvasNode], colouring: Colouring) -> set[str]:
    """The strategies or kinds that at least one node has."""
    if colouring == "strategy":
        return {node.strategy for node in nodes if node.strategy}
    return {node.role for node in nodes}

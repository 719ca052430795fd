"""Colours of a graph's nodes, by operator family, strategy, or a value such as a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lowerscope.app.kit.theme import Theme, family_colour, mixed, strategy_colour
from lowerscope.core.model.graph import FAMILY_NAMES, PILLS, STRATEGY_NAMES, Box

Colouring = Literal["family", "strategy", "time", "error"]
"""Property of nodes that colours show; the last two show the values of `CanvasShade`."""

FIGURES: tuple[Colouring, ...] = ("time", "error")
"""Colourings that show values."""

_STATUSES = {"added": "right_ground", "removed": "wrong_ground", "changed": "changed"}
"""Strategies that are the status of a node in a difference, and their backgrounds."""

_BAND, _BLOCK = 0.15, 0.3
"""Shares of the colour in a header, and in a block that stands for several nodes."""


@dataclass(frozen=True)
class CanvasShade:
    """A value of a node that its colour shows."""

    level: float  # From 0, the least in the graph, to 1, the greatest.
    text: str  # The value as text.
    wrong: bool = False  # Whether the value is wrong, whatever the level.


@dataclass(frozen=True)
class CanvasFigures:
    """Values of nodes by id, and a legend: ``"ramp"`` or ``"wrong"``, and its text."""

    shades: Mapping[str, CanvasShade] = field(default_factory=dict)
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Ink:
    """Colours of a node: of the text in its header, of the header, and of the rest."""

    text: str
    header: str
    body: str


@dataclass(frozen=True)
class Colours:
    """Colours of the nodes of a graph.

    Attributes:
        strategies: Names of strategies, or of statuses in a difference, for the legend.
    """

    colouring: Colouring = "family"
    figures: CanvasFigures = CanvasFigures()
    strategies: Mapping[str, str] = field(default_factory=lambda: STRATEGY_NAMES)

    def shade(self, name: str) -> CanvasShade | None:
        """Return the value of a node, where values are shown."""
        return self.figures.shades.get(name) if self.colouring in FIGURES else None

    def ink(self, theme: Theme, node: Box) -> Ink:
        """Return the colours of a node."""
        if self.colouring in FIGURES:
            shade = self.shade(node.id)
            ground = theme.node if shade is None else self.shade_ground(theme, shade)
            return Ink(theme.quiet if shade is None else theme.text, ground, ground)
        body = getattr(theme, _STATUSES.get(node.strategy, "panel"))
        if node.kind in PILLS:
            return Ink(theme.quiet, theme.node, theme.node)
        colour = self._colour(theme, node)
        return Ink(colour, mixed(theme.panel, colour, _BAND), body)

    def block(self, theme: Theme, nodes: Sequence[Box], family: str) -> str:
        """Return the background of a block of a family that stands for some nodes."""
        if self.colouring in FIGURES:
            shades = [shade for node in nodes if (shade := self.shade(node.id)) is not None]
            if not shades:
                return theme.node
            return self.shade_ground(theme, max(shades, key=lambda each: (each.wrong, each.level)))
        if all(node.kind in PILLS for node in nodes):
            return theme.node
        if not self._is_by_strategy:
            return mixed(theme.panel, family_colour(theme, family), _BLOCK)
        same = {node.strategy for node in nodes if node.strategy}
        colour = strategy_colour(theme, same.pop() if len(same) == 1 else "")
        return mixed(theme.panel, colour, _BLOCK)

    def mark(self, theme: Theme, node: Box) -> str:
        """Return the colour of a node that is too small for more than one."""
        if self.colouring in FIGURES:
            shade = self.shade(node.id)
            if shade is None:
                return theme.node_line
            return theme.wrong if shade.wrong else self.shade_ground(theme, shade)
        return theme.faint if node.kind in PILLS else self._colour(theme, node)

    def _colour(self, theme: Theme, node: Box) -> str:
        if node.kind == "constant":
            return theme.quiet
        if self._is_by_strategy:
            return strategy_colour(theme, node.strategy)
        return family_colour(theme, node.family)

    def shade_ground(self, theme: Theme, shade: CanvasShade) -> str:
        """Return the background of a value: darker for more, or lighter in a dark theme."""
        return theme.wrong_ground if shade.wrong else self.ramp(theme, shade.level)

    def ramp(self, theme: Theme, level: float) -> str:
        """Return the background for a level from 0 to 1."""
        most = theme.heat_ground if self.colouring == "time" else theme.error_ground
        return mixed(theme.node, most, level)

    def legend(self, nodes: Iterable[Box]) -> Sequence[tuple[str, str]]:
        """Return the families or strategies that occur, with their names; or that of values."""
        if self.colouring in FIGURES:
            return self.figures.legend
        calls = [node for node in nodes if node.kind not in (*PILLS, "constant")]
        if self._is_by_strategy:
            there = {node.strategy for node in calls}
            return [each for each in self.strategies.items() if each[0] in there]
        there = {node.family for node in calls}
        return [each for each in FAMILY_NAMES.items() if each[0] in there]

    def legend_colour(self, theme: Theme, key: str) -> str:
        """Return the colour of an entry of the legend that is not a ramp."""
        if key == "wrong":
            return theme.wrong
        return (strategy_colour if self._is_by_strategy else family_colour)(theme, key)

    @property
    def _is_by_strategy(self) -> bool:
        """Return whether colours are those of strategies, or of statuses in a difference."""
        return self.colouring == "strategy" or self.strategies is not STRATEGY_NAMES

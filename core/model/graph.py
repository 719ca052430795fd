"""Graphs with their layout, in pixels at 100 %, from the top left corner."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.entities import STATUS_MARKS, STRATEGY_LETTERS, name_of

GraphName = Literal["fx", "relax"]
"""A graph of FX nodes, or of the bindings of a Relax function."""

TITLE_BAR = 26.0
"""Height of the bar with chevron and title at the top of a `Region` that has an id; no box overlaps
it. (The title of a region without an id is in its bottom left corner.)"""

GROUPS = frozenset(("group", "fused"))
"""Kinds of boxes that can be expanded."""

CHEVRON = 16.0
"""Width of the chevron in a title bar, and in a box of one of the `GROUPS`."""

FITS = (420.0, 560.0)
"""Width and height of a pane with a graph in a new window."""

WHOLE = (1e9, 1e9)
"""Width and height that every graph fits: all modules and fused functions are expanded."""

_BADGES = STRATEGY_LETTERS | STATUS_MARKS


class Box(msgspec.Struct, frozen=True):
    """A node: a rectangle with its top left corner at ``x``, ``y``."""

    # Unique in the graph. Passes reuse names, so after a pass it may be that of another binding
    # elsewhere; see `origins`.
    id: str
    # title, subtitle: the two lines of text; a painter shortens them to fit
    title: str
    subtitle: str
    # ``input``, ``constant``, ``call`` or ``output``; ``group`` for a collapsed module, whose id is
    # ``module:layer1``; ``fused`` for the call of a fused function that can be expanded.
    kind: str
    # As in `FxNode`, or empty; for a group, the one that all members have. In a difference,
    # ``added``, ``removed`` or ``changed``.
    strategy: str
    x: float
    y: float
    width: float
    height: float
    # Entities without a box of their own: weights and scalars, and all that is in a group, a fused
    # function or a branch. Ids of the lowered module where there are `origins`.
    members: tuple[str, ...] = ()
    # The bindings of the lowered module that became the box, none for those that a pass made.
    # ``None`` for a box whose id is valid everywhere.
    origins: tuple[str, ...] | None = None
    # Name of the operator, function or module that is called; empty for inputs and outputs.
    operator: str = ""
    # shape, dtype: of a tensor; ``None`` and empty for other values
    shape: tuple[int | str, ...] | None = None
    dtype: str = ""
    # The innermost `Region` around it: its id, or its title where it has none; empty for none.
    group: str = ""

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities that a click on the box selects."""
        return (self.id,) if self.origins is None else self.origins

    @property
    def badge(self) -> str:
        """A mark for the strategy."""
        return _BADGES.get(self.strategy, "")

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that a search looks through: title, subtitle, and the names of members."""
        return (self.title, self.subtitle, *map(name_of, self.members))


class Edge(msgspec.Struct, frozen=True):
    """A value that flows from one box to another."""

    source: str
    target: str
    label: str
    # From the bottom edge of the source to the top edge of the target, two or more. A slanted
    # segment may be drawn as a curve with vertical ends.
    points: tuple[tuple[float, float], ...]
    # The left end of the label, at half its height; ``None`` where another edge has the label of
    # the same value.
    label_at: tuple[float, float] | None = None


class Port(msgspec.Struct, frozen=True):
    """A stub in the place of one or more long edges: its label names the other end."""

    box: str  # id of the box that it is attached to
    others: tuple[str, ...]  # ids of the boxes at the other ends: one source, or all targets
    label: str
    side: Literal["in", "out"]  # ``"in"``: above the box; ``"out"``: below it
    x: float
    y: float
    width: float
    height: float


class Region(msgspec.Struct, frozen=True):
    """A frame around boxes that belong together."""

    title: str
    x: float
    y: float
    width: float
    height: float
    # That of an expanded module, ``module:layer1``, or of the box of a fused function: both can be
    # collapsed. Empty for a data-flow block.
    id: str = ""
    origins: tuple[str, ...] = ()  # those of the box of a fused function


class GraphRecord(msgspec.Struct, frozen=True):
    """A graph with its layout."""

    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    width: float = 0.0
    height: float = 0.0
    regions: tuple[Region, ...] = ()  # the frames, outer ones first
    ports: tuple[Port, ...] = ()
    expanded: tuple[str, ...] = ()  # ids of the expanded modules and calls, outer ones first
    collapsible: bool = False  # whether there are modules or calls to collapse or expand

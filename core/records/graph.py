"""Graphs as the window draws them: laid out, plain, frozen, serialisable values, in pixels.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

GraphName = Literal["fx", "relax"]
"""A graph that can be asked for: of the FX nodes, or of the bindings of a Relax function."""

TITLE_BAR = 26.0
"""Height, in pixels, of the bar with chevron and title at the top of a `Region` that has an id: the
layout keeps it free of boxes. (The title of a region without one is in its bottom left corner.)"""

GROUPS = frozenset(("group", "fused"))
"""The kinds of boxes that can be expanded."""

CHEVRON = 16.0
"""Width, in pixels, that a box of one of the `GROUPS` has besides, left of its words."""

FITS = (420.0, 560.0)
"""Width and height, in pixels, of a pane with a graph in a window as it opens."""

WHOLE = (1e9, 1e9)
"""Width and height of a picture that everything fits: modules and fused functions are expanded."""


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A node as it is drawn: a rectangle with its top left corner at ``x``, ``y``.

    ``kind`` is ``input``, ``constant``, ``call``, ``output``; ``group`` for a module that is
    collapsed into one box: its id is that of the module, ``module:layer1``, and ``members`` are the
    ids of what is inside; or ``fused`` for the call of a fused function that can be looked into.
    Of these and other boxes, ``members`` are what has no box of its own: weights and scalars, and
    the bindings of a fused group or of a branch. ``strategy`` as in `FxNode`, or empty; of a group,
    the one that all of its members have.

    Passes use names anew, so the id of a box at a step may be that of another binding elsewhere.
    There, ``origins`` are the bindings of the lowered module that became the box, none for what a
    pass made, and ``members`` are of that module too. ``None`` stands for a box whose id is good
    everywhere.
    """

    id: str
    title: str
    subtitle: str
    kind: str
    strategy: str
    x: float
    y: float
    width: float
    height: float
    members: tuple[str, ...] = ()
    origins: tuple[str, ...] | None = None

    @property
    def entities(self) -> tuple[str, ...]:
        """What the box stands for: what is selected where it is clicked."""
        return (self.id,) if self.origins is None else self.origins


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A value that flows from one box to another, along ``points`` from bottom to top edge.

    A slanted segment lies between two rows of boxes; it may be drawn as a curve with vertical
    ends. ``label_at`` is where the label is written: the left end of its text, at half its
    height; ``None`` where it is not, as another edge with the same value has it already.
    """

    source: str
    target: str
    label: str
    points: tuple[tuple[float, float], ...]
    label_at: tuple[float, float] | None = None


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """An end of a long edge that is not drawn: a stub at a box, with the name of the other end.

    Attributes
    ----------
    box
        Id of the box that it is at.
    others
        Ids of the boxes at the other ends: one source, or all targets.
    label
        What is written in it: the name of the value.
    side
        ``"in"``: at the top edge of the box; ``"out"``: at its bottom edge.
    x, y, width, height
        Of the stub; top left corner.
    """

    box: str
    others: tuple[str, ...]
    label: str
    side: Literal["in", "out"]
    x: float
    y: float
    width: float
    height: float


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A frame around boxes that belong together.

    ``id`` is that of a module that is expanded, ``module:layer1``, or that of the box of a fused
    function; both can be collapsed. It is empty for a data-flow block. Outer frames come first.
    ``origins`` are those of the box of a fused function.
    """

    title: str
    x: float
    y: float
    width: float
    height: float
    id: str = ""
    origins: tuple[str, ...] = ()


class GraphRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A graph with its layout; the top left corner is at 0, 0.

    ``expanded`` are the ids of the modules and calls that are expanded, outer ones first, and
    ``collapsible`` whether there are such at all.
    """

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float
    regions: tuple[Region, ...] = ()
    ports: tuple[Port, ...] = ()
    expanded: tuple[str, ...] = ()
    collapsible: bool = False

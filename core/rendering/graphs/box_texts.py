"""Texts of the boxes of a graph, and the values that flow between them, before the layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxText:
    """A box before it has a place; the fields are those of `core.model.graph.Box`."""

    id: str
    title: str
    subtitle: str
    kind: str
    strategy: str = ""
    members: tuple[str, ...] = ()
    origins: tuple[str, ...] | None = None
    operator: str = ""
    shape: tuple[int | str, ...] | None = None
    dtype: str = ""

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities of the box, as `core.model.graph.Box.entities`."""
        return (self.id,) if self.origins is None else self.origins


@dataclass(frozen=True, slots=True)
class Flow:
    """A value that flows from box to box, by their ids."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Inside:
    """Content of an expanded box.

    Attributes
    ----------
    boxes
        In order; their ids are those of no other box of the graph.
    flows
        Between them, and from boxes outside to them.
    gives
        Ids of the boxes that make the value of the box as a whole.
    """

    boxes: Sequence[BoxText]
    flows: Sequence[Flow]
    gives: Sequence[str]


@dataclass(frozen=True, slots=True)
class Spread:
    """A graph in which some boxes are replaced by their contents.

    Attributes
    ----------
    boxes, flows
        The remaining boxes and flows.
    around
        For each box, the id of the one that it is inside of, or ``""``.
    """

    boxes: Sequence[BoxText]
    flows: Sequence[Flow]
    around: Sequence[str]


def spread(
    boxes: Sequence[BoxText], flows: Sequence[Flow], insides: Mapping[str, Inside]
) -> Spread:
    """Replace boxes by their contents, by their ids."""
    left: list[BoxText] = []
    around: list[str] = []
    for box in boxes:
        inside = insides.get(box.id)
        left.extend((box,) if inside is None else inside.boxes)
        around.extend(("",) if inside is None else (box.id,) * len(inside.boxes))

    def makers(source: str) -> Sequence[str]:
        inside = insides.get(source)
        if inside is None:
            return (source,)
        return tuple(dict.fromkeys(each for given in inside.gives for each in makers(given)))

    whole = [
        *(flow for flow in flows if flow.target not in insides),
        *(flow for inside in insides.values() for flow in inside.flows),
    ]
    return Spread(
        left,
        [Flow(each, flow.target, flow.label) for flow in whole for each in makers(flow.source)],
        around,
    )

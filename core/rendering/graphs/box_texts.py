"""What stands in the boxes of a graph, and what flows between them, before they have places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoxText:
    """A box before it has a place; the fields are those of `core.records.graph.Box`."""

    id: str
    title: str
    subtitle: str
    kind: str
    strategy: str = ""
    members: tuple[str, ...] = ()
    origins: tuple[str, ...] | None = None

    @property
    def entities(self) -> tuple[str, ...]:
        """What the box stands for, as `core.records.graph.Box.entities`."""
        return (self.id,) if self.origins is None else self.origins


@dataclass(frozen=True, slots=True)
class Flow:
    """A value that flows from box to box, by their ids."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Inside:
    """What is inside of a box that is looked into.

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
    """A graph in which some boxes have given way to what is inside of them.

    Attributes
    ----------
    boxes, flows
        As they are left.
    around
        For each box, the id of the one that it is inside of, or ``""``.
    """

    boxes: Sequence[BoxText]
    flows: Sequence[Flow]
    around: Sequence[str]


def spread(
    boxes: Sequence[BoxText], flows: Sequence[Flow], insides: Mapping[str, Inside]
) -> Spread:
    """Put what is inside of some boxes, by their ids, in their place."""
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

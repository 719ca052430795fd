"""A graph with some of its groups collapsed: each is one box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from lowerscope.core.rendering.graphs.box_texts import BoxText, Flow
from lowerscope.core.rendering.graphs.hierarchy import Block, Group, Item, groups_in


@dataclass(frozen=True, slots=True)
class Frame:
    """A group that is expanded, or a data-flow block: boxes by number, and frames, in order."""

    id: str
    title: str
    items: tuple[FrameItem, ...]


FrameItem: TypeAlias = "int | Frame"


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The rest of a graph after collapsing.

    Attributes
    ----------
    boxes, flows
        With a box for each collapsed group, and one flow at most from one box to another.
    items
        The boxes by number, and the frames of the expanded groups, in order.
    of
        For each box of the whole graph, the number of the one that it is or is in.
    """

    boxes: tuple[BoxText, ...]
    flows: tuple[Flow, ...]
    items: tuple[FrameItem, ...]
    of: tuple[int, ...]


def collapse(
    boxes: Sequence[BoxText],
    flows: Sequence[Flow],
    items: Sequence[Item],
    expanded: Set[str],
    kinds: Mapping[str, str],
    unit: str = "nodes",
    calls: Mapping[str, BoxText] = MappingProxyType({}),
) -> Collapsed:
    """Collapse all groups that are not in `expanded`.

    Parameters
    ----------
    boxes, flows
        The whole graph.
    items
        Its groups, as `hierarchy` makes them.
    expanded
        Ids of groups.
    kinds
        The class of each module, by path.
    unit
        Noun for the boxes, in the plural.
    calls
        The boxes of the calls of fused functions, by the ids of the groups that these are.
    """
    left = _Left(boxes, expanded, kinds, unit, calls)
    frames = left.add(items)
    labels: dict[tuple[str, str], dict[str, None]] = {}
    number = {box.id: index for index, box in enumerate(boxes)}
    for flow in flows:
        source = left.boxes[left.of[number[flow.source]]].id
        target = left.boxes[left.of[number[flow.target]]].id
        if source != target:
            labels.setdefault((source, target), {})[flow.label] = None
    merged = tuple(
        Flow(source, target, next(iter(written)) if len(written) == 1 else f"{len(written)} values")
        for (source, target), written in labels.items()
    )
    of = tuple(left.of[index] for index in range(len(boxes)))
    return Collapsed(tuple(left.boxes), merged, frames, of)


@dataclass(slots=True)
class _Left:
    """Builder of the remaining boxes, in order."""

    whole: Sequence[BoxText]
    expanded: Set[str]
    kinds: Mapping[str, str]
    unit: str
    calls: Mapping[str, BoxText]
    boxes: list[BoxText] = field(default_factory=list)
    of: dict[int, int] = field(default_factory=dict)

    def add(self, items: Sequence[Item]) -> tuple[FrameItem, ...]:
        result: list[FrameItem] = []
        for item in items:
            if isinstance(item, int):
                self.of[item] = len(self.boxes)
                result.append(len(self.boxes))
                self.boxes.append(self.whole[item])
            elif isinstance(item, Block):
                result.append(Frame("", item.title, self.add(item.items)))
            elif item.id in self.expanded:
                title = _named(item.title, self._kind(item))
                result.append(Frame(item.id, title, self.add(item.items)))
            else:
                for box in item.boxes():
                    self.of[box] = len(self.boxes)
                result.append(len(self.boxes))
                self.boxes.append(self._group_box(item))
        return tuple(result)

    def _kind(self, group: Group) -> str:
        call = self.calls.get(group.id)
        # The calls, without the constants beside them.
        return self.kinds.get(group.path, "") if call is None else call.subtitle.split(" · ")[0]

    def _group_box(self, group: Group) -> BoxText:
        if group.id in self.calls:
            return self.calls[group.id]
        inside = list(self._inside(group))
        strategies = {box.strategy for box in inside} - {""}
        return BoxText(
            id=group.id,
            title=group.title,
            subtitle=_named(self.kinds.get(group.path, ""), f"{len(inside)} {self.unit}"),
            kind="group",
            operator=self.kinds.get(group.path, ""),
            strategy=strategies.pop() if len(strategies) == 1 else "",
            members=tuple(dict.fromkeys(each for box in inside for each in _held(box))),
        )

    def _inside(self, group: Group) -> Iterator[BoxText]:
        """Yield the contents of a module: the call of a fused function counts as one."""
        for item in group.items:
            if isinstance(item, int):
                yield self.whole[item]
            elif isinstance(item, Group):
                yield from (self.calls[item.id],) if item.id in self.calls else self._inside(item)


def _held(box: BoxText) -> tuple[str, ...]:
    return (*((box.id,) if box.origins is None else box.origins), *box.members)


def _named(one: str, two: str) -> str:
    return " · ".join(part for part in (one, two) if part)


# Which level fits

_READABLE = 0.5
"""The zoom below which the text in a box is illegible."""

_ROW = 80.0
_COLUMN = 180.0
_FRAME = 60.0


def level_that_fits(
    boxes: Sequence[BoxText],
    flows: Sequence[Flow],
    items: Sequence[Item],
    fits: tuple[float, float],
) -> frozenset[str]:
    """Return the ids of the groups to expand: all down to the depth at which all are legible.

    Parameters
    ----------
    fits
        Width and height, in pixels, of the view.
    """
    groups = list(groups_in(items))
    expanded: frozenset[str] = frozenset()
    for depth in range(max((group.depth for group in groups), default=-1) + 1):
        deeper = frozenset(group.id for group in groups if group.depth <= depth)
        left = collapse(boxes, flows, items, deeper, {})
        width, height = _rough_size(left, depth + 1)
        if width * _READABLE > fits[0] or height * _READABLE > fits[1]:
            break
        expanded = deeper
    return expanded


def _rough_size(left: Collapsed, frames: int) -> tuple[float, float]:
    """Return an estimate of the picture's width and height."""
    number = {box.id: index for index, box in enumerate(left.boxes)}
    row = [0] * len(left.boxes)
    targets: list[list[int]] = [[] for _ in left.boxes]
    for flow in left.flows:
        targets[number[flow.source]].append(number[flow.target])
    for source, below in enumerate(targets):
        for target in below:
            row[target] = max(row[target], row[source] + 1)
    in_row: dict[int, int] = {}
    for each in row:
        in_row[each] = in_row.get(each, 0) + 1
    rows, columns = len(in_row), max(in_row.values(), default=0)
    return columns * _COLUMN, rows * _ROW + frames * _FRAME

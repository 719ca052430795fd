"""The modules of a graph as groups of its boxes, which can be collapsed into one box each.

So can the contents of the call of a fused function, where that is expanded.

A group is a run of boxes, in the order of the graph, that come from one module. As the order is one
in which every box stands after those that it reads, a path that leaves a run never returns to it:
collapsed runs make no cycle, however they are nested. A module whose boxes have others between
them, such as one that is called twice, therefore has several groups.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias, TypeVar

import msgspec

from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import FITS, WHOLE, Box, Edge, GraphRecord, Port, Region


@dataclass(frozen=True, slots=True)
class Inside:
    """Content of an expanded box.

    `boxes`: in order; their ids are those of no other box of the graph.
    `flows`: Between them, and from boxes outside to them.
    `gives`: ids of the boxes that make the value of the box as a whole.
    """

    boxes: Sequence[Box]
    flows: Sequence[Edge]
    gives: Sequence[str]


@dataclass(frozen=True, slots=True)
class Spread:
    """A graph in which some boxes are replaced by their contents.

    `around`: for each box, the id of the one that it is inside of, or ``""``.
    """

    boxes: Sequence[Box]
    flows: Sequence[Edge]
    around: Sequence[str]


def spread(boxes: Sequence[Box], flows: Sequence[Edge], insides: Mapping[str, Inside]) -> Spread:
    """Replace boxes by their contents, by their ids."""
    left: list[Box] = []
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
        [Edge(each, flow.target, flow.label) for flow in whole for each in makers(flow.source)],
        around,
    )


@dataclass(frozen=True, slots=True)
class Group:
    """A module in a graph, or the call of a fused function.

    `id`: ``module:layer1``; where the module has several groups, the later ones end in ``#2``, ….
        Of a call, the id of its box.
    `title`: the path from its enclosing module, ``#2`` included; of a call, its name.
    `path`: dotted path of the module; of a call, its id.
    `depth`: number of enclosing groups.
    `items`: its contents, in order: numbers of boxes, and groups.
    `alike`: number of groups of one kind in it, where it is a series of such: see `in_series`.
    """

    id: str
    title: str
    path: str
    depth: int
    items: tuple[Item, ...]
    alike: int = 0

    def boxes(self) -> Iterator[int]:
        """Yield the numbers of all boxes in it, in order."""
        for item in self.items:
            if isinstance(item, int):
                yield item
            elif isinstance(item, Group):
                yield from item.boxes()


@dataclass(frozen=True, slots=True)
class Block:
    """A dataflow block, drawn as a frame that cannot be collapsed."""

    title: str
    items: tuple[Item, ...]


Item: TypeAlias = "int | Group | Block"


@dataclass(frozen=True, slots=True)
class Blocks:
    """Data-flow blocks of boxes, and their vertical order.

    `bands`: the band of each box; all of a band stands below those of lower ones.
    `titles`: of the bands that are dataflow blocks.
    """

    bands: Sequence[int]
    titles: Mapping[int, str]


@dataclass(slots=True)
class _Run:
    path: str
    items: list[int | _Run] = field(default_factory=list)
    # The box of the call that contains these.
    call: Box | None = None

    def put(self, box: int, call: Box | None) -> None:
        """Add a box, with its neighbours where it is inside of a call."""
        before = self.items[-1] if self.items else box
        if call is None:
            self.items.append(box)
        elif isinstance(before, _Run) and before.call is call:
            before.items.append(box)
        else:
            self.items.append(_Run(call.id, [box], call))


def hierarchy(
    paths: Sequence[str],
    blocks: Blocks | None = None,
    calls: Mapping[int, Box] = MappingProxyType({}),
) -> tuple[Item, ...]:
    """Return the boxes of a graph, and its outermost groups and blocks, in order.

    A module with a single box is not a group, and neither is one whose only item is another group.

    `paths`: the dotted path of the module of each box, in an order in which every box stands after
        those that it reads; empty for boxes outside of all modules.
    `blocks`: the vertical order of boxes; groups are then made within the blocks that have a title.
    `calls`: the box of the call that a box is inside of, by the number of the latter.
    """
    seen: dict[str, int] = {}
    if blocks is None:
        return _groups(_runs(range(len(paths)), paths, calls), 0, seen)
    inside: dict[int, list[int]] = {}
    starts: dict[str, int] = {}
    for box, band in enumerate(blocks.bands):
        around = calls.get(box)
        loose = -1 - box if around is None else ~starts.setdefault(around.id, box)
        inside.setdefault(band if band in blocks.titles else loose, []).append(box)
    result: list[Item] = []
    nowhere = [""] * len(paths)
    for band, boxes in inside.items():
        if band < 0:
            result.extend(_groups(_runs(boxes, nowhere, calls), 0, seen))
        else:
            items = _groups(_runs(boxes, paths, calls), 0, seen)
            result.append(Block(blocks.titles[band], items))
    return tuple(result)


def _runs(boxes: Iterable[int], paths: Sequence[str], calls: Mapping[int, Box]) -> list[int | _Run]:
    """Return boxes, and the runs of those that come from one module, in order."""
    root = _Run("")
    open_runs = [root]
    last = ""
    for box in boxes:
        if paths[box] == last:
            open_runs[-1].put(box, calls.get(box))
            continue
        last = paths[box]
        names = paths[box].split(".") if paths[box] else []
        prefixes = [".".join(names[: length + 1]) for length in range(len(names))]
        kept = 1
        while (
            kept < len(open_runs)
            and kept <= len(prefixes)
            and open_runs[kept].path == prefixes[kept - 1]
        ):
            kept += 1
        del open_runs[kept:]
        for prefix in prefixes[kept - 1 :]:
            run = _Run(prefix)
            open_runs[-1].items.append(run)
            open_runs.append(run)
        open_runs[-1].put(box, calls.get(box))
    return root.items


def _groups(
    items: Sequence[int | _Run], depth: int, seen: dict[str, int], around: str = ""
) -> tuple[Item, ...]:
    """Turn runs into groups, recursively, and omit groups that group nothing."""
    result: list[Item] = []
    for item in items:
        if isinstance(item, int):
            result.append(item)
            continue
        inside = item.items
        if item.call is not None:
            boxes = _groups(inside, depth + 1, seen)
            result.append(Group(item.call.id, item.call.title, item.call.id, depth, boxes))
            continue
        while len(inside) == 1:
            only = inside[0]
            if isinstance(only, int) or only.call is not None:
                break
            inside = only.items
        if len(inside) == 1:
            result.extend(_groups(inside, depth, seen, around))
            continue
        seen[item.path] = number = seen.get(item.path, 0) + 1
        mark = f"#{number}" if number > 1 else ""
        result.append(
            Group(
                id=f"module:{item.path}{mark}",
                title=item.path.removeprefix(around) + mark,
                path=item.path,
                depth=depth,
                items=_groups(inside, depth + 1, seen, f"{item.path}."),
            )
        )
    return tuple(result)


_LEAST_ALIKE = 3
"""Number of consecutive modules from which they are a series."""


def in_series(
    items: Sequence[Item], boxes: Sequence[Box], kinds: Mapping[str, str]
) -> tuple[Item, ...]:
    """Put consecutive modules that are alike, such as the layers of a transformer, into a group.

    They are children of one module, of one class, with the same operators, shapes and dtypes; the
    id of the group is ``module:layers#0-11``, or that of the module where these are all of it.
    """

    def form(item: Item) -> object:
        if isinstance(item, int):
            box = boxes[item]
            return box.kind, box.operator, box.strategy, box.shape, box.dtype
        kind = kinds.get(item.path, "") if isinstance(item, Group) else item.title
        return kind, tuple(map(form, item.items))

    def place(item: Item) -> object:
        """Return what the groups of a series have in common; ``None`` for what is in none."""
        parent, _sep, name = item.path.rpartition(".") if isinstance(item, Group) else ("", "", "")
        return (parent, form(item)) if name.isdecimal() else None

    result: list[Item] = []
    for common, run in itertools.groupby(items, place):
        inside = [_with_series(each, boxes, kinds) for each in run]
        groups = [each for each in inside if isinstance(each, Group)]
        if common is None or len(groups) < _LEAST_ALIKE:
            result += inside
            continue
        first, last = groups[0], groups[-1]
        ends = (each.path.rpartition(".")[2] for each in (first, last))
        path = first.path.rpartition(".")[0]
        title = f"{first.title} – {last.path.rpartition('.')[2]}"
        id = f"module:{path}#{'-'.join(ends)}"
        deeper = tuple(map(_deeper, groups))
        result.append(Group(id, title, path, first.depth, deeper, len(groups)))
    return tuple(result)


def _with_series(item: Item, boxes: Sequence[Box], kinds: Mapping[str, str]) -> Item:
    """Return an item with the series inside of it; one that is all of a module is that module."""
    if isinstance(item, int):
        return item
    items = in_series(item.items, boxes, kinds)
    only = items[0]
    if isinstance(item, Group) and len(items) == 1 and isinstance(only, Group) and only.alike:
        return replace(
            item, items=tuple(_deeper(each, -1) for each in only.items), alike=only.alike
        )
    return replace(item, items=items)


def _deeper(item: Item, by: int = 1) -> Item:
    if not isinstance(item, Group):
        return item
    return replace(
        item, depth=item.depth + by, items=tuple(_deeper(each, by) for each in item.items)
    )


def groups_in(items: Sequence[Item]) -> Iterator[Group]:
    """Yield all groups, outer ones before those inside of them."""
    for item in items:
        if isinstance(item, Group):
            yield item
        if not isinstance(item, int):
            yield from groups_in(item.items)


@dataclass(frozen=True, slots=True)
class Opening:
    """The expanded modules and fused functions: of the latter, none to fit a size.

    `expanded`: ids of groups; ``None`` for the level that fits.
    `fits`: width and height, in pixels, of the view.
    """

    expanded: tuple[str, ...] | None = None
    fits: tuple[float, float] = FITS

    @property
    def is_whole(self) -> bool:
        """Return whether everything is expanded, fused functions too."""
        return self.expanded is None and self.fits == WHOLE


FITTING = Opening()
"""The level that fits a pane in a new window."""


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules that the boxes of a graph come from.

    `paths`: the dotted path of each box's module, in the order of the boxes.
    `kinds`: the class of each module, by path.
    `calls`: the box of the call of a fused function that a box is inside of, by the number of the
        latter.
    """

    paths: Sequence[str]
    kinds: Mapping[str, str]
    opening: Opening
    unit: str = "nodes"
    calls: Mapping[int, Box] = field(default_factory=dict)


_LONG_DTYPE = re.compile(r"\b(float|int|uint|bfloat|complex)(\d+)\b")
_LETTERS = {"float": "f", "int": "i", "uint": "u", "bfloat": "bf", "complex": "c"}


def short_dtypes(text: str) -> str:
    """Return `text` with ``float32`` as ``f32``, ``int64`` as ``i64``, and so on."""
    return _LONG_DTYPE.sub(lambda match: _LETTERS[match[1]] + match[2], text)


def tensor_label(shape: Iterable[object] | None, dtype: str) -> str:
    """Return ``1×784 f32``, or ``1×784`` without a dtype; empty for scalars and non-tensors."""
    written = shape_text(shape, "")
    return f"{written} {short_dtypes(dtype)}".strip() if written else ""


T = TypeVar("T", Box, Region, Port)

_MARGIN = 24.0
"""Margin around the boxes of a part, for arrows and labels, in pixels."""


def openings_to(name: str) -> tuple[str, ...]:
    """Return the ids of the modules to expand to see one: itself and those around it."""
    parts = name.split(".")
    return tuple(f"module:{'.'.join(parts[: count + 1])}" for count in range(len(parts)))


def part_of(graph: GraphRecord, name: str) -> GraphRecord | None:
    """Return a part of a graph, with the places that its boxes have in the whole.

    `name`: of a module that is expanded, for its frame and what is inside; or of a node, for it and
        the nodes that give it values or take its own.
    """
    region = next((each for each in graph.regions if each.id == f"module:{name}"), None)
    if region is not None:
        inside = [each for each in graph.boxes if _is_in(each, region)]
        return _cut(graph, inside, region)
    ids = {name, f"fx:{name}", f"relax:main/{name}", f"module:{name}"}
    box = next((each for each in graph.boxes if each.id in ids), None)
    if box is None:
        return None
    ends = {end for edge in graph.edges for end in _ends(edge.source, edge.target, box.id)}
    for port in graph.ports:
        ends |= {end for other in port.others for end in _ends(port.box, other, box.id)}
    return _cut(graph, [each for each in graph.boxes if each is box or each.id in ends], None)


def _ends(one: str, other: str, middle: str) -> set[str]:
    return {one, other} if middle in (one, other) else set()


def _is_in(box: Box, region: Region) -> bool:
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return region.x <= x <= region.x + region.width and region.y <= y <= region.y + region.height


def _cut(graph: GraphRecord, boxes: list[Box], frame: Region | None) -> GraphRecord:
    kept = {each.id for each in boxes}
    shown: Iterable[Box | Region] = (*boxes, *([frame] if frame else []))
    places = [(each.x, each.y, each.x + each.width, each.y + each.height) for each in shown]
    left, top = min(each[0] for each in places), min(each[1] for each in places)
    right, bottom = max(each[2] for each in places), max(each[3] for each in places)
    x, y = left - _MARGIN, top - _MARGIN
    edges = (each for each in graph.edges if each.source in kept and each.target in kept)
    regions = (
        each
        for each in graph.regions
        if each is frame or (frame is not None and _holds(frame, each))
    )
    ports = (each for each in graph.ports if each.box in kept)
    return msgspec.structs.replace(
        graph,
        boxes=tuple(_moved(each, x, y) for each in boxes),
        edges=tuple(_moved_edge(each, x, y) for each in edges),
        regions=tuple(_moved(each, x, y) for each in regions),
        ports=tuple(_moved(each, x, y) for each in ports),
        width=right - left + 2 * _MARGIN,
        height=bottom - top + 2 * _MARGIN,
    )


def _holds(outer: Region, inner: Region) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def _moved(each: T, x: float, y: float) -> T:
    return msgspec.structs.replace(each, x=each.x - x, y=each.y - y)


def _moved_edge(edge: Edge, x: float, y: float) -> Edge:
    at = edge.label_at
    return msgspec.structs.replace(
        edge,
        points=tuple((right - x, below - y) for right, below in edge.points),
        label_at=None if at is None else (at[0] - x, at[1] - y),
    )

"""The modules of a graph as groups of its boxes, which can be collapsed into one box each.

A group is a run of boxes, in the order of the graph, that come from one module. As the order is
one in which every box stands after those that it reads, a way that leaves a run never comes back
to it: collapsed runs make no cycle, however they are nested. A module whose boxes have others
between them, such as one that is called twice, therefore has several groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lowerscope.core.graph_records import FITS


@dataclass(frozen=True, slots=True)
class Group:
    """A module in a graph.

    Attributes
    ----------
    id
        ``module:layer1``; where the module has several groups, the later ones end in ``#2``, ….
    path
        Dotted path of the module.
    depth
        How many groups it is inside of.
    items
        What is in it, in order: numbers of boxes, and groups.
    """

    id: str
    path: str
    depth: int
    items: tuple[Item, ...]

    @property
    def title(self) -> str:
        """The last part of the path, with the number of the group where there are several."""
        name = self.path.rpartition(".")[2]
        _, mark, number = self.id.partition("#")
        return f"{name}{mark}{number}"

    def boxes(self) -> Iterator[int]:
        """Yield the numbers of all boxes in it, in order."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.boxes()
            else:
                yield item


Item: TypeAlias = "int | Group"


@dataclass(slots=True)
class _Run:
    path: str
    first: int
    items: list[int | _Run] = field(default_factory=list)


def hierarchy(paths: Sequence[str]) -> tuple[Item, ...]:
    """Return the boxes of a graph, and its outermost groups, in order.

    A module with a single box is no group, and neither is one that another group is all of.

    Parameters
    ----------
    paths
        The dotted path of the module of each box, in an order in which every box stands after
        those that it reads; empty for boxes outside of all modules.
    """
    root = _Run("", 0)
    open_runs = [root]
    for box, path in enumerate(paths):
        names = path.split(".") if path else []
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
            run = _Run(prefix, box)
            open_runs[-1].items.append(run)
            open_runs.append(run)
        open_runs[-1].items.append(box)
    seen: dict[str, int] = {}
    return _groups(root.items, 0, seen)


def _groups(items: Sequence[int | _Run], depth: int, seen: dict[str, int]) -> tuple[Item, ...]:
    """Turn runs into groups, those within them after them, and leave out what groups nothing."""
    result: list[Item] = []
    for item in items:
        if isinstance(item, int):
            result.append(item)
            continue
        inside = item.items
        while len(inside) == 1:
            only = inside[0]
            if isinstance(only, int):
                break
            inside = only.items
        if len(inside) == 1:
            result.extend(_groups(inside, depth, seen))
            continue
        seen[item.path] = number = seen.get(item.path, 0) + 1
        entity = f"module:{item.path}" + (f"#{number}" if number > 1 else "")
        result.append(Group(entity, item.path, depth, _groups(inside, depth + 1, seen)))
    return tuple(result)


def groups_in(items: Sequence[Item]) -> Iterator[Group]:
    """Yield all groups, outer ones before those inside of them."""
    for item in items:
        if isinstance(item, Group):
            yield item
            yield from groups_in(item.items)


@dataclass(frozen=True, slots=True)
class Opening:
    """Which modules are looked into.

    Attributes
    ----------
    expanded
        Ids of groups; ``None`` for the level that fits.
    fits
        Width and height, in pixels, of what the picture is shown in.
    """

    expanded: tuple[str, ...] | None = None
    fits: tuple[float, float] = FITS


FITTING = Opening()
"""The level that fits a pane of the window as it opens."""


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules that the boxes of a graph come from.

    Attributes
    ----------
    paths
        The dotted path of each box's module, in the order of the boxes.
    kinds
        The class of each module, by path.
    opening
        Which are expanded.
    """

    paths: Sequence[str]
    kinds: Mapping[str, str]
    opening: Opening

"""How panes stand beside one another: a tree that is read off their places, and changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Way = Literal["left", "right", "up", "down"]

Rect = tuple[int, int, int, int]
"""Left, top, width and height."""

Size = tuple[int, int]

EDGE_SHARE = 0.3
"""Of the room, what a pane gets that goes to its edge, along all the others."""


@dataclass(frozen=True)
class Tabs:
    """Panes in one place, of which one is in front; mostly there is but one.

    Attributes
    ----------
    names
        Of the panes, in order.
    share
        Of the room of what it is a part of, in any unit.
    """

    names: tuple[str, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Split:
    """Parts side by side, or one above the other.

    Attributes
    ----------
    across
        Whether they stand side by side.
    parts
        From the left, or from the top.
    share
        As that of `Tabs`.
    """

    across: bool
    parts: tuple[Node, ...]
    share: float = 1.0


Node = Tabs | Split


def tree_of(places: Mapping[tuple[str, ...], Rect]) -> Node | None:
    """Return the tree of panes that stand in these places; ``None`` for no pane."""
    if not places:
        return None
    items = list(places.items())
    if len(items) == 1:
        return Tabs(items[0][0])
    for across in (True, False):
        groups = _groups(items, across)
        if len(groups) > 1:
            parts = []
            for group in groups:
                part = tree_of(dict(group))
                assert part is not None
                parts.append(replace(part, share=_extent(group, across)))
            return Split(across, tuple(parts))
    # No line parts them, which a window of docks does not do.
    return Split(True, tuple(Tabs(names, place[2]) for names, place in items))


def leaves(node: Node | None) -> Iterator[Tabs]:
    """Yield the places of a tree, from its beginning."""
    if isinstance(node, Tabs):
        yield node
    elif node is not None:
        for part in node.parts:
            yield from leaves(part)


def without(node: Node | None, name: str) -> Node | None:
    """Return a tree without a pane."""
    if node is None:
        return None
    if isinstance(node, Tabs):
        names = tuple(each for each in node.names if each != name)
        return replace(node, names=names) if names else None
    parts = [left for part in node.parts if (left := without(part, name)) is not None]
    return _split(node.across, parts, node.share)


def beside(node: Node, mate: str, name: str, way: Way, share: float | None = None) -> Node:
    """Return a tree with one more pane, next to another one.

    Parameters
    ----------
    share
        What the pane had in the same row or column before; otherwise it gets half of the other's.
    """
    across, before = way in ("left", "right"), way in ("left", "up")

    def added(place: Tabs, own: float, other: float) -> list[Node]:
        pair: list[Node] = [Tabs((name,), own), replace(place, share=other)]
        return pair if before else pair[::-1]

    if isinstance(node, Tabs):
        if mate not in node.names:
            return node
        return _split(across, added(node, 1.0, 1.0), node.share) or node
    parts: list[Node] = []
    for part in node.parts:
        if isinstance(part, Tabs) and mate in part.names and node.across == across:
            half = part.share / 2
            parts += added(part, *((half, half) if share is None else (share, part.share)))
        else:
            parts.append(beside(part, mate, name, way))
    return _split(node.across, parts, node.share) or node


def at_edge(node: Node | None, name: str, way: Way) -> Node:
    """Return a tree with one more pane, along an edge of all the others."""
    if node is None:
        return Tabs((name,))
    across, before = way in ("left", "right"), way in ("left", "up")
    if isinstance(node, Split) and node.across == across:
        room = sum(part.share for part in node.parts)
        others: list[Node] = list(node.parts)
    else:
        room, others = 1.0, [replace(node, share=1.0)]
    own = Tabs((name,), room * EDGE_SHARE / (1 - EDGE_SHARE))
    return _split(across, [own, *others] if before else [*others, own], 1.0) or own


def siblings_share(node: Node | None, name: str, mate: str, across: bool) -> float | None:
    """Return a pane's share if it stands alone in the row, or column, that another one is in."""
    if not isinstance(node, Split):
        return None
    alone = {part.names: part.share for part in node.parts if isinstance(part, Tabs)}
    if node.across == across and (name,) in alone and any(mate in names for names in alone):
        return alone[(name,)]
    shares = (siblings_share(part, name, mate, across) for part in node.parts)
    return next((share for share in shares if share is not None), None)


def is_at_edge(node: Node | None, name: str, way: Way) -> bool:
    """Return whether a pane has an edge of a tree for itself."""
    if not isinstance(node, Split):
        return isinstance(node, Tabs) and node.names == (name,)
    first = node.parts[0 if way in ("left", "up") else -1]
    across = way in ("left", "right")
    return node.across == across and isinstance(first, Tabs) and first.names == (name,)


def sizes(node: Node | None, room: Size) -> dict[str, Size]:
    """Return how large each pane of a tree is in so much room."""
    if node is None:
        return {}
    if isinstance(node, Tabs):
        return dict.fromkeys(node.names, room)
    whole = sum(part.share for part in node.parts)
    found: dict[str, Size] = {}
    for part in node.parts:
        own = part.share / whole
        width, height = room
        inside = (round(width * own), height) if node.across else (width, round(height * own))
        found |= sizes(part, inside)
    return found


def neighbour(places: Mapping[str, Rect], name: str, way: Way) -> str | None:
    """Return the pane that stands next to another one, on this side; the one along most of it."""
    here, found = places[name], []
    for other, place in places.items():
        gap = _gap(here, place, way)
        along = _along(here, place, way)
        if other != name and gap >= 0 and along > 0:
            found.append((gap, -along, other))
    return min(found)[2] if found else None


def _gap(here: Rect, place: Rect, way: Way) -> int:
    left, top, width, height = here
    return {
        "left": left - (place[0] + place[2]),
        "right": place[0] - (left + width),
        "up": top - (place[1] + place[3]),
        "down": place[1] - (top + height),
    }[way]


def _along(here: Rect, place: Rect, way: Way) -> int:
    axis = 1 if way in ("left", "right") else 0
    ends = (here[axis] + here[axis + 2], place[axis] + place[axis + 2])
    return min(ends) - max(here[axis], place[axis])


def _split(across: bool, parts: Sequence[Node], share: float) -> Node | None:
    """Return the parts as one: what is split the same way lies in the same row or column."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Split) and part.across == across:
            whole = sum(each.share for each in part.parts)
            flat += [replace(each, share=part.share * each.share / whole) for each in part.parts]
        else:
            flat.append(part)
    if len(flat) > 1:
        return Split(across, tuple(flat), share)
    return replace(flat[0], share=share) if flat else None


def _groups(
    items: Sequence[tuple[tuple[str, ...], Rect]], across: bool
) -> list[list[tuple[tuple[str, ...], Rect]]]:
    axis = 0 if across else 1
    groups: list[list[tuple[tuple[str, ...], Rect]]] = []
    end = 0
    for item in sorted(items, key=lambda item: item[1][axis]):
        start, length = item[1][axis], item[1][axis + 2]
        if groups and start < end:
            groups[-1].append(item)
        else:
            groups.append([item])
        end = max(end, start + length)
    return groups


def _extent(group: Sequence[tuple[tuple[str, ...], Rect]], across: bool) -> float:
    axis = 0 if across else 1
    starts = [place[axis] for _, place in group]
    ends = [place[axis] + place[axis + 2] for _, place in group]
    return float(max(ends) - min(starts))

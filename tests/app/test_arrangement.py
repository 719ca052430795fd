"""How panes stand beside one another: read off their places, moved, and given room."""

from __future__ import annotations

from random import Random

from lowerscope.app import arrangement
from lowerscope.app.arrangement import Node, Rect, Split, Tabs, Way

WAYS: tuple[Way, ...] = ("left", "right", "up", "down")
ROOM = (1600, 1200)


def places_of(node: Node, left: int = 0, top: int = 0, room: tuple[int, int] = ROOM) -> list[Rect]:
    """Lay a tree out by hand; shares of the parts are such that nothing is rounded."""
    if isinstance(node, Tabs):
        return [(left, top, *room)]
    whole, found = sum(part.share for part in node.parts), []
    for part in node.parts:
        length = round(room[0 if node.across else 1] * part.share / whole)
        inside = (length, room[1]) if node.across else (room[0], length)
        found += places_of(part, left, top, inside)
        left, top = (left + length, top) if node.across else (left, top + length)
    return found


def by_name(node: Node) -> dict[tuple[str, ...], Rect]:
    names = [tabs.names for tabs in arrangement.leaves(node)]
    return dict(zip(names, places_of(node), strict=True))


ROW = Split(True, (Tabs(("a",)), Tabs(("b", "c")), Tabs(("d",), 2.0)))


def test_a_tree_is_read_off_the_places_that_it_gives() -> None:
    for tree in (Tabs(("a",)), ROW, Split(False, ROW.parts)):
        places = by_name(tree)
        read = arrangement.tree_of(places)
        assert read is not None
        assert by_name(read) == places
        sizes = arrangement.sizes(read, ROOM)
        assert all(sizes[names[0]] == place[2:] for names, place in places.items())
    assert arrangement.tree_of({}) is None


def test_a_pane_goes_beside_another_and_the_others_keep_their_order() -> None:
    assert arrangement.without(ROW, "d") == Split(True, ROW.parts[:2])
    beside = arrangement.beside(ROW, "d", "e", "up")
    assert isinstance(beside, Split)
    assert beside.parts[:2] == ROW.parts[:2]
    assert beside.parts[2] == Split(False, (Tabs(("e",)), Tabs(("d",))), 2.0)
    moved = arrangement.beside(ROW, "c", "e", "right")
    assert [tabs.names for tabs in arrangement.leaves(moved)] == [
        ("a",),
        ("b", "c"),
        ("e",),
        ("d",),
    ]
    below = arrangement.at_edge(ROW, "e", "down")
    assert arrangement.is_at_edge(below, "e", "down")
    assert not arrangement.is_at_edge(below, "e", "left")
    place = by_name(below)[("e",)]
    assert place[2] == ROOM[0]
    assert place[1] + place[3] == ROOM[1]


def test_panes_moved_at_random_are_all_there_and_fill_the_room() -> None:
    random = Random(8)
    tree: Node = ROW
    names = ("a", "b", "c", "d")
    for _ in range(200):
        name, way = random.choice(names), random.choice(WAYS)
        rest = arrangement.without(tree, name)
        assert rest is not None
        mate = random.choice([tabs.names[0] for tabs in arrangement.leaves(rest)])
        tree = random.choice(
            (
                arrangement.beside(rest, mate, name, way),
                arrangement.at_edge(rest, name, way),
            )
        )
        there = [each for tabs in arrangement.leaves(tree) for each in tabs.names]
        assert sorted(there) == list(names)
        sizes = arrangement.sizes(tree, ROOM)
        area = sum(
            sizes[tabs.names[0]][0] * sizes[tabs.names[0]][1] for tabs in arrangement.leaves(tree)
        )
        assert abs(area - ROOM[0] * ROOM[1]) < ROOM[0] * 20


def test_the_neighbour_is_the_one_along_most_of_the_side() -> None:
    places: dict[str, Rect] = {
        "a": (0, 0, 100, 300),
        "b": (101, 0, 100, 100),
        "c": (101, 101, 100, 199),
        "far": (300, 0, 100, 300),
    }
    assert arrangement.neighbour(places, "a", "right") == "c"
    assert arrangement.neighbour(places, "c", "up") == "b"
    assert arrangement.neighbour(places, "b", "left") == "a"
    assert arrangement.neighbour(places, "a", "left") is None

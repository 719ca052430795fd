"""Modules as groups: collapsed into one box, or expanded into a frame of their own."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.model.graph import DEFAULT, TITLE_BAR, Box, Edge, GraphRecord
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import (
    Group,
    Modules,
    Opening,
    groups_in,
    hierarchy,
)

Model = tuple[list[str], list[tuple[int, int]], frozenset[str]]
"""The path of each box's module, edges, and what is expanded."""


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Graphs of modules in modules, of which some are expanded and some are called twice."""
    names = st.lists(st.sampled_from("abc"), max_size=3)
    paths: list[str] = []
    for run in draw(st.lists(names, min_size=1, max_size=10)):
        paths += [".".join(run)] * draw(st.integers(1, 4))
    ends = st.tuples(st.integers(0, len(paths) - 1), st.integers(0, len(paths) - 1))
    pairs = draw(st.lists(ends, max_size=2 * len(paths)))
    edges = [(min(pair), max(pair)) for pair in dict.fromkeys(pairs) if pair[0] != pair[1]]
    known = [group.id for group in groups_in(hierarchy(paths))]
    expanded = draw(st.sets(st.sampled_from(known))) if known else set()
    return paths, edges, frozenset(expanded)


def drawn(paths: list[str], edges: list[tuple[int, int]], expanded: frozenset[str]) -> GraphRecord:
    boxes = [Box(f"n{i}", f"n{i}", "call", operator="x" * (i % 40)) for i in range(len(paths))]
    flows = [Edge(f"n{source}", f"n{target}", "1×64") for source, target in edges]
    modules = Modules(paths, {}, Opening(tuple(sorted(expanded))))
    return graph_record(boxes, flows, DEFAULT, lambda: None, modules=modules)


def rectangle(thing: object) -> tuple[float, float, float, float]:
    return (thing.x, thing.y, thing.x + thing.width, thing.y + thing.height)  # type: ignore[attr-defined]


def apart(one: object, two: object) -> bool:
    left, top, right, bottom = rectangle(one)
    x0, y0, x1, y1 = rectangle(two)
    return right <= x0 + 1e-6 or x1 <= left + 1e-6 or bottom <= y0 + 1e-6 or y1 <= top + 1e-6


def inside(one: object, two: object) -> bool:
    left, top, right, bottom = rectangle(one)
    x0, y0, x1, y1 = rectangle(two)
    return x0 <= left and y0 <= top and right <= x1 and bottom <= y1


def members(record: GraphRecord, paths: list[str]) -> dict[str, set[str]]:
    """Return the boxes that belong into each region, by its id."""
    groups = {group.id: {f"n{box}" for box in group.boxes()} for group in all_groups(paths)}
    return {
        region.id: {
            box.id for box in record.boxes if (set(box.members) or {box.id}) <= groups[region.id]
        }
        for region in record.regions
    }


def all_groups(paths: list[str]) -> list[Group]:
    return list(groups_in(hierarchy(paths)))


def through(points: tuple[tuple[float, float], ...], thing: object) -> bool:
    """Return whether a line runs through a box: its segments, clipped to it."""
    left, top, right, bottom = rectangle(thing)
    for (x0, y0), (x1, y1) in pairwise(points):
        begin, end = 0.0, 1.0
        for start, delta, low, high in (
            (x0, x1 - x0, left + 1e-3, right - 1e-3),
            (y0, y1 - y0, top + 1e-3, bottom - 1e-3),
        ):
            if delta == 0:
                end = end if low < start < high else -1.0
                continue
            near, far = sorted(((low - start) / delta, (high - start) / delta))
            begin, end = max(begin, near), min(end, far)
        if begin < end:
            return True
    return False


@given(models())
def test_nothing_overlaps_and_frames_hold_their_own_boxes(model: Model) -> None:
    record = drawn(*model)
    for one, two in combinations(record.boxes, 2):
        assert apart(one, two)
    belongs = members(record, model[0])
    for region in record.regions:
        assert belongs[region.id]
        for box in record.boxes:
            if box.id in belongs[region.id]:
                assert inside(box, region)
                assert box.y >= region.y + TITLE_BAR
            else:
                assert apart(box, region)
    for first, second in combinations(record.regions, 2):
        assert apart(first, second) or inside(second, first)
    whole = GraphRecord(boxes=(), edges=(), width=record.width, height=record.height)
    for thing in (*record.boxes, *record.regions):
        assert thing.x >= 0
        assert thing.x + thing.width <= whole.width
        assert thing.y + thing.height <= whole.height


@given(models())
def test_edges_lead_from_box_to_box_and_beside_the_others(model: Model) -> None:
    record = drawn(*model)
    boxes = {box.id: box for box in record.boxes}
    belongs = members(record, model[0])
    for edge in record.edges:
        source, target = boxes[edge.source], boxes[edge.target]
        (x0, y0), (x1, y1) = edge.points[0], edge.points[-1]
        assert (round(x0, 3), round(y0, 3)) == (
            round(source.x + source.width / 2, 3),
            round(source.y + source.height, 3),
        )
        assert target.x <= x1 <= target.x + target.width
        assert abs(y1 - target.y) < 1e-3
        assert all(one[1] <= two[1] + 1e-6 for one, two in pairwise(edge.points))
        for box in record.boxes:
            assert not through(edge.points, box)
        for region in record.regions:
            if not {edge.source, edge.target} & belongs[region.id]:
                assert not through(edge.points, region)


def titles(items: object) -> list[object]:
    return [
        item if isinstance(item, int) else (item.title, titles(item.items))
        for item in items  # type: ignore[attr-defined]
    ]


def test_groups_are_runs_of_boxes_of_one_module() -> None:
    paths = ["", "stem", "layer.0", "layer.0", "layer.1", "layer.1.down", "layer.1", ""]
    first, second, layer, last = hierarchy(paths)
    assert (first, second, last) == (0, 1, 7)
    assert isinstance(layer, Group)
    assert [group.id for group in groups_in((layer,))] == [
        "module:layer",
        "module:layer.0",
        "module:layer.1",
    ]
    assert titles((layer,)) == [("layer", [("0", [2, 3]), ("1", [4, 5, 6])])]

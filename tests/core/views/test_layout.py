"""Properties of every layout: nothing overlaps, edges run down and beside the boxes."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.model.problems import Cancelled
from lowerscope.core.views.graph.layout.layout import EdgePath, Layout, layout
from lowerscope.core.views.graph.layout.route import NodeSize

Edges = list[tuple[str, str, float]]
Rectangle = tuple[float, float, float, float]

LABEL_HEIGHT = 14.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[NodeSize], Edges]:
    """Directed graphs without cycles; edges may be long, and there may be several parts."""
    count = draw(st.integers(1, 24))
    widths = st.integers(20, 220)
    heights = st.sampled_from([24, 36, 60])
    nodes = [NodeSize(f"n{i}", draw(widths), draw(heights)) for i in range(count)]
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs = draw(st.lists(ends, max_size=2 * count))
    label = st.sampled_from([0.0, 30.0, 90.0])
    edges = [(f"n{min(p)}", f"n{max(p)}", draw(label)) for p in pairs if p[0] != p[1]]
    return nodes, edges


def rectangles(nodes: list[NodeSize], result: Layout) -> dict[str, Rectangle]:
    return {node.id: (*result.corners[node.id], node.width, node.height) for node in nodes}


def overlap(one: Rectangle, two: Rectangle) -> bool:
    return (
        one[0] < two[0] + two[2] - 1e-6
        and two[0] < one[0] + one[2] - 1e-6
        and one[1] < two[1] + two[3] - 1e-6
        and two[1] < one[1] + one[3] - 1e-6
    )


def meets(path: EdgePath, box: Rectangle) -> bool:
    """Return whether an edge runs through a box, by clipping each segment to it."""
    left, top = box[0] + 1e-3, box[1] + 1e-3
    right, bottom = box[0] + box[2] - 1e-3, box[1] + box[3] - 1e-3
    for (x0, y0), (x1, y1) in pairwise(path.points):
        begin, end = 0.0, 1.0
        inside = True
        for start, delta, low, high in ((x0, x1 - x0, left, right), (y0, y1 - y0, top, bottom)):
            if delta == 0:
                inside = inside and low < start < high
                continue
            near, far = sorted(((low - start) / delta, (high - start) / delta))
            begin, end = max(begin, near), min(end, far)
        if inside and begin < end:
            return True
    return False


def labels(edges: Edges, result: Layout) -> dict[int, Rectangle]:
    return {
        index: (
            path.label_at[0],
            path.label_at[1] - LABEL_HEIGHT / 2,
            edges[index][2],
            LABEL_HEIGHT,
        )
        for index, path in enumerate(result.edges)
        if path.label_at is not None
    }


def crossings(edges: Edges, result: Layout) -> int:
    """Count the places where edges of different sources cross; meeting in a box is none."""

    def side(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    segments = {
        (edges[index][0], segment)
        for index, path in enumerate(result.edges)
        for segment in pairwise(path.points)
    }
    return sum(
        side(*p, q[0]) * side(*p, q[1]) < 0 and side(*q, p[0]) * side(*q, p[1]) < 0
        for (one, p), (two, q) in combinations(sorted(segments), 2)
        if one != two
    )


@given(graphs())
def test_boxes_and_labels_never_overlap(graph: tuple[list[NodeSize], Edges]) -> None:
    nodes, edges = graph
    result = layout(nodes, edges)
    boxes = rectangles(nodes, result)
    placed = labels(edges, result)
    for one, two in combinations([*boxes.values(), *placed.values()], 2):
        assert not overlap(one, two)
    for x, y, width, height in (*boxes.values(), *placed.values()):
        assert 0 <= x <= x + width <= result.width
        assert 0 <= y <= y + height <= result.height


@given(graphs())
def test_edges_run_down_and_beside_the_boxes(graph: tuple[list[NodeSize], Edges]) -> None:
    nodes, edges = graph
    result = layout(nodes, edges)
    boxes = rectangles(nodes, result)
    for (source, target, _), path in zip(edges, result.edges, strict=True):
        (x0, y0), (x1, y1) = path.points[0], path.points[-1]
        left, top, width, height = boxes[source]
        assert (x0, y0) == pytest.approx((left + width / 2, top + height))
        left, top, width, height = boxes[target]
        assert left <= x1 <= left + width
        assert y1 == pytest.approx(top)
        assert all(one[1] <= two[1] for one, two in pairwise(path.points))
        for box in boxes.values():
            assert not meets(path, box)


def boxes_of(*names: str) -> list[NodeSize]:
    return [NodeSize(name, 120, 36) for name in names]


def path_of(*names: str) -> Edges:
    return [(one, two, 40.0) for one, two in pairwise(names)]


def residual(blocks: int) -> tuple[list[str], Edges]:
    names, edges, last = ["x"], [], "x"
    for block in range(blocks):
        inner = [f"{name}{block}" for name in ("conv", "norm", "relu", "second", "add", "out")]
        edges += [*path_of(last, *inner), (last, f"add{block}", 40.0)]
        names += inner
        last = inner[-1]
    return names, edges


def test_attention_has_few_crossings() -> None:
    edges = [
        *path_of("x", "norm", "q", "heads_q", "matmul", "scale", "mask", "softmax", "mix"),
        *path_of("norm", "k", "heads_k", "turn", "matmul"),
        *path_of("norm", "v", "heads_v", "mix", "merge", "project", "add", "out"),
        ("x", "add", 40.0),
        ("given", "mask", 40.0),
    ]
    names = dict.fromkeys(name for source, target, _ in edges for name in (source, target))
    result = layout(boxes_of(*names), edges)
    assert crossings(edges, result) <= 2
    rows = {name: corner[1] for name, corner in result.corners.items()}
    assert rows["q"] == rows["k"] == rows["v"]
    # A second input stands where it is used.
    assert rows["scale"] == rows["given"]


def test_layout_can_be_given_up() -> None:
    names, edges = residual(30)
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 100:
            raise Cancelled

    with pytest.raises(Cancelled):
        layout(boxes_of(*names), edges, check)
    assert calls == 100

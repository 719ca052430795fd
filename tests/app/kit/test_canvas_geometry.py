"""Places in a graph, and the parts of it that are seen: without a widget."""

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF, QRectF, QSizeF
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_geometry import EdgePaths, GraphIndex, line_path
from lowerscope.app.kit.canvas.viewport import CanvasView
from lowerscope.core.model.graph import Box, Edge, GraphRecord


def node(name: str, x: float, y: float) -> Box:
    return Box(name, name, "call", "", x, y, 100, 36)


DIAMOND = GraphRecord(
    boxes=(node("a", 100, 0), node("b", 0, 100), node("c", 200, 100.4), node("d", 100, 200)),
    edges=(
        Edge("a", "b", "1×8", ((150, 36), (50, 100))),
        Edge("a", "c", "1×8", ((150, 36), (250, 100))),
        Edge("b", "d", "1×4", ((50, 136), (150, 200))),
        Edge("c", "d", "", ((250, 136), (250, 170), (150, 170), (150, 200))),
    ),
    width=300,
    height=240,
)


def test_neighbours_along_edges_and_in_layers() -> None:
    index = GraphIndex(DIAMOND)
    assert index.top() == "a"
    assert index.successors("a") == ["b", "c"]
    assert index.predecessors("d") == ["b", "c"]
    assert index.sibling("b", 1) == "c"
    assert index.sibling("c", -1) == "b"
    assert index.sibling("c", 1) == ""
    assert index.successors("d") == index.predecessors("a") == []
    assert index.bottom() == "d"


def test_nodes_at_places_and_in_areas() -> None:
    index = GraphIndex(DIAMOND)
    assert index.at(QPointF(110, 10)) == "a"
    assert index.at(QPointF(10, 10)) == ""
    assert set(index.inside(QRectF(0, 90, 400, 60))) == {"b", "c"}
    assert len(index.inside(QRectF(-1e6, -1e6, 2e6, 2e6))) == 4


def test_edges_end_at_the_arrows_and_meet_their_points(qtbot: QtBot) -> None:
    for edge in DIAMOND.edges:
        path = line_path(edge.points)
        assert path.pointAtPercent(0) == QPointF(*edge.points[0])
        end = path.pointAtPercent(1)
        assert end.x() == edge.points[-1][0]
        assert 0 < edge.points[-1][1] - end.y() < 8


def test_labels_are_said_once_for_a_value_and_meet_nothing(qtbot: QtBot) -> None:
    index = GraphIndex(DIAMOND)
    paths = EdgePaths(index)
    everywhere = QRectF(-100, -100, 1000, 1000)
    labels = [one for bunch in paths.inside(everywhere) for one in paths.labels(bunch, everywhere)]
    assert sorted(text for text, _ in labels) == ["1×4", "1×8"]
    for i, (_, place) in enumerate(labels):
        assert not index.inside(place)
        assert not any(place.intersects(other) for _, other in labels[i + 1 :])


def test_a_label_stands_where_it_was_said(qtbot: QtBot) -> None:
    graph = GraphRecord(
        boxes=(node("a", 0, 0), node("b", 0, 100)),
        edges=(Edge("a", "b", "1×8", ((50, 36), (50, 100)), (57, 68)),),
        width=100,
        height=140,
    )
    paths = EdgePaths(GraphIndex(graph))
    area = QRectF(0, 0, 200, 200)
    ((_, place),) = paths.labels(paths.inside(area)[0], area)
    assert place.left() == 55
    assert place.center().y() == 68


def view_of(width: float, height: float, graph: QRectF) -> CanvasView:
    view = CanvasView()
    view.resize(QSizeF(width, height))
    view.set_bounds(graph)
    view.go_home(graph.center().x())
    return view


@given(st.lists(st.tuples(st.floats(-9000, 9000), st.floats(-9000, 9000)), max_size=5))
def test_some_of_the_graph_stays_in_view(moves: list[tuple[float, float]]) -> None:
    graph = QRectF(0, 0, 300, 900)
    view = view_of(400, 300, graph)
    for x, y in moves:
        view.move_by(QPointF(x, y))
        assert view.to_viewport(graph).intersects(QRectF(0, 0, 400, 300))

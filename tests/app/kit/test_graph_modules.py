"""Groups, frames and ports of a graph, by mouse and by keyboard."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.canvas.graph_geometry import chevron, title_bar
from lowerscope.core.model.graph import Box, Edge, GraphRecord, Port, Region
from tests.app.kit.pointing import middle, shown_canvas

NONE = Qt.KeyboardModifier.NoModifier
LEFT = Qt.MouseButton.LeftButton
GROUP = "module:layer1"


def node(name: str, y: float, role: str = "call", x: float = 60) -> Box:
    members = ("layer1_conv", "layer1_relu") if role == "group" else ()
    group = GROUP if name in ("conv", "relu") else ""
    return Box(name, name, role, "te", x, y, 180, 50, "Conv2d", members=members, group=group)


def edge(source: str, target: str, y: float) -> Edge:
    return Edge(source, target, "1×8", ((150, y), (150, y + 44)))


COLLAPSED = GraphRecord(
    boxes=(node("x", 24), node(GROUP, 104, "group"), node("out", 184)),
    edges=(edge("x", GROUP, 60), edge(GROUP, "out", 140)),
    width=300,
    height=250,
)
EXPANDED = GraphRecord(
    boxes=(node("x", 24), node("conv", 144), node("relu", 224), node("out", 324)),
    edges=(edge("x", "conv", 60), edge("conv", "relu", 180), edge("relu", "out", 260)),
    width=300,
    height=390,
    regions=(Region("layer1", 48, 112, 204, 160, GROUP),),
)


@pytest.fixture
def canvas(qtbot: QtBot) -> GraphCanvas:
    return shown_canvas(qtbot, COLLAPSED, 420, 460)


def chevron_of(canvas: GraphCanvas, name: str) -> QPoint:
    place = canvas.node_rect(name)
    return chevron(title_bar(place) if canvas.is_frame(name) else place).center().toPoint()


def double_click(canvas: GraphCanvas, place: QPoint) -> None:
    QTest.mouseClick(canvas.viewport(), LEFT, NONE, place)
    QTest.mouseDClick(canvas.viewport(), LEFT, NONE, place)
    QTest.mouseRelease(canvas.viewport(), LEFT, NONE, place)


def test_a_click_on_the_chevron_expands_and_collapses(qtbot: QtBot, canvas: GraphCanvas) -> None:
    with (
        qtbot.waitSignal(canvas.expand_wanted) as heard,
        qtbot.assertNotEmitted(canvas.node_clicked),
    ):
        qtbot.mouseClick(canvas.viewport(), LEFT, NONE, chevron_of(canvas, GROUP))
    assert heard.args == [GROUP]
    canvas.set_graph(EXPANDED, keep_view=True, anchor=GROUP)
    with qtbot.waitSignal(canvas.collapse_wanted) as heard:
        qtbot.mouseClick(canvas.viewport(), LEFT, NONE, chevron_of(canvas, GROUP))
    assert heard.args == [GROUP]


def test_a_double_click_expands_and_collapses(qtbot: QtBot, canvas: GraphCanvas) -> None:
    with qtbot.waitSignal(canvas.expand_wanted):
        double_click(canvas, middle(canvas, GROUP))
    canvas.set_graph(EXPANDED, keep_view=True, anchor=GROUP)
    bar = title_bar(canvas.node_rect(GROUP)).center().toPoint()
    with qtbot.waitSignal(canvas.collapse_wanted):
        double_click(canvas, bar)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Plus])
def test_keys_expand_where_the_keyboard_is(qtbot: QtBot, canvas: GraphCanvas, key: Qt.Key) -> None:
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    before = canvas.zoom()
    with qtbot.waitSignal(canvas.expand_wanted) as heard:
        qtbot.keyClick(canvas, key)
    assert heard.args == [GROUP]
    assert canvas.zoom() == before
    with qtbot.assertNotEmitted(canvas.expand_wanted):
        qtbot.keyClick(canvas, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert canvas.zoom() > before


def test_a_large_graph_is_there_at_once(qtbot: QtBot, canvas: GraphCanvas) -> None:
    many = tuple(node(f"n{i}", 24 + 60 * i) for i in range(2100))
    canvas.set_graph(GraphRecord(many, (), 300, 130_000))
    canvas.set_graph(GraphRecord(many[:2050], (), 300, 126_000), keep_view=True)
    assert not canvas.is_moving()


def with_ports() -> GraphRecord:
    """A source whose value is read far below, twice."""
    names = ("mask", "a", "b", "c")
    ports = [Port("mask", ("b", "c"), "mask", "out", 120, 64, 60, 16)]
    for name, y in (("b", 184), ("c", 264)):
        ports.append(Port(name, ("mask",), "mask", "in", 120, y - 20, 60, 16))
    return GraphRecord(
        boxes=tuple(node(name, 24 + 80 * i) for i, name in enumerate(names)),
        edges=(),
        width=300,
        height=330,
        ports=tuple(ports),
    )


def test_a_port_leads_to_its_other_ends(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.set_graph(with_ports())
    for place, ends in (
        (QRectF(120, 64, 60, 16), ("b", "c")),
        (QRectF(120, 164, 60, 16), ("mask",)),
    ):
        at = canvas.view.to_viewport(place).center().toPoint()
        with qtbot.waitSignal(canvas.ends_wanted) as heard:
            qtbot.mouseClick(canvas.viewport(), LEFT, NONE, at)
        assert heard.args == [ends]


def test_the_keyboard_walks_through_ports(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.set_graph(with_ports())
    heard: list[str] = []
    canvas.node_clicked.connect(lambda name, _modifiers: heard.append(name))
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_End):
        qtbot.keyClick(canvas, key)
    assert heard == ["mask", "b", "mask", "c"]


def test_up_leads_back_the_way_that_one_came(qtbot: QtBot, canvas: GraphCanvas) -> None:
    graph = GraphRecord(
        boxes=(node("l", 24, x=20), node("r", 24, x=220), node("sum", 104)),
        edges=(edge("l", "sum", 60), edge("r", "sum", 60)),
        width=420,
        height=180,
    )
    canvas.set_graph(graph)
    heard: list[str] = []
    canvas.node_clicked.connect(lambda name, _modifiers: heard.append(name))
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Up):
        qtbot.keyClick(canvas, key)
    assert heard == ["l", "r", "sum", "r"]


def test_a_group_in_a_graph_that_is_replaced_keeps_its_selection(canvas: GraphCanvas) -> None:
    canvas.set_selection({GROUP, "x"})
    canvas.set_graph(replace(COLLAPSED, height=260), keep_view=True)
    assert canvas.selection() == {GROUP, "x"}
    canvas.set_graph(EXPANDED, keep_view=True, anchor=GROUP)
    assert canvas.selection() == {"x"}

"""The graph canvas as it is used: by mouse and by keyboard."""

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.core.model.graph import Box, Edge, GraphRecord
from tests.app.kit.pointing import middle, shown_canvas, turn_wheel

NONE = Qt.KeyboardModifier.NoModifier
CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


def chain(count: int) -> GraphRecord:
    """Nodes below one another, and one more beside the second."""
    nodes = [
        Box(f"n{i}", f"node{i}", "call", "te", 24, 24 + 80 * i, 180, 50, "ReLU")
        for i in range(count)
    ]
    nodes.append(Box("side", "side", "constant", "", 240, 104, 120, 50))
    edges = [
        Edge(f"n{i}", f"n{i + 1}", "1×8", ((114, 60 + 80 * i), (114, 104 + 80 * i)))
        for i in range(count - 1)
    ]
    edges.append(Edge("n0", "side", "1×8", ((114, 60), (300, 104))))
    return GraphRecord(tuple(nodes), tuple(edges), 384, 80 * count + 24)


@pytest.fixture
def canvas(qtbot: QtBot) -> GraphCanvas:
    return shown_canvas(qtbot, chain(20), 420, 300)


def test_click_on_a_node_and_on_the_ground(qtbot: QtBot, canvas: GraphCanvas) -> None:
    with qtbot.waitSignal(canvas.node_clicked) as heard:
        qtbot.mouseClick(canvas.viewport(), LEFT, CONTROL, middle(canvas, "n1"))
    assert heard.args == ["n1", CONTROL]
    with qtbot.waitSignal(canvas.background_clicked):
        qtbot.mouseClick(canvas.viewport(), LEFT, NONE, QPoint(4, 4))


def test_keyboard_walks_along_edges(qtbot: QtBot, canvas: GraphCanvas) -> None:
    heard: list[str] = []
    canvas.node_clicked.connect(lambda name, _modifiers: heard.append(name))
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(canvas, key)
    qtbot.keyClick(canvas, Qt.Key.Key_Up)
    assert heard == ["n0", "n1", "side", "n1", "n0"]
    qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert heard[-1] == "n0"
    assert len(heard) == 6


def test_shift_selects_while_it_walks_and_ctrl_moves_the_graph(
    qtbot: QtBot, canvas: GraphCanvas
) -> None:
    heard: list[tuple[str, Qt.KeyboardModifier]] = []
    canvas.node_clicked.connect(lambda *each: heard.append(each))
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    qtbot.keyClick(canvas, Qt.Key.Key_Down, SHIFT)
    assert heard == [("n0", NONE), ("n1", SHIFT)]
    before = canvas.node_rect("n0").top()
    qtbot.keyClick(canvas, Qt.Key.Key_Down, CONTROL)
    below = canvas.node_rect("n0").top()
    assert below < before
    qtbot.keyClick(canvas, Qt.Key.Key_Up, CONTROL)
    assert canvas.node_rect("n0").top() == before
    # The keyboard stays where it was walked to.
    assert len(heard) == 2
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert heard[-1] == ("n2", NONE)


def test_ctrl_wheel_zooms_where_the_mouse_is(canvas: GraphCanvas) -> None:
    at = canvas.node_rect("n1").topLeft() + QPointF(9, 12)
    turn_wheel(canvas.viewport(), at, 2, CONTROL)
    assert canvas.zoom() > 1.3
    inside = (at - canvas.node_rect("n1").topLeft()) / canvas.zoom()
    assert inside.x() == pytest.approx(9, abs=0.6)
    assert inside.y() == pytest.approx(12, abs=0.6)


@pytest.mark.x
@pytest.mark.parametrize("button", [LEFT, Qt.MouseButton.MiddleButton])
def test_dragging_the_ground_moves_and_clicks_nothing(
    qtbot: QtBot, canvas: GraphCanvas, button: Qt.MouseButton
) -> None:
    before = canvas.node_rect("n0").topLeft()
    port = canvas.viewport()
    with qtbot.assertNotEmitted(canvas.background_clicked):
        QTest.mousePress(port, button, NONE, QPoint(4, 200))
        QTest.mouseMove(port, QPoint(10, 190))
        QTest.mouseMove(port, QPoint(24, 160))
        QTest.mouseRelease(port, button, NONE, QPoint(24, 160))
    moved = canvas.node_rect("n0").topLeft() - before
    assert moved == QPointF(20, -40)


def test_keys_zoom_and_fit(qtbot: QtBot, canvas: GraphCanvas) -> None:
    qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    assert canvas.zoom() == 1.25
    qtbot.keyClick(canvas, Qt.Key.Key_0)
    assert canvas.zoom() == 1
    qtbot.keyClick(canvas, Qt.Key.Key_Minus)
    assert canvas.zoom() == 0.8
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert canvas.node_rect("n0").top() >= 0
    assert canvas.node_rect("n19").bottom() <= canvas.viewport().height()


def test_reveal_moves_only_for_what_is_out_of_view(qtbot: QtBot, canvas: GraphCanvas) -> None:
    before = canvas.node_rect("n1")
    assert canvas.reveal("n1")
    assert canvas.node_rect("n1") == before
    assert canvas.reveal("n15")
    seen = canvas.viewport().rect()
    qtbot.waitUntil(lambda: seen.contains(canvas.node_rect("n15").toAlignedRect()))
    assert not canvas.reveal("nothing")


@pytest.mark.x
def test_hover_and_menu(qtbot: QtBot, canvas: GraphCanvas) -> None:
    at = middle(canvas, "n1")
    with qtbot.waitSignal(canvas.node_hovered) as heard:
        qtbot.mouseMove(canvas.viewport(), at)
    assert heard.args == ["n1"]
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, canvas.viewport().mapToGlobal(at))
    with qtbot.waitSignal(canvas.menu_requested) as asked:
        QApplication.sendEvent(canvas.viewport(), event)
    assert asked.args == ["n1", None, canvas.viewport().mapToGlobal(at)]
    with qtbot.waitSignal(canvas.node_hovered) as heard:
        QApplication.sendEvent(canvas, QEvent(QEvent.Type.Leave))
    assert heard.args == [""]


def test_empty_graph_says_so(canvas: GraphCanvas) -> None:
    canvas.set_empty("No graph", "Open a model.")
    assert not canvas.empty.isVisible()
    canvas.set_graph(GraphRecord())
    assert canvas.empty.isVisible()
    assert canvas.empty.accessibleName() == "No graph"
    assert not canvas.zoom_control.isVisible()
    assert canvas.selection() == frozenset()


def test_the_menu_of_an_edge(qtbot: QtBot, canvas: GraphCanvas) -> None:
    upper, lower = canvas.node_rect("n0"), canvas.node_rect("n1")
    on_it = QPointF(upper.center().x() + 4, (upper.bottom() + lower.top()) / 2).toPoint()
    for at, expected in ((on_it, ("n0", "n1")), (on_it - QPoint(40, 0), None)):
        place = canvas.viewport().mapToGlobal(at)
        with qtbot.waitSignal(canvas.menu_requested) as asked:
            QApplication.sendEvent(
                canvas.viewport(), QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, place)
            )
        name, edge, _place = asked.args
        assert name == ""
        assert (edge and (edge.source, edge.target)) == expected

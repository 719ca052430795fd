"""Finding one's way in a graph: search, overview, cards, labels, colours, and large graphs."""

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.canvas.colouring import Colours
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.hover_card import CardText
from lowerscope.core.model.graph import Box, Edge, GraphRecord
from tests.app.kit.pointing import middle

NONE = Qt.KeyboardModifier.NoModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton


def ladder(count: int) -> GraphRecord:
    """Nodes below one another: convolutions, and every third a relu."""
    kinds = [("relu", "ReLU") if i % 3 == 2 else ("conv", "Conv2d") for i in range(count)]
    nodes = tuple(
        Box(
            f"n{i}", f"{name}{i}", "call", "te", 24, 24 + 80 * i, 180, 50, operator,
            family="activation" if operator == "ReLU" else "dense",
        )
        for i, (name, operator) in enumerate(kinds)
    )  # fmt: skip
    edges = tuple(
        Edge(
            f"n{i}", f"n{i + 1}", f"1×{i}", ((114, 60 + 80 * i), (114, 104 + 80 * i)),
            (121, 82 + 80 * i),
        )
        for i in range(count - 1)
    )  # fmt: skip
    return GraphRecord(nodes, edges, 264, 80 * count + 24)


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    QVBoxLayout(widget)
    widget.resize(640, 420)
    return widget


@pytest.fixture
def canvas(qtbot: QtBot, window: QWidget) -> GraphCanvas:
    widget = GraphCanvas("FX graph")
    layout = window.layout()
    assert layout is not None
    layout.addWidget(widget)
    widget.set_graph(ladder(30))
    with qtbot.waitExposed(window):
        window.show()
    widget.setFocus()
    return widget


def is_seen(canvas: GraphCanvas, name: str) -> bool:
    return canvas.viewport().rect().contains(canvas.node_rect(name).toAlignedRect())


@pytest.mark.x
def test_search_counts_and_goes_round(qtbot: QtBot, canvas: GraphCanvas) -> None:
    heard: list[str] = []
    canvas.node_clicked.connect(lambda name, _modifiers: heard.append(name))
    qtbot.keyClick(canvas, Qt.Key.Key_Slash)
    bar = canvas.search.bar
    qtbot.waitUntil(lambda: canvas.window().focusWidget() is bar.field)
    qtbot.keyClicks(bar.field, "relu")
    assert bar.figure.text() == "1 of 10"
    assert heard == []
    qtbot.keyClick(bar.field, Qt.Key.Key_Return)
    assert (bar.figure.text(), heard[-1]) == ("2 of 10", "n5")
    qtbot.keyClick(bar.field, Qt.Key.Key_F3)
    assert heard[-1] == "n8"
    for _ in range(3):
        qtbot.keyClick(bar.field, Qt.Key.Key_Return, SHIFT)
    assert (bar.figure.text(), heard[-1]) == ("10 of 10", "n29")
    qtbot.waitUntil(lambda: is_seen(canvas, "n29"))
    assert not bar.geometry().intersects(canvas.viewport().geometry())
    qtbot.keyClick(bar.field, Qt.Key.Key_Escape)
    assert not bar.isVisible()
    assert canvas.window().focusWidget() is canvas
    assert canvas.search.found == []
    qtbot.keyClick(canvas, Qt.Key.Key_Up)
    assert heard[-1] == "n28"


def test_the_overview_is_there_while_there_is_more_to_see(
    qtbot: QtBot, canvas: GraphCanvas
) -> None:
    def edge() -> set[str]:
        picture = canvas.viewport().grab().toImage()
        right = picture.width() - 1
        return {picture.pixelColor(right, y).name() for y in range(picture.height())}

    assert canvas.minimap.isVisible()
    # A border shows where the boxes end.
    assert edge() == {theme.current().line}
    qtbot.keyClick(canvas, Qt.Key.Key_F)
    assert not canvas.minimap.isVisible()
    assert edge() != {theme.current().line}
    qtbot.keyClick(canvas, Qt.Key.Key_0)
    assert canvas.minimap.isVisible()
    qtbot.keyClick(canvas, Qt.Key.Key_M)
    assert not canvas.minimap.isVisible()
    qtbot.keyClick(canvas, Qt.Key.Key_M)
    assert canvas.minimap.isVisible()
    # A narrow pane has no room for it beside the graph.
    size = canvas.size()
    canvas.resize(250, size.height())
    qtbot.waitUntil(lambda: not canvas.minimap.isVisible())
    canvas.resize(size)
    qtbot.waitUntil(canvas.minimap.isVisible)


@pytest.mark.x
def test_dragging_in_the_overview_moves_the_view(qtbot: QtBot, canvas: GraphCanvas) -> None:
    minimap = canvas.minimap
    seen = minimap.seen_rect()
    grip = seen.center().toPoint()
    QTest.mousePress(minimap, LEFT, NONE, grip)
    QTest.mouseMove(minimap, grip + QPoint(0, 20))
    QTest.mouseRelease(minimap, LEFT, NONE, grip + QPoint(0, 20))
    assert minimap.seen_rect().center().y() == pytest.approx(seen.center().y() + 20, abs=2)
    assert not is_seen(canvas, "n0")
    qtbot.mouseClick(minimap, LEFT, NONE, QPoint(minimap.width() // 2, minimap.height() - 6))
    assert is_seen(canvas, "n29")
    picture = minimap.grab().toImage()
    colours = {
        picture.pixelColor(x, y).name()
        for x in range(picture.width())
        for y in range(picture.height())
    }
    assert theme.family_colour(theme.current(), "activation") in colours


def test_zoom_to_the_selection(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.set_selection({"n20", "n21"})
    qtbot.keyClick(canvas, Qt.Key.Key_Z)
    assert is_seen(canvas, "n20")
    assert is_seen(canvas, "n21")
    assert not is_seen(canvas, "n15")
    canvas.set_selection({f"n{i}" for i in range(10, 30)})
    qtbot.keyClick(canvas, Qt.Key.Key_Z)
    assert canvas.zoom() < 0.5
    assert is_seen(canvas, "n10")
    assert is_seen(canvas, "n29")
    canvas.set_selection(())
    qtbot.keyClick(canvas, Qt.Key.Key_Z)
    assert is_seen(canvas, "n0")


def card_of(name: str) -> CardText | None:
    if name == "n3":
        return None
    return CardText(f"card of {name}", (("value", "1×8 float32"),), "y = self.relu(x)")


def test_a_card_comes_after_a_while_and_can_be_read(
    qtbot: QtBot, canvas: GraphCanvas, window: QWidget
) -> None:
    canvas.card_text = card_of
    qtbot.mouseMove(canvas.viewport(), middle(canvas, "n1"))
    assert not canvas.card.isVisible()
    qtbot.waitUntil(canvas.card.isVisible)
    assert canvas.card.text().title == "card of n1"
    assert "1×8 float32" in canvas.card.accessibleName()
    assert window.rect().contains(canvas.card.geometry())
    corner = canvas.viewport().mapTo(window, canvas.node_rect("n1").topLeft().toPoint())
    place = canvas.node_rect("n1").toAlignedRect()
    place.moveTopLeft(corner)
    assert not canvas.card.geometry().intersects(place)
    qtbot.mouseMove(canvas.viewport(), middle(canvas, "n2"))
    qtbot.waitUntil(lambda: canvas.card.text().title == "card of n2")
    qtbot.mouseMove(canvas.viewport(), QPoint(3, 3))
    qtbot.waitUntil(lambda: not canvas.card.isVisible())


def test_the_card_by_keyboard(qtbot: QtBot, canvas: GraphCanvas) -> None:
    canvas.card_text = card_of
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    assert canvas.show_card()
    assert canvas.card.isVisible()
    assert canvas.card.text().title == "card of n0"
    qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    assert not canvas.card.isVisible()


def is_complete(canvas: GraphCanvas, names: list[str]) -> bool:
    """Return true where all of these nodes are drawn, each with its header."""
    picture = canvas.viewport().grab().toImage()
    nodes = {node.id: node for node in canvas.graph().boxes}
    for name in names:
        at = canvas.node_rect(name).topLeft().toPoint() + QPoint(4, 5)
        if picture.pixelColor(at).name() != Colours().ink(theme.current(), nodes[name]).header:
            return False
    return True


def test_a_large_graph_is_drawn_as_a_small_one_is(qtbot: QtBot, canvas: GraphCanvas) -> None:
    small = canvas.viewport().grab().toImage()
    canvas.set_graph(ladder(3000))
    seen = [f"n{i}" for i in range(1, 4)]
    qtbot.waitUntil(lambda: is_complete(canvas, seen))
    large = canvas.viewport().grab().toImage()
    area = canvas.node_rect("n1").toAlignedRect().adjusted(-2, -20, 2, 20)
    assert large.copy(area) == small.copy(area)
    canvas.centre_on(canvas.view.to_graph(canvas.node_rect("n1500").center()))
    qtbot.waitUntil(lambda: is_complete(canvas, ["n1500", "n1501"]))
    canvas.set_zoom(0.5)
    qtbot.waitUntil(lambda: is_complete(canvas, ["n1500", "n1501", "n1503"]))
    theme.set_scheme("dark")
    qtbot.waitUntil(lambda: is_complete(canvas, ["n1500", "n1501"]))


def test_what_was_whole_stays_whole_from_step_to_step(canvas: GraphCanvas) -> None:
    boxes = ladder(3).boxes

    def beside(*places: int) -> GraphRecord:
        """Return two of the nodes beside each other."""
        shown = (replace(boxes[at], x=20 + 320 * i, y=24) for i, at in enumerate(places))
        return GraphRecord(tuple(shown), (), 540, 100)

    canvas.set_graph(beside(0, 1))
    assert canvas.view.is_whole()
    # The node that both have is the left one now: at its place, the other would be out of view.
    canvas.set_graph(beside(1, 2), keep_view=True)
    assert canvas.view.is_whole()


def test_what_is_seen_stays_in_its_place_from_step_to_step(canvas: GraphCanvas) -> None:
    before = {name: canvas.node_rect(name) for name in ("n0", "n1")}
    graph = canvas.graph()
    moved = tuple(replace(node, x=node.x + 300, y=node.y + 500) for node in graph.boxes)
    edges = tuple(
        replace(edge, points=tuple((x + 300, y + 500) for x, y in edge.points), label_at=None)
        for edge in graph.edges
    )
    canvas.set_graph(
        GraphRecord(moved, edges, graph.width + 600, graph.height + 500), keep_view=True
    )
    assert {name: canvas.node_rect(name) for name in before} == before

"""The graphs of a model in the real window: modules, search, cards, and what can be done."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.canvas.graph_geometry import chevron, title_bar
from lowerscope.app.panes.common.graph_page import GraphPage
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, choose_from_menu, wait_for_records

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
ATTENTION = "module:attention"


def titles(canvas: GraphCanvas) -> set[str]:
    """Return the texts of the boxes."""
    return {node.title for node in canvas.graph().boxes}


def click_chevron(qtbot: QtBot, canvas: GraphCanvas, entity: str) -> None:
    """Click the chevron of a group, or of a frame, once it can be seen."""
    canvas.reveal(entity)
    qtbot.waitUntil(lambda: canvas.viewport().rect().contains(_chevron(canvas, entity)))
    qtbot.mouseClick(canvas.viewport(), LEFT, NONE, _chevron(canvas, entity))


def _chevron(canvas: GraphCanvas, entity: str) -> QPoint:
    place = canvas.node_rect(entity)
    return chevron(title_bar(place) if canvas.is_frame(entity) else place).center().toPoint()


def wait_until_expanded(qtbot: QtBot, canvas: GraphCanvas, entity: str, expanded: bool) -> None:
    """Wait until a module is a frame, or a box again."""
    qtbot.waitUntil(lambda: canvas.is_frame(entity) == expanded, timeout=PATIENCE)
    assert canvas.is_group(entity) != expanded


def choose(page: GraphPage, entity: str, *path: str) -> None:
    """Open the menu of a box with the mouse, and choose an entry of it, or of one below."""
    canvas = page.canvas
    place = canvas.node_rect(entity).center().toPoint() if entity else QPoint(4, 4)

    choose_from_menu(canvas, place, *path)


def run_command(window: MainWindow, key: str) -> Callable[[], None]:
    return window.commands.action(key).trigger


@pytest.mark.x
@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_module_is_looked_into_collapsed_and_lowered(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:transformer_block", lowering="te")
    page = window.panes.fx.graph
    canvas = page.canvas
    # Commands are about the graph with the focus.
    relax = window.panes.relax
    relax.set_current("graph")
    other = relax.graph.canvas
    qtbot.waitUntil(lambda: bool(other.graph().boxes), timeout=PATIENCE)
    other.setFocus()
    run_command(window, "edge-labels")()
    assert (canvas.labels(), other.labels()) == (True, False)
    canvas.setFocus()
    run_command(window, "edge-labels")()
    assert (canvas.labels(), other.labels()) == (False, False)

    run_command(window, "collapse-all")()
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=False)
    assert "softmax" not in titles(canvas)
    group = next(node for node in canvas.graph().boxes if node.id == ATTENTION)
    others = len(canvas.graph().boxes) - 1

    click_chevron(qtbot, canvas, ATTENTION)
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=True)
    assert "softmax" in titles(canvas)
    assert group.description == f"Attention · {len(canvas.graph().boxes) - others} nodes"

    # Which modules are expanded has nothing to do with the recipe.
    window.commands.action("library").trigger()
    wait_for_records(qtbot, window)
    qtbot.waitUntil(
        lambda: {node.badge for node in canvas.graph().boxes} >= {"LIB"}, timeout=PATIENCE
    )
    assert canvas.is_frame(ATTENTION)

    # A node in it is selected; collapsed, its module has the mark.
    window.document.select(("fx:softmax",))
    assert canvas.selection() == {"fx:softmax"}
    qtbot.waitUntil(lambda: not canvas.is_moving())
    canvas.setFocus()
    qtbot.mouseClick(
        canvas.viewport(), LEFT, NONE, canvas.node_rect("fx:softmax").center().toPoint()
    )
    qtbot.keyClick(canvas, Qt.Key.Key_Minus)
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=False)
    assert canvas.selection() == {ATTENTION}
    assert window.document.selection.chosen == ("fx:softmax",)

    # A click on the module selects what is in it, everywhere.
    centre = canvas.node_rect(ATTENTION).center().toPoint()
    qtbot.mouseClick(canvas.viewport(), LEFT, NONE, centre)
    assert "fx:softmax" in window.document.selection.linked
    assert window.document.selection.chosen == (ATTENTION,)

    run_command(window, "expand-all")()
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=True)
    run_command(window, "fitting-level")()
    qtbot.waitUntil(lambda: page.is_collapsible, timeout=PATIENCE)

    # Its menu lowers all that is in it.
    run_command(window, "collapse-all")()
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=False)
    choose(page, ATTENTION, "Lower as", "High-level")
    wait_for_records(qtbot, window)
    snapshot = window.document.snapshot
    assert snapshot is not None
    strategies = {node.name: node.strategy for node in snapshot.fx}
    assert strategies["softmax"] == "high-level"
    assert strategies["norm0"] == "library"

    choose(page, ATTENTION, "Expand")
    wait_until_expanded(qtbot, canvas, ATTENTION, expanded=True)
    choose(page, "", "Colours", "By strategy")
    assert canvas.colouring() == "strategy"
    choose(page, "", "Fit")
    assert canvas.node_rect("fx:output").bottom() < canvas.zoom_control.y()

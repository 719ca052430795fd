"""The graph, the script and the functions at each step of a pipeline that fuses, in the window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import PATIENCE, OpenWindow
from tests.end_to_end.test_graphs import choose, click_chevron

LEFT = Qt.MouseButton.LeftButton
FUSE = next(preset.steps for preset in PRESETS if preset.name == "fuse")


def moment_of(window: MainWindow, name: str) -> Moment:
    """After a step of the recipe."""
    snapshot = window.document.snapshot
    assert snapshot is not None
    numbers = [
        number
        for number, each in enumerate(snapshot.passes, 1)
        if each.depth == 0 and each.name == name
    ]
    return Moment(section="passes", index=numbers[0])


def look_at(qtbot: QtBot, window: MainWindow, page: str) -> None:
    """Show a page of the Relax pane, and wait until it shows the moment."""
    relax = window.panes.relax
    relax.set_current(page)
    qtbot.waitUntil(lambda: relax.progress.state() == "none", timeout=PATIENCE)


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_fused_function_is_looked_into_and_compared(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", steps=FUSE)
    window.resize(1440, 900)
    document, page = window.document, window.panes.relax.graph
    canvas = page.canvas
    look_at(qtbot, window, "graph")
    for name in ("FuseOps", "FuseTIR"):
        window.features.stepping.go(moment_of(window, name))
        look_at(qtbot, window, "graph")
        fused = next(node for node in canvas.graph().boxes if "fused_matmul_add" in node.operator)
        assert fused.kind == "fused"
        closed = {node.id for node in canvas.graph().boxes}

        def wait_for(expanded: bool, name: str = fused.id) -> None:
            qtbot.waitUntil(lambda: canvas.is_frame(name) == expanded, timeout=PATIENCE)
            # What has to make room moves there.
            assert canvas.is_moving()
            qtbot.waitUntil(lambda: not canvas.is_moving())

        click_chevron(qtbot, canvas, fused.id)
        wait_for(expanded=True)
        inside = [node for node in canvas.graph().boxes if node.id.startswith(f"{fused.id}/")]
        assert [node.title for node in inside] == ["lv1", "lv2", "gv"]
        edges = {(edge.source, edge.target) for edge in canvas.graph().edges}
        assert {(inside[0].id, inside[1].id), (inside[1].id, inside[2].id)} <= edges
        assert ("relax:main/x", inside[0].id) in edges
        # A box in there is the binding that it came from, and no other of the function.
        centre = canvas.node_rect(inside[2].id).center().toPoint()
        qtbot.mouseClick(canvas.viewport(), LEFT, pos=centre)
        assert document.selection.of_kind("fx") == ("fx:relu",)
        assert canvas.selection() == {inside[2].id}
        canvas.setFocus()
        qtbot.keyClick(canvas, Qt.Key.Key_Minus)
        wait_for(expanded=False)
        assert {node.id for node in canvas.graph().boxes} == closed
        assert canvas.selection() == {fused.id}

        centre = canvas.node_rect(fused.id).center().toPoint()
        qtbot.mouseClick(canvas.viewport(), LEFT, pos=centre)
        qtbot.keyClick(canvas, Qt.Key.Key_Return)
        wait_for(expanded=True)
        choose(page, inside[0].id, f"Collapse {fused.title}")
        wait_for(expanded=False)
        choose(page, fused.id, "Expand")
        wait_for(expanded=True)
        window.commands.action("collapse-all").trigger()
        qtbot.waitUntil(lambda: not canvas.graph().regions, timeout=PATIENCE)

    # The difference of the graphs is tied to the selection.
    document.select(())
    window.show_panes()
    view = window.panes.difference
    window.features.stepping.go(moment_of(window, "FuseOps"))
    window.commands.action("difference").trigger()
    qtbot.waitUntil(lambda: view.new_label.whole().endswith("FuseOps"), timeout=PATIENCE)
    view.kinds.setFocus()
    qtbot.keyClick(view.kinds, Qt.Key.Key_Right)
    qtbot.keyClick(view.kinds, Qt.Key.Key_Right)
    page = view.graph
    qtbot.waitUntil(lambda: page.record is not None, timeout=PATIENCE)
    assert page.record is not None
    fused = next(node for node in page.record.nodes if "fused_matmul_add_relu" in node.after)
    place = page.canvas.node_rect(fused.id).center().toPoint()
    qtbot.mouseClick(page.canvas.viewport(), LEFT, pos=place)
    assert document.selection.of_kind("fx") == ("fx:linear0", "fx:relu")
    assert fused.id in page.canvas.selection()
    # What was selected elsewhere is marked: what it was, and what it is now.
    document.select(("fx:relu",))
    marked = [node for node in page.record.nodes if node.id in page.canvas.selection()]
    assert fused in marked
    others = [node for node in page.record.nodes if node not in marked]
    assert any("matmul" in node.before and "relu" not in node.after for node in others)

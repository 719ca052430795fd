"""The graph, the script and the functions at each step of a pipeline that fuses, in the window."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas import viewport
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import PATIENCE, OpenWindow
from tests.end_to_end.test_graphs import choose, click_chevron

LEFT = Qt.MouseButton.LeftButton
FUSE = next(preset.steps for preset in PRESETS if preset.name == "fuse")
_BINDING = re.compile(r" +(\w+)(?:: .+?)? = ")


def moments(window: MainWindow) -> list[Moment]:
    """Before the first step of the recipe, and after each."""
    snapshot = window.document.snapshot
    assert snapshot is not None
    steps = [number for number, each in enumerate(snapshot.passes, 1) if each.depth == 0]
    return [Moment(section="passes", index=index) for index in (0, *steps)]


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


def marked_variables(window: MainWindow) -> set[str]:
    """The variables of ``main`` whose bindings are marked in the script."""
    code = window.panes.relax.script.code
    lines = code.text().split("\n")
    begin = next(number for number, line in enumerate(lines) if "def main(" in line)
    found: set[str] = set()
    for number, line in enumerate(lines[begin + 1 :], start=begin + 1):
        if line.startswith("    @"):
            break
        binding = _BINDING.match(line)
        # Lines that are hidden or wrapped have other numbers where they are shown.
        shown = code.editor.content.first_of(number)
        if binding is not None and code.editor.is_selected(shown):
            found.add(binding[1])
    return found


def marked_boxes(window: MainWindow) -> set[str]:
    """The variables that the marked boxes of the graph have in the script."""
    canvas = window.panes.relax.graph.canvas
    nodes = {node.id: node for node in canvas.graph().boxes}
    around = fused_around(canvas)
    return {
        nodes[name].rows[0][0].split(" · ")[0]
        if nodes[name].kind == "output"
        else around.get(name, nodes[name].title)
        for name in canvas.selection()
    }


def fused_around(canvas: GraphCanvas) -> dict[str, str]:
    """The variable of the call that each box inside of a fused function is inside of."""
    graph = canvas.graph()
    return {
        node.id: region.title.split(" · ")[0]
        for region in graph.regions
        if region.id.startswith("relax:")
        for node in graph.boxes
        if node.id.startswith(f"{region.id}/")
    }


def test_boxes_and_lines_of_a_step_are_marked_alike(
    qtbot: QtBot, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There are many boxes to go to.
    monkeypatch.setattr(viewport, "_REVEAL_MS", 1)
    window = open_window("sample:fashion_mlp", steps=FUSE)
    document, relax = window.document, window.panes.relax
    canvas = relax.graph.canvas
    snapshot = document.snapshot
    assert snapshot is not None
    nodes = [node.id for node in snapshot.fx if node.bindings]
    look_at(qtbot, window, "graph")
    relax.graph.expand_all()
    for moment in moments(window):
        window.features.stepping.go(moment)
        look_at(qtbot, window, "script")
        lines: dict[str, set[str]] = {}
        for node in nodes:
            document.select((node,))
            lines[node] = marked_variables(window)
        look_at(qtbot, window, "graph")
        seen: dict[str, set[str]] = {}
        for node in nodes:
            document.select((node,))
            assert marked_boxes(window) == lines[node], (moment, node)
            for variable in lines[node]:
                seen.setdefault(variable, set()).add(node)
        assert seen
        # A click on a box selects the nodes that it came from.
        around = fused_around(canvas)
        for box in canvas.graph().boxes:
            if box.kind not in ("call", "constant", "fused"):
                continue
            canvas.reveal(box.id)
            qtbot.waitUntil(lambda: not canvas.is_moving())
            place = canvas.node_rect(box.id).center().toPoint()
            qtbot.mouseClick(canvas.viewport(), LEFT, pos=place)
            found = set(document.selection.of_kind("fx"))
            if box.id in around:
                assert found <= seen[around[box.id]], (moment, box.id)
            else:
                assert found == seen[box.title], (moment, box.title)
            assert box.id in canvas.selection()


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
    # The sentence of the step follows it, though no text is visible.
    window.features.stepping.go(moment_of(window, "LegalizeOps"))
    qtbot.waitUntil(lambda: view.sentence.text().startswith("LegalizeOps "), timeout=PATIENCE)
    assert [chip.name for chip in view.chips.chips()] == ["main"]

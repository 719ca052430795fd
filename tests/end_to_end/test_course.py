"""The course's steps in the window: its page opens what it is about, which runs and is compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.pane import Pane
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records

# Offscreen there is no window manager to put the page in front.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)


def open_step(qtbot: QtBot, window: MainWindow, command: str) -> None:
    """Click a command of the page, and wait until what it is about is shown."""
    assert window.help.shown is not None
    before = window.document.recipe
    window.help.shown.course.open_command(command)
    qtbot.waitUntil(lambda: window.document.recipe != before, timeout=PATIENCE)
    wait_for_records(qtbot, window)


def choose_page(qtbot: QtBot, pane: Pane, key: str) -> None:
    """Click the tab of a page."""
    qtbot.mouseClick(pane.header.tabs.tab(key), Qt.MouseButton.LeftButton)
    assert pane.current() == key


def verdict_of(qtbot: QtBot, window: MainWindow) -> str:
    run_and_wait(qtbot, window)
    qtbot.waitUntil(lambda: not window.document.running, timeout=PATIENCE)
    return window.tool_bar.verdict.accessibleName()


def test_the_steps_of_the_course_in_the_window(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window = open_window("sample:matmul_relu")
    panes = window.panes
    window.commands.action("course").trigger()
    assert window.help.shown is not None
    assert window.help.shown.isVisible()
    assert window.help.shown.place().name == "course"
    window.help.shown.course.write_files(tmp_path / "course")
    mlp = "--params course/mlp_params.pkl --input x=course/boot.png"

    # The two layers: TVMScript, library functions, and a picture with a prediction.
    open_step(
        qtbot, window, f"lowerscope run course/mlp_mixture.py --library course/library.py {mlp}"
    )
    assert 'R.call_dps_packed("env.relu"' in panes.relax.script.code.text()
    assert "matches NumPy" in verdict_of(qtbot, window)
    assert "Ankle boot" in panes.summary.prediction.text()
    window.document.select(("relax:main/lv0",))
    tensorir = panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def linear(" in tensorir.text(), timeout=PATIENCE)

    # A line of the builder program and the line of the script that it makes.
    panes.relax.set_current("builder")
    builder = panes.relax.builder.script.code
    qtbot.waitUntil(lambda: 'bb.function("main"' in builder.text(), timeout=PATIENCE)
    lines = builder.text().splitlines()
    line = next(number for number, text in enumerate(lines) if '"env.relu"' in text)
    builder.go_to_line(line + 1)
    port = builder.editor.viewport()
    shown = next(n for n, text in enumerate(builder.editor.lines()) if '"env.relu"' in text)
    height = next(y for y in range(port.height()) if builder.editor.line_at(y) == shown)
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(60, height + 4))
    choose_page(qtbot, panes.relax, "script")
    script = panes.relax.script.code
    marked = [
        text
        for number, text in enumerate(script.editor.lines())
        if script.editor.is_selected(number)
    ]
    assert "".join(map(str.strip, marked)).startswith('lv1 = R.call_dps_packed("env.relu",')

    # Two data-flow blocks are two frames.
    open_step(qtbot, window, "lowerscope run course/two_blocks.py")
    panes.relax.set_current("graph")
    canvas = panes.relax.graph.canvas
    qtbot.waitUntil(lambda: len(canvas.graph().regions) == 2, timeout=PATIENCE)
    assert [region.title for region in canvas.graph().regions] == ["dataflow 1", "dataflow 2"]

    # A TensorIR function alone, as the expression that it came from.
    panes.relax.set_current("script")
    open_step(qtbot, window, "lowerscope run course/te_functions.py:fused")
    panes.tensorir.set_current("te")
    te = panes.tensorir.texts["te"].script.code
    qtbot.waitUntil(lambda: "matmul = te.compute(" in te.text(), timeout=PATIENCE)
    assert "matches NumPy" in verdict_of(qtbot, window)

    # A map of one's own, as rules: the graph, the pages and the node's lowering by keys alone.
    command = "lowerscope run sample:matmul_relu --lowering te --rules course/te_rules.py"
    open_step(qtbot, window, command)
    canvas = panes.fx.graph.canvas
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    for _step in range(2):
        if window.document.selection.chosen != ("fx:matmul",):
            qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert window.document.selection.chosen == ("fx:matmul",)
    # The graph's page, its table, its code.
    for page in ("graph", "table"):
        qtbot.keyClick(panes.fx.header.tabs.tab(page), Qt.Key.Key_Right)
    code = panes.fx.code.script.code
    qtbot.waitUntil(lambda: "torch.matmul(x, weight)" in code.text(), timeout=PATIENCE)
    line = next(n for n, text in enumerate(code.editor.lines()) if "torch.matmul" in text)
    assert code.editor.is_selected(line)
    assert panes.details.facts()["rule"].startswith("map_matmul, te_rules.py:")
    assert "matches torch" in verdict_of(qtbot, window)
    # The page of the course has the focus.
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    for key, strategy in ((Qt.Key.Key_3, "library"), (Qt.Key.Key_2, "te")):
        before = window.document.recipe
        qtbot.keyClick(code.editor, key)
        qtbot.waitUntil(lambda before=before: window.document.recipe != before, timeout=PATIENCE)
        wait_for_records(qtbot, window)
        assert window.document.snapshot is not None
        nodes = {node.id: node.strategy for node in window.document.snapshot.fx}
        assert nodes["fx:matmul"] == strategy

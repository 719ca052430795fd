"""Open a model, see it lowered, run it against torch: in the real window."""

from __future__ import annotations

from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.welcome_page import LinkRow
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import InputSpec
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records


def click_segment(qtbot: QtBot, window: MainWindow, key: str) -> None:
    """Click one side of the lowering switch."""
    switch = window.tool_bar.lowering
    place = switch.segment_rect(key).center().toPoint()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=place)


def click_node(qtbot: QtBot, window: MainWindow, entity: str) -> None:
    """Click a node of the FX graph with the mouse."""
    canvas = window.panes.fx.graph.canvas
    centre = canvas.node_rect(entity).center().toPoint()
    qtbot.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=centre)


def test_open_switch_run_and_read_the_verdict(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    document, panes = window.document, window.panes
    assert "R.matmul" in panes.relax.script.code.text()
    assert window.tool_bar.lowering.current() == "high-level"

    click_segment(qtbot, window, "te")
    wait_for_records(qtbot, window)
    text = panes.relax.script.code.text()
    for name in ("cls.dense", "cls.add", "cls.te_relu"):
        assert f"R.call_tir({name}" in text
    assert "R.matmul" not in text

    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.run_record is not None, timeout=PATIENCE)
    verdict = window.tool_bar.verdict
    assert verdict.role() == "right"
    assert verdict.text().startswith("✓ matches torch")
    record = document.run_record
    assert record is not None
    assert record.max_abs_error is not None
    assert record.max_abs_error < 1e-4
    assert record.prediction is not None
    assert record.prediction.torch == record.prediction.tvm != ""
    assert record.prediction.tvm in panes.result.side.prediction.text()
    assert panes.result.side.picture.isVisible()
    rows = panes.result.outputs.rows()
    assert [row.key for row in rows] == ["output"]


def test_the_selection_ties_the_panes(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    panes, document = window.panes, window.document

    click_node(qtbot, window, "fx:linear0")
    assert document.selection.chosen == ("fx:linear0",)
    relax = panes.relax.script.code
    lines = relax.text().splitlines()
    marked = [text for number, text in enumerate(lines) if relax.editor.is_selected(number)]
    assert len(marked) == 2
    assert "cls.dense" in marked[0]
    assert "cls.add" in marked[1]
    qtbot.waitUntil(lambda: "def dense" in panes.tensorir.script.code.text(), timeout=PATIENCE)
    assert ("bindings", "lv, lv1") in [
        (row.cells[0].text, row.cells[1].text) for row in panes.details.table.rows()
    ]

    # And back: a line of the script selects the node that made it.
    line = next(
        number
        for number, text in enumerate(relax.text().splitlines(), start=1)
        if "cls.te_relu" in text
    )
    relax.go_to_line(line)
    qtbot.keyClick(relax.editor, Qt.Key.Key_Return)
    assert "fx:relu" in document.selection.linked
    assert panes.fx.graph.canvas.selection() == {"fx:relu"}
    tensorir = panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def te_relu" in tensorir.text(), timeout=PATIENCE)

    # A line of TensorIR as well: the block is marked, and the node that it comes from.
    document.select(())
    line = next(
        number
        for number, text in enumerate(tensorir.text().splitlines(), start=1)
        if 'T.sblock("relu")' in text
    )
    tensorir.go_to_line(line)
    qtbot.keyClick(tensorir.editor, Qt.Key.Key_Return)
    assert tensorir.editor.is_selected(line - 1)
    assert panes.fx.graph.canvas.selection() == {"fx:relu"}


def test_the_same_function_as_numpy_and_as_te_and_the_builder(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    panes, document = window.panes, window.document
    document.select(("fx:linear0",))
    numpy, te = panes.tensorir.texts["numpy"], panes.tensorir.texts["te"]
    panes.tensorir.set_current("numpy")
    qtbot.waitUntil(lambda: "def lnumpy_dense" in numpy.script.code.text(), timeout=PATIENCE)
    assert "np.ndarray" in numpy.script.code.text()
    panes.tensorir.set_current("te")
    qtbot.waitUntil(lambda: "te.compute" in te.script.code.text(), timeout=PATIENCE)
    assert "te.reduce_axis" in te.script.code.text()

    builder = panes.relax.builder.script.code
    panes.relax.set_current("builder")
    qtbot.waitUntil(lambda: "relax.BlockBuilder()" in builder.text(), timeout=PATIENCE)
    lines = builder.text().splitlines()
    marked = [text for number, text in enumerate(lines) if builder.editor.is_selected(number)]
    assert any("dense" in text for text in marked)
    assert not any("te_relu" in text for text in marked)

    # The switch between the functions of a node stands above each of the texts.
    switch = panes.tensorir.siblings
    assert [segment.key for segment in switch.segments()] == ["dense", "add"]
    place = switch.segment_rect("add").center().toPoint()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: "def te_add" in te.script.code.text(), timeout=PATIENCE)
    document.select(())
    document.change(msgspec.structs.replace(document.recipe, lowering="high-level"))
    wait_for_records(qtbot, window)
    qtbot.waitUntil(lambda: "relax.op.matmul" in builder.text(), timeout=PATIENCE)


def test_undo_takes_the_lowering_back(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    click_segment(qtbot, window, "te")
    wait_for_records(qtbot, window)
    assert "te_matmul" in window.panes.relax.script.code.text()
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert "R.matmul" in window.panes.relax.script.code.text()
    assert window.tool_bar.lowering.current() == "high-level"
    window.commands.action("redo").trigger()
    wait_for_records(qtbot, window)
    assert "te_matmul" in window.panes.relax.script.code.text()


def test_impatient_clicks_end_with_the_last(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net")
    for key in ("te", "high-level", "te", "high-level", "te"):
        click_segment(qtbot, window, key)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.lowering == "te"
    assert "R.nn.conv2d" not in window.panes.relax.script.code.text()
    for _ in range(3):
        window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: window.document.run_record is not None, timeout=PATIENCE)
    assert window.tool_bar.verdict.role() == "right"


def test_panes_can_be_closed_put_back_and_are_remembered(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    details = window.panes.docks["details"]
    assert details.isVisible()
    details.toggleViewAction().trigger()
    assert not details.isVisible()
    window.close()

    again = open_window("sample:matmul_relu")
    details = again.panes.docks["details"]
    assert not details.isVisible()
    action = again.commands.action("pane-details")
    assert not action.isChecked()
    action.trigger()
    assert details.isVisible()
    assert action.isChecked()
    again.panes.docks["fx"].close()
    again.commands.action("reset-layout").trigger()
    assert again.panes.docks["fx"].isVisible()


def heights(window: MainWindow) -> tuple[int, int]:
    docks = window.panes.docks
    return docks["fx"].height(), docks["outcome"].height()


def test_the_panes_keep_their_sizes(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    window.resize(1400, 880)
    qtbot.waitUntil(lambda: abs(heights(window)[1] - 250) < 4, timeout=PATIENCE)
    before = heights(window)
    assert before[0] > 1.6 * before[1]
    for _ in range(3):
        window.commands.action("welcome").trigger()
        window.commands.action("document").trigger()
    qtbot.waitUntil(lambda: heights(window) == before, timeout=PATIENCE)
    window.resize(1400, 980)
    qtbot.waitUntil(lambda: heights(window)[1] == before[1], timeout=PATIENCE)
    window.resize(1400, 880)
    qtbot.waitUntil(lambda: heights(window) == before, timeout=PATIENCE)
    window.close()

    # The screen of a test may be smaller than the window was; the proportions stay.
    again = open_window("sample:matmul_relu")
    qtbot.waitUntil(lambda: heights(again)[0] > 1.6 * heights(again)[1], timeout=PATIENCE)


def test_what_was_opened_is_on_the_welcome_page(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:matmul_relu")
    window.commands.action("welcome").trigger()
    rows = [row for row in window.welcome.findChildren(LinkRow) if row.isVisible()]
    recent = next(row for row in rows if row.accessibleName() == "sample:matmul_relu")
    qtbot.mouseClick(recent, Qt.MouseButton.LeftButton)
    assert window.pages.currentWidget() is window.panes
    wait_for_records(qtbot, window)
    sample = next(row for row in rows if row.accessibleName() == "conv_net")
    window.commands.action("welcome").trigger()
    qtbot.mouseClick(sample, Qt.MouseButton.LeftButton)
    wait_for_records(qtbot, window)
    assert window.windowTitle().startswith("conv_net")


def test_a_dropped_file_is_opened(qtbot: QtBot, open_window: OpenWindow, tmp_path: Path) -> None:
    window = open_window()
    path = tmp_path / "net.py"
    path.write_text(
        "import torch\nmodel = torch.nn.Linear(4, 3)\n"
        "def example_inputs():\n    return (torch.ones(1, 4),)\n"
    )
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    drop = QDropEvent(
        QPointF(200, 200),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(drop)
    wait_for_records(qtbot, window)
    assert "R.matmul" in window.panes.relax.script.code.text()


LSTM = """
import torch
from torch import nn

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.linear = nn.Linear(32, 4)

    def forward(self, tokens):
        return self.linear(self.lstm(self.embedding(tokens))[0][:, -1])
"""


def linked(window: MainWindow, kind: str) -> tuple[str, ...]:
    return window.document.selection.of_kind(kind)


def test_a_file_of_the_users_own_through_the_export_tracer(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "classifier.py"
    path.write_text(LSTM)
    tokens = InputSpec(name="tokens", shape=(1, 7), dtype="int64", low=0, high=50)
    window = open_window(str(path), tracer="export", lowering="te", inputs=(tokens,))
    assert window.panes.fx.context().endswith("nodes · export")
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    snapshot = window.document.snapshot
    assert snapshot is not None
    calls = [node for node in snapshot.fx if node.opcode == "call_function"]
    assert {node.line.file for node in calls if node.line} == {str(path)}
    assert {node.module for node in calls} >= {"embedding", "lstm", "linear"}
    # The LSTM calls more functions than there is room for: some are offered, the rest is counted.
    tensorir = window.panes.tensorir
    window.document.select((max(calls, key=lambda node: len(node.parts)).id,))
    assert tensorir.others.isVisible()
    offered = [each.key for each in tensorir.siblings.segments()]
    assert tensorir.siblings.current() in offered
    assert f"and {len(linked(window, 'tir')) - len(offered)} more" == tensorir.others.text()
    tensorir.others.click()
    assert tensorir.current() == "functions"

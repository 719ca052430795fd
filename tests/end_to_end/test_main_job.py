"""Open a model, see it lowered, run it against torch: in the real window."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.code_editor import x_of
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.panes.run.commands import TolerancesDialog
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records


def click_segment(qtbot: QtBot, window: MainWindow, key: str) -> None:
    """Click one side of the lowering switch."""
    switch = window.tool_bar.lowering
    place = switch.segment_rect(key).center().toPoint()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=place)


def strategies(window: MainWindow) -> dict[str, str]:
    snapshot = window.document.snapshot
    assert snapshot is not None
    return {node.name: node.strategy for node in snapshot.fx if node.strategy}


def test_open_switch_run_and_read_the_verdict(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    document, panes, action = window.document, window.panes, window.commands.action
    assert "R.matmul" in panes.relax.script.code.text()
    assert window.tool_bar.lowering.current() == "high-level"
    click_segment(qtbot, window, "te")
    wait_for_records(qtbot, window)
    text = panes.relax.script.code.text()
    for name in ("cls.dense", "cls.add", "cls.te_relu"):
        assert f"R.call_tir({name}" in text
    assert "R.matmul" not in text
    action("undo").trigger()
    wait_for_records(qtbot, window)
    assert "R.matmul" in panes.relax.script.code.text()
    action("redo").trigger()
    wait_for_records(qtbot, window)

    qtbot.mouseClick(window.tool_bar.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: document.run_record is not None, timeout=PATIENCE)
    verdict, record = window.tool_bar.verdict, document.run_record
    assert verdict.role() == "right"
    assert record is not None
    assert record.max_abs_error is not None
    assert record.max_abs_error < 1e-4
    assert record.prediction is not None
    assert record.prediction.torch == record.prediction.tvm != ""
    assert record.prediction.tvm in panes.summary.prediction.text()
    window.set_mode("run")
    # The tolerance of the result leads to the form of tolerances; the same values are judged anew.
    panes.summary.details.linkActivated.emit("tolerances")
    (dialog,) = window.findChildren(TolerancesDialog)
    for field in (dialog.rows["float32"].rtol, dialog.rows["float32"].atol):
        field.setText("0")
    dialog.accept()
    qtbot.waitUntil(lambda: verdict.role() == "wrong", timeout=PATIENCE)
    judged = document.run_record
    assert judged is not None
    assert (judged.verdict, judged.build_ms) == ("differ", record.build_ms)
    assert judged.times == record.times
    action("undo").trigger()
    qtbot.waitUntil(lambda: document.run_record == record, timeout=PATIENCE)
    assert verdict.role() == "right"
    assert panes.summary.picture.isVisible()
    assert [row.key for row in panes.summary.outputs.rows()] == ["output"]

    # Three strategies in one module, chosen node by node.
    for node, strategy in (("relu", "high-level"), ("linear1", "library")):
        document.select((f"fx:{node}",))
        action(f"selection-{strategy}").trigger()
        wait_for_records(qtbot, window)
    chosen = {"linear0": "te", "relu": "high-level", "linear1": "library"}
    assert strategies(window) == chosen
    badges = {node.title: node.badge for node in panes.fx.graph.canvas.graph().boxes}
    assert [badges[name] for name in chosen] == ["TE", "HL", "LIB"]
    assert window.tool_bar.overrides.text() == "2 overrides"
    assert 'R.call_dps_packed("torch.' in panes.relax.script.code.text()
    run_and_wait(qtbot, window)
    assert verdict.role() == "right"
    action("selection-reset").trigger()
    wait_for_records(qtbot, window)
    assert strategies(window) == chosen | {"linear1": "te"}
    action("reset-overrides").trigger()
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"te"}
    assert not window.tool_bar.overrides.isVisible()
    click_segment(qtbot, window, "library")
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"library"}
    run_and_wait(qtbot, window)
    assert verdict.role() == "right"


def place_of(code: CodeView, wanted: str, word: str) -> QPoint:
    """Where a word stands on the first line that has some other words."""
    lines = code.editor.lines()
    number = next(n for n, line in enumerate(lines) if wanted in line)
    code.editor.show_lines(number, number)
    port = code.editor.viewport()
    for line, block, row in code.editor.visible(port.rect()):
        if line == number:
            x = x_of(block.layout().lineAt(0).cursorToX(block.text().index(word)))
            return QPoint(round(row.left() + x) + 3, round(row.center().y()))
    raise AssertionError(f"{wanted} is not in view")


def test_a_function_by_its_names_as_numpy_as_te_and_in_the_builder(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    panes, document = window.panes, window.document
    document.select(("fx:linear0",))
    code = panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def dense(" in code.text(), timeout=PATIENCE)

    # A click on the name of a loop selects that one, of all in its header.
    at = place_of(code, "T.grid(", "k in")
    qtbot.mouseClick(code.editor.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert document.selection.chosen == ("tir:dense/T_matmul_NT/k",)

    # By keyboard: a constant of the Relax script.
    relax = panes.relax.script.code
    lines = relax.editor.lines()
    number = next(n for n, line in enumerate(lines) if "linear0.weight" in line)
    relax.editor.setFocus()
    shown = relax.editor.lines()[number]
    relax.editor.go_to(number, shown.index("linear0.weight"), shown.index("linear0.weight"))
    assert relax.editor.show_card()
    card = relax.editor.cards.card
    assert card.isVisible()
    # It stands below the line, which it leaves in view.
    caret = relax.editor.cursorRect()
    line = relax.editor.viewport().mapTo(window, caret.bottomLeft()).y()
    assert card.y() > line or card.geometry().bottom() < line - caret.height()
    assert dict(card.text().rows)["shape"] == "(128, 784)"
    qtbot.keyClick(relax.editor, Qt.Key.Key_Escape)
    assert not card.isVisible()

    # The same function in other forms.
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
    lines = builder.editor.lines()
    marked = [text for number, text in enumerate(lines) if builder.editor.is_selected(number)]
    assert any("dense" in text for text in marked)
    assert not any("te_relu" in text for text in marked)

    # The functions of a node are below one another; Enter on the heading of one closes it.
    assert set(panes.tensorir.open_functions()) == {"dense", "add"}
    assert "def te_add" in te.script.code.text()
    editor = te.script.code.editor
    headings = ((n, editor.heading(n)) for n in range(len(editor.lines())))
    editor.go_to(next(n for n, each in headings if each is not None and each.key == "add"))
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "def te_add" not in te.script.code.text(), timeout=PATIENCE)
    assert "def te_dense" in te.script.code.text()
    document.select(())
    document.change(msgspec.structs.replace(document.recipe, lowering="high-level"))
    wait_for_records(qtbot, window)
    qtbot.waitUntil(lambda: "relax.op.matmul" in builder.text(), timeout=PATIENCE)


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

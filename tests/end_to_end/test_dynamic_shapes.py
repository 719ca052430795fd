"""Named dimensions in the window: asked for, shown, run at several sizes, taken back."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Dimension
from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records


def _fill_in(window: MainWindow, shape: str, span: str, sizes: str) -> None:
    """Open the form of the inputs, fill it in and press OK."""
    window.commands.action("inputs").trigger()
    dialog = QApplication.activeModalWidget()
    assert isinstance(dialog, InputsDialog)
    dialog.row("x").shape.setText(shape)
    dialog.ranges.row("batch").span.setText(span)
    dialog.ranges.row("batch").sizes.setText(sizes)
    dialog.buttons.button(dialog.buttons.StandardButton.Ok).click()


def test_a_batch_of_any_size(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    before = window.document.recipe
    _fill_in(window, "batch,784", "1..64", "1,7,64")
    wait_for_records(qtbot, window)
    document = window.document
    assert document.recipe is not None
    assert document.snapshot is not None
    assert document.recipe.dimensions == (Dimension(name="batch", high=64, sizes=(1, 7, 64)),)
    assert document.snapshot.model.inputs[0].shape == ("batch", 784)
    assert "batch×128" in {node.type.split()[0] for node in document.snapshot.fx}
    run_and_wait(qtbot, window)
    assert document.run_record is not None
    assert document.run_record.verdict == "match"
    table = window.panes.summary.sizes
    assert [row.key for row in table.rows()] == ["batch = 1", "batch = 7", "batch = 64"]
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe == before
    assert document.snapshot.model.inputs[0].shape == (1, 784)
    window.commands.action("redo").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe.dimensions[0].sizes == (1, 7, 64)

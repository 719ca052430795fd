"""Tracers, and nodes that are lowered in parts, in the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records

CLASSIFIER = """
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layer = nn.LSTM(8, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens))[0][:, -1])


def example_inputs():
    return (torch.randint(0, 20, (2, 4)),)
"""


def test_a_node_in_parts_and_the_tracers(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "classifier.py"
    path.write_text(CLASSIFIER)
    window = open_window(str(path))
    snapshot = window.document.snapshot
    assert snapshot is not None
    assert window.document.notes == ()
    node = next(node for node in snapshot.fx if node.parts)
    assert node.name == "layer"

    # The parts stand below the node; a click selects the part, its node, and its own bindings.
    window.panes.fx.set_current("table")
    keys = [row.key for row in window.panes.fx.table.rows()]
    place = keys.index("fx:layer")
    assert keys[place + 1 : place + 1 + len(node.parts)] == [part.id for part in node.parts]
    part = next(part for part in node.parts if part.target == "aten.linear.default")
    window.panes.fx.table.row_clicked.emit(part.id, Qt.KeyboardModifier.NoModifier)
    assert set(window.panes.fx.table.selected_keys()) == {"fx:layer", part.id}
    selection = window.document.selection
    assert set(selection.of_kind("relax")) == set(part.bindings)
    assert set(part.bindings) < set(node.bindings)
    assert list(window.panes.details.facts())[:2] == ["node", "target"]

    # The binding leads back to its part.
    window.document.select(part.bindings[:1])
    assert window.document.selection.of_kind("part") == (part.id,)

    window.commands.action("export").trigger()
    wait_for_records(qtbot, window)
    assert window.document.snapshot.tracer == "export"
    assert "aten.lstm.input" in {node.target for node in window.document.snapshot.fx}
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert window.document.snapshot.tracer == "fx"
    assert window.commands.action("auto").isChecked()

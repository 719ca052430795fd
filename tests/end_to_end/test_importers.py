"""TVM's importers as the translator, in the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_problem, wait_for_records

NORMED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(4 * 6 * 6, 3)
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)
        self.eval()

    def forward(self, x):
        return self.linear(torch.relu(self.norm(self.conv(x))).flatten(1))


def example_inputs():
    return (torch.randn(2, 1, 8, 8),)
"""


@pytest.mark.at_length
def test_an_importer_is_chosen_and_its_batch_norm_found(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    path.write_text(NORMED)
    window = open_window(str(path))
    document, bar = window.document, window.tool_bar
    first = window.panes.summary.first_difference
    assert window.commands.action("lowerscope").isChecked()
    assert bar.importer.isHidden()
    run_and_wait(qtbot, window)
    assert bar.verdict.role() == "right"
    assert first.isHidden()
    assert not window.commands.action("first-difference").isEnabled()

    window.commands.action("tvm-fx").trigger()
    wait_for_records(qtbot, window)
    assert not bar.importer.isHidden()
    assert "TVM from_fx" in bar.importer.accessibleName()
    assert "from_fx torch.nn.BatchNorm2d" in next(
        node.rule for node in document.snapshot.fx if node.name == "norm"
    )
    run_and_wait(qtbot, window)
    assert bar.verdict.role() == "wrong"
    assert first.node.text() == "norm"
    assert "from_fx torch.nn.BatchNorm2d" in first.why.text()
    window.commands.action("first-difference").trigger()
    assert document.selection.of_kind("fx") == ("fx:norm",)
    assert len(document.selection.of_kind("relax")) == 2
    document.select(())
    window.set_mode("run")
    qtbot.mouseClick(first.node, Qt.MouseButton.LeftButton)
    assert document.selection.of_kind("fx") == ("fx:norm",)

    # A library function is nothing that an importer makes; the rules do.
    window.commands.action("library").trigger()
    assert "from_fx does not support library functions" in wait_for_problem(qtbot, window)
    window.show_page("problems")
    buttons = window.panes.problems.findChildren(QPushButton)
    next(each for each in buttons if each.text().startswith("Translate with")).click()
    wait_for_records(qtbot, window)
    assert (document.recipe.translator, document.recipe.lowering) == ("lowerscope", "library")
    assert bar.importer.isHidden()

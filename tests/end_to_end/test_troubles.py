"""What goes wrong: bad files, open questions, changed files. What was open stays open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.dialogs import LineQuestion
from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.panes.sessions.opening import EntryDialog
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.end_to_end.small_nets import EXAMPLES, NET, write

QUESTIONS = """
import torch
from torch import nn

class First(nn.Module):
    pass

class Second(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(4, width)
    def forward(self, x):
        return self.linear(x) if len(x) > 5 else self.linear(x) + x.shape[0]
"""


def test_what_a_file_does_not_say_is_asked_for(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    path = write(tmp_path / "two.py", QUESTIONS)
    window = open_window(path, tracer="fx", wait=False)
    document = window.document

    def wait_for_code(code: str) -> None:
        qtbot.waitUntil(
            lambda: bool(document.problems) and document.problems[0].code == code,
            timeout=PATIENCE,
        )

    assert "First, Second" in wait_for_problem(qtbot, window)
    entry = next(each for each in window.findChildren(EntryDialog) if each.isVisible())
    entry.list.setCurrentRow(1)
    qtbot.keyClick(entry.list, Qt.Key.Key_Return)
    wait_for_code("give-args")
    arguments = next(each for each in window.findChildren(LineQuestion) if each.isVisible())
    assert "width" in arguments.answer()
    arguments.line.setText('{"width": 7}')
    arguments.act.click()
    wait_for_code("give-inputs")
    inputs = next(each for each in window.findChildren(InputsDialog) if each.isVisible())
    qtbot.keyClicks(inputs.row("x").shape, "2,4")
    inputs.buttons.button(inputs.buttons.StandardButton.Ok).click()
    # What the symbolic tracer cannot trace is offered to torch.export.
    qtbot.waitUntil(
        lambda: bool(document.problems) and "two.py:13" in document.problems[0].line(),
        timeout=PATIENCE,
    )
    buttons = window.panes.problems.findChildren(QPushButton)
    export = next(each for each in buttons if "torch.export" in each.text())
    qtbot.mouseClick(export, Qt.MouseButton.LeftButton)
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    assert document.run_record is not None
    assert document.run_record.outputs[0].shape == (2, 7)


def test_a_model_that_writes_a_file_when_it_is_first_opened_has_a_verdict(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    # The engine sees it written, the worker sees it read.
    remembers = """
from pathlib import Path
path = Path(__file__).parent / ("first" + "_time")
if not path.exists():
    path.write_text("seen")
path.read_text()
"""
    window = open_window(write(writable / "net.py", NET.format(name="Net") + EXAMPLES + remembers))
    run_and_wait(qtbot, window)
    wait_for_records(qtbot, window)
    assert window.document.run_record is not None
    assert window.tool_bar.verdict.isVisible()
    assert "reopened" not in window.banner.message()

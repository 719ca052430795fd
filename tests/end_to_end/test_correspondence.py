"""From a line of the user's file to the loops that it becomes, and back, in the real window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.widgets.code_view import CodeView
from tests.end_to_end.driving import PATIENCE, OpenWindow

LAYER = """\
import torch


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))
"""

MODEL = """\
import sys
import torch

sys.path.insert(0, {folder!r})
from correspondence_layer import Layer


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Layer()
        self.second = Layer()

    def forward(self, x):
        y = self.second(self.first(x))
        return torch.tanh(y)


def example_inputs():
    return torch.ones(4, 8)


entry = Net
"""


def marked(code: CodeView) -> list[str]:
    """The lines that are marked as selected, without their margins."""
    lines = code.text().split("\n")
    return [line.strip() for n, line in enumerate(lines) if code.editor.is_selected(n)]


def click(qtbot: QtBot, code: CodeView, wanted: str, x: int = 20) -> None:
    """Click the first line that has some words."""
    lines = code.text().split("\n")
    number = next(n for n, line in enumerate(lines) if wanted in line)
    code.go_to_line(number + 1)
    port = code.editor.viewport()
    row = next(row for n, row in code.editor.visible_lines(port.rect()) if n == number)
    at = QPoint(x, round(row.center().y()))
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=at)


def test_source_lines_nodes_functions_and_loops(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    (tmp_path / "correspondence_layer.py").write_text(LAYER, encoding="utf-8")
    model = tmp_path / "net.py"
    model.write_text(MODEL.format(folder=str(tmp_path)), encoding="utf-8")
    window = open_window(str(model), lowering="te", tracer="fx")
    panes, workspace = window.panes, window.workspace
    source = panes.fx.source
    panes.fx.set_current("source")
    code = source.text.script.code
    qtbot.waitUntil(lambda: "class Net" in code.text(), timeout=PATIENCE)
    assert [source.files.itemText(i) for i in range(source.files.count())] == [
        "net.py",
        "correspondence_layer.py",
    ]

    # A line of the file selects its node, and what that became.
    click(qtbot, code, "torch.tanh(y)")
    assert workspace.selection.chosen == ("fx:tanh",)
    assert marked(code) == ["return torch.tanh(y)"]
    assert len(marked(panes.relax.script.code)) == 1
    tensorir = panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def tir_tanh" in tensorir.text(), timeout=PATIENCE)

    # A node of the other file brings that file.
    relu = [node.id for node in workspace.snapshot.fx if "relu" in node.name]
    workspace.select((relu[0],))
    qtbot.waitUntil(lambda: "class Layer" in code.text(), timeout=PATIENCE)
    assert source.files.currentText() == "correspondence_layer.py"
    assert marked(code) == ["return torch.relu(self.linear(x))"]
    # The line makes two nodes each time that the layer is called.
    qtbot.keyClick(code.editor, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    click(qtbot, code, "torch.relu(self.linear(x))")
    assert set(relu) < set(workspace.selection.chosen)
    assert len(workspace.selection.chosen) == 4

    # A function that is called twice says so, and goes to each call.
    workspace.select((relu[0],))
    qtbot.waitUntil(lambda: "def te_relu" in tensorir.text(), timeout=PATIENCE)
    callers = panes.tensorir.callers
    assert callers.isVisible()
    assert len(callers.buttons) == 2
    for place, node in enumerate(relu):
        # The buttons are made anew with each selection.
        button = callers.buttons[place]
        name = button.text()
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert workspace.selection.chosen == (f"relax:main/{name}",)
        assert node in workspace.selection.linked
    assert "def te_relu" in tensorir.text()

    # A loop is marked with exactly its lines, and its function's nodes elsewhere.
    workspace.select(())
    click(qtbot, tensorir, "for i0, i1 in", x=60)
    lines = marked(tensorir)
    assert lines[0].startswith("for i0, i1 in")
    assert not any("def te_relu" in line for line in lines)
    assert workspace.selection.chosen[0].startswith("tir:te_relu/")
    assert marked(code) == ["return torch.relu(self.linear(x))"]
    relax = marked(panes.relax.script.code)
    assert len(relax) == 2
    assert all("cls.te_relu" in line for line in relax)

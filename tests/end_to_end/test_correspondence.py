"""From a line of the user's file to the loops that it becomes, and back, in the real window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Step
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records

FUSE = next(each.steps for each in PRESETS if each.name == "fuse")

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
    lines = code.editor.lines()
    return [line.strip() for n, line in enumerate(lines) if code.editor.is_selected(n)]


def click(qtbot: QtBot, code: CodeView, wanted: str, x: int = 20) -> None:
    """Click the first line that has some words."""
    lines = code.editor.lines()
    number = next(n for n, line in enumerate(lines) if wanted in line)
    code.editor.go_to(number)
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
    panes, document = window.panes, window.document
    source = panes.fx.source
    code = source.text.script.code
    qtbot.waitUntil(lambda: "class Net" in code.text(), timeout=PATIENCE)
    assert [source.files.itemText(i) for i in range(source.files.count())] == [
        "net.py",
        "correspondence_layer.py",
    ]

    # A line of the file selects its node, and what that became.
    click(qtbot, code, "torch.tanh(y)")
    assert document.selection.chosen == ("fx:tanh",)
    assert marked(code) == ["return torch.tanh(y)"]
    tensorir = panes.tensorir.script.code
    qtbot.waitUntil(lambda: "def tir_tanh" in tensorir.text(), timeout=PATIENCE)

    # A node of the other file brings that file.
    relu = [node.id for node in document.snapshot.fx if "relu" in node.name]
    document.select((relu[0],))
    qtbot.waitUntil(lambda: "class Layer" in code.text(), timeout=PATIENCE)
    assert source.files.currentText() == "correspondence_layer.py"
    assert marked(code) == ["return torch.relu(self.linear(x))"]
    # The line makes two nodes each time that the layer is called.
    qtbot.keyClick(code.editor, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    click(qtbot, code, "torch.relu(self.linear(x))")
    assert set(relu) < set(document.selection.chosen)
    assert len(document.selection.chosen) == 4

    document.select((relu[0],))
    qtbot.waitUntil(lambda: "def te_relu" in tensorir.text(), timeout=PATIENCE)

    # A loop is marked with exactly its lines, and its function's nodes elsewhere.
    document.select(())
    click(qtbot, tensorir, "for i0, i1 in", x=60)
    lines = marked(tensorir)
    assert lines[0].startswith("for i0, i1 in")
    assert not any("def te_relu" in line for line in lines)
    assert document.selection.chosen[0].startswith("tir:te_relu/")
    assert marked(code) == ["return torch.relu(self.linear(x))"]
    relax = marked(panes.relax.script.code)
    assert sum("cls.te_relu" in line for line in relax) == 2
    assert not any("cls." in line and "te_relu" not in line for line in relax)


def test_nodes_of_a_fused_function_have_lines_of_their_own(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te", steps=FUSE)
    panes, document = window.panes, window.document
    tensorir = panes.tensorir.script.code
    name = "fused_dense_add_te_relu"

    # From the node to the lines: its own blocks and buffers, and nothing of its neighbours.
    document.select(("fx:relu",))
    qtbot.waitUntil(lambda: f"def {name}(" in tensorir.text(), timeout=PATIENCE)
    lines = marked(tensorir)
    assert 'with T.sblock("relu"):' in lines
    assert not any("T_matmul" in line or 'T.sblock("T_add")' in line for line in lines)
    document.select(("fx:linear0",))
    lines = marked(tensorir)
    assert {'with T.sblock("T_matmul_NT"):', 'with T.sblock("T_add"):'} < set(lines)
    assert sum("T.sblock_alloc_buffer(" in line for line in lines) == 2
    assert not any('T.sblock("relu")' in line or line.startswith("def ") for line in lines)

    # From a line to its node alone, by mouse.
    document.select(())
    click(qtbot, tensorir, 'T.sblock("relu")', x=200)
    assert document.selection.of_kind("fx") == ("fx:relu",)
    assert "te_relu" in marked(panes.relax.script.code)[0]

    # Its call after the passes is the line of all that was fused.
    last = Moment(section="passes", index=len(document.snapshot.passes))
    window.features.stepping.go(last)
    called = panes.relax.script.stepped.script.code
    qtbot.waitUntil(lambda: f"cls.{name}," in called.text(), timeout=PATIENCE)
    click(qtbot, called, f"cls.{name},")
    assert document.selection.of_kind("fx") == ("fx:linear0", "fx:relu")
    window.features.stepping.leave()
    qtbot.waitUntil(lambda: f"def {name}(" in tensorir.text(), timeout=PATIENCE)

    # Lines have the colours of their nodes, here and in what LLVM makes of them.
    colouring = window.features.colouring
    window.commands.action("line-colours").trigger()
    marks = tensorir.editor.marks
    shown = tensorir.editor.lines()

    def colour(wanted: str) -> str:
        number = next(n for n, line in enumerate(shown) if wanted in line)
        return marks.tint_of(number, theme.current())

    add, relu = colour('T.sblock("T_add")'), colour('T.sblock("relu")')
    assert colour('T.sblock("T_matmul_NT")') == add
    assert add != relu
    assert colour(f"def {name}(") == ""
    panes.tensorir.set_current("llvm")
    llvm = panes.tensorir.compiled["llvm"].script
    qtbot.waitUntil(lambda: "define" in llvm.code.text(), timeout=PATIENCE)
    # What was compiled for the text is listed to the metal.
    qtbot.waitUntil(lambda: bool(window.features.stepping.lines("build")), timeout=PATIENCE)
    loops = {span.entity for span in llvm.record.spans if "/T_matmul_NT/" in span.entity}
    assert loops
    assert {colouring.node_of(each).id for each in loops} == {"fx:linear0"}
    document.select(("fx:linear0",))
    own = marked(llvm.code)
    document.select(("fx:relu",))
    assert own
    assert marked(llvm.code)
    assert set(own) != set(marked(llvm.code))
    window.commands.action("line-colours").trigger()

    # Where a pass has mixed them up, it is not known.
    mixing = "tirx.ForceNarrowIndexToInt32"
    document.change_fields(steps=(*FUSE, Step(name=mixing)))
    wait_for_records(qtbot, window)
    panes.tensorir.set_current("script")
    qtbot.waitUntil(
        lambda: f"{name} was changed by {mixing}" in panes.tensorir.context(), timeout=PATIENCE
    )
    qtbot.waitUntil(lambda: 'T.sblock("relu")' in tensorir.text(), timeout=PATIENCE)
    assert marked(tensorir) == []
    click(qtbot, tensorir, 'T.sblock("relu")', x=200)
    assert document.selection.chosen[0].startswith(f"tir:{name}/relu")
    assert document.selection.of_kind("fx") == ()

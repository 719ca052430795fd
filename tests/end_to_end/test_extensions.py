"""Rules of the user's own and library files, in the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.snapshot import FxNode
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)

MODULE = """
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        with R.dataflow():
            lv0 = R.call_dps_packed("env.relu", (x,), out_ty=R.Tensor((1, 4), "float32"))
            R.output(lv0)
        return lv0

def example_inputs():
    return (np.ones((1, 4), "float32"),)
"""

LIBRARY = """
import numpy as np
import tvm

@tvm.register_global_func("env.relu", override=True)
def numpy_relu(x, out):
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))
"""


def node_of(window: MainWindow, name: str) -> FxNode:
    snapshot = window.document.snapshot
    assert snapshot is not None
    return next(node for node in snapshot.fx if node.name == name)


def choose(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Let the user choose a file in the next dialog."""
    for method in ("getOpenFileName", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, method, lambda *_, **__: (str(path), ""))


def texts(window: MainWindow) -> str:
    labels = window.panes.problems.findChildren(QLabel)
    return "\n".join(label.text() for label in labels)


def test_a_rule_is_written_for_a_node_edited_and_read_again(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    assert not window.commands.action("write-rule").isEnabled()
    path = tmp_path / "my_rules.py"
    choose(monkeypatch, path)
    for name, count in (("relu", 1), ("linear0", 2)):
        window.document.select((f"fx:{name}",))
        window.commands.action("write-rule").trigger()
        qtbot.waitUntil(
            lambda name=name: node_of(window, name).rule_line is not None, timeout=PATIENCE
        )
        wait_for_records(qtbot, window)
        assert path.read_text().count("@rule(") == count
    # The rule for one linear layer is the rule for the other.
    assert node_of(window, "linear1").rule.startswith("my_linear, my_rules.py:")
    # Details say which rule it was, and open its file.
    window.document.select(("fx:relu",))
    assert window.panes.details.facts()["rule"].startswith("my_relu, my_rules.py:")
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    window.panes.details.rule_wanted.emit()
    assert opened == [str(path)]
    assert QGuiApplication.clipboard().text().startswith(f"{path}:")
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    path.write_text(path.read_text().replace("return builder.emit_te(te_relu, x)", "return 3"))
    window.commands.action("reload").trigger()
    qtbot.waitUntil(lambda: node_of(window, "relu").rule_line is None, timeout=PATIENCE)
    assert "without my_relu, my_rules.py:" in node_of(window, "relu").rule
    assert "my_relu: it returned a value of type int" in texts(window)
    assert f"{path}:" in texts(window)
    path.write_text("import nowhere_at_all\n" + path.read_text())
    window.commands.action("reload").trigger()
    line = wait_for_problem(qtbot, window)
    assert line.startswith(f"{path}:1: running the file failed: ModuleNotFoundError")
    assert node_of(window, "relu").name == "relu"


def test_a_missing_function_is_told_and_its_file_loaded(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, library = tmp_path / "module.py", tmp_path / "functions.py"
    module.write_text(MODULE)
    library.write_text(LIBRARY)
    window = open_window(str(module))
    assert window.panes.drawer.current() == "problems"
    assert "env.relu is not registered; called by lv0 in main" in texts(window).replace("✕ ", "")
    page = window.panes.tensorir.library.table
    assert [cell.text for cell in page.rows()[0].cells] == ["env.relu", "not registered", "lv0", ""]
    window.commands.action("run").trigger()
    assert "env.relu is not registered" in wait_for_problem(qtbot, window)
    choose(monkeypatch, library)
    buttons = window.panes.problems.findChildren(QPushButton)
    next(button for button in buttons if button.text() == "Load a library file…").click()
    qtbot.waitUntil(lambda: not window.document.problems, timeout=PATIENCE)
    wait_for_records(qtbot, window)
    assert page.rows()[0].cells[1].text == "functions.py:5"

    # The function and its callers are one selection.
    page.row_clicked.emit("ext:env.relu", Qt.KeyboardModifier.NoModifier)
    assert window.document.selection.of_kind("relax") == ("relax:main/lv0",)
    run_and_wait(qtbot, window)
    assert not window.document.problems
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert "not registered" in texts(window)

"""Strategies chosen node by node, in the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import InputSpec, Override
from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records


def strategies(window: MainWindow) -> dict[str, str]:
    snapshot = window.document.snapshot
    assert snapshot is not None
    return {node.name: node.strategy for node in snapshot.fx if node.strategy}


def badges(window: MainWindow) -> dict[str, str]:
    return {node.title: node.badge for node in window.panes.fx.graph.canvas.graph().boxes}


def test_a_node_gets_a_strategy_of_its_own_and_loses_it(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    window.document.select(("fx:relu",))
    # By the command and not by its key: a display without a window manager activates no window.
    window.commands.action("selection-te").trigger()
    wait_for_records(qtbot, window)
    assert strategies(window) == {"linear0": "high-level", "relu": "te", "linear1": "high-level"}
    assert badges(window)["relu"] == "TE"
    assert "R.call_tir(cls.te_relu" in window.panes.relax.script.code.text()
    assert window.tool_bar.overrides.isVisible()
    assert window.tool_bar.overrides.text() == "1 override"

    window.commands.action("selection-reset").trigger()
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"high-level"}
    assert not window.tool_bar.overrides.isVisible()
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert strategies(window)["relu"] == "te"


def test_three_strategies_in_one_module_run(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:conv_net", lowering="te")
    nodes = [f"fx:{name}" for name in strategies(window)]
    window.document.select(nodes[:2])
    window.commands.action("selection-library").trigger()
    wait_for_records(qtbot, window)
    window.document.select(nodes[-1:])
    window.commands.action("selection-high-level").trigger()
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"high-level", "te", "library"}
    assert window.tool_bar.overrides.text() == "3 overrides"
    text = window.panes.relax.script.code.text()
    assert 'R.call_dps_packed("torch.' in text
    assert "R.call_tir(" in text
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
    window.commands.action("reset-overrides").trigger()
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"te"}


def test_the_whole_model_in_the_library(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp")
    switch = window.tool_bar.lowering
    place = switch.segment_rect("library").center().toPoint()
    qtbot.mouseClick(switch, Qt.MouseButton.LeftButton, pos=place)
    wait_for_records(qtbot, window)
    assert set(strategies(window).values()) == {"library"}
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"


def test_overrides_by_pattern_come_from_the_recipe(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window(
        "sample:fashion_mlp", overrides=(Override(pattern="linear*", strategy="te"),)
    )
    assert strategies(window) == {"linear0": "te", "relu": "high-level", "linear1": "te"}


NOISY = """
import torch
from torch import nn
from torch.nn import functional as F

class Noisy(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5) + 1, x * 2
"""


def test_an_output_without_a_finite_value_is_inconclusive(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    """One output has no finite value, the other one has one that is not."""
    body = "return torch.exp(200 + x * x), torch.cat([x, torch.log(x[:1] - x[:1])])"
    (tmp_path / "overflow.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n"
        f"    def forward(self, x):\n        {body}\n"
    )
    spec = InputSpec(name="x", shape=(4, 4), dtype="float32")
    window = open_window(str(tmp_path / "overflow.py"), inputs=(spec,))
    run_and_wait(qtbot, window)
    verdict = window.tool_bar.verdict
    assert (verdict.role(), verdict.text()) == ("unsure", "? inconclusive · 20 not finite")
    shown = [row.cells[-1] for row in window.panes.result.outputs.rows()]
    texts = [cell if isinstance(cell, str) else cell.text for cell in shown]
    assert texts[0].startswith("? inconclusive: 16 infinities on both sides")
    assert texts[1] == "✓ matches: 4 infinities on both sides"


def test_what_depends_on_random_numbers_is_said_to_be_not_comparable(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    spec = InputSpec(name="x", shape=(4, 4), dtype="float32")
    window = open_window(str(tmp_path / "noisy.py"), inputs=(spec,))
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "neutral"
    assert "not comparable" in window.tool_bar.verdict.accessibleName()
    reason = "not comparable: output[0] depends on dropout, which draws random numbers"
    assert reason in window.tool_bar.verdict.toolTip()
    shown = [row.cells[-1] for row in window.panes.result.outputs.rows()]
    texts = [cell if isinstance(cell, str) else cell.text for cell in shown]
    random = "– not comparable: depends on dropout, which draws random numbers"
    assert texts == [random, "✓ matches"]
    snapshot = window.document.snapshot
    assert snapshot is not None
    assert [node.name for node in snapshot.fx if node.random] == ["dropout"]

"""The values of a node beside torch's: figures, heat maps, slices, saved arrays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.tensor_page import Side, TensorPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Extension
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait

MODEL = """
import torch


class Painter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 3, 3)
        self.relu = torch.nn.ReLU()
        self.clip = torch.nn.Hardtanh(-4.0, 4.0)

    def forward(self, x):
        return self.clip(self.relu(self.conv(x)))


def example_inputs():
    return torch.linspace(-1, 1, 2 * 12 * 14).reshape(2, 1, 12, 14)


entry = Painter
"""

WRONG = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(0.5, "float32"))
"""

Painter = tuple[str, tuple[Extension, ...]]


@pytest.fixture
def painter(tmp_path: Path) -> Painter:
    model, rules = tmp_path / "painter.py", tmp_path / "wrong.py"
    model.write_text(MODEL)
    rules.write_text(WRONG)
    extension = Extension(path=str(rules), kind="rules")
    return str(model), (extension,)


def values_by_torch() -> dict[str, torch.Tensor]:
    """Return torch's own value of each node."""
    names: dict[str, object] = {}
    exec(compile(MODEL, "painter.py", "exec"), names)  # the file that the window opens
    torch.manual_seed(0)
    net = names["Painter"]()  # type: ignore[operator]
    with torch.inference_mode():
        conv = net.conv(names["example_inputs"]())  # type: ignore[operator]
        return {"conv": conv, "relu": net.relu(conv), "clip": net.clip(net.relu(conv))}


def trigger(window: MainWindow, key: str) -> None:
    action = window.commands.action(key)
    assert action.isEnabled()
    action.trigger()


def facts(page: TensorPage) -> dict[str, str]:
    return {row.key: row.cell(1).text for row in page.facts.rows()}


def look_at(qtbot: QtBot, window: MainWindow, entity: str) -> TensorPage:
    """Select a node and wait for its values."""
    window.document.select((entity,))
    trigger(window, "compare-values")
    page = window.panes.compare.tensor
    qtbot.waitUntil(lambda: page.is_current, timeout=PATIENCE)
    settle(qtbot, page)
    return page


def settle(qtbot: QtBot, page: TensorPage) -> None:
    matrix = page.matrix

    def came() -> None:
        assert matrix.is_current
        assert matrix.views[matrix.shown[0]].map.piece() is not None

    qtbot.waitUntil(came, timeout=PATIENCE)


def shown(page: TensorPage, side: Side) -> np.ndarray:
    piece = page.matrix.views[side].map.piece()
    assert piece is not None
    return np.array(piece.values).reshape(piece.height, piece.width)


def choose(qtbot: QtBot, page: TensorPage, side: Side) -> None:
    """Show a side, by the key that switches between values and their difference."""
    if side not in page.matrix.shown:
        page.matrix.switch()
        settle(qtbot, page)
    assert side in page.matrix.shown


def test_the_values_of_a_node_are_those_of_both_sides(
    qtbot: QtBot, open_window: OpenWindow, painter: Painter, tmp_path: Path
) -> None:
    window = open_window(painter[0], extensions=painter[1])
    page = window.panes.compare.tensor
    trigger(window, "compare-values")
    assert not page.isVisible()
    assert window.panes.outcome.empty.isVisible()
    run_and_wait(qtbot, window)
    expected = values_by_torch()
    right, ours = expected["relu"].numpy(), expected["relu"].numpy() + np.float32(0.5)

    page = look_at(qtbot, window, "fx:relu")
    known = facts(page)
    assert page.verdict.text().startswith("✕ differs")
    assert known["max-abs"] == "0.50 at most"
    size = right.size
    assert known["outside"] == f"{size:,} of {size:,} elements · 100.0%"
    cosine = float((ours.ravel() @ right.ravel()) / np.linalg.norm(ours) / np.linalg.norm(right))
    assert float(known["cosine"]) == pytest.approx(cosine, abs=1e-6)
    assert known["torch"].startswith(f"{right.min():.4g} … {right.max():.4g}")
    assert sum(page.histogram.counts()) == size

    # The slice with the largest difference is there; another one by its field, on each side.
    slices = page.matrix.slices
    assert slices.isVisible()
    batch, channel = slices.fields
    batch.setValue(1)
    channel.setValue(2)
    settle(qtbot, page)
    for side, values in (("torch", right), ("tvm", ours), ("difference", ours - right)):
        choose(qtbot, page, side)
        np.testing.assert_allclose(shown(page, side), values[1, 2], rtol=1e-4, atol=1e-5)
    maps = {side: view.map for side, view in page.matrix.views.items()}
    maps["difference"].set_cursor(3, 5)
    # The other maps go along.
    assert maps["tvm"].at() == maps["torch"].at() == (3, 5)
    readout = page.matrix.readout.text()
    assert readout.startswith("[1, 2, 3, 5]")
    assert f"torch {right[1, 2, 3, 5]:.9g}" in readout
    assert readout.endswith("✕ out of tolerance")

    # A click on what is largest goes there.
    page.worst.row_clicked.emit("7", None)
    settle(qtbot, page)
    worst = page.worst.rows()[7].cell(0).text
    assert f"[{', '.join(map(str, (*slices.index(), *maps['tvm'].at())))}]" == worst
    page.facts.row_clicked.emit("max-rel", None)
    settle(qtbot, page)
    at = tuple(int(each) for each in known["max-rel"].partition("[")[2].rstrip("]").split(", "))
    assert (*slices.index(), *maps["tvm"].at()) == at

    # What is saved is what each side has computed.
    for side, values in (("torch", right), ("tvm", ours), ("difference", ours - right)):
        path = tmp_path / f"{side}.npy"
        page.save_to(side, str(path))  # type: ignore[arg-type]
        qtbot.waitUntil(path.exists, timeout=PATIENCE)
        qtbot.waitUntil(lambda at=path: window.banner.isVisible() and at.stat().st_size > 0)
        saved = np.load(path)
        assert saved.shape == values.shape
        if side == "torch":
            np.testing.assert_array_equal(saved, values)
        else:
            np.testing.assert_allclose(saved, values, rtol=1e-4, atol=1e-5)

    # An error that came from above is told from one that starts here.
    trigger(window, "compare-nodes")
    table = window.panes.compare.nodes.table
    said = {row.key: row.cell(len(row.cells) - 1).text for row in table.rows()}
    assert said["fx:relu"] == "✕ starts here"
    assert said["fx:clip"] == "inherited"
    page = look_at(qtbot, window, "fx:clip")
    assert page.verdict.text().startswith("✕ differs")
    page.bases._choose(1)
    qtbot.waitUntil(lambda: page.verdict.text() == "✓ matches", timeout=PATIENCE)
    settle(qtbot, page)
    choose(qtbot, page, "difference")
    assert math.isclose(float(np.abs(shown(page, "difference")).max()), 0.0, abs_tol=1e-5)

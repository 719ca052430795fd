"""A rule schedules the function at the workbench: a history like any other, with its reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.commands import RulesDialog
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 1)

    def forward(self, x):
        return torch.relu(self.linear(torch.sigmoid(x)))

def example_inputs():
    return (torch.randn(4, 32)[:1],)
"""


def test_the_whole_model_is_scheduled_by_one_click(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    recipe = Recipe(source=Source(spec=str(path)), lowering="te")
    bench.begin(recipe)
    document = bench.window.document
    tensorir = bench.window.panes.tensorir
    tensorir.set_current("functions")
    QTest.mouseClick(tensorir.by_rules, LEFT)
    dialog = bench.window.findChild(RulesDialog)
    assert dialog is not None
    bench.wait(lambda: bench.window.features.variants.rules.functions and not document.is_changing)
    assert dialog.isVisible()
    assert document.recipe is not None
    assert [each.name for each in document.recipe.steps] == ["LegalizeOps", "ApplyRules"]
    rows = {
        row.key: [each if isinstance(each, str) else each.text for each in row.cells]
        for row in dialog.table.rows()
    }
    assert rows["tir_sigmoid"][2] == "✓ elementwise"
    # What no rule is for says so, and stays as it is: a single value.
    assert rows["te_relu"][2] == "✕ none"
    assert "no rule" in rows["te_relu"][4]
    fits = sum(row[2] != "✕ none" for row in rows.values())
    assert 0 < fits < len(rows)
    assert dialog.summary.text().startswith(f"A rule fits {fits} of {len(rows)} functions")
    assert dialog.in_model.isChecked()
    # One click more takes it back, and so does undo.
    QTest.mouseClick(dialog.in_model, LEFT)
    bench.wait(lambda: document.recipe is not None and not document.recipe.steps[-1].on)
    for count in (2, 1):
        bench.window.commands.action("undo").trigger()
        bench.wait(lambda: not document.is_changing)
        assert document.recipe is not None
        assert len(document.recipe.steps) == count
    assert not dialog.in_model.isChecked()
    dialog.close()

"""A rule schedules the function at the workbench: a history like any other, with its reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.rules_dialog import RulesDialog
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


def test_a_click_writes_a_history_that_computes_the_same(bench: Bench) -> None:
    QTest.mouseClick(bench.view.by_rule, LEFT)
    bench.wait(lambda: bench.record.steps)
    bench.settle()
    assert [each.status for each in bench.record.steps] == ["done"] * len(bench.record.steps)
    assert all(each.comment for each in bench.record.steps)
    assert "vectorized" in bench.script
    names = [each.variant for each in bench.window.features.variants.all]
    assert names == ["by rule"]
    # What the step says of itself can be read in the history.
    key = bench.record.steps[-1].id
    cell = bench.view.history.strip.cell(key)
    assert cell is not None
    assert bench.record.steps[-1].comment in cell.tooltip
    assert bench.record.steps[-1].comment in bench.code.line.whole()
    bench.wait(lambda: bench.view.standing.verdict.text().startswith("✓"))
    # It is an ordinary history: a step can be switched off, and the rest is applied again.
    bench.view.history.strip.select(key)
    bench.window.commands.action("switch-primitive").trigger()
    bench.wait(lambda: bench.record.steps[-1].status == "off")
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: bench.record.steps[-1].status == "done")
    # Another click is another variant; what was there stays.
    bench.window.commands.action("by-rule").trigger()
    bench.wait(lambda: len(bench.window.features.variants.all) == 2)
    names = [each.variant for each in bench.window.features.variants.all]
    assert names == ["by rule", "by rule 2"]


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

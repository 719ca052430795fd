"""Provenance of the code of the first node that differs: rule, passes and schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source, Step
from lowerscope.core.model.schedule import APPLY_SCHEDULES, At, Primitive, Schedule
from lowerscope.core.stages import Pipeline

WRONG = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32"))
"""

SPLIT = Primitive(
    id="s1", name="split", arguments={"loop": At(block="T_add", loop=1), "factors": (None, 4)}
)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return str(path)


def test_the_first_difference_says_its_rule_its_passes_and_its_schedule(rules: str) -> None:
    steps = tuple(Step(name=name) for name in ("LegalizeOps", "FoldConstant", APPLY_SCHEDULES))
    recipe = Recipe(
        source=Source(spec="sample:fashion_mlp"),
        extensions=(Extension(path=rules, kind="rules"),),
        schedules=(Schedule(function="add1", primitives=(SPLIT,)),),
        steps=steps,
    )
    record = Pipeline().answer(RunQuery(recipe))
    assert record.first_difference == "fx:relu"
    made = record.first_made
    assert "shifted" in made.rule
    # FoldConstant has nothing to fold in it.
    assert made.passes == ("LegalizeOps", "ApplySchedules")
    (schedule,) = made.schedules
    assert schedule.startswith("add1: split ")


UNSURE = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return torch.log(-1 - self.relu(x) ** 2)


def example_inputs():
    return (torch.randn(2, 4),)
"""


def test_an_inconclusive_run_names_the_node_that_differs_above(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "unsure.py", tmp_path / "report.html"
    path.write_text(UNSURE)
    assert main(["run", str(path), "--rules", rules, "--html", str(report)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Inconclusive: ")
    assert "First difference: relu (" in out
    assert "The first node that differs is <b>relu</b>" in report.read_text(encoding="utf-8")
    assert main(["run", str(path), "--rules", rules, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["first_difference"]) == ("inconclusive", "fx:relu")
    assert "shifted" in record["first_made"]["rule"]
    assert main(["compare", str(path), "--rules", rules]) == 1
    assert "; first difference: relu" in capsys.readouterr().out
    # Nothing differs without the rule, and nothing is named.
    assert main(["run", str(path), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["first_difference"]) == ("inconclusive", "")


def test_the_command_line_says_so_too(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:fashion_mlp", "--rules", rules]) == 1
    out = capsys.readouterr().out
    assert "First difference: relu" in out
    assert "passes on it: LegalizeOps" in out

"""How the code of the first node that differs was made: rule, passes and schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.cli import main
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Extension, Recipe, Source, Step
from lowerscope.core.schedules import APPLY_SCHEDULES, At, Primitive, Schedule

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
    record = Pipeline().run(recipe, Silent())
    assert record.first_difference == "fx:relu"
    made = record.first_made
    assert "shifted" in made.rule
    # FoldConstant has nothing to fold in it.
    assert made.passes == ("LegalizeOps", "ApplySchedules")
    (schedule,) = made.schedules
    assert schedule.startswith("add1: split ")


def test_the_command_line_says_so_too(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:fashion_mlp", "--rules", rules]) == 1
    out = capsys.readouterr().out
    assert "First difference: relu" in out
    assert "passes on it: LegalizeOps" in out

"""Rules that are written for nodes: they run as they are, and give the numbers of before."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.export.rule_files import write_rule
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source, Strategy
from lowerscope.core.stages import Pipeline

pytestmark = pytest.mark.usefixtures("shared_results")

MODEL = """
import operator
import torch
import torch.nn.functional as F
from torch import nn

class Many(nn.Module):
    def __init__(self):
        super().__init__()
        self.modules_of_one = nn.ModuleList([
            nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.ReLU(), nn.GELU(),
            nn.GELU(approximate="tanh"), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.Softmax(dim=-1),
            nn.LayerNorm(6), nn.Hardswish(), nn.LeakyReLU(0.1), nn.ReLU(inplace=True),
        ])
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, image, ids):
        parts = [module(x.clone()) for module in self.modules_of_one]
        parts += [F.relu(x), F.gelu(x), F.relu6(x), torch.exp(x), torch.log(x.abs() + 1), x.tanh()]
        parts += [torch.sqrt(x.square() + 1), torch.floor(x), x.ceil(), x.cos(), torch.sin(x), -x]
        parts += [torch.sub(x, x * 2, alpha=2), x / 3, x ** 2, torch.matmul(x, x.t()), x @ x.t()]
        parts += [x.sum(dim=1, keepdim=True), x.mean(), x.softmax(dim=0), torch.reciprocal(x + 9)]
        parts += [torch.cat([x, x], dim=1), torch.stack((x, x)), torch.clamp(x, -1, 0.5)]
        parts += [x.reshape(2, 18), x.transpose(0, 1), x.permute(1, 0), x.unsqueeze(0), x[1:, ::2]]
        parts += [torch.where(x > 0, x, x * 3), torch.maximum(x, x.flip(0)), x.to(torch.float64)]
        parts += [torch.chunk(x, 2, dim=1), x.argmax(1), F.embedding(ids, x)]
        parts += [x.masked_fill(x < 0, 7.0)]
        parts += [self.drop(self.pool(F.relu(self.norm(self.conv(image))))).flatten(1)]
        parts += [torch.fft.rfft(x).real, x.cumsum(0), (x * 2).add_(1), ids + 1]
        return parts

def example_inputs():
    torch.manual_seed(3)
    return torch.randn(6, 6), torch.randn(1, 2, 8, 8), torch.tensor([0, 2, 5])
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "many.py"
    path.write_text(MODEL)
    return path


def with_rules(recipe: Recipe, path: Path) -> Recipe:
    return msgspec.structs.replace(recipe, extensions=(Extension(path=str(path), kind="rules"),))


def write_all(pipeline: Pipeline, recipe: Recipe, path: Path) -> dict[str, str]:
    """Write a rule for every node that may have one; return the operators by node."""
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    written = {}
    for node in snapshot.fx:
        if not node.strategy:
            continue
        with contextlib.suppress(LowerscopeError):
            write_rule(pipeline.stages(recipe), node.name, str(path))
            written[node.name] = node.rule
    return written


@pytest.mark.diagonal
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("lowering", ["high-level", "te"])
def test_rules_for_many_operators_run_as_they_are_written(
    pipeline: Pipeline, many: Path, tmp_path: Path, lowering: Strategy, tracer: Any
) -> None:
    recipe = Recipe(source=Source(spec=str(many)), lowering=lowering, tracer=tracer)
    before = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    path = tmp_path / "my_rules.py"
    written = write_all(pipeline, recipe, path)
    ruled = with_rules(recipe, path)
    snapshot = pipeline.answer(SnapshotQuery(ruled, DEFAULT))
    # Rules for the same operator are the same; the last one counts.
    assert [note for note in snapshot.notes if "lowered without it" in note.text] == []
    by_rule = {node.name: node for node in snapshot.fx if node.rule_line is not None}
    assert set(by_rule) == set(written)
    operators = {node.rule.partition(",")[0].rstrip("_0123456789") for node in by_rule.values()}
    assert len(operators) >= 45
    # What ran in torch does so still, and nothing else.
    in_torch = {node.name for node in before.fx if node.strategy == "library"}
    assert {node.name for node in snapshot.fx if node.strategy == "library"} == in_torch
    run = pipeline.answer(RunQuery(ruled, quick=True))
    assert run.verdict == "match", run.reason
    text = path.read_text()
    assert text.count("from lowerscope.core.rules import") <= 2
    assert ("te.compute" in text) == (lowering == "te")


def test_the_command_writes_a_file_and_adds_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text('"""Mine."""\n\nfrom tvm import te\n\nVALUE = 3\n')
    arguments = ["rule", "sample:fashion_mlp", "--lowering", "te", "--output", str(path)]
    for node, line in (("linear0", 10), ("relu", 33)):
        assert main([*arguments, "--node", node]) == 0
        assert capsys.readouterr().out == f"{path}:{line}\n"
    text = path.read_text()
    ast.parse(text)
    assert text.startswith('"""Mine."""\n\nfrom tvm import te\nimport torch\n')
    assert "VALUE = 3" in text
    assert text.count("import torch\n") == 1
    assert "from tvm import tirx\n" in text
    assert "def my_linear(builder, node, x):" in text
    options = ["run", "sample:fashion_mlp", "--lowering", "te", "--rules", str(path)]
    assert main(options) == 0
    assert "Matches torch" in capsys.readouterr().out
    assert main(["show", *options[1:], "--stage", "fx"]) == 0
    assert "te, my_relu, mine.py:33" in capsys.readouterr().out


def test_what_has_no_rule_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    for node, reason in (("x", "x is not a call"), ("nobody", "there is no node nobody")):
        command = ["rule", "sample:fashion_mlp", "--node", node, "--output", str(path)]
        assert main(command) == 2
        err = capsys.readouterr().err
        assert reason in err
        assert "Choose one of linear0, relu, linear1" in err or "Choose one of " in err
    assert not path.exists()
    path.write_text("def (:\n")
    assert main([*command[:3], "relu", "--output", str(path)]) == 2
    assert f"{path}:1: this is not valid Python" in capsys.readouterr().err
    assert path.read_text() == "def (:\n"
    assert main([*command[:3], "relu", "--output", str(tmp_path / "mine.txt")]) == 2
    assert "it is not a Python file" in capsys.readouterr().err
    module = ["rule", "sample:mlp_tvmscript", "--node", "x", "--output", str(path)]
    assert main(module) == 2
    assert "builds an IRModule" in capsys.readouterr().err

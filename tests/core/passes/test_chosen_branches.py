"""The step that computes only the side of a branch that is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.ir.relax import relax_functions
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.passes import chosen_branches
from lowerscope.core.passes.chosen_branches import choose_branches
from lowerscope.core.stages import Pipeline


@I.ir_module
class Nested:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")) -> R.Tuple(
        R.Tensor((4, 8), "float32"), R.Tensor((4, 8), "float32")
    ):
        with R.dataflow():
            total = R.sum(x)
            positive = R.greater(total, R.const(0.0, "float32"))
            product = R.matmul(x, w)
            activated = R.nn.relu(product)
            grown = R.exp(x)
            few = R.less(R.sum(grown), R.const(40.0, "float32"))
            other = R.matmul(grown, w)
            inner = R.where(few, other, grown)
            first = R.where(positive, activated, inner)
            second = R.where(positive, product, x)
            both = R.add(first, second)
            R.output(both, second)
        return (both, second)


def run(module: tvm.IRModule, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return [each.numpy() for each in machine["main"](*map(tvm.runtime.tensor, arrays))]


def branches(module: tvm.IRModule) -> int:
    found: list[Any] = []
    for _name, function in relax_functions(module):
        relax.analysis.post_order_visit(
            function, lambda each: found.append(each) if isinstance(each, relax.If) else None
        )
    return len(found)


def test_branches_within_branches_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_branches(Nested).same_as(Nested), "its sides are small"
    monkeypatch.setattr(chosen_branches, "WORTH", 1)
    module = choose_branches(Nested)
    assert branches(module) == 2
    names = {name for name, _function in relax_functions(module)}
    assert names == {"main", "branch", "then", "otherwise", "branch_1", "then_1", "otherwise_1"}
    main = module["main"]
    assert "where" not in main.script()
    assert "matmul" not in main.script()
    rng = np.random.default_rng(0)
    for shift in (-2.0, 0.0, 2.0):
        x = (rng.normal(size=(4, 8)) + shift).astype("float32")
        w = rng.normal(size=(8, 8)).astype("float32")
        for expected, actual in zip(run(Nested, x, w), run(module, x, w), strict=True):
            np.testing.assert_array_equal(actual, expected)


MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.large = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
        self.small = nn.Linear(256, 64)

    def forward(self, x):
        y = torch.cond(x.mean() > 0, lambda x: self.large(x), lambda x: self.small(x), (x,))
        if y.sum() > 1e6:
            y = self.small(self.large[0](x))
        return y.relu()

torch.manual_seed(0)
model = Net()
example_inputs = torch.randn(16, 256) SIGN
"""


@pytest.mark.parametrize("sign", ["+ 1", "- 1"])
def test_a_model_with_branches_matches_torch(pipeline: Pipeline, tmp_path: Path, sign: str) -> None:
    path = tmp_path / "net.py"
    path.write_text(MODEL.replace("SIGN", sign), encoding="utf-8")
    recipe = Recipe(source=Source(spec=str(path)), steps=find_pipeline("optimise-cpu").steps)
    assert branches(pipeline.stages(recipe).transformed.module) == 2
    record = pipeline.answer(RunQuery(recipe))
    assert record.verdict == "match", record.reason
    statuses = {each.id: each.status for each in record.nodes}
    assert statuses["fx:relu"] == "matches"
    # A node of the second branch, which is not chosen, has no value.
    assert "differs" not in statuses.values()


NAMED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.large = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256))

    def forward(self, x):
        longer = torch.cat([x, x[:, :1]], 1)
        mean = torch.cond(
            x.mean() > 0,
            lambda x: self.large(x.mean(1)),
            lambda x: x[:, -1] * 2.0,
            (longer,),
        )
        square = torch.cond(
            x.mean() > 0,
            lambda x: x.transpose(1, 2) @ x,
            lambda x: self.large(x[:, 0])[:, None] + torch.zeros(4, 256, 256),
            (x,),
        )
        return mean, square

torch.manual_seed(0)
model = Net()
example_inputs = torch.randn(4, 7, 256)
"""


def test_what_reads_named_extents_stays_outside_of_a_branch(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    path.write_text(NAMED, encoding="utf-8")
    recipe = recipe_of_command(
        (
            "run",
            str(path),
            "--input",
            "x=4,n,256:float32",
            "--dim",
            "n=2..64",
            "--pipeline",
            "optimise-cpu",
        )
    )
    assert branches(pipeline.stages(recipe).transformed.module) == 2
    record = pipeline.answer(RunQuery(recipe))
    assert record.verdict == "match", record.reason

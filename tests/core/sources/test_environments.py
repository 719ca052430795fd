"""Files that import neighbours or register functions, opened by turns."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

LATE = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        import helper
        return x + helper.VALUE

def example_inputs():
    return (torch.ones(1, 4),)
"""

LIBRARY = """
import numpy as np
import tvm
from tvm.script import ir as I
from tvm.script import relax as R

@tvm.register_global_func("env.scale")
def scale(x, out):
    out.copyfrom(x.numpy() * FACTOR)

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("env.scale", (x,), out_ty=R.Tensor((1, 4), "float32"))
            R.output(y)
        return y

def example_inputs():
    return (np.ones((1, 4), "float32"),)
"""


def folder_with(path: Path, **files: str) -> Recipe:
    path.mkdir()
    for name, text in files.items():
        (path / f"{name}.py").write_text(text)
    return Recipe(source=Source(spec=str(path / "model.py")))


def test_each_file_gets_its_own_neighbour_late(tmp_path: Path) -> None:
    first = folder_with(tmp_path / "a", model=LATE, helper="VALUE = 1.0")
    second = folder_with(tmp_path / "b", model=LATE, helper="VALUE = 100.0")
    pipeline = Pipeline()
    for recipe in (first, second, first):
        assert pipeline.answer(RunQuery(recipe)).verdict == "match"
    exported = msgspec.structs.replace(first, tracer="export")
    pipeline.answer(SnapshotQuery(second, DEFAULT))
    text = pipeline.answer(SnapshotQuery(exported, DEFAULT)).relax.text
    assert "R.const(1.0" in text
    assert pipeline.answer(RunQuery(exported)).verdict == "match"


def test_a_registered_function_is_that_of_the_file_that_runs(tmp_path: Path) -> None:
    recipes = {
        factor: folder_with(
            tmp_path / f"times{factor}", model=LIBRARY.replace("FACTOR", str(factor))
        )
        for factor in (2, 3)
    }
    pipeline = Pipeline()
    for factor in (2, 3, 2):
        recipe = recipes[factor]
        with pipeline.stages(recipe).loaded.environment():
            pass
        assert pipeline.answer(RunQuery(recipe)).verdict == "no-reference"
        again = msgspec.structs.replace(recipe, seed=factor + 7)
        assert pipeline.answer(RunQuery(again)).verdict == "no-reference"

"""Library files: the functions that they register, who calls them, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of

MODULE = """
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((1, 4), "float32"), w: R.Tensor((3, 4), "float32"), b: R.Tensor((3,), "float32")
    ) -> R.Tensor((1, 3), "float32"):
        with R.dataflow():
            lv0 = R.call_dps_packed("env.linear", (x, w, b), out_ty=R.Tensor((1, 3), "float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), out_ty=R.Tensor((1, 3), "float32"))
            R.output(lv1)
        return lv1

def example_inputs():
    return (
        np.ones((1, 4), "float32"),
        np.ones((3, 4), "float32"),
        np.array([-6, 0, 2], "float32"),
    )
"""

LINEAR = """import torch
import tvm

@tvm.register_global_func("env.linear", override=True)
def torch_linear(x, w, b, out):
    from scales import SCALE

    x, w, b, out = (torch.from_dlpack(each) for each in (x, w, b, out))
    torch.mm(x, w.T * SCALE, out=out)
    torch.add(out, b, out=out)
"""

RELU = """import numpy as np
import tvm

@tvm.register_global_func("env.relu", override=True)
def numpy_relu(x, out):
    np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))

@tvm.register_global_func("env.idle", override=True)
def nobody_calls(x, out): ...
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return a module whose functions two other files register, in a folder of their own."""
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "linear.py").write_text(LINEAR)
    (folder / "relu.py").write_text(RELU)
    (folder / "scales.py").write_text("SCALE = 1\n")
    return path


def library(module: Path, *names: str) -> tuple[Extension, ...]:
    folder = module.parent / "functions"
    return tuple(Extension(path=str(folder / f"{name}.py"), kind="library") for name in names)


def recipe_of(module: Path, *names: str) -> Recipe:
    return Recipe(source=Source(spec=str(module)), extensions=library(module, *names))


def snapshot_of(pipeline: Pipeline, recipe: Recipe) -> Snapshot:
    return pipeline.answer(SnapshotQuery(recipe, DEFAULT))


def test_a_module_runs_with_functions_of_other_files(
    module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(module.parent / "functions" / name) for name in ("linear.py", "relu.py")]
    options = ["--library", files[0], "--library", files[1]]
    assert main(["run", str(module), *options, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "no-reference"
    assert err == ""
    assert main(["show", str(module), *options, "--stage", "library"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["function", "registered", "in", "called", "by", "nodes"]
    assert lines[2].split() == ["env.linear", f"{files[0]}:4", "lv0", "in", "main"]
    assert lines[3].split() == ["env.relu", f"{files[1]}:4", "lv1", "in", "main"]
    assert lines[4].split() == ["env.idle", f"{files[1]}:8", "nothing"]
    assert main(["show", str(module), *options, "--stage", "library", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)[1]
    assert record["id"] == "ext:env.relu"
    assert record["origin"] == "file"
    assert record["line"]["line"] == 4
    assert record["calls"] == ["relax:main/lv1"]


def test_the_functions_compute(module: Path) -> None:
    pipeline = Pipeline()
    recipe = recipe_of(module, "linear", "relu")
    outputs = pipeline.answer(RunQuery(recipe)).outputs
    assert [output.shape for output in outputs] == [(1, 3)]
    key = pipeline.answer(RunQuery(recipe)).key
    # What a library file imports as the model runs is a part of the key.
    (module.parent / "functions" / "scales.py").write_text("SCALE = 20\n")
    assert pipeline.answer(RunQuery(recipe)).key != key
    assert snapshot_of(pipeline, recipe).key == pipeline.answer(RunQuery(recipe)).key


def test_what_is_missing_is_a_problem_to_act_on(module: Path) -> None:
    pipeline = Pipeline()
    recipe = recipe_of(module, "linear")
    (note,) = snapshot_of(pipeline, recipe).notes
    assert note.code == "missing-function"
    problem = problem_of(pipeline.answer, RunQuery(recipe))
    assert problem.code == "missing-function"
    assert problem.choices == ("env.relu",)
    origins = {each.name: each.origin for each in snapshot_of(pipeline, recipe).library}
    assert origins == {"env.linear": "file", "env.relu": "missing"}
    # One file was loaded before; without the other it is gone again.
    both = recipe_of(module, "linear", "relu")
    assert pipeline.answer(RunQuery(both)).verdict == "no-reference"
    with pytest.raises(LowerscopeError, match=r"env\.relu is not registered"):
        pipeline.answer(RunQuery(recipe))
    linear, relu = both.extensions
    off = msgspec.structs.replace(
        both, extensions=(linear, msgspec.structs.replace(relu, on=False))
    )
    assert snapshot_of(pipeline, off).notes == (note,)

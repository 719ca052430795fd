"""Passes of the user's own, from a Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import CatalogueQuery, RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Extension, OptionValue, Recipe, Source, Step
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.stages import Pipeline

MLP = Source(spec="sample:fashion_mlp")

FILE = '''\
import tvm
from tvm import relax
from tvm.relax.transform import FuseOps


@tvm.transform.module_pass(opt_level=0)
def nothing(module, context):
    """Do nothing."""
    return module


@tvm.tirx.transform.prim_func_pass(opt_level=0)
def marked(function, module, context):
    return function.with_attr("marked", 1)


@relax.transform.function_pass(opt_level=0)
class Named:
    """Note a name."""

    def __init__(self, name: str = "x"):
        self.name = name

    def transform_function(self, function, module, context):
        return function.with_attr("named", self.name)


def divide(by: int, times: int = 1) -> tvm.transform.Pass:
    """Divide.

    Parameters
    ----------
    by
        The divisor.
    """

    @tvm.transform.module_pass(opt_level=0)
    def divided(module, context):
        module = relax.transform.LegalizeOps()(module)
        times / by
        return module

    return divided


def hidden(of: relax.Function) -> tvm.transform.Pass: ...


def helper(of: int) -> int:
    return of


_private = relax.transform.FuseTIR()
both = tvm.transform.Sequential([relax.transform.LegalizeOps(), relax.transform.FoldConstant()])
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def recipe(file: Path, *steps: Step) -> Recipe:
    return Recipe(source=MLP, steps=steps, extensions=(Extension(path=str(file), kind="passes"),))


def snapshot(file: Path, name: str, /, **options: OptionValue) -> Snapshot:
    step = Step(name=name, options=options)
    return Pipeline().answer(SnapshotQuery(recipe(file, step), DEFAULT))


def test_what_a_file_defines_is_in_the_catalogue(file: Path) -> None:
    types = {each.name: each for each in Pipeline().answer(CatalogueQuery(recipe(file)))}
    own = [each for each in types.values() if each.dialect == "mine"]
    assert [each.name.removeprefix("mine.") for each in own] == [
        "nothing",
        "marked",
        "Named",
        "divide",
        "hidden",
        "both",
    ]
    assert types["mine.nothing"].summary == "Do nothing."
    line = types["mine.divide"].line
    assert line is not None
    assert (Path(line.file), line.text) == (file, FILE.splitlines()[line.line - 1])
    by, times = types["mine.divide"].options
    assert (by.name, by.kind, by.required, by.doc) == ("by", "int", True, "The divisor.")
    assert (times.kind, times.default) == ("int", 1)
    assert types["mine.Named"].options[0].default == "x"
    assert "of: Function" in types["mine.hidden"].hindrance


def test_they_are_steps_like_others(file: Path) -> None:
    steps = (
        Step(name="mine.both"),
        Step(name="mine.marked"),
        Step(name="mine.Named", options={"name": "y"}),
        Step(name="mine.divide", options={"by": 2}),
    )
    pipeline = Pipeline()
    transformed = pipeline.stages(recipe(file, *steps)).transformed
    transformed.check()
    module = transformed.module
    assert module["main"].attrs["named"] == "y"
    assert module["matmul"].attrs["marked"] == 1
    inside = [run.name for run in transformed.runs if run.step == 1 and run.depth == 1]
    assert inside == ["LegalizeOps", "FoldConstant"]
    assert pipeline.answer(RunQuery(recipe(file, *steps))).verdict == "match"


def test_what_fails_in_it_points_at_its_line(file: Path) -> None:
    record = snapshot(file, "mine.divide", by=0)
    (note,) = (each for each in record.notes if each.code == "failed-step")
    number = FILE.splitlines().index("        times / by") + 1
    assert note.where == f"{file}:{number}"
    assert "step 1 (mine.divide)" in note.text
    assert "division" in note.text
    step, inside = record.passes
    assert (step.status, inside.name, inside.status) == ("failed", "LegalizeOps", "done")


def test_a_changed_file_is_read_anew(file: Path) -> None:
    pipeline = Pipeline()
    steps = (Step(name="LegalizeOps"), Step(name="mine.marked"))
    before = pipeline.stages(recipe(file, *steps)).transformed.module
    file.write_text(FILE.replace('"marked", 1', '"marked", 2'))
    after = pipeline.stages(recipe(file, *steps)).transformed.module
    assert (before["matmul"].attrs["marked"], after["matmul"].attrs["marked"]) == (1, 2)

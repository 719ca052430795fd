"""Runs that come to a bad end in this process, and the call that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.sandbox.running_call import CallWriter, new_file, read
from lowerscope.core.stages import Pipeline
from tests.faulty_functions import ASKS_FOR_MUCH, RAISES, faulty_relu

NESTED = """
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module(s_tir=True)
class Nested:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32")):
        for i in T.parallel(64):
            for j in T.parallel(64):
                with T.sblock("Y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((64, 64), "float32")) -> R.Tensor((64, 64), "float32"):
        cls = Nested
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), R.Tensor((64, 64), "float32"))
            R.output(y)
        return y


def example_inputs():
    return (np.ones((64, 64), "float32"),)
"""


def mlp(extensions: tuple[Extension, ...] = ()) -> Recipe:
    return Recipe(source=Source(spec="sample:fashion_mlp"), extensions=extensions)


@pytest.mark.parametrize(
    ("body", "said", "code"),
    [(ASKS_FOR_MUCH, "out of memory", "memory"), (RAISES, "the run failed", "")],
)
def test_the_call_that_fails_is_named(
    pipeline: Pipeline, tmp_path: Path, body: str, said: str, code: str
) -> None:
    with pytest.raises(LowerscopeError) as caught:
        pipeline.answer(RunQuery(mlp(faulty_relu(tmp_path, body)), True))
    problem = caught.value.problem
    assert problem.where == "in call 4 of 7, env.faulty (relu)"
    assert problem.what.startswith(said)
    assert problem.code == code


def test_loops_in_parallel_inside_of_one_another_are_an_error(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    recipe = Recipe(source=Source(spec=str(path)))
    with pytest.raises(LowerscopeError, match="Nested parallel loop is not supported"):
        pipeline.answer(RunQuery(recipe, quick=True))


def test_each_call_is_known_in_the_file_while_it_is_under_way(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    file = new_file()
    seen: list[str] = []

    class Told(Silent):
        def __init__(self) -> None:
            self.writer = CallWriter(file)

        def begin_calls(self, names: object) -> None:
            self.writer.begin(names)  # type: ignore[arg-type]

        def at_call(self, index: int, inside: bool) -> None:
            self.writer.at(index, inside)
            seen.append(read(file).text)

    pipeline.answer(RunQuery(mlp(), True), Told())
    assert "before call 1 of 7, transpose (linear0)" in seen
    assert "in call 4 of 7, relu (relu)" in seen
    assert "after the last of 7 calls" in seen
    assert read(file).text == ""
    os.close(file)

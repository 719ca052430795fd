"""Values that are bound within one another are stored before a build, and stay the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.ir.stored_values import with_stored_values
from lowerscope.core.ir.tensorir import collected
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

NET = """
import torch
import torch.nn.functional as F

class Net(torch.nn.Module):
    def forward(self, x):
        return {value}

model = Net()
example_inputs = (torch.randn({shape}).to(torch.{dtype}),)
"""
LONG = "torch.atan2((x.exp() + 1).log(), x)"


@pytest.mark.parametrize(
    ("value", "shape", "dtype"),
    [
        (LONG, (4, 8, 8), "float32"),
        (LONG, (4, 8, 8), "bfloat16"),
        (LONG, (3, 1, 7), "float32"),
        (f"({LONG}).sum(-1)", (5, 33), "float32"),
        ("torch.atan2(F.softplus(x), x), F.softplus(x) + 1", (70, 13), "float32"),
        ("x.pow(2.3).nan_to_num()", (4, 64), "float32"),
        (f"F.pad({LONG}, (1, 1))", (4, 16), "float32"),
        (f"{LONG} + {LONG}.flip(0) * F.mish(x.roll(1, 1))", (8, 16), "float32"),
        (f"torch.cat([{LONG}, F.mish(x) * x.exp(), x], 1)", (4, 15), "float32"),
    ],
)
def test_they_are_the_same_when_stored(
    value: str, shape: tuple[int, ...], dtype: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET.format(value=value, shape=shape, dtype=dtype))
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec=str(path)), steps=steps, target="native")
    pipeline = Pipeline()
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
    runs = pipeline.stages(recipe).recorded.runs
    assert "StoreValues" in [each.name for each in runs]


def test_few_values_are_left_alone_and_what_many_read_stays_under_its_condition() -> None:
    x = tirx.decl_buffer([8], "float32", "x")
    y = tirx.decl_buffer([8], "float32", "y")

    def module_of(count: int, conditional: bool) -> tvm.IRModule:
        i = tirx.Var("i", "int64")
        value = tirx.BufferLoad(x, [i])
        for number in range(count):
            variable = tirx.Var(f"v{number}", "float32")
            value = tirx.Let(variable, value, variable * variable)
        if conditional:
            value = tirx.if_then_else(i < 4, value, tirx.const(0, "float32"))
        axis = tirx.IterVar(tvm.ir.Range(0, tirx.const(8, "int64")), i, 0)
        block = tvm.s_tir.SBlock([axis], [], [], "y", tirx.BufferStore(y, value, [i]))
        j = tirx.Var("j", "int64")
        realized = tvm.s_tir.SBlockRealize([j], True, block)
        zero, eight = tirx.const(0, "int64"), tirx.const(8, "int64")
        loop = tirx.For(j, zero, eight, tirx.ForKind.SERIAL, realized)
        root = tvm.s_tir.SBlock([], [], [], "root", loop)
        body = tvm.s_tir.SBlockRealize([], True, root)
        return tvm.IRModule({"main": tirx.PrimFunc([x, y], body)})

    few = module_of(2, conditional=True)
    assert with_stored_values(few) is few
    for conditional in (False, True):
        (changed,) = with_stored_values(module_of(9, conditional)).functions.values()
        assert not collected(changed.body, tirx.Let)
        (read,) = (each for each in changed.script().splitlines() if " x[" in each or "(x[" in each)
        assert ("if_then_else" in read) == conditional


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_variable_may_be_bound_to_one_value_after_another(is_nested: bool) -> None:
    first, second = tirx.Var("first", "float32"), tirx.Var("second", "float32")

    def bound(value: tirx.Expr) -> tirx.Expr:
        return tirx.Let(first, value + 1, tirx.Let(second, first * 2, second * value + first))

    def expected(value: np.ndarray) -> np.ndarray:
        return (value + 1) * 2 * value + value + 1

    x = te.placeholder((8,), "float32", "x")
    y = te.compute(
        (8,), lambda i: bound(bound(x[i])) if is_nested else bound(x[i]) + bound(x[7 - i])
    )
    module = with_stored_values(tvm.IRModule({"main": te.create_prim_func([x, y])}))
    (function,) = module.functions.values()
    assert not collected(function.body, tirx.Let)
    numbers = np.arange(8, dtype="float32")
    result = tvm.runtime.tensor(np.zeros_like(numbers))
    tvm.compile(module, "llvm")["main"](tvm.runtime.tensor(numbers), result)
    right = expected(expected(numbers)) if is_nested else expected(numbers) + expected(7 - numbers)
    assert result.numpy().tolist() == right.tolist()


def test_a_condition_is_read_under_those_around_it() -> None:
    x = te.placeholder((8,), "float32", "x")

    def bound(i: tirx.Expr) -> tirx.Expr:
        value = x[i]
        for number in range(5):
            variable = tirx.Var(f"v{number}", "float32")
            value = tirx.Let(variable, value, variable * variable)
        return tirx.if_then_else(i < 4, tirx.if_then_else(x[i] > 0, value, 1.0), 0.0)

    y = te.compute((8,), bound)
    module = with_stored_values(tvm.IRModule({"main": te.create_prim_func([x, y])}))
    (line, *_more) = (each for each in module.script().splitlines() if "v0[" in each)
    assert line.count("if_then_else") == 2
    assert " and " not in line

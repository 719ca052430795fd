"""Schedules by rule: they fit, compute the same, say why, and can be replayed and edited."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx, topi

from lowerscope.core.build.build import compile_function
from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.schedule import At, Primitive
from lowerscope.core.model.schedule import Schedule as Kept
from lowerscope.core.passes.winograd import winograd
from lowerscope.core.schedule.rules.by_rule import by_rule, scheduled_by_rule
from lowerscope.core.schedule.rules.recorder import ScheduleRecorder
from lowerscope.core.stages import Pipeline
from tests.core.schedule.ruling import NARROW, WIDE, made
from tests.core.schedule.running import Runner
from tests.diagonal import at_length

pytestmark = pytest.mark.usefixtures("shared_results")


def product(m: int, n: int, k: int, dtype: str, *, transposed: bool, relu: bool) -> Any:
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="B")
    c = topi.matmul(a, b, transp_b=transposed)
    return te.create_prim_func([a, b, topi.nn.relu(c) if relu else c])


def convolution(
    channels: int, filters: int, size: int, kernel: int, stride: int, *, bias: bool
) -> Any:
    x = te.placeholder((1, channels, size, size), name="x")
    w = te.placeholder((filters, channels, kernel, kernel), name="w")
    y = topi.nn.conv2d(x, w, stride, kernel // 2, 1, data_layout="NCHW")
    if not bias:
        return te.create_prim_func([x, w, y])
    b = te.placeholder((1, filters, 1, 1), name="b")
    return te.create_prim_func([x, w, b, topi.nn.relu(topi.add(y, b))])


def by_winograd(
    batch: int, channels: int, filters: int, size: tuple[int, ...], padding: tuple[int, ...]
) -> tirx.PrimFunc:
    """Return the function of Winograd's algorithm of a convolution."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((batch, channels, *size), "float32"))
    weights = relax.const(np.zeros((filters, channels, *(3 for _ in size))), "float32")
    convolution = {2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}[len(size)]
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(convolution(x, weights, padding=list(padding)))
        builder.emit_func_output(y)
    functions = winograd(builder.get()).functions.values()
    (function,) = (each for each in functions if isinstance(each, tirx.PrimFunc))
    return function


def modules(sample: str, steps: tuple[str, ...]) -> dict[str, tirx.PrimFunc]:
    recipe = Recipe(
        source=Source(spec=f"sample:{sample}"), steps=tuple(Step(name=each) for each in steps)
    )
    functions = Pipeline().stages(recipe).transformed.module.functions
    return {
        str(variable.name_hint): function
        for variable, function in functions.items()
        if isinstance(function, tirx.PrimFunc)
    }


def test_no_step_is_refused_whatever_the_tile_and_the_values_are_the_same() -> None:
    """Of a step that is refused, nothing is seen but another rule."""
    functions = [
        *(convolution(4, filters, 9, 3, 1, bias=True) for filters in (8, 16, 24)),
        *(convolution(3, 16, size, 3, 2, bias=False) for size in (5, 13)),
        *(
            product(m, n, 24, "float32", transposed=transposed, relu=True)
            for m, n in ((1, 16), (13, 13), (17, 10), (64, 24))
            for transposed in (False, True)
            if m > 1 or not transposed
        ),
    ]
    runner = Runner(WIDE)
    for number, function in enumerate(functions):
        assert by_rule(function, NARROW).rule == "contraction", function.script()
        ruled, after = made(function, WIDE)
        assert ruled.rule == "contraction", function.script()
        assert runner.difference(str(number), function, after) is None, function.script()


WINOGRAD = {
    "whole": by_winograd(1, 16, 32, (14, 14), (1, 1, 1, 1)),
    "in parts": by_winograd(1, 128, 16, (30, 28), (0, 0, 0, 0)),
    "odd": by_winograd(3, 32, 16, (7, 9), (0, 1, 2, 1)),
    "deep, whole": by_winograd(2, 16, 32, (3, 9, 7), (0, 1, 2, 1, 0, 1)),
    "deep, in parts": by_winograd(1, 16, 64, (4, 56, 56), (1, 1, 1, 1, 1, 1)),
    "a prime number of tiles": by_winograd(1, 16, 48, (13, 21), (1, 2, 1, 2)),
}
WIDEST = tvm.target.Target({"kind": "llvm", "num-cores": 2, "mcpu": "skylake-avx512"})


@pytest.mark.parametrize("target", [WIDE, *at_length(NARROW, WIDEST)], ids=["avx2", "sse", "512"])
def test_parts_of_winograd_convolutions_compute_the_same(target: tvm.target.Target) -> None:
    runner = Runner(target)
    for name, plain in WINOGRAD.items():
        for function in (plain, plain.with_attr("layout_free_buffers", [1])):
            ruled, after = made(function, target)
            assert ruled.rule == "Winograd", (name, ruled.reason)
            assert all(each.comment for each in ruled.primitives)
            if target is WIDEST:
                # Not every machine runs its code.
                module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
                assert "zmm" in tvm.compile(module, target).mod.inspect_source("asm")
            else:
                assert runner.difference(name, plain, after) is None, name


@pytest.mark.parametrize("rows", [6, 77, 197])
def test_no_sum_is_tested_for_whether_it_exists(rows: int) -> None:
    """LLVM keeps such sums in memory: half as fast as in registers."""
    function = product(rows, 64, 24, "float32", transposed=False, relu=True)
    ruled, scheduled = scheduled_by_rule(function, WIDE)
    assert ruled.rule == "contraction"
    body = scheduled.script().partition("matmul_update")[2].partition("T.reads")[0]
    assert "T.axis.reduce" in body
    assert "T.where" not in body


def test_the_model_is_scheduled_by_rules_but_for_what_has_a_schedule(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    relu = next(each for each in modules("fashion_mlp", ("LegalizeOps",)) if "relu" in each)
    block = ScheduleRecorder(modules("fashion_mlp", ("LegalizeOps",))[relu], NARROW).blocks()[0]
    step = Primitive(id="s1", name="unroll", arguments={"loop": At(block=block, loop=1)})
    file = save_schedules([by_hand(relu, step)], str(tmp_path / "own.json"))
    options = ["sample:fashion_mlp", "--schedule", "rules", "--schedule", str(file)]
    assert main(["run", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "match"
    assert main(["show", *options, "--stage", "tensorir", "--function", relu]) == 0
    shown = capsys.readouterr().out
    assert "T.unroll" in shown
    assert "T.vectorized" not in shown
    assert main(["show", *options, "--stage", "tensorir", "--function", "matmul"]) == 0
    assert "T.vectorized" in capsys.readouterr().out
    assert main(["passes", *options]) == 0
    names = capsys.readouterr().out
    assert names.index("ApplySchedules") < names.index("ApplyRules")


def by_hand(function: str, *steps: Primitive) -> Kept:
    return Kept(function=function, primitives=steps)


@pytest.mark.parametrize("size", [(128, 56, 56), (64, 24, 40)])
def test_rows_that_vectors_do_not_divide_are_stored_as_vectors(size: tuple[int, ...]) -> None:
    x = te.placeholder((1, *size), name="x")
    _found, function = scheduled_by_rule(te.create_prim_func([x, topi.nn.relu(x)]), WIDE)
    text = compile_function("relu", function, WIDE).mod.inspect_source("ll")
    assert re.search(r"store <\d+ x float>", text)
    assert not re.search(r"(div|rem) <\d+ x i", text)

"""Schedules by rule: they fit, compute the same, say why, and can be replayed and edited."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tvm import relax, s_tir, te, tirx, topi

from lowerscope.core.build.build import compile_function
from lowerscope.core.build.targets import make_target
from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, save_schedules
from lowerscope.core.ir.tensorir import collected
from lowerscope.core.lowering.rules.normalisation import te_group_norm
from lowerscope.core.lowering.rules.reduction import te_first_place
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.schedule import At, Primitive
from lowerscope.core.model.schedule import Schedule as Kept
from lowerscope.core.passes.matrix_transposes import te_product
from lowerscope.core.passes.padded_convolutions import pad_convolutions
from lowerscope.core.passes.vector_math import vector_math
from lowerscope.core.passes.winograd import winograd
from lowerscope.core.schedule.rules.by_rule import by_rule, scheduled_by_rule
from lowerscope.core.schedule.rules.contraction import any_size
from lowerscope.core.schedule.rules.recorder import ScheduleRecorder, machine_of
from lowerscope.core.stages import Pipeline
from tests.core.schedule.ruling import NARROW, WIDE, legalised, made
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
    "deep tiles, whole": by_winograd(2, 16, 32, (5, 9, 7), (0, 1, 2, 1, 1, 1)),
    "deep tiles, in parts": by_winograd(1, 16, 64, (7, 28, 28), (1, 1, 1, 1, 1, 1)),
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


PADDINGS: dict[str, Callable[[Any], Any]] = {
    "replicated": lambda j: tirx.max(0, tirx.min(31, j - 4)),
    "circular": lambda j: (j + 28) % 32,
    "reflected": lambda j: 31 - abs_of(31 - abs_of(j - 4)),
}


def abs_of(value: Any) -> Any:
    return tirx.Select(value >= 0, value, 0 - value)


@pytest.mark.parametrize("index", PADDINGS.values(), ids=PADDINGS)
def test_what_is_inside_of_a_padding_is_copied_in_vectors(index: Callable[[Any], Any]) -> None:
    x = te.placeholder((6, 32), name="x")
    padded = te.compute((6, 40), lambda i, j: x[i, index(j)], name="padded")
    function = te.create_prim_func([x, padded])
    ruled, after = made(function, WIDE)
    assert ruled.rule == "movement"
    code = compile_function("padded", after, WIDE)
    assert re.search(r"vmovup[sd].*ymm", code.mod.inspect_source("asm"))
    assert Runner(WIDE).difference("padded", function, after) is None


def by_padding(filters: int, size: tuple[int, ...], groups: int, stride: int) -> tirx.PrimFunc:
    """Return the function of a convolution whose filters and rows are padded."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 4 * groups, *size), "float32"))
    weights = relax.const(np.zeros((filters, 4, *(3 for _ in size))), "float32")
    convolution = {1: relax.op.nn.conv1d, 2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}[len(size)]
    with builder.function("main", [x]):
        with builder.dataflow():
            y = convolution(x, weights, padding=[1] * len(size), groups=groups, strides=stride)
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    functions = pad_convolutions(builder.get()).functions.values()
    (function,) = (each for each in functions if isinstance(each, tirx.PrimFunc))
    return function


@pytest.mark.parametrize("target", [WIDE, *at_length(NARROW)], ids=["avx2", "sse"])
def test_padded_convolutions_are_tiles_of_registers(target: tvm.target.Target) -> None:
    runner = Runner(target)
    for case in (
        (15, (7, 19), 1, 1),
        (18, (6, 33), 1, 2),
        (45, (17,), 1, 1),
        (9, (3, 4, 5), 1, 1),
        (14, (5, 6), 2, 1),
        (96, (5, 17), 3, 2),
    ):
        plain = by_padding(*case)
        for function in (plain, plain.with_attr("layout_free_buffers", [1])):
            ruled, after = made(function, target)
            assert ruled.rule == "contraction", (case, ruled.reason)
            assert "T.vectorized" in after.script()
            assert runner.difference(str(case), plain, after) is None, case


def test_rows_of_groups_are_finished_after_all_of_them() -> None:
    """A tile of padded filters of a group has places in the next one."""
    recorder = ScheduleRecorder(by_padding(12, (4, 5), 2, 1), NARROW)
    assert any_size(recorder, machine_of(NARROW))
    assert "reverse_compute_at" not in [each.name for each in recorder.primitives]


@pytest.mark.parametrize("rows", [6, 77, 197])
def test_no_sum_is_tested_for_whether_it_exists(rows: int) -> None:
    """LLVM keeps such sums in memory: half as fast as in registers."""
    function = product(rows, 64, 24, "float32", transposed=False, relu=True)
    ruled, scheduled = scheduled_by_rule(function, WIDE)
    assert ruled.rule == "contraction"
    body = scheduled.script().partition("matmul_update")[2].partition("T.reads")[0]
    assert "T.axis.reduce" in body
    assert "T.where" not in body


@pytest.mark.parametrize("bias", [False, True])
def test_a_factor_of_a_whole_plane_is_computed_once(*, bias: bool) -> None:
    """As of the channels in a squeeze-and-excitation block."""
    x, planes = placeholder("x", 1, 24, 1, 1), placeholder("planes", 1, 32, 9, 9)
    weights, shift = placeholder("w", 32, 24, 1, 1), placeholder("b", 1, 32, 1, 1)
    gate = topi.nn.conv2d(x, weights, 1, 0, 1, data_layout="NCHW")
    gate = topi.sigmoid(topi.add(gate, shift)) if bias else gate
    given = [x, weights, *([shift] if bias else []), planes]
    function = te.create_prim_func([*given, topi.nn.relu(topi.multiply(gate, planes))])
    function = function.with_attr("layout_free_buffers", [1])
    ruled, after = made(function, WIDE)
    assert ruled.rule == "contraction", ruled.reason
    (name,) = re.findall(r'"(\w+_update)"', after.script())
    sch = s_tir.Schedule(after)
    loops = sch.get_loops(sch.get_sblock(name))
    assert math.prod(int(sch.get(each).extent) for each in loops) == 32 * 24
    assert Runner(WIDE).difference("gate", function, after) is None


N = tirx.Var("n", "int64")


@pytest.mark.parametrize("target", [WIDE, *at_length(NARROW, WIDEST)], ids=["avx2", "sse", "512"])
@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        (relax.op.matmul, ((N, 16), (16, 24))),
        (relax.op.matmul, ((2, N, 16), (2, 16, 24))),
        (relax.op.matmul, ((2, 5, N), (2, N, 24))),
        (relax.op.matmul, ((2, N, 16), (2, 16, N))),
        (relax.op.nn.conv2d, ((N, 8, 15, 15), (32, 8, 3, 3))),
    ],
)
def test_products_with_a_named_size_are_tiles_of_registers(
    operator: Any, shapes: Any, target: tvm.target.Target
) -> None:
    """Row by row, they take up to a hundred times as long."""
    function = legalised(operator, *shapes)
    ruled, scheduled = made(function, target)
    assert ruled.rule == "contraction"
    body = scheduled.script().partition("_update")[2].partition("T.reads")[0]
    assert "T.where" not in body
    assert Runner(target).difference("product", function, scheduled) is None


@pytest.mark.parametrize("keys", [64, 101, tirx.Var("n", "int64")])
def test_a_stack_of_rows_times_matrices_is_reduced_in_lanes(keys: Any) -> None:
    """As the queries of one token with the keys of all, which are not transposed for it."""
    query, stack = te.placeholder((3, 1, 48), name="q"), te.placeholder((3, keys, 48), name="k")
    product = te_product(query, stack, [0, 2, 1], "float32")
    ruled, after = made(te.create_prim_func([query, stack, product]), WIDE)
    assert ruled.rule == "matrix times vector", ruled.reason
    code = compile_function("rows", after, WIDE).mod.inspect_source("asm")
    assert re.search(r"vfmadd.*ymm", code)
    if isinstance(keys, int):
        function = te.create_prim_func([query, stack, product])
        assert Runner(WIDE).difference("rows", function, after) is None


def test_columns_that_do_not_fit_into_the_nearest_cache_serve_several_rows() -> None:
    """Read again for each of 197 rows, which is a prime, they would come from the next cache."""
    for terms, is_padded in ((1536, True), (24, False)):
        function = product(197, 384, terms, "float32", transposed=False, relu=True)
        ruled, _scheduled = scheduled_by_rule(function, WIDEST)
        assert ("pad_einsum" in [each.name for each in ruled.primitives]) == is_padded


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


# Rules for reductions, softmax and norms: they fit, and compute what the function computes


NN = relax.op.nn
NATIVE = make_target("native", 2)
LENGTHS = st.sampled_from((1, 3, 8, 13, 16, 31, 64, 100, 197))

OPERATORS: dict[str, tuple[Callable[..., Any], Callable[[int, int], list[tuple[int, ...]]]]] = {
    "softmax": (lambda x: NN.softmax(x, -1), lambda m, n: [(2, m, n)]),
    "softmax over channels": (lambda x: NN.softmax(x, 1), lambda m, n: [(1, m, 3, n)]),
    "log_softmax": (lambda x: NN.log_softmax(x, -1), lambda m, n: [(m, n)]),
    "layer_norm": (
        lambda x, g, b: NN.layer_norm(x, g, b, [-1]),
        lambda m, n: [(1, m, n), (n,), (n,)],
    ),
    "rms_norm": (lambda x, g: NN.rms_norm(x, g, [-1]), lambda m, n: [(m, n), (n,)]),
    "group_norm": (
        lambda x, g, b: NN.group_norm(x, g, b, 2, 1, [2]),
        lambda m, n: [(2, 2 * m, n), (2 * m,), (2 * m,)],
    ),
    "instance_norm": (
        lambda x, g, b: NN.instance_norm(x, g, b, 1, [2, 3]),
        lambda m, n: [(1, m, 5, n), (m,), (m,)],
    ),
    "batch_norm": (
        lambda x, g, b, m, v: NN.batch_norm(x, g, b, m, v, 1, training=True)[0],
        lambda m, n: [(2, m, 3, n), *[(m,)] * 4],
    ),
    "sum": (lambda x: relax.op.sum(x, [1]), lambda m, n: [(m, n)]),
    "sum of columns": (lambda x: relax.op.sum(x, [0]), lambda m, n: [(m, n)]),
    "sum of all": (relax.op.sum, lambda m, n: [(m, n)]),
    "mean of planes": (lambda x: relax.op.mean(x, [2, 3]), lambda m, n: [(2, m, 7, n)]),
    "mean of channels": (lambda x: relax.op.mean(x, [0, 2, 3]), lambda m, n: [(2, m, 3, n)]),
    "dot products of rows": (
        lambda x, y: relax.op.einsum((x, y), "ij,ij->i"),
        lambda m, n: [(m, n), (m, n)],
    ),
    "max": (lambda x: relax.op.max(x, [1], keepdims=True), lambda m, n: [(m, n)]),
    "argmax": (lambda x: relax.op.argmax(x, 1), lambda m, n: [(m, n)]),
    "std": (lambda x: relax.op.std(x, [1]), lambda m, n: [(m, n)]),
}


@settings(
    max_examples=1,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Each example is built twice: a smaller one is not worth minutes.
    phases=(Phase.explicit, Phase.generate),
)
@given(
    sizes=st.tuples(LENGTHS, LENGTHS),
    dtype=st.sampled_from(("float32", "float64", "float16")),
    target=st.sampled_from((NARROW, WIDE, NATIVE)),
)
@pytest.mark.parametrize("name", OPERATORS)
def test_rows_of_any_length_compute_the_same(
    name: str, sizes: tuple[int, int], dtype: str, target: tvm.target.Target
) -> None:
    operator, shapes = OPERATORS[name]
    if name == "batch_norm" or (dtype == "float64" and name.endswith("_norm")):
        # TVM has no norms of float64; and its sums over a batch are too long for float16.
        dtype = "float32"
    function = legalised(operator, *shapes(*sizes), dtype=dtype)
    ruled, after = made(function, target)
    # Of a single value there is nothing to be scheduled.
    assert ruled.rule == "row by row" or max(sizes) == 1, ruled.reason
    assert all(each.comment for each in ruled.primitives)
    assert Runner(target).difference(name, function, after) is None


@pytest.mark.parametrize("length", [197, 257])
@pytest.mark.parametrize("name", ["sum", "softmax", "layer_norm", "mean of planes", "max"])
def test_values_that_do_not_fill_the_lanes_have_a_loop_of_their_own(name: str, length: int) -> None:
    """TVM computes the lanes one by one where there is a condition for the last ones."""
    operator, shapes = OPERATORS[name]
    function = legalised(operator, *shapes(5, length))
    ruled, after = made(function, WIDE)
    assert ruled.rule == "row by row", ruled.reason
    assert "loop_partition" in [each.name for each in ruled.primitives]
    code = compile_function("rows", after, WIDE).mod.inspect_source("asm")
    assert re.search(r"v(add|div|mul|max|cmplt)ps.*ymm", code)
    assert Runner(WIDE).difference(name, function, after) is None


def test_lanes_are_not_left_empty_for_a_divisor() -> None:
    """Of 300 values, 16 are in each register but for the last 12."""
    target = tvm.target.Target({"kind": "llvm", "mattr": ["+avx512f"], "num-cores": 1})
    ruled, _after = made(legalised(relax.op.nn.softmax, (5, 300)), target)
    factors = [each.arguments["factors"] for each in ruled.primitives if each.name == "split"]
    assert (None, 16) in factors
    assert (None, 4) not in factors


def test_axes_that_are_reduced_are_one_row_only_where_they_are_adjacent() -> None:
    function = legalised(lambda x: relax.op.mean(x, [0, 2, 3]), (4, 5, 7, 9))
    ruled, after = made(function, WIDE)
    fused = [each.arguments["loops"] for each in ruled.primitives if each.name == "fuse"]
    assert len(fused[0]) == 2
    assert Runner(WIDE).difference("mean", function, after) is None


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_groups_of_channels_are_normalised_one_after_the_other(groups: int) -> None:
    shape = (2, groups, 6 // groups * 35)
    x, grouped = te.placeholder((2, 6, 5, 7), name="x"), te.placeholder(shape, name="grouped")
    weight, bias = (te.placeholder((6,), name=each) for each in "wb")
    result = topi.nn.relu(te_group_norm(x, grouped, weight, bias, 1e-5))
    function = te.create_prim_func([x, grouped, weight, bias, result])
    ruled, after = made(function, WIDE)
    assert ruled.rule == "row by row", ruled.reason
    # All stages of a group are in one loop.
    assert len(re.findall(r"(?m)^    for ", after.script())) == 1
    assert Runner(WIDE).difference("group_norm", function, after) is None


def test_planes_whose_rows_vectors_do_not_divide_are_normalised_in_vectors() -> None:
    """Three indices in one are no longer one number to TVM: vectors would be gathered."""
    x, grouped = placeholder("x", 1, 6, 12, 12), placeholder("grouped", 1, 1, 6 * 144)
    result = te_group_norm(x, grouped, None, None, 1e-5)
    function = te.create_prim_func([x, grouped, result])
    ruled, after = made(function, WIDE)
    assert ruled.rule == "row by row", ruled.reason
    assert "vinsertps" not in compile_function("norm", after, WIDE).mod.inspect_source("asm")
    assert Runner(WIDE).difference("norm", function, after) is None


def test_a_single_value_beside_whole_vectors_is_computed_with_them() -> None:
    """TVM fails to vectorize a loop of one value whose place was fused of two."""
    x, grouped = placeholder("x", 2, 6, 43), placeholder("grouped", 2, 2, 129)
    normal = te_group_norm(x, grouped, None, None, 1e-5)
    function = te.create_prim_func([x, grouped, normal])
    _ruled, after = made(function, WIDE)
    assert Runner(WIDE).difference("group_norm", function, after) is None


def test_a_single_value_of_a_plane_has_a_loop_of_its_own() -> None:
    """With a condition for it, all values of planes of 7x7 would be computed one by one."""
    x, grouped = placeholder("x", 2, 32, 7, 7), placeholder("grouped", 2, 2, 784)
    weight, bias = placeholder("w", 32), placeholder("b", 32)
    normal = te_group_norm(x, grouped, weight, bias, 1e-5)
    function = te.create_prim_func([x, grouped, weight, bias, normal])
    ruled, after = made(function, WIDE)
    assert "loop_partition" in [each.name for each in ruled.primitives]
    assert Runner(WIDE).difference("group_norm", function, after) is None


def test_nan_is_the_largest_and_the_first_of_two_is_found() -> None:
    x = np.linspace(0, 1, 3 * 64, dtype="float32").reshape(3, 64)
    x[1, 17] = x[1, 34] = x[2, 63] = np.nan
    for operator, expected in (
        (relax.op.argmax, torch.from_numpy(x).argmax(1)),
        (lambda x, axis: relax.op.max(x, [axis]), torch.from_numpy(x).amax(1)),
    ):
        ruled, after = made(_along(operator), WIDE)
        assert "rfactor" in {each.name for each in ruled.primitives}
        module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
        given = tvm.runtime.tensor(x)
        got = tvm.runtime.tensor(np.zeros_like(expected.numpy()))
        tvm.compile(module, WIDE)["main"](given, got)
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_extrema_wait_for_nothing_but_the_last_one() -> None:
    """Comparisons whose results select the values would wait for one another."""
    _ruled, after = made(_along(lambda x, axis: relax.op.max(x, [axis])), WIDE)
    code = compile_function("rows", after, WIDE).mod.inspect_source("asm")
    assert re.search(r"vmaxps.*ymm", code)
    assert not re.search(r"vcmpn?(lt|le)ps", code)


@pytest.mark.parametrize("axes", [[0], [1]])
def test_places_of_extrema_are_found_in_vectors(axes: list[int]) -> None:
    x = placeholder("x", 37, 47)
    best = te.placeholder([1 if axis in axes else size for axis, size in enumerate((37, 47))])
    function = te.create_prim_func([x, best, te_first_place(x, best, axes, keepdims=False)])
    ruled, after = made(function, WIDE)
    assert ruled.rule == "row by row", ruled.reason
    code = compile_function("places", after, WIDE).mod.inspect_source("asm")
    assert re.search(r"vpmin[su]d.*ymm", code)
    assert Runner(WIDE).difference("places", function, after) is None


@pytest.mark.parametrize("operator", [relax.op.sum, relax.op.max])
def test_rows_and_columns_that_fill_no_vector_have_several_results(operator: Any) -> None:
    rows, after_rows = made(legalised(lambda x: operator(x, [1]), (3, 1000)), WIDE)
    columns, after_columns = made(legalised(lambda x: operator(x, [0]), (3, 1000)), WIDE)
    names = [each.name for each in rows.primitives]
    assert names.count("rfactor") == 4
    assert "unroll" in names
    assert (None, 5, 8) in [each.arguments.get("factors") for each in columns.primitives]
    x = np.random.default_rng(0).standard_normal((3, 1000), dtype="float32")
    for axis, after in ((1, after_rows), (0, after_columns)):
        module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
        expected = (x.sum if operator is relax.op.sum else x.max)(axis)
        got = tvm.runtime.tensor(np.zeros_like(expected))
        tvm.compile(module, WIDE)["main"](tvm.runtime.tensor(x), got)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "tanh", "erf"])
def test_arithmetic_of_float64_is_as_exact_as_torch(name: str) -> None:
    numbers = [np.linspace(-720, 720, 4000), 10.0 ** np.linspace(-307, 308, 4001)]
    numbers.append(np.linspace(-8, 8, 4003))
    x = np.concatenate([*numbers, [np.nan, np.inf, -np.inf, 0.0, 5e-324]])
    placeholder = te.placeholder(x.shape, "float64", name="x")
    function = te.create_prim_func([placeholder, getattr(topi, name)(placeholder)])
    changed = vector_math(function).with_attr("global_symbol", "main")
    assert f"T.{name}(" not in changed.script()
    got = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": changed}), WIDE)["main"](tvm.runtime.tensor(x), got)
    exact = getattr(torch, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got.numpy(), exact, rtol=1e-15, atol=1e-305)


def test_halves_of_float64_are_rounded_in_vectors_as_torch_does() -> None:
    x = np.concatenate([np.arange(-4, 4, 0.25), 2.0**52 + np.arange(-3, 3, 0.5), [-0.0, 1e300]])
    x = np.concatenate([x, -x, [np.nan, np.inf, -np.inf, 0.49999999999999994]])
    placeholder = te.placeholder(x.shape, "float64", name="x")
    function = te.create_prim_func([placeholder, topi.round(placeholder)])
    changed = vector_math(function).with_attr("global_symbol", "main")
    assert "T.nearbyint(" not in changed.script()
    got = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": changed}), WIDE)["main"](tvm.runtime.tensor(x), got)
    np.testing.assert_array_equal(got.numpy(), np.round(x))
    np.testing.assert_array_equal(np.signbit(got.numpy()), np.signbit(x))


def _along(operator: Callable[..., Any]) -> tirx.PrimFunc:
    return legalised(lambda x: operator(x, 1), (3, 64))


TRIGONOMETRIC = ("sin", "cos", "tan", "asin", "acos", "atan")
EXPONENTIAL = ("exp", "erf", "tanh", "sigmoid", "sinh", "cosh", "log", "atanh", "rsqrt")


ABSOLUTE = {"sin": 1e-7, "cos": 1e-7, "log": 1e-7}
"""Absolute accuracy of those that have zeros elsewhere than at 0."""


@pytest.mark.parametrize("name", [*EXPONENTIAL, *TRIGONOMETRIC])
def test_arithmetic_of_functions_is_as_exact_as_theirs(name: str) -> None:
    parts = [np.linspace(-90, 90, 4000), np.linspace(-4, 4, 4093), np.linspace(-1, 1, 4000)]
    if name not in ("exp", "sigmoid", "tan"):
        # Beside a pole, tan of a large angle that is no float32 has few correct digits.
        parts += [np.linspace(1e3, 3e6, 4003), 10.0 ** np.linspace(-44, 15, 97)]
    x = np.concatenate([*parts, [np.nan, np.inf, -np.inf, 0.0]]).astype("float32")
    x = np.resize(x, -(-x.size // 64) * 64)
    placeholder = te.placeholder(x.shape, name="x")
    function = te.create_prim_func([placeholder, getattr(topi, name)(placeholder)])
    changed = vector_math(function)
    assert f"T.{name}(" not in changed.script()
    ruled, after = made(changed, WIDE)
    assert ruled.rule == "elementwise"
    module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
    got = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(module, WIDE)["main"](tvm.runtime.tensor(x), got)
    exact = getattr(torch, name)(torch.from_numpy(x).double()).float().numpy()
    # What is smaller than 2**-125 is 0.
    np.testing.assert_allclose(got.numpy(), exact, rtol=6e-7, atol=ABSOLUTE.get(name, 2e-38))


SPECIAL = (0.0, 1.0, 0.5, 2.5, 7.0, 2.0**24, 1e-40, 1e-30, 3e38, np.inf)


@pytest.mark.parametrize(
    ("name", "exact"), [("atan2", torch.atan2), ("mod", np.fmod), ("power", torch.pow)]
)
def test_arithmetic_of_pairs_keeps_signs_and_special_values(
    name: str, exact: Callable[..., Any]
) -> None:
    numbers = np.array([*SPECIAL, *(-each for each in SPECIAL), np.nan], "float32")
    draw = np.random.default_rng(3).normal(size=(2, 3000)) * 10.0 ** np.linspace(-9, 9, 3000)
    pairs = np.stack([np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))])
    both = np.concatenate([pairs, draw], axis=1).astype("float32")
    both = np.ascontiguousarray(both[:, : both.shape[1] // 64 * 64])
    given = [te.placeholder(both.shape[1:], name=each) for each in "yx"]
    function = te.create_prim_func([*given, getattr(topi, name)(*given)])
    ruled, after = made(vector_math(function), WIDE)
    assert ruled.rule == "elementwise"
    module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
    got = tvm.runtime.tensor(np.zeros_like(both[0]))
    tvm.compile(module, WIDE)["main"](*map(tvm.runtime.tensor, both), got)
    with np.errstate(invalid="ignore"):
        expected = exact(*(both if name == "mod" else map(torch.from_numpy, both)))
    expected = np.asarray(expected)
    np.testing.assert_allclose(got.numpy(), expected, rtol=6e-7 * (name != "mod"), atol=0)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got.numpy())[there], np.signbit(expected)[there])


# Rules for what goes row by row: depthwise convolutions, poolings, what moves data, elements


def placeholder(name: str, *shape: int, dtype: str = "float32") -> Any:
    return te.placeholder(shape, dtype, name=name)


def grouped(
    channels: int,
    size: tuple[int, int],
    stride: int = 1,
    dilation: int = 1,
    *,
    groups: int = 0,
    filters: int = 0,
    dtype: str = "float32",
    sums: str = "float32",
) -> tirx.PrimFunc:
    """Return a depthwise convolution, or one of groups, with bias, a residual and ReLU6."""
    groups, filters = groups or channels, filters or channels
    x = placeholder("x", 1, channels, *size, dtype=dtype)
    w = placeholder("w", filters, channels // groups, 3, 3, dtype=dtype)
    b = placeholder("b", 1, filters, 1, 1, dtype=sums)
    y = topi.nn.group_conv2d_nchw(x, w, stride, dilation, dilation, groups, sums)
    r = te.placeholder(y.shape, sums, name="r")
    return te.create_prim_func([x, w, b, r, topi.clip(topi.add(topi.add(y, b), r), 0, 6)])


def pool(kind: str, size: tuple[int, int], window: int, stride: int, padding: int) -> tirx.PrimFunc:
    x = placeholder("x", 2, 5, *size)
    sides = (padding,) * 4
    both = (window, window), (stride, stride), (1, 1)
    return te.create_prim_func([x, topi.nn.pool2d(x, *both, sides, kind)])


X = placeholder("x", 1, 12, 14, 16)
HEADS = placeholder("heads", 1, 64, 8, 64)
TABLE = placeholder("table", 50, 24)
DEPTHWISE = {
    "14 columns": grouped(24, (14, 14)),
    "7 columns": grouped(12, (7, 7)),
    "every other of 28 columns": grouped(8, (28, 28), 2),
    "every other of 9 columns": grouped(8, (9, 9), 2),
    "every third of 25 columns": grouped(8, (25, 25), 3),
    "every other, a window with gaps": grouped(8, (24, 24), 2, dilation=2),
    "a row that is cut": grouped(2, (6, 112)),
    "a row that nothing divides": grouped(2, (5, 113)),
    "a window with gaps": grouped(4, (11, 13), dilation=2),
    "groups": grouped(12, (10, 8), groups=3, filters=6),
    "groups whose rows are cut": grouped(8, (5, 112), groups=2, filters=16),
    "planes that nothing divides": grouped(4, (67, 113), groups=2),
    "two filters for each channel": grouped(6, (8, 8), filters=12),
    "float64": grouped(6, (9, 10), dtype="float64", sums="float64"),
    "float16": grouped(6, (7, 8), dtype="float16", sums="float16"),
    "int8": grouped(6, (8, 15), dtype="int8", sums="int32"),
}
NHWC = [placeholder("x", 1, 9, 9, 24), placeholder("w", 3, 3, 24, 1)]
OTHERS: dict[str, tuple[str, tirx.PrimFunc]] = {
    "depthwise, channels last": (
        "depthwise",
        te.create_prim_func([*NHWC, topi.nn.depthwise_conv2d_nhwc(*NHWC, 1, 1, 1)]),
    ),
    "largest of 3×3": ("pooling", pool("max", (15, 14), 3, 2, 1)),
    "mean of 2×2": ("pooling", pool("avg", (12, 16), 2, 2, 0)),
    "mean of all": (
        "row by row",
        te.create_prim_func([X, topi.nn.adaptive_pool(X, (1, 1), "avg")]),
    ),
    "heads": ("elementwise", te.create_prim_func([HEADS, topi.transpose(HEADS, (0, 2, 1, 3))])),
    "transpose": ("movement", te.create_prim_func([X, topi.transpose(X, (0, 2, 3, 1))])),
    "transpose of what tiles do not divide": (
        "movement",
        te.create_prim_func([o := placeholder("o", 11, 29, 37), topi.transpose(o, (2, 1, 0))]),
    ),
    "transpose of a stack of odd rows": (
        "movement",
        te.create_prim_func([o := placeholder("o", 5, 16, 37), topi.transpose(o, (0, 2, 1))]),
    ),
    "pad": ("movement", te.create_prim_func([X, topi.nn.pad(X, [0, 0, 1, 2], [0, 0, 3, 1])])),
    "side by side": (
        "movement",
        te.create_prim_func([X, topi.concatenate([X, topi.nn.relu(X), X], axis=3)]),
    ),
    "as the last axis": (
        "movement",
        te.create_prim_func([X, topi.stack([X, topi.nn.relu(X), topi.exp(X)], axis=-1)]),
    ),
    "in turn": (
        "movement",
        te.create_prim_func(
            [X, topi.reshape(topi.stack([X, topi.nn.relu(X)], axis=-1), (1, 12, 14, 32))]
        ),
    ),
    "repeated": ("movement", te.create_prim_func([TABLE, topi.tile(TABLE, (2, 7))])),
    "one after the other": (
        "elementwise",
        te.create_prim_func([X, topi.concatenate([X, topi.nn.relu(X)], axis=1)]),
    ),
    "parts": ("elementwise", te.create_prim_func([X, *topi.split(X, 3, axis=1)])),
    "slice": (
        "elementwise",
        te.create_prim_func([X, topi.strided_slice(X, [0, 1, 2, 3], [1, 9, 14, 16])]),
    ),
    "reshape": ("elementwise", te.create_prim_func([X, topi.reshape(X, (24, 112))])),
    "rows of a table": (
        "elementwise",
        te.create_prim_func(
            [TABLE, i := placeholder("i", 9, dtype="int64"), topi.take(TABLE, i, 0, mode="clip")]
        ),
    ),
    "broadcast of a costly one": (
        "elementwise",
        te.create_prim_func(
            [X, s := placeholder("s", 12, 1, 1), topi.multiply(X, topi.exp(topi.tanh(s)))]
        ),
    ),
    "a row that nothing divides": (
        "elementwise",
        te.create_prim_func([y := placeholder("y", 101, 331), topi.nn.relu(y)]),
    ),
}


@pytest.mark.parametrize("target", [WIDE, *at_length(NARROW)], ids=["avx2", "sse"])
def test_depthwise_convolutions_compute_the_same(target: tvm.target.Target) -> None:
    runner = Runner(target)
    # Wide ones are most of them; the others differ in the number of registers.
    names = list(DEPTHWISE) if target is WIDE else list(DEPTHWISE)[::4]
    for name, function in ((name, DEPTHWISE[name]) for name in names):
        ruled, after = made(function, target)
        assert ruled.rule == "depthwise", (name, ruled.reason)
        assert all(each.comment for each in ruled.primitives)
        assert runner.difference(name, function, after) is None, name


def test_what_is_pooled_moved_and_computed_by_elements_is_the_same() -> None:
    runner = Runner(WIDE)
    for name, (rule, function) in OTHERS.items():
        ruled, after = made(function, WIDE)
        assert ruled.rule == rule, (name, ruled.reason)
        assert all(each.comment for each in ruled.primitives)
        assert runner.difference(name, function, after) is None, name


@pytest.mark.parametrize(("rows", "columns_first"), [(1024, False), (512, True)])
def test_rows_of_a_large_result_are_written_one_after_the_other(
    rows: int, columns_first: bool
) -> None:
    """Scores of attention: a product of a batch is small, and what it gives is not."""
    a, b = placeholder("a", 8, rows, 64), placeholder("b", 8, 64, rows)
    function = te.create_prim_func([a, b, topi.nn.batch_matmul(a, b, transpose_b=False)])
    ruled, _after = made(function, WIDE)
    order = next(each for each in ruled.primitives if each.name == "reorder")
    around = [each.loop for each in order.arguments["loops"][:3]]
    assert (around != sorted(around)) is columns_first


def test_what_is_repeated_in_a_row_is_copied_in_vectors() -> None:
    ruled, after = made(te.create_prim_func([TABLE, topi.tile(TABLE, (1, 7))]), WIDE)
    assert ruled.rule == "movement", ruled.reason
    code = compile_function("tile", after, WIDE).mod.inspect_source("asm")
    assert re.search(r"vmovu?ps.*ymm", code)


def test_values_that_alternate_in_a_row_are_written_without_a_test() -> None:
    for name, count in (("as the last axis", 3), ("in turn", 2)):
        ruled, after = made(OTHERS[name][1], WIDE)
        assert ruled.primitives[-1].name == "unroll"
        unrolled = [
            each for each in collected(after.body, tirx.For) if each.kind == tirx.ForKind.UNROLLED
        ]
        assert [int(each.extent) for each in unrolled] == [count], name


def test_rows_stay_in_registers_and_nothing_is_asked() -> None:
    _, after = made(DEPTHWISE["14 columns"], WIDE)
    script = after.script()
    assert 'scope="local"' in script
    assert "T.parallel(" in script
    # Two rows of 14 columns at once, and no element of the padding is asked where it is.
    assert "T.vectorized(14)" in script
    assert "if_then_else" not in script
    module = tvm.IRModule({"main": after.with_attr("global_symbol", "main")})
    assembly = tvm.compile(module, WIDE).mod.inspect_source("asm")
    assert assembly.count("vfmadd") >= 9 * 4


def test_values_of_a_stride_are_stored_side_by_side() -> None:
    """Otherwise each is loaded by itself into its lane."""
    ruled, after = made(DEPTHWISE["every other of 28 columns"], WIDE)
    assert "transform_layout" in [each.name for each in ruled.primitives]
    assert re.search(r"v_rx % 2, v_rx // 2 \+ v_\w+\]", after.script())


@pytest.mark.parametrize(
    ("shape", "is_flat"),
    [
        ((2, 12, 6, 12), True),
        ((2, 12, 16, 1), True),
        ((2, 12, 5, 7), False),
        ((1, 300, 28, 28), False),
    ],
    ids=["a whole plane", "one column", "an odd plane", "many channels"],
)
def test_rows_and_columns_are_one_axis_that_fills_the_lanes(
    shape: tuple[int, ...], is_flat: bool
) -> None:
    x, w = placeholder("x", *shape), placeholder("w", 6, shape[1], 1, 1)
    summed = topi.nn.conv2d(x, w, 1, 0, 1)
    for result in (summed, topi.nn.relu(summed)):
        function = te.create_prim_func([x, w, result]).with_attr("layout_free_buffers", [1])
        ruled, after = made(function, WIDE)
        assert ruled.rule == "contraction", ruled.reason
        flattened = "transform_block_layout" in [each.name for each in ruled.primitives]
        assert flattened == is_flat
        assert Runner(WIDE).difference("", function, after) is None


@pytest.mark.at_length
def test_the_sample_matches_torch_with_batch_norms_folded_into_groups() -> None:
    pipeline = Pipeline()
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec="sample:depthwise_net"), steps=steps)
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
    module = pipeline.stages(recipe).transformed.module
    names = {
        str(variable.name_hint): function.script()
        for variable, function in module.functions.items()
        if isinstance(function, tirx.PrimFunc)
    }
    # Batch norms and ReLU6 are nowhere by themselves, and depthwise rows are in registers.
    assert not any(each.startswith(("batch_norm", "clip", "relu")) for each in names)
    depthwise = [each for each in names.values() if "group_conv2d_nchw" in each]
    assert len(depthwise) >= 8
    assert all("local" in each for each in depthwise)


@pytest.mark.parametrize("size", [(128, 56, 56), (64, 24, 40)])
def test_rows_that_vectors_do_not_divide_are_stored_as_vectors(size: tuple[int, ...]) -> None:
    x = te.placeholder((1, *size), name="x")
    _found, function = scheduled_by_rule(te.create_prim_func([x, topi.nn.relu(x)]), WIDE)
    text = compile_function("relu", function, WIDE).mod.inspect_source("ll")
    assert re.search(r"store <\d+ x float>", text)
    assert not re.search(r"(div|rem) <\d+ x i", text)


N = tirx.Var("n", "int64")


def dynamic(*shape: int) -> te.Tensor:
    return te.placeholder((N, *(tirx.const(each, "int64") for each in shape)), name="x")


@pytest.mark.parametrize(
    "result",
    [
        lambda: [x := dynamic(16, 16), topi.nn.relu(x)],
        lambda: [x := dynamic(64), topi.nn.softmax(x)],
        lambda: [x := dynamic(64), w := te.placeholder((64, 64), name="w"), topi.matmul(x, w)],
        lambda: [x := dynamic(8, 16, 16), topi.nn.global_pool(x, "avg")],
    ],
)
def test_loops_over_named_sizes_have_threads_if_their_usual_sizes_are_worth_it(
    result: Callable[[], list[te.Tensor]],
) -> None:
    for size in (2, 1024):
        _found, function = scheduled_by_rule(te.create_prim_func(result()), WIDE, sizes={"n": size})
        assert ("T.parallel" in function.script()) is (size > 2)


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize(("size", "parallel"), [(6, 0), (64, 1)])
def test_blocks_before_small_sums_keep_to_one_thread(
    size: int, parallel: int, *, by_rows: bool
) -> None:
    x = te.placeholder((size, size), name="x")
    w = te.placeholder((3 * size, size) if by_rows else (size, 3 * size), name="w")
    y = topi.add(topi.matmul(topi.sigmoid(x), w, transp_b=by_rows), 1.0)
    _found, function = scheduled_by_rule(te.create_prim_func([x, w, y]), WIDE)
    assert function.script().count("T.parallel") == parallel

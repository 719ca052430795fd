"""Rules for what goes row by row: depthwise convolutions, poolings, what moves data, elements."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import te, tirx, topi

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.core.schedule.ruling import NARROW, WIDE, made
from tests.core.schedule.running import Runner
from tests.diagonal import at_length


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
    "mean of all": ("pooling", te.create_prim_func([X, topi.nn.adaptive_pool(X, (1, 1), "avg")])),
    "heads": ("elementwise", te.create_prim_func([HEADS, topi.transpose(HEADS, (0, 2, 1, 3))])),
    "transpose": ("movement", te.create_prim_func([X, topi.transpose(X, (0, 2, 3, 1))])),
    "pad": ("movement", te.create_prim_func([X, topi.nn.pad(X, [0, 0, 1, 2], [0, 0, 3, 1])])),
    "side by side": (
        "movement",
        te.create_prim_func([X, topi.concatenate([X, topi.nn.relu(X), X], axis=3)]),
    ),
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

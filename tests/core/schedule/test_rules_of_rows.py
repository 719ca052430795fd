"""Rules for reductions, softmax and norms: they fit, and compute what the function computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tvm import relax, te, tirx, topi

import lowerscope.core.stages  # noqa: F401 - its TensorIR of operators that keeps NaN
from lowerscope.core.build.targets import make_target
from lowerscope.core.passes.vector_math import vector_math
from tests.core.schedule.ruling import NARROW, WIDE, legalised, made
from tests.core.schedule.running import Runner

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


@pytest.mark.parametrize("name", ["exp", "log"])
def test_arithmetic_of_float64_is_as_exact_as_torch(name: str) -> None:
    numbers = [np.linspace(-720, 720, 4000), 10.0 ** np.linspace(-307, 308, 4001)]
    x = np.concatenate([*numbers, [np.nan, np.inf, -np.inf, 0.0, 5e-324]])
    placeholder = te.placeholder(x.shape, "float64", name="x")
    function = te.create_prim_func([placeholder, getattr(topi, name)(placeholder)])
    changed = vector_math(function).with_attr("global_symbol", "main")
    assert f"T.{name}(" not in changed.script()
    got = tvm.runtime.tensor(np.zeros_like(x))
    tvm.compile(tvm.IRModule({"main": changed}), WIDE)["main"](tvm.runtime.tensor(x), got)
    exact = getattr(torch, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got.numpy(), exact, rtol=1e-15, atol=1e-305)


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


@pytest.mark.parametrize(("name", "exact"), [("atan2", torch.atan2), ("mod", np.fmod)])
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
    np.testing.assert_allclose(got.numpy(), expected, rtol=6e-7 * (name == "atan2"), atol=0)
    there = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got.numpy())[there], np.signbit(expected)[there])

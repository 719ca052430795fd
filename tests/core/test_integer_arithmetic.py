"""Integers of tensors: differences below 0 and sums that wrap around are as in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule

from lowerscope.core.build.build import compiled
from lowerscope.core.build.targets import make_target

LENGTH = 16

EXPRESSIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "a difference that is cut off at 0": (
        lambda i, x, zero: tirx.min(i - x, zero),
        lambda i, x: np.minimum(i - x, 0),
    ),
    "the opposite of it": (
        lambda i, x, zero: tirx.Mul(tirx.min(i - (x + i), zero), zero - 1),
        lambda i, x: -np.minimum(i - (x + i), 0),
    ),
    "a distance": (
        lambda i, x, zero: tirx.Select(i - x < zero, x - i, i - x),
        lambda i, x: np.where(i - x < 0, x - i, i - x),
    ),
    "a quotient that is rounded down": (
        lambda i, x, zero: tirx.floordiv(i - x, zero + 2),
        lambda i, x: (i - x) // 2,
    ),
    "a product that wraps": (lambda i, x, zero: x * (zero + 3) + i, lambda i, x: x * 3 + i),
}
"""By TensorIR and by NumPy: ``i`` is the index, ``x`` the element of the tensor."""


@pytest.mark.diagonal
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_integers_are_those_of_numpy(expression: str, dtype: str) -> None:
    written, expected = EXPRESSIONS[expression]
    zero = tirx.const(0, dtype)
    x = te.placeholder((LENGTH,), dtype=dtype, name="x")
    made = te.compute((LENGTH,), lambda i: written(i.astype(dtype), x[i], zero), name="y")
    function = te.create_prim_func([x, made]).with_attr("global_symbol", "main")
    module = compiled(tvm.IRModule({"main": function}), make_target("llvm", 1))
    limits = np.iinfo(dtype)
    values = np.array([3, 0, 20, 7, limits.max, limits.min, -1, 5] * 2, dtype)
    result = tvm.runtime.tensor(np.zeros(LENGTH, dtype))
    module["main"](tvm.runtime.tensor(values), result)
    with np.errstate(over="ignore"):
        right = expected(np.arange(LENGTH, dtype=dtype), values)
    np.testing.assert_array_equal(result.numpy(), right)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_sum_that_wraps_is_less_than_its_parts(dtype: str) -> None:
    x, one = te.placeholder((2,), dtype=dtype, name="x"), tirx.const(1, dtype)
    more = te.compute((2,), lambda i: x[i] + one, name="more")
    made = te.compute((2,), lambda i: tirx.Select(more[i] > x[i], one, one - one), name="y")
    sch = Schedule(tvm.IRModule({"main": te.create_prim_func([x, made])}))
    # TVM's own functions are fused and inlined so.
    sch.compute_inline("more")
    function = sch.mod["main"].with_attr("global_symbol", "main")
    module = compiled(tvm.IRModule({"main": function}), make_target("llvm", 1))
    result = tvm.runtime.tensor(np.zeros(2, dtype))
    module["main"](tvm.runtime.tensor(np.array([np.iinfo(dtype).max, 1], dtype)), result)
    assert result.numpy().tolist() == [0, 1]

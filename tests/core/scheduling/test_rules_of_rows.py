"""Rules for reductions, softmax and norms: they fit, and compute what the function computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tvm import relax

import lowerscope.core.pipeline  # noqa: F401 - its TensorIR of operators that keeps NaN
from lowerscope.core.execution.targets import make_target
from tests.core.scheduling.ruling import NARROW, WIDE, legalised, made
from tests.core.scheduling.running import Runner

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
    "max": (lambda x: relax.op.max(x, [1], keepdims=True), lambda m, n: [(m, n)]),
    "argmax": (lambda x: relax.op.argmax(x, 1), lambda m, n: [(m, n)]),
    "std": (lambda x: relax.op.std(x, [1]), lambda m, n: [(m, n)]),
}


@settings(
    max_examples=2,
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
    if dtype == "float64" and name.endswith("_norm"):
        dtype = "float32"
    function = legalised(operator, *shapes(*sizes), dtype=dtype)
    ruled, after = made(function, target)
    assert ruled.rule == "row by row", ruled.reason
    assert all(each.comment for each in ruled.primitives)
    assert Runner(target).difference(name, function, after) is None

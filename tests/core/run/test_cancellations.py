"""Results of fused functions where TVM's simplifier would cancel floats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from tvm import relax, te, tirx

from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Step
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.standalone import compile_alone
from lowerscope.core.stages import Pipeline

_MODEL = """
import torch

class Net(torch.nn.Module):
    def forward(self, x, y):
        return (
            (x - x) * y,
            torch.where(x == x, x, y),
            torch.where(x * 2 != x * 2, y, x),
            ((x + y) - x) - y * 0.5,
            (x - (x + y)) * 2,
            (x - y) + y,
            (x < y) | (x >= y),
            torch.where(~(x < y), x, y * 2),
            torch.where(x * 2 != y, x + 1, y),
            (x + 1) - 1 == x,
        )

def example_inputs():
    x = torch.tensor([float("nan"), float("inf"), 0.0, 1e3, 1e8, 3.0])
    y = torch.tensor([1.0, 2.0, float("nan"), 0.37, 3.3, 0.1])
    return x.to(torch.DTYPE), y.to(torch.DTYPE)
"""

_FUNCTION = """
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "DTYPE"), C: T.Buffer((4,), "DTYPE")):
    T.func_attr({"global_symbol": "main"})
    for i in range(4):
        with T.sblock("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[v] - A[v]
"""


@pytest.mark.diagonal
@pytest.mark.parametrize("preset", ["fuse", "cpu", "optimise-cpu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_do_not_cancel(tmp_path: Path, preset: str, dtype: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(_MODEL.replace("DTYPE", dtype))
    options = ("--pipeline", preset, "--repeats", "1")
    record = Pipeline().answer(RunQuery(recipe_of_command(("run", str(path), *options))))
    assert record.verdict == "match", record.reason
    assert all(each.matches for each in record.outputs)


_SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 1e30, 0.1, 3.0, 1e8]
_X, _Y = torch.cartesian_prod(torch.tensor(_SPECIAL), torch.tensor(_SPECIAL)).T.contiguous()
_ONE, _ZERO = tirx.const(1.0, "float32"), tirx.const(0.0, "float32")


def _not(value: Any) -> Any:
    return ~value if isinstance(value, torch.Tensor) else tirx.Not(value)


def _either(one: Any, other: Any) -> Any:
    return one | other if isinstance(one, torch.Tensor) else tirx.Or(one, other)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x, y: tirx.Mul(x, _ZERO), lambda x, y: x * 0),
        (lambda x, y: tirx.Mul(_ZERO, x), lambda x, y: 0 * x),
        (lambda x, y: tirx.Div(_ZERO, x), lambda x, y: 0 / x),
        (lambda x, y: tirx.Div(_ONE, tirx.Add(x, _ZERO)), lambda x, y: 1 / (x + 0)),
        (lambda x, y: tirx.Sub(tirx.Add(x, _ONE), _ONE), lambda x, y: (x + 1) - 1),
        (lambda x, y: tirx.Add(tirx.Sub(_ONE, x), _ONE), lambda x, y: (1 - x) + 1),
        (lambda x, y: tirx.exp(x) - tirx.exp(x), lambda x, y: x.exp() - x.exp()),
        (lambda x, y: x * y - x * y, lambda x, y: x * y - x * y),
        (lambda x, y: tirx.EQ(x, x), lambda x, y: x == x),
        (lambda x, y: tirx.NE(x, y), lambda x, y: x != y),
        (lambda x, y: tirx.NE(x, _ONE), lambda x, y: x != 1),
        (lambda x, y: _not(tirx.NE(x, y)), lambda x, y: x == y),
        (lambda x, y: _not(tirx.EQ(x, y)), lambda x, y: x != y),
        (lambda x, y: _not(tirx.LT(x, y)), lambda x, y: ~(x < y)),
        (lambda x, y: _not(tirx.LE(x + y, x)), lambda x, y: ~(x + y <= x)),
        (lambda x, y: _not(tirx.GT(x, _ONE)), lambda x, y: ~(x > 1)),
        (lambda x, y: _not(tirx.GE(x, y)), lambda x, y: ~(x >= y)),
        (lambda x, y: _either(tirx.LT(x, y), tirx.GE(x, y)), lambda x, y: (x < y) | (x >= y)),
        (
            lambda x, y: tirx.Select(_not(tirx.LT(x, y)), x, y),
            lambda x, y: torch.where(~(x < y), x, y),
        ),
        (
            lambda x, y: tirx.if_then_else(
                tirx.LT(x, _ZERO), y, tirx.GE(x, _ZERO).astype("float32")
            ),
            lambda x, y: torch.where(x < 0, y, (x >= 0).float()),
        ),
    ],
)
def test_floats_are_no_integers(
    ours: Callable[[Any, Any], Any], theirs: Callable[[Any, Any], torch.Tensor]
) -> None:
    shape = tuple(_X.shape)
    x, y = (te.placeholder(shape, "float32", name) for name in "xy")
    # TE would simplify the expression at once.
    function = te.create_prim_func([x, y, te.compute(shape, lambda i: tirx.pow(x[i], y[i]))])

    def stored(store: Any) -> Any:
        return tirx.BufferStore(
            store.buffer, ours(*store.value.args).astype("float32"), store.indices
        )

    function = function.with_body(tvm_ffi.structural_map(function.body, (tirx.BufferStore, stored)))
    out = torch.empty(shape)
    arguments = [tvm.runtime.tensor(each.numpy()) for each in (_X, _Y, out)]
    compile_alone(function, tvm.target.Target("llvm")).call(arguments)
    expected = theirs(_X, _Y).float()
    torch.testing.assert_close(
        torch.from_dlpack(arguments[-1]), expected, rtol=1e-6, atol=0, equal_nan=True
    )


def test_constants_are_folded_as_floats() -> None:
    module = tvm.IRModule({"main": tvm.script.from_source(_FUNCTION.replace("DTYPE", "float32"))})
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            name = builder.add_func(module["main"].without_attr("global_symbol"), "same")
            given = relax.const(np.array([np.inf, np.nan, 1, 3], "float32"))
            kind = relax.TensorType((4,), "float32")
            out = builder.emit_output(relax.call_tir(name, (given,), kind))
        builder.emit_func_output(out)
    folded = transform(builder.get(), (Step(name="FoldConstant"),))
    folded.check()
    main = folded.module["main"].script(show_meta=True)
    made = relax.VirtualMachine(tvm.compile(folded.module, "llvm"), tvm.cpu())["main"]().numpy()
    assert "call_tir" not in main
    np.testing.assert_array_equal(made, [np.nan, np.nan, 0, 0])

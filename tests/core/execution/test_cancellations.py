"""What fused functions compute where TVM's simplifier would cancel floats."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch
import tvm
import tvm_ffi

from lowerscope.core.cli import recipe_of_command
from lowerscope.core.execution.cancellations import with_cancellations
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Silent

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


@pytest.mark.parametrize("preset", ["fuse", "cpu", "optimise-cpu"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_do_not_cancel(tmp_path: Path, preset: str, dtype: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(_MODEL.replace("DTYPE", dtype))
    options = ("--pipeline", preset, "--repeats", "1")
    record = Pipeline().run(recipe_of_command(("run", str(path), *options)), Silent())
    assert record.verdict == "match", record.reason
    assert all(each.matches for each in record.outputs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_difference_of_infinities_is_nan(dtype: str) -> None:
    module = tvm.IRModule({"main": tvm.script.from_source(_FUNCTION.replace("DTYPE", dtype))})
    kept = with_cancellations(module)
    assert with_cancellations(kept).same_as(kept)
    built = tvm.compile(kept, "llvm").jit()
    given = torch.tensor([float("inf"), float("nan"), 1.0, 3.0]).to(getattr(torch, dtype))
    made = [tvm.runtime.empty((4,), dtype) for _ in range(2)]
    torch.utils.dlpack.from_dlpack(made[0]).copy_(given)
    built["main"](*made)
    found = torch.utils.dlpack.from_dlpack(made[1])
    assert found.isnan().tolist() == [True, True, False, False]
    assert found[2:].tolist() == [0.0, 0.0]


def test_what_cancels_nothing_is_left_alone() -> None:
    A, B = (tvm.te.placeholder((4,), "float32", name) for name in "AB")
    k = tvm.te.placeholder((4,), "int32", "k")
    total = tvm.te.compute((4,), lambda i: A[i] - B[i] + A[3 - i] + (k[i] - k[i]), "C")
    module = tvm.IRModule({"main": tvm.te.create_prim_func([A, B, k, total])})
    assert with_cancellations(module).same_as(module)


def test_its_text_alone_is_a_program() -> None:
    module = tvm.IRModule({"main": tvm.script.from_source(_FUNCTION.replace("DTYPE", "float32"))})
    names = {"tvm": tvm, "tirx": tvm.tirx}
    text = inspect.getsource(with_cancellations)
    exec(f"from __future__ import annotations\n{text}", names)  # as in an exported program
    made = names["with_cancellations"](module)
    assert not made.same_as(module)
    assert tvm_ffi.structural_equal(made, with_cancellations(module))

"""A TensorIR function as a source: it is called by a ``main``, with inputs, and compared."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch
import tvm_ffi
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.sources import loading
from lowerscope.core.stages import Pipeline

FILE = """
import numpy as np
from tvm import IRModule, te, tirx
from tvm.script import tirx as T

n = tirx.Var("n", "int64")
A, B = te.placeholder((4, 5), name="A"), te.placeholder((5, 6), name="B")
X, N = te.placeholder((10,), name="X"), te.placeholder((n, 3), name="N")
k = te.reduce_axis((0, 5), name="k")
C = te.compute((4, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def te_relu(a):
    return te.compute(a.shape, lambda *i: te.max(a(*i), 0), name="relu")


D = te_relu(C)
matmul = te.create_prim_func([A, B, C])
fused = te.create_prim_func([A, B, D])
both = te.create_prim_func([A, B, C, D])
row = te.create_prim_func([X, te_relu(X)])
symbolic = te.create_prim_func([N, te_relu(N)], "int64")
backwards = te.create_prim_func([C, A, B])
whole = te.create_prim_func([A, B])
module = IRModule({"main": fused})


def make(width: int = 7):
    W = te.placeholder((width,), name="W")
    return te.create_prim_func([W, te_relu(W)])


@T.prim_func
def number(n: T.int32, Y: T.Buffer((4,), "float32")):
    for i in range(4):
        Y[i] = T.Cast("float32", n)


reference = {
    "matmul": np.matmul,
    "fused": lambda a, b: np.maximum(a.astype("float64") @ b, 0),
    "both": lambda a, b: (a @ b, np.maximum(a @ b, 0)),
    "row": lambda x: np.maximum(x, 0),
    "symbolic": lambda x: np.maximum(x, 1),
    "module": lambda a, b: np.maximum(a @ b, 0),
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prim_funcs") / "functions.py"
    file.write_text(FILE, "utf-8")
    return file


def recipe(path: Path, entry: str, args: str = "{}") -> Recipe:
    return Recipe(source=Source(spec=str(path), entry=entry, args=args))


@pytest.mark.parametrize("entry", ["matmul", "fused", "both", "row", "module"])
def test_it_runs_on_inputs_of_its_shapes_and_is_compared_with_numpy(
    pipeline: Pipeline, path: Path, entry: str
) -> None:
    record = pipeline.answer(RunQuery(recipe(path, entry)))
    assert (record.verdict, record.reference) == ("match", "NumPy"), record.reason
    assert record.torch_ms is not None
    assert [output.dtype for output in record.outputs] == ["float32"] * (1 + (entry == "both"))
    inputs = pipeline.stages(recipe(path, entry)).loaded.inputs
    assert {each.origin for each in inputs} == {"random, seed 0"}
    assert inputs[0].value.dtype == torch.float32


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("backwards", "it must write to its last arguments"),
        ("whole", "it must write to its last arguments"),
        ("number", "its argument n is not a tensor"),
    ],
)
def test_what_main_cannot_call_is_refused(
    pipeline: Pipeline, path: Path, entry: str, reason: str
) -> None:
    with pytest.raises(LowerscopeError, match=reason) as caught:
        pipeline.answer(RunQuery(recipe(path, entry)))
    assert caught.value.problem.where == f"{path}:{entry}"


# TVM's parser finds in the stack what it looks for there


def test_the_frames_are_those_of_inspect() -> None:
    ours, theirs = loading.stack(), inspect.stack()
    assert [each.frame for each in ours] == [each.frame for each in theirs]
    told = [(each.filename, each.function) for each in theirs]
    assert [(each.filename, each.function) for each in ours] == told
    # Both were called in this line.
    assert ours[0].lineno == theirs[0].lineno
    assert [each[4:] for each in ours[:4]] == [each[4:] for each in theirs[:4]]


def test_scripts_see_what_is_around_them() -> None:
    def by(size: int):  # type: ignore[no-untyped-def]
        # Named in annotations alone, which are strings here.
        shape = (size,)

        @T.prim_func(s_tir=True)
        def double(x: T.Buffer(shape, "float32"), y: T.Buffer(shape, "float32")):  # type: ignore
            for i in range(size):
                with T.sblock("double"):
                    v = T.axis.spatial(size, i)
                    y[v] = x[v] * T.float32(2)

        @I.ir_module
        class Doubles:
            @T.prim_func(s_tir=True)
            def double(x: T.Buffer(shape, "float32"), y: T.Buffer(shape, "float32")):  # type: ignore
                for i in range(size):
                    with T.sblock("double"):
                        v = T.axis.spatial(size, i)
                        y[v] = x[v] * T.float32(2)

            @R.function
            def main(x: R.Tensor(shape, "float32")):  # type: ignore
                cls = Doubles
                return R.call_tir(cls.double, (x,), out_ty=R.Tensor((size,), "float32"))

        return double, Doubles

    for size in (3, 4):
        double, module = by(size)
        assert f"x: T.Buffer(({size},), " in double.script()
        assert {each.name_hint for each in module.get_global_vars()} == {"double", "main"}
        assert tvm_ffi.structural_equal(module["double"], double)

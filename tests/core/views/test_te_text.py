"""Tensor expressions of PrimFuncs: run, they make the same function."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import relax, s_tir, te, tirx
from tvm.script import tirx as T

from lowerscope.core.ir.script import function_text
from lowerscope.core.lowering.builder import te_matmul
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.views.programs.te_text import te_text


def remade(function: Any, name: str) -> Any:
    """Return what the program makes, after it has been run."""
    names: dict[str, Any] = {}
    exec(te_text(function, name).text, names)
    return names[name]


def assert_remade(function: Any, name: str = "made") -> None:
    assert tvm_ffi.structural_equal(remade(function, name), function)


def tensors(*shapes: tuple[Any, ...], dtype: str = "float32") -> list[Any]:
    return [te.placeholder(shape, dtype, f"x{index}") for index, shape in enumerate(shapes)]


def legalised(value: Any, *inputs: Any) -> Any:
    builder = relax.BlockBuilder()
    with builder.function("main", list(inputs)):
        builder.emit_func_output(builder.emit(value))
    module = relax.transform.LegalizeOps()(builder.get())
    (function,) = (f for f in module.functions.values() if isinstance(f, tirx.PrimFunc))
    return function


X = relax.Var("x", relax.TensorType((1, 4, 6, 6), "float32"))
W = relax.Var("w", relax.TensorType((8, 2, 3, 3), "float32"))
ROWS = relax.Var("rows", relax.TensorType((3, 8), "float32"))
ROW = relax.Var("row", relax.TensorType((8,), "float32"))
nn = relax.op.nn

OPERATORS = {
    "add": (relax.op.add(ROWS, ROW), ROWS, ROW),
    "relu": (nn.relu(ROWS), ROWS),
    "matmul": (relax.op.matmul(ROWS, ROW), ROWS, ROW),
    "conv2d": (nn.conv2d(X, W, padding=1, strides=2, groups=2), X, W),
    "max_pool2d": (nn.max_pool2d(X, (3, 3), strides=2, padding=1), X),
    "avg_pool2d": (nn.avg_pool2d(X, (2, 2), strides=2), X),
    "softmax": (nn.softmax(ROWS), ROWS),
    "layer_norm": (nn.layer_norm(ROWS, ROW, ROW, axes=[-1]), ROWS, ROW),
    "gelu": (nn.gelu(ROWS), ROWS),
    "reshape": (relax.op.reshape(ROWS, (4, 6)), ROWS),
    "mean": (relax.op.mean(X, axis=[2, 3]), X),
    "product": (relax.op.prod(ROWS, axis=[1]), ROWS),
    "minimum": (relax.op.min(ROWS, axis=[0]), ROWS),
    "where": (relax.op.where(relax.op.astype(ROWS, "bool"), ROWS, ROWS), ROWS),
    "power": (relax.op.power(ROWS, relax.const(2.5, "float32")), ROWS),
    "floor_divide": (relax.op.floor_divide(ROWS, relax.const(2.0, "float32")), ROWS),
    "triangle": (relax.op.tril(ROWS), ROWS),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_functions_of_operators_are_remade(name: str) -> None:
    if name == "where":
        condition = relax.Var("condition", relax.TensorType((3, 8), "bool"))
        function = legalised(relax.op.where(condition, ROWS, ROWS), condition, ROWS)
    else:
        function = legalised(*OPERATORS[name])
    assert_remade(function)


def test_spans_have_the_ids_of_the_script() -> None:
    function = legalised(*OPERATORS["conv2d"])
    record = te_text(function, "conv2d")
    script = function_text(tvm.IRModule({"conv2d": function}), "conv2d")
    # A buffer that the script allocates is what the block of its name computes.
    parts = {s.entity for s in script.spans if "//" not in s.entity}
    assert {s.entity for s in record.spans} == parts
    lines = record.text.split("\n")
    starts = {span.entity: lines[span.first - 1].strip() for span in record.spans}
    assert starts["tir:conv2d"].startswith("def te_conv2d(")
    assert starts["tir:conv2d/group_conv2d_nchw/ry"].startswith("ry = te.reduce_axis((0, 3)")
    assert starts["tir:conv2d/group_conv2d_nchw/ff"].startswith("return te.compute(")
    assert starts["tir:conv2d/pad_temp"].startswith("pad_temp = te.compute(")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int64", "uint8"])
def test_other_dtypes_are_remade(dtype: str) -> None:
    (a,) = tensors((2, 3), dtype=dtype)
    b = te.compute((2, 3), lambda i, j: a[i, j] * tirx.const(3, dtype) - a[0, 0], name="b")
    c = te.compute((2, 3), lambda i, j: b[i, j].astype("float32") * 0.1, name="c")
    assert_remade(te.create_prim_func([a, c], "int64"))


def test_a_scheduled_function_is_refused() -> None:
    a, b = tensors((8, 8), (8, 8))
    schedule = s_tir.Schedule(te.create_prim_func([a, b, te_matmul(a, b)]))
    schedule.split(schedule.get_loops(schedule.get_sblock("matmul"))[0], [2, 4])
    with pytest.raises(LowerscopeError, match="the block matmul is scheduled") as caught:
        te_text(schedule.mod["main"], "matmul")
    assert caught.value.problem.where == "tir:matmul"


@T.prim_func(s_tir=True)
def other_start(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")) -> None:
    for i, k in T.grid(4, 4):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vk]


def test_what_is_not_exact_is_refused() -> None:
    with pytest.raises(LowerscopeError, match="what TVM makes of its blocks differs"):
        te_text(other_start, "sum")

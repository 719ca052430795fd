"""Functions that the tests schedule."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.script import tirx as T

from lowerscope.core.model.schedule import Argument, At, Made, Primitive
from lowerscope.core.schedule.applying import Applied, apply
from lowerscope.core.schedule.references import function_of
from lowerscope.core.schedule.step_errors import StepFailed

TARGET = tvm.target.Target("llvm")


def product_of(rows: int, columns: int, terms: int) -> Any:
    """Return a product of matrices."""

    @T.prim_func(s_tir=True)
    def matmul(
        A: T.Buffer((rows, terms), "float32"),
        B: T.Buffer((terms, columns), "float32"),
        C: T.Buffer((rows, columns), "float32"),
    ):
        for i, j, k in T.grid(rows, columns, terms):
            with T.sblock("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    return matmul


def add_relu_of(rows: int, columns: int, dtype: str = "float32") -> Any:
    """Return a sum and, of that, what is positive."""

    @T.prim_func(s_tir=True)
    def add_relu(A: T.Buffer((rows, columns), dtype), C: T.Buffer((rows, columns), dtype)):
        B = T.sblock_alloc_buffer((rows, columns), dtype)
        for i, j in T.grid(rows, columns):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + tirx.const(1, dtype)
        for i, j in T.grid(rows, columns):
            with T.sblock("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(B[vi, vj], tirx.const(0, dtype))

    return add_relu


@T.prim_func(s_tir=True)
def twice(A: T.Buffer((32, 64), "float32"), C: T.Buffer((32, 64), "float32")):
    B = T.sblock_alloc_buffer((32, 64), "float32")
    for i, j in T.grid(32, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(32, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func(s_tir=True)
def padded_conv(
    X: T.Buffer((1, 3, 10, 10), "float32"),
    W: T.Buffer((8, 3, 3, 3), "float32"),
    Y: T.Buffer((1, 8, 10, 10), "float32"),
):
    P = T.sblock_alloc_buffer((1, 3, 12, 12), "float32")
    C = T.sblock_alloc_buffer((1, 8, 10, 10), "float32")
    for n, c, h, w in T.grid(1, 3, 12, 12):
        with T.sblock("pad"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P[vn, vc, vh, vw] = T.if_then_else(
                vh >= 1 and vh < 11 and vw >= 1 and vw < 11, X[vn, vc, vh - 1, vw - 1], T.float32(0)
            )
    for n, o, h, w, c, y, x in T.grid(1, 8, 10, 10, 3, 3, 3):
        with T.sblock("conv"):
            vn, vo, vh, vw, vc, vy, vx = T.axis.remap("SSSSRRR", [n, o, h, w, c, y, x])
            with T.init():
                C[vn, vo, vh, vw] = T.float32(0)
            C[vn, vo, vh, vw] += P[vn, vc, vh + vy, vw + vx] * W[vo, vc, vy, vx]
    for n, o, h, w in T.grid(1, 8, 10, 10):
        with T.sblock("relu"):
            vn, vo, vh, vw = T.axis.remap("SSSS", [n, o, h, w])
            Y[vn, vo, vh, vw] = T.max(C[vn, vo, vh, vw], T.float32(0))


def biased_of(rows: int, terms: int) -> Any:
    """Return sums of rows, and a bias added to them."""

    @T.prim_func(s_tir=True)
    def biased(
        A: T.Buffer((rows, terms), "float32"),
        B: T.Buffer((rows,), "float32"),
        D: T.Buffer((rows,), "float32"),
    ):
        C = T.sblock_alloc_buffer((rows,), "float32")
        for i, k in T.grid(rows, terms):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for i in range(rows):
            with T.sblock("bias"):
                vi = T.axis.spatial(rows, i)
                D[vi] = C[vi] + B[vi]

    return biased


@T.prim_func(s_tir=True)
def symbolic(a: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 64), "float32")
    C = T.match_buffer(c, (n, 64), "float32")
    B = T.sblock_alloc_buffer((n, 64), "float32")
    for i, j in T.grid(n, 64):
        with T.sblock("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


matmul = product_of(32, 48, 64)
add_relu = add_relu_of(30, 64)
biased = biased_of(16, 20)


def schedule(func: Any) -> Schedule:
    """Return a schedule of a function alone in its module."""
    return Schedule(tvm.IRModule({"main": func}))


class Steps:
    """A function and what its steps gave back."""

    def __init__(self, func: Any, target: tvm.target.Target = TARGET) -> None:
        self.sch = schedule(func)
        self.target = target
        self.outputs: dict[str, tuple[Any, ...]] = {}

    def step(self, name: str, *, forced: bool = False, **arguments: Argument) -> Applied:
        """Apply a primitive; its id is s1, s2 and so on."""
        id_ = f"s{len(self.outputs) + 1}"
        primitive = Primitive(id=id_, name=name, arguments=arguments, forced=forced)
        applied = apply(self.sch, primitive, self.outputs, self.target)
        self.sch = applied.sch
        self.outputs[id_] = applied.outputs
        return applied


def refused(steps: Steps, name: str, **arguments: Argument) -> StepFailed:
    """Apply a primitive that is refused, and return why."""
    with pytest.raises(StepFailed) as failed:
        steps.step(name, **arguments)
    return failed.value


_LEFT_OUT = ("T.reads(", "T.writes(", "T.func_attr(", "# with T.sblock", "# from ", "@T.", "def ")


def function_text(sch: Schedule) -> str:
    """Return the body of a function as its script has it, without what each block touches."""
    lines = [
        line.removeprefix("    ")
        for line in function_of(sch).script().splitlines()
        if line.strip() and not line.strip().startswith(_LEFT_OUT)
    ]
    return "\n".join(lines)


def step(id: str, name: str, **arguments: Argument) -> Primitive:
    """Return a step of a schedule."""
    return Primitive(id=id, name=name, arguments=arguments)


def loop(block: str, place: int) -> At:
    """Name a loop by its block and place."""
    return At(block=block, loop=place)


def block(name: str) -> At:
    """Name a block."""
    return At(block=name)


def made(step: str, output: int = 0) -> Made:
    """Name what a step gave back."""
    return Made(step=step, output=output)

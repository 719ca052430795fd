"""Functions that the tests schedule."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.s_tir import Schedule
from tvm.script import tirx as T

from lowerscope.core.schedules import Argument, At, Made, Primitive
from lowerscope.core.scheduling.applying import Applied, apply

TARGET = tvm.target.Target("llvm")


@T.prim_func(s_tir=True)
def matmul(
    A: T.Buffer((32, 64), "float32"),
    B: T.Buffer((64, 48), "float32"),
    C: T.Buffer((32, 48), "float32"),
):
    for i, j, k in T.grid(32, 48, 64):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def add_relu(A: T.Buffer((30, 64), "float32"), C: T.Buffer((30, 64), "float32")):
    B = T.sblock_alloc_buffer((30, 64), "float32")
    for i, j in T.grid(30, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(30, 64):
        with T.sblock("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(B[vi, vj], T.float32(0))


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


def schedule(func: Any) -> Schedule:
    """Return a schedule of a function alone in its module."""
    return Schedule(tvm.IRModule({"main": func}))


class Steps:
    """A function and what its steps gave back."""

    def __init__(self, func: Any) -> None:
        self.sch = schedule(func)
        self.outputs: dict[str, tuple[Any, ...]] = {}

    def step(self, name: str, *, forced: bool = False, **arguments: Argument) -> Applied:
        """Apply a primitive; its id is s1, s2 and so on."""
        id_ = f"s{len(self.outputs) + 1}"
        primitive = Primitive(id=id_, name=name, arguments=arguments, forced=forced)
        applied = apply(self.sch, primitive, self.outputs, TARGET)
        self.sch = applied.sch
        self.outputs[id_] = applied.outputs
        return applied


def loop(block: str, place: int) -> At:
    """Name a loop by its block and place."""
    return At(block=block, loop=place)


def block(name: str) -> At:
    """Name a block."""
    return At(block=name)


def made(step: str, output: int = 0) -> Made:
    """Name what a step gave back."""
    return Made(step=step, output=output)

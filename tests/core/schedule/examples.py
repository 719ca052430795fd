"""The examples of the help page: a small function, and what a primitive is applied to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.script import tirx as T

from lowerscope.core.model.schedule import Argument, Primitive
from tests.core.schedule.functions import add_relu_of, biased_of, block, loop, made, product_of

two, biased, uneven = add_relu_of(8, 8), biased_of(8, 8), product_of(7, 8, 8)


@T.prim_func(s_tir=True)
def add(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func(s_tir=True)
def in_place(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("add"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)


@T.prim_func(s_tir=True)
def indexed(A: T.Buffer((8, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("take"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi * 2 + vj // 4, vj % 4 * 2] + A[vi * 2 + vj // 4, vj % 4]


@T.prim_func(s_tir=True)
def transposed(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 8), "float32")):
    for i, j in T.grid(4, 8):
        with T.sblock("transpose"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vj, vi]


@T.prim_func(s_tir=True)
def total(A: T.Buffer((8, 8), "float32"), S: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] += A[vi, vk]


@T.prim_func(s_tir=True)
def padded(A: T.Buffer((6,), "float32"), P: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("pad"):
            vi = T.axis.spatial(8, i)
            P[vi] = T.if_then_else(vi >= 1 and vi < 7, A[vi - 1], T.float32(0))


@T.prim_func(s_tir=True)
def windows(A: T.Buffer((10, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.sblock_alloc_buffer((10, 8), "float32")
    for i, j in T.grid(10, 8):
        with T.sblock("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.sblock("window"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]


@T.prim_func(s_tir=True)
def dots(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((16,), "int32")):
    for i, k in T.grid(16, 4):
        with T.sblock("dot"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])


@dataclass(frozen=True)
class Example:
    """A function, steps before, and the arguments of the primitive."""

    function: Any
    arguments: Mapping[str, Argument]
    earlier: tuple[Primitive, ...] = ()
    forced: bool = False
    target: Any = field(default="llvm")


def _step(name: str, **arguments: Argument) -> Primitive:
    return Primitive(id="", name=name, arguments=arguments)


def _of(function: Any, *earlier: Primitive, **arguments: Argument) -> Example:
    return Example(function, arguments, earlier)


_NATIVE = {"kind": "llvm", "mcpu": "cascadelake"}

EXAMPLES = {
    "split": _of(add, loop=loop("add", 1), factors=(None, 4)),
    "fuse": _of(add, loops=(loop("add", 0), loop("add", 1))),
    "reorder": _of(add, loops=(loop("add", 1), loop("add", 0))),
    "loop_partition": _of(add, loop=loop("add", 0), factors=(6, None)),
    "merge": _of(two, loops=(loop("add", 0), loop("relu", 0))),
    "add_unit_loop": _of(add, block_or_loop=loop("add", 0)),
    "parallel": _of(add, loop=loop("add", 0)),
    "vectorize": _of(add, loop=loop("add", 1)),
    "unroll": _of(add, loop=loop("add", 1)),
    "compute_inline": _of(two, block=block("add")),
    "reverse_compute_inline": _of(two, block=block("relu")),
    "compute_at": _of(two, block=block("add"), loop=loop("relu", 0)),
    "reverse_compute_at": _of(two, block=block("relu"), loop=loop("add", 0)),
    "reorder_block_iter_var": _of(add, block=block("add"), new_order=(1, 0)),
    "blockize": _of(
        add, _step("split", loop=loop("add", 1), factors=(None, 4)), target=made("s1", 1)
    ),
    "tensorize": Example(
        dots,
        {"block_or_loop": loop("dot_update", 0), "tensor_intrin": "dot_16x4_vnni"},
        (_step("decompose_reduction", block=block("dot"), loop=loop("dot", 0)),),
        target=_NATIVE,
    ),
    "cache_read": _of(add, block=block("add"), read_buffer_index=0),
    "cache_write": _of(add, block=block("add"), write_buffer_index=0),
    "reindex_cache_read": _of(
        transposed, block=block("transpose"), read_buffer_index=0, index_map="vi, vj -> vi, vj"
    ),
    "reindex_cache_write": _of(
        transposed, block=block("transpose"), write_buffer_index=0, index_map="vi, vj -> vj, vi"
    ),
    "cache_inplace": _of(
        in_place, _step("blockize", target=loop("add", 0)), block=made("s1"), read_buffer_index=0
    ),
    "cache_index": _of(indexed, block=block("take")),
    "reindex": _of(transposed, block=block("transpose"), buffer="A"),
    "set_scope": _of(two, block=block("add"), storage_scope="local"),
    "storage_align": _of(two, block=block("add"), axis=0, factor=32),
    "unsafe_set_dtype": Example(two, {"block": block("add"), "dtype": "float16"}, forced=True),
    "transform_layout": _of(
        two, block=block("add"), buffer="B", index_map="i, j -> i // 4, j, i % 4"
    ),
    "transform_block_layout": _of(add, block=block("add"), index_map="i, j -> i * 8 + j"),
    "decompose_reduction": _of(total, block=block("sum"), loop=loop("sum", 1)),
    "rfactor": _of(total, loop=loop("sum", 1), factor_axis=1),
    "fuse_reduction_epilogue": _of(
        biased, reduction_block=block("sum"), epilogue_block=block("bias")
    ),
    "pad_einsum": _of(uneven, block=block("matmul"), padding=(8, 1, 1)),
    "decompose_padding": _of(padded, block=block("pad"), loop=loop("pad", 0)),
    "rolling_buffer": _of(
        windows,
        _step("compute_at", block=block("double"), loop=loop("window", 0)),
        block=block("double"),
        write_buffer_index=0,
    ),
    "annotate": _of(add, block_or_loop=loop("add", 0), ann_val=16),
    "unannotate": _of(
        add,
        _step("annotate", block_or_loop=loop("add", 0), ann_val=16),
        block_or_loop=loop("add", 0),
    ),
}
"""By names of primitives. What is drawn at random leaves the function as it is, bind is refused."""

"""What kills TVM, hangs it or cannot be built is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from tvm.script import tirx as T

from tests.core.schedule.functions import (
    Steps,
    add_relu,
    block,
    loop,
    made,
    matmul,
    padded_conv,
    refused,
    symbolic,
)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sample_partitioned_tile", {"innerpart_factor": 0}, "at least 1"),
        ("sample_partitioned_tile", {"innerpart_factor": 7}, "divide 32"),
        ("sample_partitioned_tile", {"partition_pos": 3}, "among the factors"),
        ("sample_perfect_tile", {"max_innermost_factor": 0}, "at least 1"),
        ("sample_perfect_tile", {"n": 0}, "at least 1"),
        ("sample_perfect_tile", {"decision": (3, 5)}, "product of the decision is 15"),
        ("split", {"factors": (None, 5), "disable_predication": True}, "divide 32"),
        ("split", {"factors": (8, 8), "disable_predication": True}, "divide 32"),
        ("split", {"factors": (2**40, None)}, "at most"),
        ("unannotate", {"block_or_loop": loop("matmul", 0)}, "no annotations"),
    ],
)
def test_numbers_that_kill_or_hang(name: str, arguments: dict[str, Any], message: str) -> None:
    where = {} if "block_or_loop" in arguments else {"loop": loop("matmul", 0)}
    assert message in str(refused(Steps(matmul), name, **where, **arguments))


@pytest.mark.parametrize("value", [2**30, 4096, -1, "x"])
def test_pragma_that_unrolls_without_end(value: Any) -> None:
    failed = refused(
        Steps(matmul),
        "annotate",
        block_or_loop=loop("matmul", 0),
        ann_key="pragma_auto_unroll_max_step",
        ann_val=value,
    )
    assert "from 0 to" in str(failed)


def test_huge_loops_are_neither_unrolled_nor_vectorized() -> None:
    steps = Steps(matmul)
    steps.step("fuse", loops=(loop("matmul", 0), loop("matmul", 1)))
    steps.step("fuse", loops=(made("s1"), loop("matmul", 1)))
    assert "split the loop first" in str(refused(steps, "unroll", loop=made("s2")))
    steps = Steps(matmul)
    steps.step("fuse", loops=(loop("matmul", 0), loop("matmul", 1)))
    assert "split the loop first" in str(refused(steps, "vectorize", loop=made("s1")))


def test_unrolled_loops_that_are_too_many_together() -> None:
    steps = Steps(matmul)
    steps.step("unroll", loop=loop("matmul", 2))
    assert "3072 copies" in str(refused(steps, "unroll", loop=loop("matmul", 1)))


@T.prim_func(s_tir=True)
def transposed(A: T.Buffer((256, 1024), "float32"), C: T.Buffer((1024, 256), "float32")):
    for i, j in T.grid(1024, 256):
        with T.sblock("transpose"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vj, vi]


def test_vectors_inside_of_unrolled_loops_count_as_well() -> None:
    # LLVM gathers 256 elements in each of 1,024 copies: the build does not end.
    steps = Steps(transposed)
    steps.step("unroll", loop=loop("transpose", 0))
    assert "vectors" in str(refused(steps, "vectorize", loop=loop("transpose", 1)))


def test_values_that_are_handed_on_inside_of_a_vectorized_loop() -> None:
    # TVM 0.27 keeps one buffer for all lanes, and what comes out is wrong.
    for vectorized in (0, 1):
        steps = Steps(add_relu)
        steps.step("compute_at", block=block("add"), loop=loop("relu", 1))
        failed = refused(steps, "vectorize", loop=loop("relu", vectorized))
        assert "mix up" in str(failed)
    steps = Steps(add_relu)
    steps.step("compute_at", block=block("add"), loop=loop("relu", 0))
    steps.step("vectorize", loop=loop("relu", 1))


def test_merge_across_what_lies_between_is_unsafe() -> None:
    steps = Steps(matmul)
    steps.step("cache_write", block=block("matmul"), write_buffer_index=0, storage_scope="global")
    steps.step("decompose_reduction", block=block("matmul"), loop=loop("matmul", 0))
    places = (loop("matmul_init", 0), loop("C_global", 0))
    failed = refused(steps, "merge", loops=places)
    assert failed.error.unsafe


def test_symbolic_loops_are_neither_unrolled_nor_vectorized_nor_drawn_from() -> None:
    for name in ("unroll", "vectorize", "sample_perfect_tile"):
        assert "constant extent" in str(refused(Steps(symbolic), name, loop=loop("add", 0)))
    Steps(symbolic).step("split", loop=loop("add", 0), factors=(None, 8))


@pytest.mark.parametrize("name", ["parallel", "vectorize"])
def test_nested_parallel_and_nested_vectorized_loops(name: str) -> None:
    steps = Steps(add_relu)
    steps.step(name, loop=loop("relu", 0))
    assert "already" in str(refused(steps, name, loop=loop("relu", 1)))


def test_merge_of_loops_that_need_one_another_is_unsafe() -> None:
    loops = (loop("pad", 0), loop("conv", 0))
    Steps(padded_conv).step("merge", loops=loops)
    steps = Steps(padded_conv)
    steps.step("reorder", loops=(loop("relu", 3), loop("relu", 2)))
    failed = refused(steps, "merge", loops=(loop("conv", 2), loop("relu", 2)))
    assert failed.error.unsafe
    Steps(add_relu).step("merge", loops=(loop("add", 1), loop("relu", 1)))


@pytest.mark.parametrize(
    ("index_map", "message"),
    [
        ("i, j -> i", "not a bijection"),
        ("i, j -> i, j % 32", "(0, 0) and (0, 32) get the same index"),
        ("i, j -> i, j - 1", "below 0"),
        ("i, j -> i // 0, j", "a number above 0"),
        ("i, j -> i, k", "k is not one of the axes i, j"),
        ("i, j -> __import__('os')", "not arithmetic"),
        ("i, j -> i ** 2, j", "not arithmetic"),
        ("i, j -> i / 2, j", "write // for a division"),
        ("i -> i", "has 2 axes, and the map 1"),
        ("i, j", "begins with its axes"),
        ("i, i -> i", "a different name"),
        ("i, j -> i * 1048576 * 1048576, j", "too large"),
        ("i, j -> (", "is not arithmetic"),
        ("i, j -> " + "-" * 500 + "i, j", "at most 400 characters"),
    ],
)
def test_index_maps_are_arithmetic_and_bijections(index_map: str, message: str) -> None:
    failed = refused(
        Steps(add_relu), "transform_layout", block=block("add"), buffer="B", index_map=index_map
    )
    assert message in str(failed)

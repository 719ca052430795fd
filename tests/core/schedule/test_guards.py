"""Primitives that kill TVM, hang it or cannot be built are refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm

from lowerscope.core.model.schedule import At
from lowerscope.core.schedule.references import function_of
from tests.core.schedule.examples import total
from tests.core.schedule.functions import (
    Steps,
    add_relu,
    biased,
    block,
    loop,
    made,
    matmul,
    padded_conv,
    refused,
    symbolic,
)
from tests.core.schedule.running import Runner
from tests.core.schedule.test_coach import row_sums, transposed


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


def test_vectors_inside_of_unrolled_loops_count_as_well() -> None:
    # LLVM gathers 256 elements in each of 1,024 copies: the build does not end.
    steps = Steps(transposed(1024, 256))
    steps.step("unroll", loop=loop("C", 0))
    assert "vectors" in str(refused(steps, "vectorize", loop=loop("C", 1)))


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


# What would compute something else, or not what was asked for, is refused with a reason


def test_partition_of_a_reduction_is_unsafe_and_applied_only_when_forced() -> None:
    failed = refused(Steps(matmul), "loop_partition", loop=loop("matmul", 2), factors=(8, None))
    assert failed.error.unsafe
    Steps(matmul).step("loop_partition", forced=True, loop=loop("matmul", 2), factors=(8, None))
    begun = Steps(matmul)
    begun.step("decompose_reduction", block=block("matmul"), loop=loop("matmul", 2))
    begun.step("loop_partition", loop=loop("matmul_update", 2), factors=(8, None))


def test_epilogue_that_is_not_linear_is_unsafe() -> None:
    failed = refused(
        Steps(padded_conv),
        "fuse_reduction_epilogue",
        reduction_block=block("conv"),
        epilogue_block=block("relu"),
    )
    assert failed.error.unsafe
    Steps(biased).step(
        "fuse_reduction_epilogue", reduction_block=block("sum"), epilogue_block=block("bias")
    )


def test_a_condition_that_would_be_forgotten() -> None:
    steps = Steps(matmul)
    steps.step("split", loop=loop("matmul", 2), factors=(None, 5))
    steps.step("rfactor", loop=made("s1", 1), factor_axis=2)
    failed = refused(steps, "compute_at", block=made("s2"), loop=loop("matmul", 1))
    assert "which TVM would drop" in str(failed)
    # An axis that was split ends where it ended before.
    split, fused = Steps(add_relu), Steps(add_relu)
    split.step("split", loop=loop("add", 1), factors=(None, 5))
    fused.step("fuse", loops=(loop("add", 0), loop("add", 1)))
    fused.step("split", loop=made("s1"), factors=(None, 7))
    for each in (split, fused):
        each.step("compute_at", block=block("add"), loop=loop("relu", 0))
        after = function_of(each.sch)
        assert Runner(tvm.target.Target("llvm")).difference("f", add_relu, after) is None


@pytest.mark.parametrize("name", ["reindex_cache_read", "reindex_cache_write"])
def test_a_copy_with_other_indices_within_a_block(name: str) -> None:
    steps = Steps(padded_conv)
    steps.step("blockize", target=loop("conv", 2))
    arguments = {"block": block("conv"), "index_map": "h, w, c, y, x -> h, w"}
    assert "inside the block conv_o" in str(refused(steps, name, **arguments))


def test_what_is_drawn_is_drawn_again() -> None:
    made_ = []
    for _ in range(3):
        steps = Steps(matmul)
        steps.sch.seed(len(made_) + 1)
        steps.step("sample_perfect_tile", loop=loop("matmul", 2), n=3)
        steps.step(
            "split", loop=loop("matmul", 2), factors=tuple(made("s1", each) for each in range(3))
        )
        made_.append(steps.sch.mod.script())
    assert made_[0] == made_[1] == made_[2]


@pytest.mark.parametrize(
    ("values", "factors", "place", "is_safe"),
    [
        (5, (None, 4), 1, True),
        (5, (None, 2), 0, True),
        (9, (None, 4), 1, True),
        (10, (4, 3), 0, True),
        (5, (None, 8), 1, False),
        (5, (4, 2), 0, False),
        (10, (6, 2), 0, False),
        (3, (2, 2, 4), 1, False),
    ],
)
def test_parts_without_a_value_begin_apart_or_are_refused(
    values: int, factors: tuple[int | None, ...], place: int, is_safe: bool
) -> None:
    steps = Steps(row_sums(4, values))
    steps.step("split", loop=loop("C", 1), factors=factors)
    arguments = {"loop": made("s1", place), "factor_axis": 1}
    if is_safe:
        steps.step("rfactor", **arguments)
    else:
        failed = refused(steps, "rfactor", **arguments)
        assert failed.error.unsafe
        assert "may have no value" in str(failed)
        assert "\n" not in str(failed)
        # As it is said: then the parts have to begin apart.
        steps.step("rfactor", forced=True, **arguments)
        steps.step("decompose_reduction", block=block("C_rf"), loop=loop("C_rf", 1))
    given = np.random.default_rng(0).normal(size=(4, values)).astype("float32")
    run = tvm.compile(steps.sch.mod, "llvm")["main"]
    for _ in range(5):
        # What is free is not zero by chance.
        junk = [np.full((4, 16), 1e9, "float32") for _ in range(50)]
        del junk
        got = tvm.runtime.tensor(np.full(4, 7, "float32"))
        run(tvm.runtime.tensor(given), got)
        np.testing.assert_allclose(got.numpy(), given.sum(1), atol=1e-5)


def test_a_part_of_a_reduction_by_itself_computes_the_same() -> None:
    steps = Steps(total)
    steps.step("rfactor", loop=loop("sum", 1))
    runner = Runner(tvm.target.Target("llvm"))
    assert runner.difference("total", total, function_of(steps.sch)) is None
    assert "no dimension" in str(
        refused(Steps(total), "rfactor", loop=At(block="sum", loop=1), factor_axis=9)
    )

"""What kills TVM, hangs it, or is accepted and wrong, is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from tvm.script import tirx as T

from lowerscope.core.schedules import At
from lowerscope.core.scheduling import results
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.references import function_of
from tests.core.scheduling.examples import in_place, total
from tests.core.scheduling.functions import (
    Steps,
    add_relu,
    biased,
    block,
    loop,
    made,
    matmul,
    padded_conv,
    schedule,
    symbolic,
)
from tests.core.scheduling.running import Runner


def _refused(steps: Steps, name: str, **arguments: Any) -> StepFailed:
    with pytest.raises(StepFailed) as failed:
        steps.step(name, **arguments)
    return failed.value


@pytest.mark.parametrize("places", [(0, 0), (0, 1), (1, 0)])
def test_merge_of_one_loop_or_of_nested_ones(places: tuple[int, int]) -> None:
    failed = _refused(Steps(add_relu), "merge", loops=tuple(loop("add", place) for place in places))
    assert "merge" in str(failed)


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
    assert message in str(_refused(Steps(matmul), name, **where, **arguments))


def test_split_without_condition_that_divides_is_applied() -> None:
    Steps(matmul).step("split", loop=loop("matmul", 0), factors=(None, 8), disable_predication=True)


@pytest.mark.parametrize("value", [2**30, 4096, -1, "x"])
def test_pragma_that_unrolls_without_end(value: Any) -> None:
    failed = _refused(
        Steps(matmul),
        "annotate",
        block_or_loop=loop("matmul", 0),
        ann_key="pragma_auto_unroll_max_step",
        ann_val=value,
    )
    assert "from 0 to" in str(failed)


def test_pragma_that_the_build_does_not_know() -> None:
    failed = _refused(
        Steps(matmul),
        "annotate",
        block_or_loop=loop("matmul", 0),
        ann_key="pragma_import_llvm",
        ann_val="x",
    )
    assert "no pragma that the build knows" in str(failed)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("software_pipeline_stage", "software_pipeline_stage is read by passes that this target"),
        ("buffer_dim_align", "set by other primitives"),
        ("", "an annotation has a name"),
    ],
)
def test_annotations_of_other_targets(key: str, message: str) -> None:
    arguments = {"block_or_loop": loop("matmul", 0), "ann_key": key, "ann_val": 1}
    assert message in str(_refused(Steps(matmul), "annotate", **arguments))


def test_huge_loops_are_neither_unrolled_nor_vectorized() -> None:
    steps = Steps(matmul)
    steps.step("fuse", loops=(loop("matmul", 0), loop("matmul", 1)))
    steps.step("fuse", loops=(made("s1"), loop("matmul", 1)))
    assert "split the loop first" in str(_refused(steps, "unroll", loop=made("s2")))
    steps = Steps(matmul)
    steps.step("fuse", loops=(loop("matmul", 0), loop("matmul", 1)))
    assert "split the loop first" in str(_refused(steps, "vectorize", loop=made("s1")))


def test_unrolled_loops_that_are_too_many_together() -> None:
    steps = Steps(matmul)
    steps.step("unroll", loop=loop("matmul", 2))
    assert "3072 copies" in str(_refused(steps, "unroll", loop=loop("matmul", 1)))


def test_short_loops_inside_of_unrolled_ones_count_as_well() -> None:
    # LLVM unrolls the 32 iterations inside of each of 512 copies: the build takes minutes.
    steps = Steps(matmul)
    steps.step("split", loop=loop("matmul", 1), factors=(None, 8))
    steps.step("fuse", loops=(loop("matmul", 2), loop("matmul", 3)))
    steps.step("reorder", loops=(made("s2"), loop("matmul", 0)))
    assert "short loops" in str(_refused(steps, "unroll", loop=made("s2")))


def test_nested_short_loops_inside_of_unrolled_ones_count_together() -> None:
    # LLVM unrolls both of 9 iterations inside of each of 64 copies.
    x = te.placeholder((64, 7, 7), name="x")
    padded = te.create_prim_func([x, topi.nn.pad(x, [0, 1, 1])])
    steps = Steps(padded)
    name = steps.sch.get(steps.sch.get_child_blocks(steps.sch.get_sblock("root"))[0]).name_hint
    assert "short loops" in str(_refused(steps, "unroll", loop=loop(str(name), 0)))


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
    assert "vectors" in str(_refused(steps, "vectorize", loop=loop("transpose", 1)))


def test_values_that_are_handed_on_inside_of_a_vectorized_loop() -> None:
    # TVM 0.27 keeps one buffer for all lanes, and what comes out is wrong.
    for vectorized in (0, 1):
        steps = Steps(add_relu)
        steps.step("compute_at", block=block("add"), loop=loop("relu", 1))
        failed = _refused(steps, "vectorize", loop=loop("relu", vectorized))
        assert "mix up" in str(failed)
    steps = Steps(add_relu)
    steps.step("compute_at", block=block("add"), loop=loop("relu", 0))
    steps.step("vectorize", loop=loop("relu", 1))


@T.prim_func(s_tir=True)
def unread(A: T.Buffer((30, 64), "float32"), C: T.Buffer((30, 64), "float32")):
    B = T.sblock_alloc_buffer((30, 64), "float32")
    for i, j in T.grid(30, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(30, 64):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]


@T.prim_func(s_tir=True)
def padded_wide(
    A: T.Buffer((T.int64(8), T.int64(8)), "float32"),
    C: T.Buffer((T.int64(10), T.int64(10)), "float32"),
):
    for i, j in T.grid(T.int64(10), T.int64(10)):
        with T.sblock("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(
                T.int64(1) <= vi and vi < T.int64(9) and T.int64(1) <= vj and vj < T.int64(9),
                A[vi - T.int64(1), vj - T.int64(1)],
                T.float32(0),
            )


def test_indices_of_two_dimensions_and_64_bits_that_cannot_be_built() -> None:
    failed = _refused(Steps(padded_wide), "cache_index", block=block("pad"), cse_thresh=0)
    assert "32 and 64 bits" in str(failed)


def test_merge_across_what_lies_between_is_unsafe() -> None:
    steps = Steps(matmul)
    steps.step("cache_write", block=block("matmul"), write_buffer_index=0, storage_scope="global")
    steps.step("decompose_reduction", block=block("matmul"), loop=loop("matmul", 0))
    places = (loop("matmul_init", 0), loop("C_global", 0))
    failed = _refused(steps, "merge", loops=places)
    assert failed.error.unsafe


def test_an_alignment_that_cannot_be_built() -> None:
    steps = Steps(add_relu)
    steps.step("cache_read", block=block("relu"), read_buffer_index=0, storage_scope="global")
    aligned = {"block": block("add"), "buffer_index": 0, "axis": 0, "factor": 32, "offset": 5}
    steps.step("storage_align", **aligned)
    assert "nothing reads" in str(_refused(Steps(unread), "storage_align", **aligned))


def test_merge_of_loops_at_different_depths_is_answered() -> None:
    steps = Steps(padded_conv)
    _refused(steps, "merge", loops=(loop("pad", 2), loop("conv", 1)))


def test_paddings_beyond_all_memory() -> None:
    failed = _refused(Steps(padded_conv), "pad_einsum", block=block("relu"), padding=(1024,) * 4)
    assert "GiB" in str(failed)


def test_symbolic_loops_are_neither_unrolled_nor_vectorized_nor_drawn_from() -> None:
    for name in ("unroll", "vectorize", "sample_perfect_tile"):
        assert "number" in str(_refused(Steps(symbolic), name, loop=loop("add", 0)))
    Steps(symbolic).step("split", loop=loop("add", 0), factors=(None, 8))


@pytest.mark.parametrize("name", ["parallel", "vectorize"])
def test_nested_parallel_and_nested_vectorized_loops(name: str) -> None:
    steps = Steps(add_relu)
    steps.step(name, loop=loop("relu", 0))
    assert "already" in str(_refused(steps, name, loop=loop("relu", 1)))


def test_nesting_by_moving_is_refused_as_well() -> None:
    steps = Steps(add_relu)
    steps.step("split", loop=loop("add", 1), factors=(None, 8))
    steps.step("parallel", loop=loop("relu", 0))
    steps.step("compute_at", block=block("add"), loop=loop("relu", 0))
    assert "already" in str(_refused(steps, "parallel", loop=loop("add", 1)))


def test_merge_of_loops_that_need_one_another_is_unsafe() -> None:
    loops = (loop("pad", 0), loop("conv", 0))
    Steps(padded_conv).step("merge", loops=loops)
    steps = Steps(padded_conv)
    steps.step("reorder", loops=(loop("relu", 3), loop("relu", 2)))
    failed = _refused(steps, "merge", loops=(loop("conv", 2), loop("relu", 2)))
    assert failed.error.unsafe
    Steps(add_relu).step("merge", loops=(loop("add", 1), loop("relu", 1)))


def test_bind_says_why_not() -> None:
    failed = _refused(Steps(matmul), "bind", loop=loop("matmul", 0))
    assert "has no threads of a GPU" in str(failed)


def test_partition_of_a_reduction_is_unsafe_and_applied_only_when_forced() -> None:
    failed = _refused(Steps(matmul), "loop_partition", loop=loop("matmul", 2), factors=(8, None))
    assert failed.error.unsafe
    Steps(matmul).step("loop_partition", forced=True, loop=loop("matmul", 2), factors=(8, None))


def test_partition_of_a_loop_with_several_blocks() -> None:
    steps = Steps(matmul)
    steps.step("decompose_reduction", block=block("matmul"), loop=loop("matmul", 1))
    failed = _refused(steps, "loop_partition", loop=loop("matmul_init", 0), factors=(8, None))
    assert "several blocks" in str(failed)


def test_layout_of_what_a_caller_gives() -> None:
    failed = _refused(
        Steps(matmul),
        "transform_layout",
        block=block("matmul"),
        buffer="A",
        index_map="i, j -> j, i",
    )
    assert "comes from the caller" in str(failed)


def test_another_dtype_is_unsafe() -> None:
    arguments = {"block": block("add"), "dtype": "float16"}
    assert _refused(Steps(add_relu), "unsafe_set_dtype", **arguments).error.unsafe
    Steps(add_relu).step("unsafe_set_dtype", forced=True, **arguments)


def test_epilogue_that_is_not_linear_is_unsafe() -> None:
    failed = _refused(
        Steps(padded_conv),
        "fuse_reduction_epilogue",
        reduction_block=block("conv"),
        epilogue_block=block("relu"),
    )
    assert failed.error.unsafe
    Steps(biased).step(
        "fuse_reduction_epilogue", reduction_block=block("sum"), epilogue_block=block("bias")
    )


def test_a_block_that_reads_nothing_computed() -> None:
    for place in (loop("relu", 1), loop("conv", 6)):
        failed = _refused(Steps(padded_conv), "reverse_compute_at", block=block("pad"), loop=place)
        assert "pad reads nothing that another block computes" in str(failed)


def test_a_condition_that_would_be_forgotten() -> None:
    steps = Steps(matmul)
    steps.step("split", loop=loop("matmul", 2), factors=(None, 5))
    steps.step("rfactor", loop=made("s1", 1), factor_axis=2)
    failed = _refused(steps, "compute_at", block=made("s2"), loop=loop("matmul", 1))
    assert "which TVM would forget" in str(failed)
    # An axis that was split ends where it ended before.
    split, fused = Steps(add_relu), Steps(add_relu)
    split.step("split", loop=loop("add", 1), factors=(None, 5))
    fused.step("fuse", loops=(loop("add", 0), loop("add", 1)))
    fused.step("split", loop=made("s1"), factors=(None, 7))
    for each in (split, fused):
        each.step("compute_at", block=block("add"), loop=loop("relu", 0))
        after = function_of(each.sch)
        assert Runner(tvm.target.Target("llvm")).difference("f", add_relu, after) is None


def test_a_block_that_what_reads_it_comes_before() -> None:
    before, after = schedule(padded_conv), Steps(padded_conv).sch
    after.reverse_compute_at(after.get_sblock("pad"), after.get_loops(after.get_sblock("relu"))[1])
    with pytest.raises(StepFailed, match="conv would read P before"):
        results.check(before, after)


@pytest.mark.parametrize("name", ["reindex_cache_read", "reindex_cache_write"])
def test_a_copy_with_other_indices_within_a_block(name: str) -> None:
    steps = Steps(padded_conv)
    steps.step("blockize", target=loop("conv", 2))
    arguments = {"block": block("conv"), "index_map": "h, w, c, y, x -> h, w"}
    assert "stands in the block conv_o" in str(_refused(steps, name, **arguments))


def test_a_copy_of_what_is_added_to() -> None:
    steps = Steps(matmul)
    steps.step("decompose_reduction", block=block("matmul"), loop=loop("matmul", 0))
    failed = _refused(steps, "reindex", block=block("matmul_update"), buffer="C")
    assert "matmul_update reads what is in C before it writes there" in str(failed)
    # The sum in one block begins with 0 in the copy as well.
    Steps(matmul).step("reindex", block=block("matmul"), buffer="C")


def test_axes_outside_of_their_block() -> None:
    failed = _refused(Steps(in_place), "cache_inplace", block=block("add"))
    assert "outside of it" in str(failed)


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
        ("i, i -> i", "a name of its own"),
        ("i, j -> i * 1048576 * 1048576, j", "too large"),
        ("i, j -> (", "is not arithmetic"),
        ("i, j -> " + "-" * 500 + "i, j", "at most 400 characters"),
    ],
)
def test_index_maps_are_arithmetic_and_bijections(index_map: str, message: str) -> None:
    failed = _refused(
        Steps(add_relu), "transform_layout", block=block("add"), buffer="B", index_map=index_map
    )
    assert message in str(failed)


def test_copy_in_which_two_elements_would_have_one_place() -> None:
    arguments = {"block": block("matmul"), "index_map": "i, j, k -> i, k % 8"}
    assert "not a bijection" in str(_refused(Steps(matmul), "reindex_cache_read", **arguments))


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
    steps = Steps(_sums(values))
    steps.step("split", loop=loop("sum", 1), factors=factors)
    arguments = {"loop": made("s1", place), "factor_axis": 1}
    if is_safe:
        steps.step("rfactor", **arguments)
    else:
        failed = _refused(steps, "rfactor", **arguments)
        assert failed.error.unsafe
        assert "may have no value" in str(failed)
        assert "\n" not in str(failed)
        # As it is said: then the parts have to begin apart.
        steps.step("rfactor", forced=True, **arguments)
        steps.step("decompose_reduction", block=block("sum_rf"), loop=loop("sum_rf", 1))
    given = np.random.default_rng(0).normal(size=(4, values)).astype("float32")
    run = tvm.compile(steps.sch.mod, "llvm")["main"]
    for _ in range(5):
        # What is free is not zero by chance.
        junk = [np.full((4, 16), 1e9, "float32") for _ in range(50)]
        del junk
        got = tvm.runtime.tensor(np.full(4, 7, "float32"))
        run(tvm.runtime.tensor(given), got)
        np.testing.assert_allclose(got.numpy(), given.sum(1), atol=1e-5)


def test_parts_of_a_number_of_values_that_is_not_known() -> None:
    steps = Steps(_sums(tirx.Var("n", "int64")))
    steps.step("split", loop=loop("sum", 1), factors=(None, 8))
    failed = _refused(steps, "rfactor", loop=made("s1", 1), factor_axis=1)
    assert "may have no value" in str(failed)


def _sums(values: Any) -> tirx.PrimFunc:
    given = te.placeholder((4, values), "float32", "A")
    axis = te.reduce_axis((0, values), "k")
    total = te.compute((4,), lambda i: te.sum(given[i, axis], axis), "sum")
    return te.create_prim_func([given, total])


def test_a_part_of_a_reduction_by_itself_computes_the_same() -> None:
    steps = Steps(total)
    steps.step("rfactor", loop=loop("sum", 1))
    runner = Runner(tvm.target.Target("llvm"))
    assert runner.difference("total", total, function_of(steps.sch)) is None
    assert "no dimension" in str(
        _refused(Steps(total), "rfactor", loop=At(block="sum", loop=1), factor_axis=9)
    )

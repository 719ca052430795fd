"""What would compute something else, or not what was asked for, is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx

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
)
from tests.core.schedule.running import Runner


def test_partition_of_a_reduction_is_unsafe_and_applied_only_when_forced() -> None:
    failed = refused(Steps(matmul), "loop_partition", loop=loop("matmul", 2), factors=(8, None))
    assert failed.error.unsafe
    Steps(matmul).step("loop_partition", forced=True, loop=loop("matmul", 2), factors=(8, None))


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
    steps = Steps(_sums(values))
    steps.step("split", loop=loop("sum", 1), factors=factors)
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
        refused(Steps(total), "rfactor", loop=At(block="sum", loop=1), factor_axis=9)
    )

"""A schedule that changes what a function computes is found out, and one that does not is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import tvm
from tvm import te, tirx, topi
from tvm.relax import op
from tvm.s_tir import Schedule
from tvm.script import tirx as T

from lowerscope.core.model.progress import Silent
from lowerscope.core.model.schedule_records import Checked
from lowerscope.core.run.checking import Limit, Reference, check, compare, reference_of
from lowerscope.core.run.standalone import at_sizes, draw, static_parameters
from tests.core.schedule.ruling import WIDE, legalised, made

TARGET = tvm.target.Target("llvm")
A, B = te.placeholder((24, 36), name="A"), te.placeholder((36, 12), name="B")
MATMUL = te.create_prim_func([A, B, topi.matmul(A, B)])


def checked(
    function: tirx.PrimFunc, scheduled: tirx.PrimFunc | None = None, seconds: float = 60
) -> Checked:
    return check(
        function if scheduled is None else scheduled,
        TARGET,
        lambda limit: reference_of(at_sizes(function, None), TARGET, 0, limit),
        Limit(seconds, 1, Silent()),
        seconds,
    )


def scheduled(apply: Callable[[Schedule, list], object]) -> tirx.PrimFunc:
    sch = Schedule(MATMUL)
    apply(sch, sch.get_loops(sch.get_sblock("T_matmul")))
    return sch.mod["main"]


def test_the_reference_is_what_torch_computes() -> None:
    reference = reference_of(at_sizes(MATMUL, None), TARGET, 7, Limit(60, 1, Silent()))
    a, b, _ = reference.inputs
    torch.testing.assert_close(reference.outputs[2], a @ b)
    assert reference.terms == 36


def test_a_function_of_any_size_is_run_at_the_one_that_it_is_called_with() -> None:
    n, m = te.var("n", "int64"), te.var("m", "int64")
    a, b = te.placeholder((n, 36)), te.placeholder((36, m))
    function = te.create_prim_func([a, b, topi.matmul(a, b)])
    sized = at_sizes(function, ((7, 36), (36, 3), (7, 3)))
    assert sized.text == "n = 7, m = 3"
    reference = reference_of(sized, TARGET, 7, Limit(60, 1, Silent()))
    left, right, _ = reference.inputs
    torch.testing.assert_close(reference.outputs[2], left @ right)
    assert split_rows(function, reference, guarded=True).verdict == "same"
    # Right for multiples of 4, and 7 is none.
    found = split_rows(function, reference, guarded=False)
    assert found.reason == "it writes outside of T_matmul"


def test_a_single_sum_that_is_next_to_nothing_may_be_off_as_much_as_any() -> None:
    function = legalised(op.sum, (32,))
    limit = Limit(60, 1, Silent())
    reference = reference_of(at_sizes(function, None), WIDE, 0, limit)
    given, written = reference.inputs[0], reference.outputs[1]
    torch.testing.assert_close(written, given.sum())
    # By chance, with this seed; its terms are no smaller, nor is what they are rounded by.
    assert abs(written.item()) < 0.3 < 5 < reference.scales[1]
    found = compare(made(function, WIDE)[1], WIDE, reference, limit)
    assert found.verdict == "same", found.reason
    # A sum of one term less is another one.
    less = reference.inputs[0].clone()
    less[0] = 0
    changed = replace(reference, inputs=(less, None))
    assert compare(function, WIDE, changed, limit).verdict == "differs"


def split_rows(function: tirx.PrimFunc, reference: Reference, guarded: bool) -> Checked:
    sch = Schedule(function)
    rows, _, _ = sch.get_loops(sch.get_sblock("T_matmul"))
    sch.split(rows, [None, 4], disable_predication=not guarded)
    return compare(sch.mod["main"], TARGET, reference, Limit(60, 1, Silent()))


def test_a_partitioned_reduction_differs() -> None:
    found = checked(MATMUL, scheduled(lambda sch, loops: sch.loop_partition(loops[2], [8, None])))
    assert found.verdict == "differs"
    assert found.reason.startswith("T_matmul: ")
    assert "elements differ, by up to" in found.reason
    assert found.max_abs_error > found.tolerance


@T.prim_func(s_tir=True)
def half_written(
    A: T.Buffer((24, 36), "float32"),
    B: T.Buffer((36, 12), "float32"),
    C: T.Buffer((24, 12), "float32"),
):
    for i, j in T.grid(12, 12):
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            C[v_i, v_j] = T.float32(0)


def test_what_is_not_written_is_said_first() -> None:
    found = checked(MATMUL, half_written)
    assert found.verdict == "differs"
    assert found.reason == "T_matmul: 144 of 288 elements are NaN, or were not written"


@T.prim_func(s_tir=True)
def beside(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(9):
        with T.sblock("C"):
            v_i = T.axis.spatial(9, i)
            C[v_i] = A[v_i % 8] + 1


def test_what_is_written_outside_is_found() -> None:
    a = te.placeholder((8,), "int32", name="A")
    function = te.create_prim_func([a, te.compute((8,), lambda i: a[i] + 1, name="C")])
    assert checked(function).verdict == "same"
    found = checked(function, beside)
    assert (found.verdict, found.reason) == ("differs", "it writes outside of C")


def test_integers_are_exact() -> None:
    a = te.placeholder((64,), "int32", name="A")
    function = te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 3, name="C")])
    other = te.create_prim_func([a, te.compute((64,), lambda i: a[i] * 3 // 2 * 2, name="C")])
    found = checked(function, other)
    assert found.verdict == "differs"
    assert found.reason.endswith("of 64 elements differ")
    assert (found.max_abs_error, found.tolerance) == (None, None)


def test_indices_are_inside_and_divisors_are_not_zero() -> None:
    table, at = te.placeholder((7, 3)), te.placeholder((50,), "int64")
    gather = te.create_prim_func([table, at, topi.take(table, at, 0, mode="fast")])
    _, drawn, _ = draw(gather, static_parameters(gather), 0)
    assert (int(drawn.min()), int(drawn.max())) == (0, 6)
    a, b = te.placeholder((90,), "int32"), te.placeholder((90,), "int32")
    divide = te.create_prim_func([a, b, topi.floor_divide(a, b)])
    assert int(draw(divide, static_parameters(divide), 0)[1].min()) > 0
    assert checked(gather).verdict == checked(divide).verdict == "same"


def test_without_time_it_is_not_known() -> None:
    found = checked(MATMUL, seconds=0.001)
    assert found.verdict == "unknown"
    assert found.running
    assert found.reason == "the unscheduled function took longer than 0.001 s by itself"

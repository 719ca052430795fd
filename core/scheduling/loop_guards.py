"""Guards of loops: uses that TVM would wrongly accept, or crash on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tvm_ffi
from tvm import ir, tirx

from lowerscope.core.rendering.programs.expression_text import operator_name
from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.merge_guard import depends
from lowerscope.core.scheduling.references import Place, below, function_of, places
from lowerscope.core.scheduling.results import MAX_UNROLLED
from lowerscope.core.scheduling.sizes import known, mentions

MAX_LANES = 256
"""Maximum number of lanes of a vectorized loop: LLVM takes minutes for much longer vectors."""


def split(call: Call) -> None:
    """Reject a split without predicates that does not divide: it writes beyond the buffer."""
    if not call.values["disable_predication"]:
        return
    extent = known(call.sch.get(call.values["loop"]).extent)
    factors = [known(factor) for factor in call.values["factors"] if factor is not None]
    product = 1
    for factor in factors:
        if factor is None or extent is None or factor < 1:
            raise StepFailed("without the condition, factors and extent have to be numbers")
        product *= factor
    open_ones = len(call.values["factors"]) - len(factors)
    divides = extent is not None and (extent % product == 0 if open_ones else extent == product)
    if not divides:
        raise StepFailed(
            f"without the condition, the factors have to divide {extent}: "
            "the loop would run beyond the buffer's end"
        )


def several(call: Call) -> None:
    """Reject a single loop: TVM accepts it, and does nothing."""
    if len(call.values["loops"]) < 2:
        raise StepFailed("there is no other loop around it or in it, with nothing beside it")


def merge(call: Call) -> None:
    """Reject one loop with itself, and loops inside of one another: TVM crashes on them."""
    stmts = [call.sch.get(loop) for loop in call.values["loops"]]
    if len(stmts) < 2:
        raise StepFailed("there is no other loop of the same extent beside it")
    found = places(function_of(call.sch))
    chosen = [_index(found, stmt) for stmt in stmts]
    if len(set(chosen)) < len(chosen):
        raise StepFailed("a loop cannot be merged with itself")
    for index in chosen:
        parent = found[index].parent
        while parent >= 0:
            if parent in chosen:
                raise StepFailed("loops inside of one another cannot be merged; fuse them")
            parent = found[parent].parent
    if not call.forced and any(
        depends(found, one, other) for one, other in itertools.pairwise(chosen)
    ):
        raise StepFailed(
            "an iteration of one loop may need what later iterations of the other compute: "
            "the result can be wrong; compute_at moves a block under a loop",
            unsafe=True,
        )


def _index(found: Sequence[Place], stmt: Any) -> int:
    return next(index for index, place in enumerate(found) if place.stmt.same_as(stmt))


def loop_partition(call: Call) -> None:
    """Guard the partition of a loop of a reduction: each part starts from the initial value."""
    loop = call.sch.get(call.values["loop"])
    if sum(place.is_block for place in below(loop)) > 1:
        # TVM follows the loops inwards without end.
        raise StepFailed("a loop with several blocks in it cannot be partitioned")
    if not call.forced and reduces(loop):
        raise StepFailed(
            "of a loop of a reduction, each part starts anew from the initial value: "
            "the result is wrong",
            unsafe=True,
        )


def reduces(loop: tirx.For) -> bool:
    """Return whether an axis of a reduction depends on `loop`."""
    return any(
        axis.iter_type != tirx.IterVar.DataPar and mentions(value, loop.loop_var)
        for place in below(loop)
        if place.is_block
        for axis, value in zip(place.stmt.iter_vars, place.realize.iter_values, strict=True)
    )


def uses_any(region: Any, var: tirx.Var) -> bool:
    """Return whether the start of a region of a buffer depends on `var`."""
    return any(mentions(each.min, var) or mentions(each.extent, var) for each in region)


def vectorize(call: Call) -> None:
    """Reject loops that LLVM cannot vectorize, or takes minutes for."""
    extent = known(call.sch.get(call.values["loop"]).extent)
    if extent is None:
        raise StepFailed("a vectorized loop needs an extent that is a number; split it first")
    if extent > MAX_LANES:
        raise StepFailed(
            f"a vector of {extent} elements takes minutes to build; "
            f"split the loop first, so that the inner one has at most {MAX_LANES}"
        )
    alone = _one_by_one(call.sch.get(call.values["loop"]).body)
    if alone:
        raise StepFailed(
            f"TVM computes {alone} one element after the other, and would lose the values that the "
            "block gives names to"
        )


def _one_by_one(body: Any) -> str:
    """Return a function that TVM cannot vectorize in a body with bindings; empty for none."""
    named: list[Any] = []
    calls: list[Any] = []
    tvm_ffi.structural_walk(body, [(tirx.Bind, named.append), (ir.Call, calls.append)])
    names = (operator_name(each) for each in calls if not each.op.get_attr("TVectorizable"))
    return next((name for name in names if name not in _MADE_VECTORS_OF), "") if named else ""


_MADE_VECTORS_OF = ("if_then_else", "likely", "reinterpret", "Cast")
"""Operators that TVM vectorizes without an attribute that says so."""


def unroll(call: Call) -> None:
    """Reject unrolling that makes too much code."""
    loop = call.sch.get(call.values["loop"])
    extent = known(loop.extent)
    if extent is None:
        raise StepFailed("an unrolled loop needs an extent that is a number; split it first")
    if extent > MAX_UNROLLED:
        raise StepFailed(
            f"{extent} copies of the body take minutes to build; split the loop first, "
            f"so that the inner one has at most {MAX_UNROLLED}"
        )


def bind(call: Call) -> None:
    """Reject GPU threads on a processor: TVM accepts them, and the build fails."""
    raise StepFailed(
        f"the target {call.target.kind.name} is a processor, and has no threads of a GPU; "
        "parallel runs a loop on its cores"
    )

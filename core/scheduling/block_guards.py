"""Guards of blocks that are moved: uses that TVM would accept, and that are wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import tvm_ffi
from tvm import sym, tirx
from tvm.ir.expr import TensorLoad
from tvm.tirx.analysis import undefined_vars

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import REFUSED, StepFailed, step_error
from lowerscope.core.scheduling.references import Place, function_of, places
from lowerscope.core.scheduling.sizes import known


def compute_inline(call: Call) -> None:
    """Reject an inlining that brings a comparison of floats into the ``not`` of a reader.

    TVM makes ``b < a`` of ``not a <= b``, which is another value where one of them is NaN.
    """
    block = call.sch.get(call.values["block"])
    if negated_in(places(function_of(call.sch)), block):
        raise StepFailed(_NEGATED.format(block=block.name_hint))


def reverse_compute_inline(call: Call) -> None:
    """Reject the same for a block that is inlined into its producer."""
    block = call.sch.get(call.values["block"])
    for place in places(function_of(call.sch)):
        if place.is_block and place.stmt.writes and _negates(place.stmt, block):
            raise StepFailed(_NEGATED.format(block=place.name))


_NEGATED = (
    "{block} compares floats, and its reader negates that: TVM would turn the comparison round, "
    "which is wrong for NaN"
)


def negated_in(found: Sequence[Place], block: Any) -> bool:
    """Return whether a reader of a block negates a comparison of floats in it.

    Parameters
    ----------
    found
        The loops and blocks of the function.
    """
    return any(_negates(block, each.stmt) for each in found if each.is_block)


def _negates(block: Any, reader: Any) -> bool:
    if not block.writes:
        return False  # the root block
    written = block.writes[0].source
    if str(written.dtype) != "bool" or reader.same_as(block):
        return False
    if not any(region.source.same_as(written) for region in reader.reads):
        return False
    negations: list[Any] = []
    tvm_ffi.structural_walk(reader.body, (_NEGATIONS, negations.append))
    return any(map(partial(_reads, written), negations)) and _compares_floats(block.body)


_NEGATIONS = (tirx.Not, tirx.EQ, tirx.NE)
"""Expressions that negate: TVM writes the latter two as ``not`` where one side is a constant."""


def _reads(buffer: Any, expression: Any) -> bool:
    loads: list[Any] = []
    tvm_ffi.structural_walk(expression, (TensorLoad, loads.append))
    return any(each.source.same_as(buffer) for each in loads)


def _compares_floats(body: Any) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (_COMPARISONS, found.append))
    return any("float" in str(each.a.ty.dtype) for each in found)


_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)


def compute_at(call: Call) -> None:
    """Reject moving a block whose condition leaves out some values of its axes.

    TVM regenerates the loops from the extents of the axes, and loses the condition: a block of
    ``rfactor``, of an axis that the split did not divide, would then read elements that do not
    exist.
    """
    block = call.sch.get(call.values["block"])
    place = next(each for each in places(function_of(call.sch)) if each.stmt.same_as(block))
    conditions = list(conjuncts(place.realize.predicate))
    values = list(place.realize.iter_values)
    analyzer = sym.Analyzer()
    # That of a split axis says no more than where the axis ends.
    left = [
        each
        for each in conditions
        if not isinstance(each, tirx.LT)
        or not any(analyzer.can_prove_equal(each.a, value) for value in values)
    ]
    if left and _leaves_out(left, call, [axis.dom.extent for axis in block.iter_vars]):
        raise StepFailed(
            f"{block.name_hint} is computed only where {left[0]}, which TVM would forget: split"
            " by what divides the extent, or leave the block where it is"
        )


def conjuncts(condition: Any) -> Iterator[Any]:
    """Yield the conjuncts of a condition, except those that always hold."""
    if isinstance(condition, tirx.And):
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    elif known(condition) != 1:
        yield condition


def _leaves_out(conditions: list[Any], call: Call, axes: list[Any]) -> bool:
    """Return whether the loops cover fewer values than the axes have, as far as that is known."""
    loops = [call.sch.get(each) for each in call.sch.get_loops(call.values["block"])]
    extents = {each.loop_var: known(each.extent) for each in loops}
    ends = [known(getattr(each, "b", None)) for each in conditions]
    sizes = [known(each) for each in axes]
    if None in (*extents.values(), *ends, *sizes):
        return True
    values = Fraction(prod(each or 1 for each in extents.values()))
    for condition, end in zip(conditions, ends, strict=True):
        whole = prod(extents.get(each) or 1 for each in undefined_vars(condition.a))
        values *= Fraction(end or 1, whole)
    return prod(each or 1 for each in sizes) > values


def reverse_compute_at(call: Call) -> None:
    """Reject a block that reads nothing computed: it would be computed whole at each iteration."""
    try:
        producers = call.sch.get_producers(call.values["block"])
    except REFUSED as error:
        raise StepFailed.of(step_error(error)) from error
    if not producers:
        name = call.sch.get(call.values["block"]).name_hint
        raise StepFailed(f"{name} reads nothing that another block computes")

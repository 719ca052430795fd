"""What TVM would accept of blocks that are moved, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any

from tvm import sym, tirx
from tvm.tirx.analysis import undefined_vars

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import REFUSED, StepFailed, step_error
from lowerscope.core.scheduling.references import function_of, places
from lowerscope.core.scheduling.sizes import known


def compute_at(call: Call) -> None:
    """Refuse to move a block whose condition leaves out some values of its axes.

    TVM makes the loops anew from the extents of the axes, and forgets the condition: a block of
    ``rfactor``, of an axis that the split did not divide, would then read what is not there.
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
    """Yield what has to hold for a condition to hold, but for what always does."""
    if isinstance(condition, tirx.And):
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    elif known(condition) != 1:
        yield condition


def _leaves_out(conditions: list[Any], call: Call, axes: list[Any]) -> bool:
    """Return whether the loops come to fewer values than the axes have, as far as that is known."""
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
    """Refuse a block that reads nothing computed: it would be computed whole at each iteration."""
    try:
        producers = call.sch.get_producers(call.values["block"])
    except REFUSED as error:
        raise StepFailed.of(step_error(error)) from error
    if not producers:
        name = call.sch.get(call.values["block"]).name_hint
        raise StepFailed(f"{name} reads nothing that another block computes")

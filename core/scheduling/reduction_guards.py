"""Guards of reductions: uses that TVM would accept, and that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import sym, tirx

from lowerscope.core.scheduling.block_guards import conjuncts
from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.references import Place, function_of, loops_around, places
from lowerscope.core.scheduling.sizes import mentions


def rfactor(call: Call) -> None:
    """Reject an axis that the buffer of the parts does not have, and uninitialised parts.

    A part is set to the initial value at its first iteration. Where the split has made more parts
    than there are values, the condition skips that iteration, and uninitialised memory is added up.
    """
    axis = call.values["factor_axis"]
    if not -8 <= axis <= 8:
        raise StepFailed(f"the buffer of the parts has no dimension {axis}")
    loop = call.sch.get(call.values["loop"])
    if not call.forced and not _all_begin(places(function_of(call.sch)), loop.loop_var):
        raise StepFailed(
            f"some parts of {loop.loop_var.name} may have no value, and would begin with what is in"
            " memory: split by no more than there are values, or apply it anyway, and then"
            " decompose_reduction",
            unsafe=True,
        )


def _all_begin(found: Sequence[Place], part: Any) -> bool:
    """Return whether each part has a value where the other loops of the reduction begin."""
    for index, place in enumerate(found):
        summed = _summed(place) if place.is_block else []
        if not any(mentions(value, part) for value in summed):
            continue
        analyzer = sym.Analyzer()
        for loop in (found[each].stmt for each in loops_around(found, index)):
            var = loop.loop_var
            begins = not var.same_as(part) and any(mentions(value, var) for value in summed)
            extent = 1 if begins else loop.extent
            analyzer.bind(var, tvm.ir.Range.from_min_extent(loop.min, extent))
        conditions = [each for each in conjuncts(place.realize.predicate) if mentions(each, part)]
        if not all(map(analyzer.can_prove, conditions)):
            return False
    return True


def _summed(block: Place) -> list[Any]:
    """Return the bindings of the reduction axes of a block."""
    pairs = zip(block.stmt.iter_vars, block.realize.iter_values, strict=True)
    return [value for axis, value in pairs if axis.iter_type == tirx.IterVar.CommReduce]


def epilogue(call: Call) -> None:
    """Guard an epilogue that is not linear: it would be applied at each step of the reduction."""
    block = call.sch.get(call.values["epilogue_block"])
    if not call.forced and _bends(block.body):
        raise StepFailed(
            f"{block.name_hint} is not linear, and would be applied at each step of the "
            "reduction: the result is another one",
            unsafe=True,
        )


_NOT_LINEAR = (tirx.Max, tirx.Min, tirx.Select, tvm.ir.Call)


def _bends(body: Any) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (_NOT_LINEAR, found.append))
    return bool(found)


def pad_einsum(call: Call) -> None:
    """Reject a number of multiples other than the number of the block's axes."""
    block = call.sch.get(call.values["block"])
    axes, padding = len(block.iter_vars), len(call.values["padding"])
    if axes != padding:
        raise StepFailed(f"{block.name_hint} has {axes} axes, and not {padding}")

"""Guards of random decisions: uses that TVM would wrongly accept, or crash on."""

from __future__ import annotations

import math

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import StepFailed
from lowerscope.core.scheduling.sizes import known


def _extent(call: Call) -> int:
    extent = known(call.sch.get(call.values["loop"]).extent)
    if extent is None:
        raise StepFailed("factors are drawn of an extent that is a number")
    return extent


def perfect_tile(call: Call) -> None:
    """Reject decisions whose product is not the extent."""
    extent = _extent(call)
    _decided(call, extent)
    decision = call.values["decision"]
    if decision is not None and decision[-1] > call.values["max_innermost_factor"]:
        raise StepFailed(f"the innermost factor is at most {call.values['max_innermost_factor']}")


def partitioned_tile(call: Call) -> None:
    """Reject parts that are empty or do not divide the extent."""
    extent = _extent(call)
    if call.values["partition_pos"] > call.values["n"]:
        raise StepFailed("the second part begins among the factors")
    if extent % call.values["innerpart_factor"]:
        raise StepFailed(f"the second part's product has to divide {extent}")
    _decided(call, extent)


def _decided(call: Call, extent: int) -> None:
    decision = call.values["decision"]
    if decision is None:
        return
    if len(decision) != call.values["n"] or min(decision, default=0) < 1:
        raise StepFailed(f"the decision has {call.values['n']} factors from 1")
    if math.prod(decision) != extent:
        raise StepFailed(f"the product of the decision is {math.prod(decision)}, not {extent}")


def categorical(call: Call) -> None:
    """Reject invalid probabilities."""
    candidates, chances = call.values["candidates"], call.values["probs"]
    if not candidates or len(candidates) != len(chances):
        raise StepFailed("there is one probability for each number")
    if min(chances) < 0 or abs(sum(chances) - 1) > 1e-3:
        raise StepFailed("probabilities are from 0 to 1, and together 1")
    decision = call.values["decision"]
    if decision is not None and not 0 <= decision < len(candidates):
        raise StepFailed(f"the decision is from 0 to {len(candidates) - 1}")


def compute_location(call: Call) -> None:
    """Reject decisions that are not a place."""
    decision = call.values["decision"]
    if decision is None:
        return
    loops = len(call.sch.get_loops(call.values["block"]))
    if not -2 <= decision < 64:
        raise StepFailed(f"the decision is -2, -1, or the place of one of {loops} loops")

"""What TVM would accept of blocks that are moved, and what is wrong with it."""

from __future__ import annotations

from lowerscope.core.scheduling.entry import Call
from lowerscope.core.scheduling.failures import REFUSED, StepFailed, step_error


def reverse_compute_at(call: Call) -> None:
    """Refuse a block that reads nothing computed: it would be computed whole at each iteration."""
    try:
        producers = call.sch.get_producers(call.values["block"])
    except REFUSED as error:
        raise StepFailed.of(step_error(error)) from error
    if not producers:
        name = call.sch.get(call.values["block"]).name_hint
        raise StepFailed(f"{name} reads nothing that another block computes")

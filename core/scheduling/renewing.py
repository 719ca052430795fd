"""Cloning of a schedule that TVM cannot copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.schedules import At
from lowerscope.core.scheduling.failures import REFUSED
from lowerscope.core.scheduling.references import (
    Output,
    block_occurrences,
    function_of,
    loops_around,
    places,
    resolve,
    stmt_of,
)


def can_be_copied(sch: Schedule) -> bool:
    """Return whether TVM can copy a schedule.

    After ``tensorize`` of the result of ``decompose_reduction`` it cannot: it still refers to the
    block that the instruction replaced, and fails in ``unordered_map::at``.
    """
    try:
        sch.copy()
    except REFUSED:
        return False
    return True


def renewed(sch: Schedule, name: str) -> tuple[Schedule, Callable[[Output], Output]]:
    """Return a new schedule of a function in its present state.

    Returns
    -------
    tuple[Schedule, Callable[[Output], Output]]
        It, and a map from the loops, blocks and numbers of the old schedule to its own; those that
        are gone from the old one are unknown to both.
    """
    fresh = Schedule(sch.mod)
    fresh.work_on(name)
    found = places(function_of(sch))
    named: dict[Any, At] = {}
    for index, occurrence in block_occurrences(found):
        block = found[index]
        named[block.stmt] = At(block=block.name, occurrence=occurrence)
        for place, loop in enumerate(loops_around(found, index)):
            named[found[loop].stmt] = At(block=block.name, occurrence=occurrence, loop=place)

    def own(output: Output) -> Output:
        if not isinstance(output, LoopRV | SBlockRV):
            return sch.get(output)
        at = named.get(stmt_of(sch, output))
        return output if at is None else resolve(fresh, at, {})

    return fresh, own

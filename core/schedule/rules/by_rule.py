"""The schedule of a function by the first rule that fits it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import tvm
from tvm import tirx

from lowerscope.core.model.problems import last_line
from lowerscope.core.model.schedule_records import RULE_SECONDS, ByRule
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.references import function_of
from lowerscope.core.schedule.rules.contraction import any_size, contraction
from lowerscope.core.schedule.rules.movement import elementwise, movement
from lowerscope.core.schedule.rules.recorder import (
    NONE_GIVEN,
    Machine,
    OutOfTime,
    ScheduleRecorder,
    machine_of,
    threads,
)
from lowerscope.core.schedule.rules.row_wise import matrix_times_vector, row_by_row
from lowerscope.core.schedule.rules.windows import depthwise, pooling, window_rows
from lowerscope.core.schedule.rules.winograd import winograd
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed


class RuleFailed(Exception):
    """Rules cannot schedule a function, with the reason."""


Rule = Callable[[ScheduleRecorder, Machine], bool]
"""Writes the steps for functions of some kind, and returns whether the function is one.

`StepFailed` if a step is rejected.
"""

RULES: Mapping[str, Rule] = {
    "depthwise": depthwise,
    "matrix times vector": matrix_times_vector,
    "Winograd": winograd,
    "contraction": contraction,
    "rows": window_rows,
    "any size": any_size,
    "pooling": pooling,
    "movement": movement,
    "elementwise": elementwise,
    "row by row": row_by_row,
    "threads": threads,
}
"""Rules in the order in which they are tried."""


def by_rule(
    function: tirx.PrimFunc, target: tvm.target.Target, seconds: float = RULE_SECONDS
) -> ByRule:
    """Return the result of `scheduled_by_rule` without the function that it makes."""
    return scheduled_by_rule(function, target, seconds)[0]


def scheduled_by_rule(
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    seconds: float = RULE_SECONDS,
    sizes: Mapping[str, int] = NONE_GIVEN,
) -> tuple[ByRule, tirx.PrimFunc]:
    """Schedule a function by the first rule that fits it and has no step rejected.

    `seconds`: bound on the time that all rules may take. The function keeps its loops where one of
    them reaches it. `sizes`: usual sizes of named dimensions.
    """
    try:
        rule, writing, reason = written_by_rule(function, target, {}, seconds, sizes)
    except RuleFailed as failed:
        return ByRule(reason=str(failed), failed=True), function
    if writing is None:
        return ByRule(rule=rule, reason=reason), function
    found = ByRule(rule=rule, primitives=tuple(writing.primitives), reason=reason)
    return found, function_of(writing.sch)


def written_by_rule(
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    decisions: Mapping[str, int],
    seconds: float = RULE_SECONDS,
    sizes: Mapping[str, int] = NONE_GIVEN,
) -> tuple[str, ScheduleRecorder | None, str]:
    """Schedule a function in the same way, with other decisions than the usual ones.

    The rule, its history, and the reason where none fits. Raises `RuleFailed` if the bound is
    reached, or TVM or a rule cannot read the function.
    """
    machine = machine_of(target)
    refused = []
    deadline = time.thread_time() + seconds
    try:
        unscheduled = ScheduleRecorder(function, target, sizes=sizes)
    except REFUSED as error:
        raise RuleFailed(
            _("TVM cannot schedule it: {last_line}", last_line=last_line(error))
        ) from error
    for name, rule in RULES.items():
        writing = unscheduled.again(decisions, deadline)
        try:
            if rule(writing, machine):
                return name, writing, ""
        except StepFailed as error:
            refused.append(f"{name}: {error}")
        except OutOfTime:
            raise RuleFailed(
                _n(
                    "the rule {name} reached its limit of {seconds:g} s after {count} step",
                    "the rule {name} reached its limit of {seconds:g} s after {count} steps",
                    len(writing.primitives),
                    name=name,
                    seconds=seconds,
                )
            ) from None
        except REFUSED as error:
            refused.append(f"{name}: {last_line(error)}")
    return "", None, _("; ").join(refused) or _("no rule fits functions of this kind")

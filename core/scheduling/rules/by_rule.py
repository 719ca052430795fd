"""The schedule of a function by the first rule that fits it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Protocol

import tvm
from tvm import tirx

from lowerscope.core.errors import last_line
from lowerscope.core.records.schedule import RULE_SECONDS, ByRule
from lowerscope.core.scheduling.failures import REFUSED, StepFailed
from lowerscope.core.scheduling.rules.contraction import AnySizeRule, ContractionRule
from lowerscope.core.scheduling.rules.machine import Machine, machine_of
from lowerscope.core.scheduling.rules.movement import ElementwiseRule, MovementRule
from lowerscope.core.scheduling.rules.row_wise import MatrixVectorRule, RowWiseRule
from lowerscope.core.scheduling.rules.sharing import SharingRule
from lowerscope.core.scheduling.rules.windows import DepthwiseRule, PoolingRule, RowsRule
from lowerscope.core.scheduling.rules.writing import OutOfTime, Writing


class RuleFailed(Exception):
    """Rules cannot schedule a function, with the reason."""


class Rule(Protocol):
    """A rule that schedules functions of some kind."""

    name: str

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit; `StepFailed` if a step is rejected.
        """


RULES: tuple[Rule, ...] = (
    DepthwiseRule(),
    MatrixVectorRule(),
    ContractionRule(),
    RowsRule(),
    AnySizeRule(),
    PoolingRule(),
    MovementRule(),
    ElementwiseRule(),
    RowWiseRule(),
    SharingRule(),
)
"""Rules in the order in which they are tried."""


def by_rule(
    function: tirx.PrimFunc, target: tvm.target.Target, seconds: float = RULE_SECONDS
) -> ByRule:
    """Schedule a function by the first rule that fits it and has no step rejected.

    Parameters
    ----------
    seconds
        Bound on the time that all rules may take. The function keeps its loops where one of them
        reaches it.
    """
    try:
        rule, writing, reason = written_by_rule(function, target, {}, seconds)
    except RuleFailed as failed:
        return ByRule(reason=str(failed), failed=True)
    primitives = () if writing is None else tuple(writing.primitives)
    return ByRule(rule=rule, primitives=primitives, reason=reason)


def written_by_rule(
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    decisions: Mapping[str, int],
    seconds: float = RULE_SECONDS,
) -> tuple[str, Writing | None, str]:
    """Schedule a function in the same way, with other decisions than the usual ones.

    Parameters
    ----------
    decisions
        See `Writing`.
    seconds
        See `by_rule`.

    Returns
    -------
    tuple[str, Writing or None, str]
        The rule, its history, and the reason where none fits.

    Raises
    ------
    RuleFailed
        If the bound is reached, or TVM or a rule cannot read the function.
    """
    machine = machine_of(target)
    refused = []
    deadline = time.thread_time() + seconds
    try:
        unscheduled = Writing(function, target)
    except REFUSED as error:
        raise RuleFailed(f"TVM cannot schedule it: {last_line(error)}") from error
    for rule in RULES:
        writing = unscheduled.again(decisions, deadline)
        try:
            if rule.apply(writing, machine) is not None:
                return rule.name, writing, ""
        except StepFailed as error:
            refused.append(f"{rule.name}: {error}")
        except OutOfTime:
            raise RuleFailed(
                f"the rule {rule.name} reached the bound of {seconds:g} s after"
                f" {len(writing.primitives)} steps"
            ) from None
        except REFUSED as error:
            refused.append(f"{rule.name}: {last_line(error)}")
    return "", None, "; ".join(refused) or "no rule is for functions of this kind"

"""Variants: recipes of one source with what their runs came to, side by side.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import RunRecord


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe and what its run came to: a record, or the problem that kept it from one."""

    name: str
    recipe: Recipe
    record: RunRecord | None = None
    problem: Problem | None = None


class FunctionTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A function that runs call, in two of them.

    Attributes
    ----------
    name
        As the virtual machine calls it.
    old_calls, new_calls
        How often a run calls it on either side; 0 where it is not called.
    old_ms, new_ms
        The time of all these calls, in runs that were watched.
    nodes
        Ids of the FX nodes that it computes on either side.
    """

    name: str
    old_calls: int
    new_calls: int
    old_ms: float
    new_ms: float
    nodes: tuple[str, ...]

    @property
    def difference(self) -> float:
        """How much longer it takes on the new side."""
        return self.new_ms - self.old_ms


def fastest(variants: Sequence[Variant]) -> Variant | None:
    """Return the variant with the shortest time that does not differ; ``None`` without one.

    Of one alone nothing is said.
    """
    ran = [each for each in variants if each.record is not None]
    right = [each for each in ran if each.record is not None and each.record.verdict != "differ"]
    if len(ran) < 2 or not right:
        return None
    return min(right, key=lambda each: each.record.tvm_ms if each.record is not None else 0.0)


def function_times(old: RunRecord, new: RunRecord) -> tuple[FunctionTimes, ...]:
    """Return the functions that either run calls, those whose times differ most first."""
    before, after = _by_name(old), _by_name(new)
    rows = []
    for name in dict.fromkeys((*before, *after)):
        old_calls, old_ms, old_nodes = before.get(name, (0, 0.0, ()))
        new_calls, new_ms, new_nodes = after.get(name, (0, 0.0, ()))
        rows.append(
            FunctionTimes(
                name=name,
                old_calls=old_calls,
                new_calls=new_calls,
                old_ms=old_ms,
                new_ms=new_ms,
                nodes=tuple(dict.fromkeys((*old_nodes, *new_nodes))),
            )
        )
    return tuple(sorted(rows, key=lambda each: -abs(each.difference)))


def _by_name(record: RunRecord) -> Mapping[str, tuple[int, float, tuple[str, ...]]]:
    found: dict[str, tuple[int, float, tuple[str, ...]]] = {}
    for call in record.calls:
        count, milliseconds, nodes = found.get(call.function, (0, 0.0, ()))
        found[call.function] = (count + 1, milliseconds + call.milliseconds, (*nodes, *call.nodes))
    return found

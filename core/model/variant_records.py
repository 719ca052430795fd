"""Variants: recipes of one source with the results of their runs, side by side.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, RunRecord
from lowerscope.core.model.time_records import SideTimes, is_reliable, told_apart


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with the result of its run: a record, or the problem of a failed run.

    With both, the record is of a run before the one that failed.
    """

    name: str
    recipe: Recipe
    record: RunRecord | None = None
    problem: Problem | None = None


class FunctionTimes(msgspec.Struct, frozen=True, kw_only=True):
    """A function that runs call, in two of them."""

    name: str  # as the virtual machine calls it
    # old_calls, new_calls: number of calls in a run on either side; 0 where it is not called
    old_calls: int
    new_calls: int
    # old_ms, new_ms: the time of all these calls, in runs that were watched
    old_ms: float
    new_ms: float
    nodes: tuple[str, ...]  # ids of the FX nodes that it computes on either side

    @property
    def difference(self) -> float:
        """Increase of its time on the new side."""
        return self.new_ms - self.old_ms


def fastest(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the variant with the shortest time among those with no `FAILING` verdict.

    There are several where their times differ by less than their spread; there is none where only
    one has run.
    """
    ran = [each for each in variants if each.record is not None and each.problem is None]
    right = [each for each in ran if each.record and each.record.verdict not in FAILING]
    if len(ran) < 2 or not right:
        return ()
    best = min(right, key=lambda each: 0.0 if each.record is None else each.record.tvm_ms)
    return tuple(each for each in right if each is best or not can_be_told(best, each))


def can_be_told(one: Variant, other: Variant) -> bool:
    """Return whether both times are reliable, and differ by more than their spread."""
    if one.record is None or other.record is None:
        return False
    if not (is_reliable(one.record.times) and is_reliable(other.record.times)):
        return False
    ours, theirs = our_times(one.record), our_times(other.record)
    return ours is not None and theirs is not None and told_apart(ours, theirs)


def our_times(record: RunRecord) -> SideTimes | None:
    """Return TVM's median and spread in a run, if they were measured."""
    return None if record.times is None else record.times.sides[0]


def other_sides(variants: Sequence[Variant]) -> tuple[SideTimes, ...]:
    """Return the best time of each other side of the variants, torch's first."""
    found: dict[str, SideTimes] = {}
    for each in variants:
        times = None if each.record is None else each.record.times
        for side in () if times is None else times.sides[1:]:
            before = found.setdefault(side.side, side)
            if side.milliseconds < before.milliseconds:
                found[side.side] = side
    return tuple(found.values())


def ratio_of(record: RunRecord) -> tuple[float | None, bool]:
    """Return the ratio of TVM's time to its reference's, and whether it is reliable.

    It is not where the two differ by less than noise, or the times are not reliable. There is no
    ratio where they ran on different machines.
    """
    if not record.torch_ms:
        return None, False
    sides = () if record.times is None else record.times.sides
    reference = next((each for each in sides if each.side == record.reference), None)
    if reference is not None and reference.machine != sides[0].machine:
        return None, False
    told = reference is not None and is_reliable(record.times) and told_apart(sides[0], reference)
    return record.tvm_ms / record.torch_ms, told


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

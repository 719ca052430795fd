"""Dependence analysis of merged loops: iterations of one that need later ones of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowerscope.core.scheduling.references import Place, below


def depends(found: Sequence[Place], first: int, second: int) -> bool:
    """Return whether a merged loop could read values too early, or write them too early.

    It could not if each buffer that both touch is indexed, in one of its dimensions, by each of the
    merged loops alone and in the same way, and nothing between them touches what they do.
    """
    pairs: list[tuple[Any, Any]] = []
    while min(first, second) >= 0 and first != second:
        if found[first].is_block or found[second].is_block:
            break
        pairs.append((found[first].stmt, found[second].stmt))
        first, second = found[first].parent, found[second].parent
    one, other = pairs[0]
    mine, theirs = _accesses(one), _accesses(other)
    if any(
        left[0].same_as(right[0]) and (left[2] or right[2])
        for right in _accesses_between(found, one, other)
        for left in (*mine, *theirs)
    ):
        return True
    return any(
        not all(_alike(left, left_loop, right, right_loop) for left_loop, right_loop in pairs)
        for left in mine
        for right in theirs
        if left[0].same_as(right[0]) and (left[2] or right[2])
    )


Access = tuple[Any, list[Any], bool]
"""A buffer, the loops that its dimensions are indexed by where it is a loop alone, and whether it
is written."""


def _accesses_between(found: Sequence[Place], one: Any, other: Any) -> list[Access]:
    """Return the reads and writes of the blocks between two loops in the script."""
    starts = sorted(
        index
        for index, place in enumerate(found)
        if place.stmt.same_as(one) or place.stmt.same_as(other)
    )
    first = starts[0] + len(below(found[starts[0]].stmt))
    return _accesses_of(found[first : starts[-1]])


def _accesses(loop: Any) -> list[Access]:
    return _accesses_of(below(loop))


def _accesses_of(found: Sequence[Place]) -> list[Access]:
    made: list[Access] = []
    for place in found:
        if not place.is_block:
            continue
        bound = dict(
            zip([axis.var for axis in place.stmt.iter_vars], place.realize.iter_values, strict=True)
        )
        for regions, written in ((place.stmt.reads, False), (place.stmt.writes, True)):
            for region in regions:
                indices = [bound.get(each.min) for each in region.region]
                made.append((region.source, indices, written))
    return made


def _alike(left: Access, left_loop: Any, right: Access, right_loop: Any) -> bool:
    return any(
        mine is not None
        and theirs is not None
        and left_loop.loop_var.same_as(mine)
        and right_loop.loop_var.same_as(theirs)
        for mine, theirs in zip(left[1], right[1], strict=True)
    )

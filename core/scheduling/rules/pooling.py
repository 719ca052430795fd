"""Poolings: the maximum of a window, or its mean."""

from __future__ import annotations

from lowerscope.core.schedules import At
from lowerscope.core.scheduling.rules.gathering import gather
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.rows import uses_threads, write_rows
from lowerscope.core.scheduling.rules.sharing import share_out
from lowerscope.core.scheduling.rules.windows import Window, window_of
from lowerscope.core.scheduling.rules.writing import Writing

_PLANES = 8
"""Number of planes that are reduced at once."""


class PoolingRule:
    """Reductions over windows of a single buffer."""

    name = "pooling"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        found = window_of(writing)
        if found is None or len(found.reads) != 1 or not found.is_window:
            return None
        if found.spatial[-2:] == (1, 1) and _write_planes(writing, found, machine):
            return writing
        return write_rows(writing, found, machine)


def _write_planes(writing: Writing, found: Window, machine: Machine) -> bool:
    """Schedule whole planes, several of them in the lanes; return whether any fit."""
    extent = found.spatial[-3] if len(found.spatial) > 2 else None
    # More planes would be too far apart for the cache.
    most = min(machine.lanes(found.dtype), _PLANES)
    counts = [each for each in range(2, most + 1) if extent and extent % each == 0]
    if not counts or found.pads:
        return False
    count = writing.choose("planes at once", counts, counts[-1])
    last = gather(writing, found.block, found.after)
    for block in found.before:
        writing.do(
            "compute_inline", "what is only copied is read where it is", block=At(block=block)
        )
    at = len(found.spatial) - 3
    writing.do(
        "split",
        f"{count} planes at once: the sum of one would wait for itself at each step",
        loop=At(block=last, loop=at),
        factors=(None, count),
    )
    writing.do(
        "compute_at",
        "they are reduced just before they are finished",
        block=At(block=found.block),
        loop=At(block=last, loop=at),
    )
    writing.do(
        "set_scope",
        "what is reduced stays in a register until then",
        block=At(block=found.block),
        buffer_index=0,
        storage_scope="local",
    )
    rank = len(found.spatial)
    window = [
        loop
        for axis in range(rank, rank + len(found.reduced))
        if (loop := writing.inner(found.block, axis, at + 1)) is not None
    ]
    lane = writing.inner(found.block, rank - 3, at + 1)
    if lane is None:
        return False
    writing.do("reorder", "an element of each plane", loops=(*window, lane))
    place = At(block=found.block, loop=at + 1 + len(window))
    writing.do("vectorize", f"{count} planes are the lanes of a register", loop=place)
    depth = at + 1
    if uses_threads(writing, found, machine):
        depth -= max(0, share_out(writing, writing.loops(last)[:depth], machine) - 1)
    writing.do(
        "decompose_reduction",
        "the first value is set once, before the window",
        block=At(block=found.block),
        loop=At(block=found.block, loop=depth),
    )
    return True

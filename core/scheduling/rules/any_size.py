"""Sums of products along rows of any length: for indivisible or unknown extents."""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from lowerscope.core.schedules import At
from lowerscope.core.scheduling.references import Place
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import SPATIAL, blocks_of, is_spatial
from lowerscope.core.scheduling.rules.sharing import share_out
from lowerscope.core.scheduling.rules.writing import Writing

WORTH_THREADS = 1 << 18
"""Multiply-adds that take about as long as waking other threads."""

_SHORT = 4
"""Minimum length of rows for vectors."""


class AnySizeRule:
    """Products and convolutions whose last axis is summed row by row, its sums side by side."""

    name = "any size"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        found = blocks_of(writing)
        names = [each.name for each in found]
        sums = [each for each in found if not is_spatial(each.stmt)]
        if len(sums) != 1 or len(set(names)) < len(names) or not _sums_products(sums[0]):
            return None
        block, at = sums[0].name, found.index(sums[0])
        kinds = [int(axis.iter_type) for axis in sums[0].stmt.iter_vars]
        loops = [writing.inner(block, axis, 0) for axis in range(len(kinds))]
        spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == SPATIAL]
        summed = [loop for loop, kind in zip(loops, kinds, strict=True) if loop and kind != SPATIAL]
        row = spatial[-1] if spatial else None
        if row is None or not summed or (writing.extent(row) or _SHORT) < _SHORT:
            return None
        rows = [loop for loop in spatial[:-1] if loop is not None]
        writing.do(
            "reorder",
            "each factor is multiplied by a whole row: what lies side by side can be vectors",
            loops=(*rows, *summed, row),
        )
        for name in names[at + 1 : -1]:
            why = "what is done with a sum is done at once"
            writing.do("compute_inline", why, block=At(block=name))
        if rows and at + 1 < len(found):
            writing.do(
                "reverse_compute_at",
                "what is done with a row is done as soon as its sums are complete",
                block=At(block=names[-1]),
                loop=At(block=block, loop=len(rows) - 1),
            )
        outer = len(rows)
        if machine.threads > 1 and _is_worth_threads(writing, writing.loops(block)):
            outer -= max(0, share_out(writing, writing.loops(block)[:outer], machine) - 1)
        writing.do(
            "decompose_reduction",
            "sums begin with zero, once before the first product",
            block=At(block=block),
            loop=At(block=block, loop=outer),
        )
        return writing


def _is_worth_threads(writing: Writing, loops: tuple[At, ...]) -> bool:
    """Return whether there is enough work for threads, as far as it is known."""
    extents = [writing.extent(each) for each in loops]
    return None in extents or math.prod(each or 1 for each in extents) >= WORTH_THREADS


def _sums_products(place: Place) -> bool:
    """Return whether a block adds something to an element for each of its spatial axes."""
    block: Any = place.stmt
    store = block.body
    spatial = [axis.var for axis in block.iter_vars if int(axis.iter_type) == SPATIAL]
    return (
        block.init is not None
        and isinstance(store, tirx.BufferStore)
        and isinstance(store.value, tirx.Add)
        and len([each for each in block.reads if not each.source.same_as(store.buffer)]) > 1
        and len(store.indices) == len(spatial)
        and all(index.same_as(axis) for index, axis in zip(store.indices, spatial, strict=True))
    )

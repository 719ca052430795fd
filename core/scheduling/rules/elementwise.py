"""Elementwise functions: vectors over adjacent values, and threads."""

from __future__ import annotations

import math
from typing import Any

from tvm import ir, tirx

from lowerscope.core.schedules import At, Made
from lowerscope.core.scheduling.references import function_of
from lowerscope.core.scheduling.rules.accesses import accesses_of, nodes_in
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import blocks_of, is_spatial
from lowerscope.core.scheduling.rules.rows import row_width
from lowerscope.core.scheduling.rules.sharing import WORTH_THREADS, share_out
from lowerscope.core.scheduling.rules.writing import Writing

_OFTEN = 4
"""Number of evaluations from which a value with a call is stored instead of inlined."""


class ElementwiseRule:
    """Functions that compute each element by itself: broadcasts, copies, activations."""

    name = "elementwise"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        if not inline_producers(writing):
            return None
        for name in writing.blocks():
            write_elements(writing, name, machine)
        return writing if writing.primitives else None


def inline_producers(writing: Writing, *, to_one: bool = False) -> bool:
    """Inline intermediate blocks; return whether all blocks are elementwise.

    Parameters
    ----------
    to_one
        Stop, and return ``False``, where more than one block remains.

    Raises
    ------
    StepFailed
        If TVM or a guard rejects one of the steps.
    """
    found = blocks_of(writing)
    if not found or len({each.name for each in found}) < len(found):
        return False
    if not all(is_spatial(each.stmt) for each in found):
        return False
    if to_one:
        given = function_of(writing.sch).params
        results = [
            each for each in found if any(each.stmt.writes[0].source.same_as(one) for one in given)
        ]
        if len(results) > 1:
            return False
    for place, each in enumerate(found[:-1]):
        written = each.stmt.writes[0].source
        readers = [
            later.stmt
            for later in found[place + 1 :]
            if any(region.source.same_as(written) for region in later.stmt.reads)
        ]
        costly = any(_is_costly(each.stmt, reader) for reader in readers)
        if readers and not costly and writing.can_inline(each.name):
            why = "nothing in between is stored"
            writing.do("compute_inline", why, block=At(block=each.name))
        elif to_one:
            return False
    return True


def _is_costly(block: Any, reader: Any) -> bool:
    """Return whether a block has a call, and many readers for each of its elements."""
    if not isinstance(block.body, tirx.BufferStore):
        return False
    sizes = [
        math.prod(int(axis.dom.extent) for axis in each.iter_vars)
        if all(isinstance(axis.dom.extent, tirx.IntImm) for axis in each.iter_vars)
        else 0
        for each in (block, reader)
    ]
    calls = any(isinstance(each, ir.Call) for each in nodes_in(block.body.value))
    return calls and 0 < sizes[0] * _OFTEN <= sizes[1]


def _keeps_flags(writing: Writing, block: Any) -> bool:
    """Return whether a block reads or writes booleans in intermediate buffers."""
    given = function_of(writing.sch).params
    sources = [region.source for region in (*block.reads, *block.writes)]
    return any(
        str(each.dtype) == "bool" and not any(each.same_as(one) for one in given)
        for each in sources
    )


def write_elements(writing: Writing, block: str, machine: Machine) -> None:
    """Schedule an elementwise block.

    Raises
    ------
    StepFailed
        If TVM or a guard rejects one of the steps.
    """
    loops = writing.loops(block)
    extents = [writing.extent(each) for each in loops]
    stmt = writing.block(At(block=block))
    accesses = accesses_of(stmt)
    if not loops or accesses is None or len(stmt.iter_vars) != len(loops):
        return
    lanes = machine.lanes(str(stmt.writes[0].source.dtype))
    axes = accesses.row(extents)
    width = row_width(math.prod(each or 1 for each in extents[len(loops) - axes :]), lanes)
    if _keeps_flags(writing, stmt):
        width = 0
    if not width and axes == len(loops):
        # The threads share the outermost loop, and LLVM vectorizes the others.
        axes -= 1
    if axes > 1:
        writing.do(
            "fuse",
            "side by side in all that is read and written: one long row",
            loops=loops[len(loops) - axes :],
        )
    inner: At | Made | None = None
    outer = writing.loops(block)[:-1]
    if width and axes:
        row = writing.loops(block)[-1]
        inner = row
        if width != writing.extent(row):
            why = f"{width} values are {-(-width // lanes)} vector registers"
            inner = writing.do("split", why, loop=row, factors=(None, width))[1]
            outer = writing.loops(block)[:-1]
    if inner is not None:
        writing.do("vectorize", "they are loaded, computed and stored at once", loop=inner)
    is_known = all(each is not None for each in extents)
    worth = math.prod(each or 1 for each in extents) >= (WORTH_THREADS if is_known else 1)
    if worth and machine.threads > 1 and outer:
        # Last: afterwards, the loops inside of the fused ones have other places.
        share_out(writing, outer, machine)

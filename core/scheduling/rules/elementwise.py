"""Elementwise functions: vectors where values lie side by side, and threads."""

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
"""What is computed so many times, if it is not stored in between, and takes a call, is stored."""


class ElementwiseRule:
    """Functions of which each element is computed by itself: broadcasts, copies, activations."""

    name = "elementwise"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Write the steps, and return what they were written to.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard refuses one of the steps.
        """
        if not inline_producers(writing):
            return None
        for name in writing.blocks():
            write_elements(writing, name, machine)
        return writing if writing.primitives else None


def inline_producers(writing: Writing, *, to_one: bool = False) -> bool:
    """Have nothing stored in between; return whether each block computes each element by itself.

    Parameters
    ----------
    to_one
        Stop, and return ``False``, where more than one block remains.

    Raises
    ------
    StepFailed
        If TVM or a guard refuses one of the steps.
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
    """Return whether a block calls something, and has many readers for each of its elements."""
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
    """Return whether a block reads or writes booleans that the function keeps in between."""
    given = function_of(writing.sch).params
    sources = [region.source for region in (*block.reads, *block.writes)]
    return any(
        str(each.dtype) == "bool" and not any(each.same_as(one) for one in given)
        for each in sources
    )


def write_elements(writing: Writing, block: str, machine: Machine) -> None:
    """Write the steps for a block that computes each element by itself.

    Raises
    ------
    StepFailed
        If TVM or a guard refuses one of the steps.
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
        # The threads share the outermost loop out, and LLVM makes vectors of the others.
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
        # Last: the loops inside of those that are fused have other places then.
        share_out(writing, outer, machine)

"""Functions that move data: paddings, concatenations, transposes."""

from __future__ import annotations

import itertools
import math
from typing import Any

from tvm import tirx

from lowerscope.core.rendering.programs.expression_text import operator_name
from lowerscope.core.schedules import At
from lowerscope.core.scheduling.rules.accesses import accesses_of, nodes_in
from lowerscope.core.scheduling.rules.elementwise import inline_producers
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.rows import row_width
from lowerscope.core.scheduling.rules.sharing import WORTH_THREADS, share_out
from lowerscope.core.scheduling.rules.windows import is_pad
from lowerscope.core.scheduling.rules.writing import Writing
from lowerscope.core.scheduling.sizes import known

_TILE = 8
"""Rows and columns of a block that is transposed in registers."""

_FIRST: dict[type, int] = {tirx.LE: 0, tirx.LT: 1}
"""For ``number ≤ axis`` and ``number < axis``: the first value for which it holds, less the number;
for ``axis < number`` and ``axis ≤ number``, the first one for which it does not, the other way
round."""


class MovementRule:
    """Data movement for which vectors along the rows do not fit."""

    name = "movement"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        if not inline_producers(writing, to_one=True):
            return None
        (block,) = writing.blocks()
        stmt = writing.block(At(block=block))
        extents = [writing.extent(each) for each in writing.loops(block)]
        if not extents or len(extents) != len(stmt.iter_vars) or None in extents:
            return None
        if is_pad(stmt):
            return _pad(writing, block, machine)
        parts = _parts(stmt)
        if len(parts) > 1:
            return _partition(writing, block, parts, machine)
        across = _across(stmt)
        return None if across is None else _transpose(writing, block, across, machine)


def _share(writing: Writing, loops: tuple[At, ...], block: str, machine: Machine) -> bool:
    """Distribute loops among threads if the block has enough work; return whether it has."""
    work = math.prod(writing.extent(each) or 1 for each in writing.loops(block))
    if work < WORTH_THREADS or machine.threads < 2 or not loops:
        return False
    return share_out(writing, loops, machine) > 0


def _pad(writing: Writing, block: str, machine: Machine) -> Writing:
    loops = writing.loops(block)
    most = len(loops) - 2 if len(loops) > 2 else len(loops) - 1
    around = int(_share(writing, loops[:most], block, machine))
    lanes = machine.lanes(str(writing.block(At(block=block)).writes[0].source.dtype))
    writing.do(
        "decompose_padding",
        "all is filled first and the inside copied then: no element is asked where it is",
        block=At(block=block),
        loop=At(block=block, loop=around),
    )
    filled = writing.loops(f"{block}_pad_const")[around:]
    if len(filled) > 1:
        writing.do("fuse", "what is filled lies side by side", loops=filled)
    row = writing.loops(block)[-1]
    if row_width(writing.extent(row), lanes) == writing.extent(row):
        writing.do("vectorize", "a row is copied at once", loop=row)
    return writing


def _parts(stmt: Any) -> tuple[int, ...]:
    """Return the lengths of the parts of a row whose conditions depend on the place in it alone."""
    row = stmt.iter_vars[-1]
    extent = known(row.dom.extent) or 0
    nodes = list(nodes_in(getattr(stmt.body, "value", row.var)))
    conditions = [each.args[0] for each in nodes if operator_name(each) == "if_then_else"]
    cuts = set()
    for condition in conditions:
        first = _FIRST.get(type(condition))
        if first is None:
            return ()
        if condition.b.same_as(row.var) and known(condition.a) is not None:
            cuts.add(int(condition.a) + first)
        elif condition.a.same_as(row.var) and known(condition.b) is not None:
            cuts.add(int(condition.b) + 1 - first)
        else:
            return ()
    bounds = [0, *sorted(each for each in cuts if 0 < each < extent), extent]
    return tuple(after - before for before, after in itertools.pairwise(bounds))


def _partition(
    writing: Writing, block: str, parts: tuple[int, ...], machine: Machine
) -> Writing | None:
    _share(writing, writing.loops(block)[:-1], block, machine)
    writing.do(
        "loop_partition",
        "each part of a row by itself: no element is asked where it comes from",
        loop=writing.loops(block)[-1],
        factors=(*parts[:-1], None),
    )
    return writing


def _across(stmt: Any) -> int | None:
    """Return the axis along which the reads are contiguous, if it is not the last one."""
    accesses = accesses_of(stmt)
    last = len(stmt.iter_vars) - 1
    if accesses is None or accesses.asked[last]:
        return None
    for access in accesses.reads:
        if access.along[last] or access.constant[last]:
            continue
        for axis in range(last):
            if access.near[axis] and known(stmt.iter_vars[axis].dom.extent) != 1:
                return None if accesses.asked[axis] else axis
    return None


def _side(extent: int | None) -> int:
    """Return the number of rows or columns of a tile; 0 where none fit."""
    if extent is None:
        return 0
    found = [each for each in range(_TILE // 2, _TILE + 1) if extent % each == 0]
    return max(found, default=extent if extent <= _TILE else 0)


def _transpose(writing: Writing, block: str, axis: int, machine: Machine) -> Writing | None:
    loops = writing.loops(block)
    last = len(loops) - 1
    rows, columns = _side(writing.extent(loops[axis])), _side(writing.extent(loops[last]))
    if min(rows, columns) < 2:
        return None
    why = f"{columns} values that are stored side by side"
    writing.do("split", why, loop=loops[last], factors=(None, columns))
    why = f"{rows} that are read side by side: each line of the cache is used while it is there"
    writing.do("split", why, loop=loops[axis], factors=(None, rows))
    # The split of the axis before it has moved the last one.
    outer = [each for each in range(last + 2) if each not in (axis + 1, last + 2)]
    order = [At(block=block, loop=each) for each in (*outer, axis + 1, last + 2)]
    writing.do("reorder", "tile by tile", loops=tuple(order))
    _share(writing, writing.loops(block)[: last + 1], block, machine)
    inner = writing.loops(block)
    writing.do("vectorize", "a row of a tile is stored at once", loop=inner[-1])
    writing.do("unroll", "so that a tile is transposed in registers", loop=inner[-2])
    return writing

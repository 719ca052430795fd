"""Elementwise functions, and functions that move data: paddings, concatenations, transposes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import ir, sym, tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.ir.tensorir import (
    ARITHMETIC,
    collected,
    known,
    mentions,
    nodes_in,
    operator_name,
)
from lowerscope.core.model.reasons import reason, reason_n
from lowerscope.core.model.schedule import At, Made
from lowerscope.core.schedule.references import function_of
from lowerscope.core.schedule.rules.recorder import (
    WORTH_THREADS,
    Machine,
    ScheduleRecorder,
    blocks_of,
    is_spatial,
    loads,
    parallelise,
    share,
)
from lowerscope.core.schedule.rules.windows import copy_rows, fill_apart, is_pad, row_width


@dataclass(frozen=True)
class Access:
    """Access pattern of an element that is read, for the axes of the block that reads it.

    `along`: for each axis, whether the next value of it is as far in what is read as it is in what
    is written. `constant`: for each axis, whether the element is the same for all values of it.
    `near`: for each axis, whether the next value of it is the next element in memory.
    """

    along: tuple[bool, ...]
    constant: tuple[bool, ...]
    near: tuple[bool, ...]


@dataclass(frozen=True)
class Accesses:
    """All reads of a block, and the axes in its conditions.

    `asked`: for each axis, whether it stands in a condition.
    """

    reads: tuple[Access, ...]
    asked: tuple[bool, ...]

    def row(self, extents: Sequence[int | None]) -> int:
        """Return the number of last axes that are one row in all that is read; 0 for none.

        `extents`: of the axes; ``None`` for one that is symbolic, which is in no row.
        """
        count = 0
        kinds: tuple[bool, ...] | None = None
        for axis in reversed(range(len(extents))):
            if extents[axis] != 1:
                own = tuple(each.along[axis] for each in self.reads)
                still = tuple(each.constant[axis] for each in self.reads)
                is_plain = all(a or b for a, b in zip(own, still, strict=True))
                if extents[axis] is None or not is_plain or self.asked[axis]:
                    break
                if kinds is not None and own != kinds:
                    break
                kinds = own
            count += 1
        return count if kinds is not None else 0


def accesses_of(block: Any) -> Accesses | None:
    """Return the reads of a block; ``None`` for one that does not store exactly one element."""
    store = block.body
    if not isinstance(store, tirx.BufferStore):
        return None
    axes = list(block.iter_vars)
    written = _steps(store.buffer, store.indices, axes)
    nodes = list(nodes_in(store.value))
    loads = [each for each in nodes if isinstance(each, TensorLoad)]
    # What a Select compares may be elements: it computes both sides, so it has vectors as well.
    conditions = [_without_loads(each.condition) for each in nodes if isinstance(each, tirx.Select)]
    conditions += [each.args[0] for each in nodes if operator_name(each) == "if_then_else"]
    reads = []
    for load in loads:
        steps = _steps(load.source, load.indices, axes)
        reads.append(
            Access(
                along=tuple(
                    step is not None and own is not None and _equal(step, own)
                    for step, own in zip(steps, written, strict=True)
                ),
                constant=tuple(step is not None and known(step) == 0 for step in steps),
                near=tuple(step is not None and known(step) == 1 for step in steps),
            )
        )
    asked = tuple(any(mentions(each, axis.var) for each in conditions) for axis in axes)
    return Accesses(tuple(reads), asked)


def axes_in_row(block: Any) -> int:
    """Return how many of the last axes of a reduction are one row in all that it reads."""
    axes = list(block.iter_vars)
    written = [each.source for each in block.writes]
    found = len(axes)
    for load in collected(block.body, TensorLoad):
        if any(load.source.same_as(each) for each in written):
            continue
        steps, count = _steps(load.source, load.indices, axes), 1
        for axis in reversed(range(len(axes) - 1)):
            inner, outer = steps[axis + 1], steps[axis]
            if inner is None or outer is None:
                break
            if not _equal(inner * axes[axis + 1].dom.extent, outer):
                break
            count += 1
        found = min(found, count)
    return found


def _without_loads(condition: Any) -> Any:
    """Return a condition with a number for each element that it reads."""
    return tvm_ffi.structural_map(
        condition, (TensorLoad, lambda load: tirx.const(0, str(load.ty.dtype)))
    )


def _steps(buffer: Any, indices: Any, axes: Sequence[Any]) -> list[Any]:
    """Return the stride of each axis; ``None`` where it is not constant."""
    analyzer = sym.Analyzer()
    for axis in axes:
        analyzer.bind(axis.var, axis.dom)
    offset: Any = 0
    stride: Any = 1
    strides: list[Any] = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        # As one number, the divisions and multiplications of a reshape cancel.
        offset = offset * extent + index
    for extent in reversed(buffer.shape):
        strides.insert(0, stride)
        stride = stride * extent
    offset = analyzer.simplify(tirx.convert(offset))
    found = []
    for axis in axes:
        step = _step(offset, axis.var)
        if step is None:
            # Index by index, one that is read from memory does not affect the others.
            each = [_step(index, axis.var) for index in indices]
            step = (
                None
                if any(own is None for own in each)
                else sum(own * by for own, by in zip(each, strides, strict=True))
            )
        found.append(None if step is None else analyzer.simplify(tirx.convert(step)))
    return found


def _step(index: Any, var: Any) -> Any:
    if not mentions(index, var):
        return 0
    parts = sym.detect_linear_equation(index, [var])
    return parts[0] if len(parts) else None


def _equal(one: Any, other: Any) -> bool:
    if known(one) is not None or known(other) is not None:
        return known(one) == known(other)
    return bool(sym.Analyzer().can_prove_equal(one, other))


_OFTEN = 4
"""Number of evaluations from which a value with a call is stored instead of inlined."""


def elementwise(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Functions that compute each element by itself: broadcasts, copies, activations."""
    if not inline_producers(writing):
        return False
    for name in writing.blocks():
        write_elements(writing, name, machine)
    return bool(writing.primitives)


def inline_producers(writing: ScheduleRecorder, *, to_one: bool = False) -> bool:
    """Inline intermediate blocks; return whether all blocks are elementwise.

    `to_one`: stop, and return ``False``, where more than one block remains.
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
        costly = any(_is_costly(each.stmt, reader) for reader in readers) or (
            _calls_sometimes(each.stmt) and sum(loads(one.body, written) for one in readers) > 1
        )
        if readers and not costly and writing.can_inline(each.name):
            why = reason("no intermediate value is stored")
            writing.inline(each.name, why)
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


def _calls_sometimes(block: Any) -> bool:
    """Return whether a block has a call in a branch: LLVM does not merge copies of it."""
    calls = [operator_name(each) for each in collected(block.body, ir.Call)]
    return "if_then_else" in calls and "call_pure_extern" in calls


def _keeps_flags(writing: ScheduleRecorder, block: Any) -> bool:
    """Return whether a block reads or writes booleans in intermediate buffers."""
    given = function_of(writing.sch).params
    sources = [region.source for region in (*block.reads, *block.writes)]
    return any(
        str(each.dtype) == "bool" and not any(each.same_as(one) for one in given)
        for each in sources
    )


def write_elements(writing: ScheduleRecorder, block: str, machine: Machine) -> None:
    """Schedule an elementwise block."""
    loops = writing.loops(block)
    extents = [writing.extent(each) for each in loops]
    stmt = writing.block(At(block))
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
    if width:
        axes = whole_rows(extents, axes, width)
    if axes > 1:
        writing.do(
            "fuse",
            reason("the loops are contiguous in all reads and writes: one long row"),
            loops=loops[len(loops) - axes :],
        )
    inner: At | Made | None = None
    outer = writing.loops(block)[:-1]
    if width and axes:
        row = writing.loops(block)[-1]
        inner = row
        if width != writing.extent(row):
            why = reason_n(
                "{width} values are one vector register",
                "{width} values are {count} vector registers",
                -(-width // lanes),
                width=width,
            )
            inner = writing.split(row, width, why)[1]
            outer = writing.loops(block)[:-1]
    if inner is not None:
        writing.vectorize(inner, reason("adjacent values are loaded, computed and stored together"))
    if writing.work(extents) >= WORTH_THREADS and machine.threads > 1 and outer:
        # Last: afterwards, the loops inside of the fused ones have other places.
        parallelise(writing, outer, machine)


def whole_rows(extents: Sequence[int | None], axes: int, width: int) -> int:
    """Return the number of last axes to fuse, of those that are one row, for vectors of a width.

    Of vectors in a row of 128 × 56 × 56, TVM simplifies what 64 divides, 56 × 56, apart from what
    it does not, 56. What is left is no longer one number: vectors are gathered.
    """
    parts = [math.prod(each or 1 for each in extents[-count:]) for count in range(1, axes + 1)]
    found = (count for count, part in enumerate(parts, start=1) if part % width == 0)
    least = next(found, axes)
    return axes if parts[0] % width == 0 else least


_TILE = 8
"""Rows and columns of a block that is transposed in registers."""

_FIRST: dict[type, int] = {tirx.LE: 0, tirx.LT: 1}
"""For ``number ≤ axis`` and ``number < axis``: the first value for which it holds, less the number;
for ``axis < number`` and ``axis ≤ number``, the first one for which it does not, the other way
round."""


def movement(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Data movement for which vectors along the rows do not fit."""
    if not inline_producers(writing, to_one=True):
        return False
    (block,) = writing.blocks()
    stmt = writing.block(At(block))
    extents = [writing.extent(each) for each in writing.loops(block)]
    if not extents or len(extents) != len(stmt.iter_vars) or None in extents:
        return False
    if is_pad(stmt):
        return _pad(writing, block, machine)
    count = _alternating(stmt)
    if count:
        return _interleave(writing, block, count, machine)
    period = _period(stmt)
    if period:
        return _repeat(writing, block, period, machine)
    parts = _parts(stmt)
    if len(parts) > 1:
        return _partition(writing, block, parts, machine)
    across = _across(stmt)
    return across is not None and _transpose(writing, block, across, machine)


def _pad(writing: ScheduleRecorder, block: str, machine: Machine) -> bool:
    loops = writing.loops(block)
    most = len(loops) - 2 if len(loops) > 2 else len(loops) - 1
    around = int(share(writing, loops[:most], block, machine))
    lanes = machine.lanes(str(writing.block(At(block)).writes[0].source.dtype))
    fill_apart(writing, block, around)
    filled = writing.loops(f"{block}_pad_const")[around:]
    if len(filled) > 1:
        writing.do("fuse", reason("the filled parts are adjacent"), loops=filled)
    copy_rows(writing, block, lanes)
    return True


_RUN = 16
"""Values that are read one after another from which on they are worth a loop of their own."""

_RUNS = 4
"""Maximum number of such loops."""

_CHOOSING: dict[type, Callable[[Any, Any], Any]] = {
    **ARITHMETIC,
    tirx.Max: np.maximum,
    tirx.Min: np.minimum,
    tirx.LE: np.less_equal,
    tirx.LT: np.less,
    tirx.GE: np.greater_equal,
    tirx.GT: np.greater,
}


def _values(index: Any, row: Any, places: Any) -> Any:
    """Return the values of an index at places in a row; ``None`` if it depends on anything else."""
    if isinstance(index, tirx.IntImm):
        return int(index)
    if isinstance(index, tirx.Var):
        return places if index.same_as(row) else None
    if isinstance(index, tirx.Select):
        parts = (index.condition, index.true_value, index.false_value)
        values = [_values(each, row, places) for each in parts]
        return None if any(each is None for each in values) else np.where(*values)
    act = _CHOOSING.get(type(index))
    sides = [] if act is None else [_values(each, row, places) for each in (index.a, index.b)]
    return None if act is None or any(each is None for each in sides) else act(*sides)


def _runs(index: Any, row: Any, extent: int) -> set[int]:
    """Return where, in a row, elements begin or end to be read one after another.

    Of a row that is padded by reflection, say, those are the bounds of the input.
    """
    if _step(index, row) == 1:
        return set()
    values = _values(index, row, np.arange(extent))
    if values is None or np.ndim(values) == 0:
        return set()
    breaks = np.flatnonzero(np.diff(values) != 1) + 1
    bounds = [0, *breaks.tolist(), extent]
    runs = [each for each in itertools.pairwise(bounds) if each[1] - each[0] >= _RUN]
    return {place for run in runs for place in run} if len(runs) <= _RUNS else set()


def _parts(stmt: Any) -> tuple[int, ...]:
    """Return the lengths of the parts of a row, in each of which the reads are adjacent.

    Their conditions depend on the place in the row alone.
    """
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
    for load in nodes:
        if isinstance(load, TensorLoad) and mentions(load.indices[-1], row.var):
            cuts |= _runs(load.indices[-1], row.var, extent)
    bounds = [0, *sorted(each for each in cuts if 0 < each < extent), extent]
    return tuple(after - before for before, after in itertools.pairwise(bounds))


def _partition(
    writing: ScheduleRecorder, block: str, parts: tuple[int, ...], machine: Machine
) -> bool:
    share(writing, writing.loops(block)[:-1], block, machine)
    writing.do(
        "loop_partition",
        reason("each part of a row has its own loop, without a test for each element"),
        loop=writing.loops(block)[-1],
        factors=(*parts[:-1], None),
    )
    return True


_ALTERNATING = 8
"""Most values that alternate in a row: the loop over them is unrolled."""


def _alternating(stmt: Any) -> int:
    """Return how many values alternate in a row, as by a stack along a last axis; 0 for none.

    The value is chosen by the place in the row, ``row == 1`` or ``row % 2 == 1``.
    """
    row = stmt.iter_vars[-1]
    counts = set()
    for each in nodes_in(getattr(stmt.body, "value", row.var)):
        if operator_name(each) != "if_then_else" or not mentions(each.args[0], row.var):
            continue
        place = each.args[0].a if isinstance(each.args[0], tirx.EQ) else None
        if place is not None and place.same_as(row.var):
            counts.add(known(row.dom.extent))
        elif isinstance(place, tirx.FloorMod) and place.a.same_as(row.var):
            counts.add(known(place.b))
        else:
            return 0
    count = counts.pop() if len(counts) == 1 else None
    return count if count is not None and 1 < count <= _ALTERNATING else 0


def _interleave(writing: ScheduleRecorder, block: str, count: int, machine: Machine) -> bool:
    loops = writing.loops(block)
    row: At | Made = loops[-1]
    if writing.extent(loops[-1]) != count:
        share(writing, loops[:-1], block, machine)
        why = reason("{count} values alternate in a row", count=count)
        row = writing.split(writing.loops(block)[-1], count, why)[1]
    else:
        share(writing, loops[:-2], block, machine)
        row = writing.loops(block)[-1]
    writing.unroll(row, reason("each is computed by itself, without a test for each element"))
    return True


def _period(stmt: Any) -> int:
    """Return the length of what is repeated in a row, as by a tile; 0 for none."""
    row, accesses = stmt.iter_vars[-1], accesses_of(stmt)
    if accesses is None or accesses.row([known(each.dom.extent) for each in stmt.iter_vars]):
        # The remainder is that of a reshape, whose row is one of what it reads.
        return 0
    periods = {
        known(each.b)
        for each in nodes_in(getattr(stmt.body, "value", row.var))
        if isinstance(each, tirx.FloorMod) and each.a.same_as(row.var)
    }
    period = periods.pop() if len(periods) == 1 else None
    extent = known(row.dom.extent) or 0
    return period if period and _RUN <= period < extent and extent % period == 0 else 0


def _repeat(writing: ScheduleRecorder, block: str, period: int, machine: Machine) -> bool:
    lanes = machine.lanes(str(writing.block(At(block)).writes[0].source.dtype))
    why = reason("{count} values are repeated in a row", count=period)
    row = writing.split(writing.loops(block)[-1], period, why)[1]
    width = row_width(period, lanes)
    if width:
        row = writing.split(row, width, reason("they are copied as vectors"))[1]
        writing.vectorize(row, reason("adjacent values are copied together"))
    share(writing, writing.loops(block)[:-2], block, machine)
    return True


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
    return max(found, default=min(extent, _TILE))


def _transpose(writing: ScheduleRecorder, block: str, axis: int, machine: Machine) -> bool:
    loops = writing.loops(block)
    last = len(loops) - 1
    extents = {each: writing.extent(loops[each]) for each in (axis, last)}
    rows, columns = (_side(each) for each in extents.values())
    rests = {axis: rows, last: columns}
    rests = {each: side for each, side in rests.items() if side and (extents[each] or 0) % side}
    if min(rows, columns) < (_TILE // 2 if rests else 2):
        return False
    why = reason("{columns} values are stored side by side", columns=columns)
    writing.split(loops[last], columns, why)
    why = reason(
        "{rows} values are read side by side: each cache line is used while it is cached", rows=rows
    )
    writing.split(loops[axis], rows, why)
    # The split of the axis before it has moved the last one.
    outer = [each for each in range(last + 2) if each not in (axis + 1, last + 2)]
    order = [At(block, loop=each) for each in (*outer, axis + 1, last + 2)]
    writing.reorder(tuple(order), reason("tile by tile"))
    share(writing, writing.loops(block)[: min(rests, default=last + 1)], block, machine)
    inner = writing.loops(block)
    writing.vectorize(inner[-1], reason("a row of a tile is stored at once"))
    writing.unroll(inner[-2], reason("the tile is transposed in registers"))
    for each, side in sorted(rests.items()):
        block = _whole_tiles(writing, block, each - last - 3, (extents[each] or 0) // side)
    return True


def _whole_tiles(writing: ScheduleRecorder, block: str, loop: int, count: int) -> str:
    """Split off the last tile, which is not whole; return the block of the others."""
    before = writing.blocks()
    writing.do(
        "loop_partition",
        reason("whole tiles have a loop of their own, without a test for each element"),
        loop=writing.loops(block)[loop],
        factors=(count, None),
    )
    _both, _whole, tiles, *_rest = (each for each in writing.blocks() if each not in before)
    return tiles

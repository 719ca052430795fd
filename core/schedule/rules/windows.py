"""Reductions over a window of the input: depthwise convolutions, poolings and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.ir.tensorir import known, mentions, operator_name
from lowerscope.core.model.reasons import reason
from lowerscope.core.model.schedule import At, Reference
from lowerscope.core.schedule.rules.recorder import (
    REDUCTION,
    STACK,
    WORTH_THREADS,
    Machine,
    ScheduleRecorder,
    bytes_of,
    gather,
    goes_along,
    names_of,
    parallelise,
    reduction_of,
)
from lowerscope.core.schedule.step_errors import StepFailed


@dataclass(frozen=True)
class Window:
    """A block that reduces a window of its input, with the blocks before and after it.

    `spatial`: extents of the axes of its output, in order; ``None`` for one that is symbolic.
    `reads`: for each buffer that it reads, for each of its indices, the numbers of the axes in it.
    `stride`: distance between the elements of a row that adjacent outputs read; 0 if not known.
    `pads`: names of the blocks before it that pad what it reads.
    """

    block: str
    spatial: tuple[int | None, ...]
    reduced: tuple[int, ...]
    reads: tuple[tuple[frozenset[int], ...], ...]
    stride: int
    dtype: str
    pads: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def is_window(self) -> bool:
        """Return whether an index of the reads moves with the output, and with the window."""
        count = len(self.spatial)
        return any(
            any(axis < count for axis in each) and any(axis >= count for axis in each)
            for read in self.reads
            for each in read
        )

    @property
    def moves(self) -> bool:
        """Return whether there are several windows in a plane of the input."""
        count = len(self.spatial)
        return any(
            self.spatial[axis] != 1 and any(other >= count for other in each)
            for read in self.reads
            for each in read
            for axis in each
            if axis < count
        )

    def is_shared(self, axis: int) -> bool:
        """Return whether all reads change with an axis."""
        return all(any(axis in each for each in read) for read in self.reads)


def window_of(writing: ScheduleRecorder) -> Window | None:
    """Return the only reduction block of a function, if the later blocks are elementwise in it."""
    found = reduction_of(writing)
    if found is None or not found.is_in_order or not found.rank:
        return None
    extents = [known(axis.dom.extent) for axis in found.axes]
    reduced = [each for each in extents[found.rank :] if each is not None]
    is_reduced = set(found.kinds[found.rank :]) == {REDUCTION}
    if not is_reduced or found.rank + len(reduced) < len(extents):
        return None
    if not all(goes_along(each, found.store.buffer, found.rank) for each in found.after):
        return None
    row = found.axes[found.rank - 1].var
    return Window(
        block=found.place.name,
        spatial=tuple(extents[: found.rank]),
        reduced=tuple(reduced),
        reads=found.reads,
        stride=_stride(found.regions, row),
        dtype=str(found.store.buffer.dtype),
        pads=names_of([each for each in found.before if is_pad(each.stmt)]),
        before=names_of([each for each in found.before if not is_pad(each.stmt)]),
        after=names_of(found.after),
    )


def _stride(regions: Sequence[Any], row: Any) -> int:
    """Return how far apart adjacent outputs read; 0 where that is not the same for all reads."""
    strides = set()
    for region in regions:
        last = region.region[-1].min
        if mentions(last, row):
            found = sym.detect_linear_equation(last, [row])
            strides.add((known(found[0]) if len(found) else None) or 0)
        elif any(mentions(each.min, row) for each in region.region):
            strides.add(0)
    return strides.pop() if len(strides) == 1 else int(not strides)


def is_pad(block: Any) -> bool:
    """Return whether a block copies within some bounds, and writes a constant outside."""
    value = getattr(block.body, "value", None)
    if value is None or operator_name(value) != "if_then_else":
        return False
    _other, inside, outside = value.args
    return isinstance(inside, TensorLoad) and isinstance(outside, (tirx.FloatImm, tirx.IntImm))


_MOST_VECTORS = 4
"""Maximum registers of a row: the tile has several rows, each with its own."""

_SPARE = 4
"""Registers that are reserved for reads."""

_BODY = 512
"""Maximum unrolled steps, before the code exceeds its cache."""

_BODIES = 64, 256, 512, 1024
"""Other numbers of unrolled steps that are worth a try."""

_PLANE = 1 << 14
"""Bytes of a padded plane that stays in the first-level cache beside the reads and writes."""

_PLANES = 1 << 13, 32
"""Bytes and number of planes that are padded in succession: reading a store at once, in other
vectors than the stored ones, would wait for the store."""


def write_rows(writing: ScheduleRecorder, found: Window, machine: Machine) -> bool:
    """Schedule vectors along the rows of the output, several rows at once."""
    last = gather(writing, found.block, found.after)
    for block in found.before:
        writing.inline(block, reason("copies are read in place"))
    lanes = machine.lanes(found.dtype)
    width = _width(writing, found, lanes)
    stride = found.stride if width and _parts(writing, found) else 1
    filters = _filters(writing, found) if width else 1
    rows = _rows(writing, found, width, filters, machine) if width else 1
    if filters == 1:
        _cut_planes(writing, last, found)
    depth = _cut(writing, last, found, width, rows)
    if filters > 1:
        depth = _cut_filters(writing, last, found, filters, depth)
    writing.compute_at(
        found.block,
        last,
        depth - 1,
        reason("a few rows are reduced just before they are finished")
        if width
        else reason("each element is reduced just before it is finished"),
    )
    writing.keep_local(found.block, reason("the partial result stays in registers until then"))
    plane = _pad_at(writing, found, last, depth)
    _order(writing, found, width, depth, filters)
    _store(writing, last, width, depth)
    fused = _share(writing, found, last, min(plane, max(1, len(found.spatial) - 1)), machine)
    depth -= fused
    if len(writing.loops(found.block)) > depth:
        writing.begin(
            found.block, depth, reason("the initial value is set once, before the window")
        )
    for block in found.pads:
        _fill(writing, block, plane - fused, lanes, stride)
    return True


def _parts(writing: ScheduleRecorder, found: Window) -> bool:
    """Return whether padded rows are stored in parts, each of values that are read together.

    They are whole multiples of the stride, and their plane stays in the cache.
    """
    if found.stride < 2 or not found.pads:
        return False
    rows = [known(writing.block(At(each)).writes[0].source.shape[-1]) for each in found.pads]
    planes = [_plane(writing, each) for each in found.pads]
    return all(each and each % found.stride == 0 for each in rows) and all(
        each and each <= _PLANE for each in planes
    )


def _width(writing: ScheduleRecorder, found: Window, lanes: int) -> int:
    """Return the number of values of a row that are computed together; 0 for one at a time."""
    extent = found.spatial[-1]
    usual = row_width(extent, lanes)
    if (
        found.stride != 1
        and not _parts(writing, found)
        and usual > lanes // 2
        and (extent or 0) > lanes
    ):
        # LLVM splits long rows by shuffles, which is better than value by value.
        usual = 0
    return writing.choose("values of a row at once", (0, *_widths(extent, lanes)), usual)


def row_width(extent: int | None, lanes: int) -> int:
    """Return the number of values of a row that are computed together; 0 where none is good.

    It is the divisor that leaves the fewest lanes empty: LLVM makes one register of a vector of 14
    values, and four of one of 56.
    """
    widths = _widths(extent, lanes)
    return max(widths, key=lambda each: (each / (-(-each // lanes) * lanes), each), default=0)


def _widths(extent: int | None, lanes: int) -> list[int]:
    if extent is None or lanes < 2:
        return []
    return [
        each
        for each in range(2, min(extent, lanes * _MOST_VECTORS) + 1)
        if extent % each == 0 and (each >= lanes // 2 or each == extent)
    ]


def _filters(writing: ScheduleRecorder, found: Window) -> int:
    """Return the number of filters of a group computed together; 1 where each has its own input."""
    channel = len(found.spatial) - 3
    if channel < 0 or len(found.reduced) < 3 or found.reduced[0] == 1:
        return 1
    extent, summed = found.spatial[channel] or 0, len(found.spatial)
    for read, axes in zip(writing.block(At(found.block)).reads, found.reads, strict=False):
        for index, own in enumerate(axes):
            if channel in own and summed in own:
                channels = known(read.source.shape[index]) or 0
                groups = channels // found.reduced[0]
                each = extent // groups if groups else 0
                counts = [count for count in (1, 2, 3, 4) if each % count == 0]
                return writing.choose("filters at once", counts, counts[-1]) if each else 1
    return 1


def _rows(
    writing: ScheduleRecorder, found: Window, width: int, filters: int, machine: Machine
) -> int:
    """Return the number of rows that are computed together, and share their reads."""
    extent = found.spatial[-2] if len(found.spatial) > 1 else None
    if extent is None or filters > 1:
        # With several filters and several rows, LLVM leaves the sums in memory: half as fast.
        return 1
    each = -(-width // machine.lanes(found.dtype))
    size = bytes_of(found.dtype)
    room = min(
        (machine.registers - _SPARE) // each,
        (STACK - 1) // (width * size),
        max(1, _BODY // (each * math.prod(found.reduced[-2:]))),
        7,
    )
    counts = [count for count in range(1, max(1, room) + 1) if extent % count == 0]
    return writing.choose("rows at once", counts, counts[-1])


def _plane(writing: ScheduleRecorder, block: str) -> int | None:
    """Return the bytes of a plane that a block pads."""
    buffer = writing.block(At(block)).writes[0].source
    sizes = [known(each) for each in buffer.shape[-2:]]
    if len(sizes) < 2 or any(each is None for each in sizes):
        return None
    return math.prod(each or 1 for each in sizes) * bytes_of(str(buffer.dtype))


def _cut_planes(writing: ScheduleRecorder, last: str, found: Window) -> None:
    """Split the loop over planes, so that several are padded in succession."""
    sizes = [_plane(writing, block) for block in found.pads]
    extent = found.spatial[-3] if len(found.spatial) > 2 else None
    if not sizes or extent is None or any(each is None for each in sizes):
        return
    most, count = _PLANES
    room = min(count, most // max(each or 1 for each in sizes))
    counts = [each for each in range(2, room + 1) if extent % each == 0]
    planes = writing.choose("planes that are padded at once", (1, *counts), (1, *counts)[-1])
    if planes > 1:
        writing.split(
            At(last, loop=len(found.spatial) - 3),
            planes,
            reason(
                "{planes} planes are padded, and then read: data that was just stored is slow "
                "to read",
                planes=planes,
            ),
        )


def _cut(writing: ScheduleRecorder, last: str, found: Window, width: int, rows: int) -> int:
    """Split the loops of the last block into rows; return the number of loops around them."""
    count = len(writing.loops(last))
    if not width:
        return count
    row, cut = count - 1, width != found.spatial[-1]
    if cut:
        writing.split(
            At(last, loop=row),
            width,
            reason("{width} values of a row fill vector registers", width=width),
        )
    if rows > 1:
        _cut_rows(writing, last, row - 1, rows, cut)
    return count if cut else count - 1


def _cut_rows(writing: ScheduleRecorder, last: str, at: int, rows: int, cut: bool) -> None:
    writing.split(
        At(last, loop=at),
        rows,
        reason("data that is read for one of {rows} rows serves the next as well", rows=rows),
    )
    if cut:
        loops = tuple(At(last, loop=at + each) for each in (0, 2, 1, 3))
        writing.reorder(loops, reason("tile by tile"))


def _cut_filters(
    writing: ScheduleRecorder, last: str, found: Window, filters: int, depth: int
) -> int:
    """Add several filters to the tile; return the number of loops around it."""
    at = len(found.spatial) - 3
    writing.split(
        At(last, loop=at),
        filters,
        reason(
            "data that is read for one of {filters} filters of a group serves the others",
            filters=filters,
        ),
    )
    count = len(writing.loops(last))
    outer = [each for each in range(depth + 1) if each != at + 1]
    order = (*outer, at + 1, *range(depth + 1, count))
    loops = tuple(At(last, loop=each) for each in order)
    writing.reorder(loops, reason("the filters are inside the tile"))
    return depth


def _pad_at(writing: ScheduleRecorder, found: Window, last: str, depth: int) -> int:
    """Pad the input of a tile or a plane; return the number of loops around that."""
    sizes = [_plane(writing, block) for block in found.pads]
    is_plane = len(found.spatial) > 2 and all(each and each <= _PLANE for each in sizes)
    rank = len(found.spatial)
    around = rank - 2 if is_plane else max(1, min(depth, rank - 1))
    for block in found.pads:
        writing.compute_at(
            block,
            last,
            around - 1,
            reason("a plane is padded just before it is read, and stays in the cache")
            if around < depth
            else reason("the input of a tile is padded just before it is read"),
        )
    return around


def _order(writing: ScheduleRecorder, found: Window, width: int, depth: int, filters: int) -> None:
    """Order the loops of the reduction: over the window outside, over the tile inside."""
    block = found.block
    count = len(found.spatial)
    window = writing.inners(block, range(count, count + len(found.reduced)), depth)
    tile = writing.inners(block, range(max(0, count - (3 if filters > 1 else 2)), count), depth)
    if window and tile:
        writing.reorder(
            (*window, *tile), reason("all rows of the tile are updated at each place in the window")
        )
    places = [At(block, loop=depth + each) for each in range(len(window) + len(tile))]
    if width:
        writing.vectorize(places[-1], reason("the values of a row are adjacent"))
        tiled = places[len(window) : -1]
    else:
        tiled = []
    most = writing.choose("unrolled steps", _BODIES, _BODY)
    steps = math.prod(writing.extent(each) or 1 for each in tiled)
    written: list[Reference] = list(tiled)
    for loop in reversed(places[: len(window)]):
        steps *= writing.extent(loop) or 1
        if steps > most:
            break
        written.insert(0, loop)
    for each in written:
        writing.unroll(each, reason("registers cannot be indexed"))


def _store(writing: ScheduleRecorder, last: str, width: int, depth: int) -> None:
    if not width:
        return
    *around, row = writing.loops(last)
    writing.vectorize(row, reason("rows are finished and stored as they are computed"))
    for loop in around[depth:]:
        writing.unroll(loop, reason("each row is still in its register"))


def _share(writing: ScheduleRecorder, found: Window, last: str, most: int, machine: Machine) -> int:
    """Distribute the loops around the tiles among threads; return how many were fused away."""
    if not uses_threads(writing, found, machine):
        return 0
    return max(0, parallelise(writing, writing.loops(last)[:most], machine) - 1)


def uses_threads(writing: ScheduleRecorder, found: Window, machine: Machine) -> bool:
    """Return whether several threads are used: there is enough work, as far as it is known."""
    if machine.threads < 2:
        return False
    worth = writing.work((*found.spatial, *found.reduced)) >= WORTH_THREADS
    return bool(writing.choose("threads", (0, 1), int(worth)))


def _fill(writing: ScheduleRecorder, block: str, around: int, lanes: int, stride: int) -> None:
    """Fill the padding and copy the inside, so that no element is tested for its place.

    `stride`: distance of the elements that are read together; they are stored side by side.
    """
    if len(writing.loops(block)) == around:
        return
    before = set(writing.blocks())
    try:
        fill_apart(writing, block, around)
    except StepFailed:
        # TVM does not where a tile overlaps the next one: each element is tested then.
        if stride < 2:
            return
    written = [block, *(each for each in writing.blocks() if each not in before)]
    if stride < 2:
        copy_rows(writing, block, lanes)
        return
    buffer = writing.block(At(block)).writes[0].source
    axes = [f"i{each}" for each in range(len(buffer.shape))]
    *outer, row = axes
    writing.do(
        "transform_layout",
        reason(
            "values that are read together are {stride} apart: they are stored side by side",
            stride=stride,
        ),
        block=At(block),
        buffer=str(buffer.name),
        index_map=f"{', '.join(axes)} -> {', '.join(outer)}, {row} % {stride}, {row} // {stride}",
    )
    for each in written:
        parts = writing.split(
            writing.loops(each)[-1], stride, reason("adjacent values go to different places")
        )
        writing.unroll(parts[-1], reason("the place of each is known when it is compiled"))


def fill_apart(writing: ScheduleRecorder, block: str, around: int) -> None:
    """Fill a padding in a block of its own, below some loops."""
    why = reason(
        "everything is filled first, then the inside is copied, without a test for each element"
    )
    writing.do("decompose_padding", why, block=At(block), loop=At(block, loop=around))


def copy_rows(writing: ScheduleRecorder, block: str, lanes: int) -> None:
    """Copy rows at once, if they are whole vectors."""
    inner = writing.loops(block)[-1]
    if row_width(writing.extent(inner), lanes) == writing.extent(inner):
        writing.vectorize(inner, reason("a row is copied at once"))


def depthwise(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Sums over windows of products, both of whose factors differ from channel to channel.

    There is no reuse between channels, so the vectors lie along the rows of a channel, and no
    weights need another layout.
    """
    found = window_of(writing)
    if found is None or len(found.reads) != 2 or not found.is_window:
        return False
    if not any(found.is_shared(axis) for axis in range(len(found.spatial))):
        return False
    return write_rows(writing, found, machine)


def window_rows(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Sums over windows without an axis for the lanes of a tile: a single filter, any batch."""
    found = window_of(writing)
    if found is None or len(found.reads) != 2 or not found.is_window:
        return False
    return write_rows(writing, found, machine)


def pooling(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Reductions over windows of a single buffer; a whole plane is a row of it."""
    found = window_of(writing)
    if found is None or len(found.reads) != 1 or not found.moves:
        return False
    return write_rows(writing, found, machine)

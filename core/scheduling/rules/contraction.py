"""Matrix products and convolutions: a tile of sums is kept in vector registers."""

from __future__ import annotations

from dataclasses import dataclass

import tvm

from lowerscope.core.schedules import At, Reference
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import Contraction, contraction_of
from lowerscope.core.scheduling.rules.sharing import share_out
from lowerscope.core.scheduling.rules.writing import Writing

_WORTH_THREADS = 1 << 18
"""So many multiply-adds take as long as it takes to wake other threads, about."""

_STACK = 1024
"""From so many bytes on, TVM takes what is local from a pool, and LLVM keeps it in memory."""

_SPARE = 4
"""Registers that are left for what is multiplied."""


@dataclass(frozen=True)
class Tile:
    """The sums that are computed together.

    Attributes
    ----------
    vector
        The spatial axis that is in the lanes of a register.
    lanes, vectors
        How many values are in a register, and how many registers lie along that axis.
    along, count
        Another spatial axis, and how many of its values are in the tile; -1 and 1 for none.
    packed
        The buffer that is read to which the lanes are far apart, and is laid out anew; -1 for none.
    """

    vector: int
    lanes: int
    vectors: int
    along: int
    count: int
    packed: int

    @property
    def width(self) -> int:
        """How many values of the vector axis are in the tile."""
        return self.lanes * self.vectors


class ContractionRule:
    """Sums of products of which one axis can be in the lanes of a vector register."""

    name = "contraction"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Write the steps, and return what they were written to.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard refuses one of the steps.
        """
        found = contraction_of(writing)
        tile = None if found is None else tile_of(found, machine)
        if found is None or tile is None:
            return None
        last = _gather(writing, found)
        if tile.packed >= 0:
            _pack(writing, found, tile)
        if tile.vector != len(found.spatial) - 1:
            _lay_out_sums(writing, found, tile)
        outer = _cut(writing, last, found, tile)
        writing.do(
            "compute_at",
            "the sums of a tile are computed just before the tile is finished",
            block=At(block=found.block),
            loop=At(block=last, loop=outer - 1),
        )
        writing.do(
            "set_scope",
            "they are a few registers, and no memory",
            block=At(block=found.block),
            buffer_index=0,
            storage_scope="local",
        )
        _order(writing, found, tile, outer)
        _finish(writing, found, tile, last, outer, machine)
        return writing


def tile_of(found: Contraction, machine: Machine) -> Tile | None:
    """Return the tile of a contraction; ``None`` where no axis can be in the lanes."""
    axis, packed = _vector_axis(found)
    if axis < 0:
        return None
    extent = found.spatial[axis]
    lanes = machine.lanes(found.dtype)
    while extent % lanes:
        lanes //= 2
    if lanes < 2:
        return None
    room = min(machine.registers - _SPARE, (_STACK - 1) // (lanes * _bytes(found.dtype)))
    others = [each for each in range(len(found.spatial)) if each != axis]
    # A value that is read for each of these is read once for all vectors, and the other way round.
    along = next((each for each in reversed(others) if found.spatial[each] > 1), -1)
    count = 1 if along < 0 else _largest_divisor(found.spatial[along], min(room, 14))
    vectors = _largest_divisor(extent // lanes, max(1, room // count))
    return Tile(axis, lanes, vectors, along, count, packed)


def _bytes(dtype: str) -> int:
    return max(1, int(tvm.DataType(dtype).bits) // 8)


def _vector_axis(found: Contraction) -> tuple[int, int]:
    """Return the axis for the lanes, and which buffer has to be laid out anew for it, or -1."""
    for axis in reversed(range(len(found.spatial))):
        far = []
        for read in (0, 1):
            if found.is_read_by(read, axis):
                is_last = found.plain[read][-1] == axis
                inside = any(axis in each for each in found.reads[read][:-1])
                if not is_last or inside:
                    far.append(read)
        shared = found.is_read_by(0, axis) and found.is_read_by(1, axis)
        if not far and not shared and found.spatial[axis] > 1 and axis == len(found.spatial) - 1:
            return axis, -1
    # Otherwise one that a single buffer is indexed by, which is laid out anew.
    for axis in range(len(found.spatial)):
        by = [each for each in (0, 1) if found.is_read_by(each, axis)]
        if len(by) == 1 and found.spatial[axis] > 1 and axis in found.plain[by[0]]:
            return axis, by[0]
    return -1, -1


def _largest_divisor(extent: int, most: int) -> int:
    return next(each for each in range(min(extent, most), 0, -1) if extent % each == 0)


def _gather(writing: Writing, found: Contraction) -> str:
    """Have one block behind the sums, and return its name."""
    if not found.after:
        writing.do(
            "cache_write",
            "sums are kept apart until they are complete",
            block=At(block=found.block),
            write_buffer_index=0,
            storage_scope="local",
        )
        return writing.blocks()[-1]
    for block in found.after[:-1]:
        writing.do(
            "compute_inline",
            "what is done with a sum is done at once",
            block=At(block=block),
        )
    return found.after[-1]


def _pack(writing: Writing, found: Contraction, tile: Tile) -> None:
    made = writing.do(
        "cache_read",
        "what a register is filled with lies far apart: it is laid out anew",
        block=At(block=found.block),
        read_buffer_index=tile.packed,
        storage_scope="global",
    )
    count = len(found.plain[tile.packed])
    place = found.plain[tile.packed].index(tile.vector)
    axes = [f"i{each}" for each in range(count)]
    left = axes[place]
    outer = [f"{left} // {tile.width}", *(each for each in axes if each != left)]
    writing.do(
        "transform_layout",
        f"{tile.width} of them side by side are {_registers(tile.vectors)}",
        block=At(block=found.block),
        buffer=str(writing.block(At(block=found.block)).reads[tile.packed].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(outer)}, {left} % {tile.width}",
    )
    writing.do(
        "annotate",
        "of constants, that is done once, when the model is built",
        block_or_loop=made[0],
        ann_key="meta_schedule.layout_rewrite_preproc",
        ann_val=True,
    )


def _registers(count: int) -> str:
    return "one vector register" if count == 1 else f"{count} vector registers"


def _lay_out_sums(writing: Writing, found: Contraction, tile: Tile) -> None:
    axes = [f"i{each}" for each in range(len(found.spatial))]
    left = axes[tile.vector]
    outer = [f"{each} // {tile.width}" if each == left else each for each in axes]
    writing.do(
        "transform_layout",
        "so are the sums, or each of them would be stored by itself",
        block=At(block=found.block),
        buffer=str(writing.block(At(block=found.block)).writes[0].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(outer)}, {left} % {tile.width}",
    )


def _cut(writing: Writing, last: str, found: Contraction, tile: Tile) -> int:
    """Cut the loops of the last block into tiles; return how many loops are around a tile."""
    sizes = {tile.vector: tile.width}
    if tile.count > 1:
        sizes[tile.along] = tile.count
    # From the inside, so that the places of the loops that are still to be split stay as they are.
    for axis in sorted(sizes, reverse=True):
        loop, factors = At(block=last, loop=axis), (None, sizes[axis])
        writing.do("split", _why_cut(axis, tile), loop=loop, factors=factors)
    outer: list[At] = []
    inner: dict[int, At] = {}
    place = 0
    for axis in range(len(found.spatial)):
        outer.append(At(block=last, loop=place))
        if axis in sizes:
            inner[axis] = At(block=last, loop=place + 1)
            place += 1
        place += 1
    # What is stored side by side is stored last.
    tiled = [inner[each] for each in sorted(inner)]
    writing.do("reorder", "tile by tile", loops=(*outer, *tiled))
    return len(outer)


def _why_cut(axis: int, tile: Tile) -> str:
    if axis == tile.vector:
        return f"{tile.width} values are {_registers(tile.vectors)}"
    return f"{tile.count} of these beside each other: each vector that is read is used for all"


def _order(writing: Writing, found: Contraction, tile: Tile, outer: int) -> None:
    """Order the loops of the sums: over what is summed outside, over the tile inside."""
    block = found.block
    count = len(found.spatial)
    sums = [
        loop
        for axis in range(count, count + len(found.reduced))
        if (loop := writing.inner(block, axis, outer)) is not None
    ]
    along = writing.inner(block, tile.along, outer) if tile.along >= 0 else None
    lanes = writing.inner(block, tile.vector, outer)
    assert lanes is not None, "the tile has lanes"
    inside = [each for each in (along,) if each is not None]
    if tile.vectors > 1:
        both = writing.do("split", "one register each", loop=lanes, factors=(None, tile.lanes))
        # The split has put one loop more below it.
        moved = [_moved(each, lanes) for each in (*sums, *inside)]
        sums, inside = moved[: len(sums)], moved[len(sums) :]
        tiles: list[Reference] = [*inside, both[0]]
        vector = both[1]
        writing.do(
            "reorder",
            "all sums of the tile are added to before the next product",
            loops=(*sums, *tiles, vector),
        )
        depth = outer + len(sums)
        names: list[At] = [At(block=block, loop=depth + each) for each in range(len(tiles))]
        lane = At(block=block, loop=depth + len(tiles))
    else:
        writing.do(
            "reorder",
            "all sums of the tile are added to before the next product",
            loops=(*sums, *inside, lanes),
        )
        depth = outer + len(sums)
        names = [At(block=block, loop=depth + each) for each in range(len(inside))]
        lane = At(block=block, loop=depth + len(inside))
    writing.do("vectorize", f"{tile.lanes} values are one vector register", loop=lane)
    for loop in names:
        writing.do("unroll", "registers have names, and no places that are counted", loop=loop)


def _moved(loop: At, split: At) -> At:
    assert loop.loop is not None
    assert split.loop is not None
    return At(block=loop.block, loop=loop.loop + (loop.loop > split.loop))


def _finish(
    writing: Writing, found: Contraction, tile: Tile, last: str, outer: int, machine: Machine
) -> None:
    """Share the tiles out, store them, and begin with zeros."""
    work = 1
    for extent in (*found.spatial, *found.reduced):
        work *= extent
    if tile.vector == len(found.spatial) - 1 and tile.vectors == 1:
        writing.do("vectorize", "a register is stored at once", loop=writing.loops(last)[-1])
    if work >= _WORTH_THREADS and machine.threads > 1:
        outer -= max(0, share_out(writing, writing.loops(last)[:outer], machine) - 1)
    writing.do(
        "decompose_reduction",
        "sums begin with zero, once before the first product",
        block=At(block=found.block),
        loop=At(block=found.block, loop=outer),
    )
    if machine.threads > 1:
        for block in found.before:
            share_out(writing, writing.loops(block)[:-1], machine)

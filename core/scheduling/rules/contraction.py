"""Matrix products and convolutions: a tile of sums is held in vector registers."""

from __future__ import annotations

import itertools

from lowerscope.core.schedules import At, Reference
from lowerscope.core.scheduling.rules.gathering import gather
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.packing import (
    lay_out_sums,
    leave_out_copies,
    pack,
    pad,
    registers,
)
from lowerscope.core.scheduling.rules.reading import Contraction, contraction_of
from lowerscope.core.scheduling.rules.sharing import share_out
from lowerscope.core.scheduling.rules.tiling import WORTH_THREADS, Tile, bytes_of, tile_of
from lowerscope.core.scheduling.rules.writing import Writing

_ORDERED = 4
"""Number of axes beyond which there are too many orders to try."""

_NEAR = 1 << 19
"""Bytes that fit into the cache of a core."""


class ContractionRule:
    """Sums of products of which one axis can be in the lanes of a vector register."""

    name = "contraction"

    def apply(self, writing: Writing, machine: Machine) -> Writing | None:
        """Apply the steps of the rule, and return the history.

        ``None`` where the rule does not fit.

        Raises
        ------
        StepFailed
            If TVM or a guard rejects one of the steps.
        """
        if contraction_of(writing) is None:
            return None
        leave_out_copies(writing)
        found = contraction_of(writing)
        tile = None if found is None else tile_of(found, machine, writing.choose)
        if found is None or tile is None:
            return None
        free, filled = tile.packed >= 0 and found.free[tile.packed], ""
        if tile.padded:
            found, filled = pad(writing, found, tile)
        last = gather(writing, found.block, found.after)
        if tile.packed >= 0:
            pack(writing, found, tile, machine, filled=filled, free=free)
        if tile.vector != len(found.spatial) - 1:
            lay_out_sums(writing, found, tile)
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
        _store(writing, last, found, tile, outer)
        before = tuple(block for block in found.before if block != filled)
        _share(writing, last, found, outer, machine, before)
        return writing


def _cut(writing: Writing, last: str, found: Contraction, tile: Tile) -> int:
    """Split the loops of the last block into tiles; return the number of loops around a tile."""
    sizes = {tile.vector: tile.width, **tile.cuts}
    # The innermost first, so that the places of the loops that are still to be split do not change.
    for axis in sorted(sizes, reverse=True):
        loop, factors = At(block=last, loop=axis), (None, sizes[axis])
        writing.do("split", _why_cut(axis, found, tile), loop=loop, factors=factors)
    outer: dict[int, At] = {}
    inner: list[At] = []
    place = 0
    for axis in range(len(found.spatial)):
        outer[axis] = At(block=last, loop=place)
        if axis in sizes:
            inner.append(At(block=last, loop=place + 1))
            place += 1
        place += 1
    usual = _outer_order(found, tile)
    order = _ordered(writing, "order of the tiles", usual)
    why = "tile by tile"
    if order == usual != sorted(order):
        why += ": what registers are filled with is too large for a cache, and used up first"
    # Axes that are contiguous in the output come last.
    writing.do("reorder", why, loops=(*(outer[axis] for axis in order), *inner))
    return len(outer)


def _ordered(writing: Writing, name: str, usual: list[int]) -> list[int]:
    """Return axes in the usual order, or in another one that was decided on."""
    if not 1 < len(usual) <= _ORDERED:
        return usual
    orders = list(itertools.permutations(usual))
    return list(orders[writing.choose(name, range(len(orders)), 0)])


def _why_cut(axis: int, found: Contraction, tile: Tile) -> str:
    if axis == tile.vector:
        return f"{tile.width} values are {registers(tile.vectors)}"
    count = tile.cuts[axis]
    rest = found.spatial[axis] % count
    why = f"{count} of these beside each other: each vector that is read is used for all"
    return f"{why}; the last tile has {rest} of them" if rest else why


def _outer_order(found: Contraction, tile: Tile) -> list[int]:
    """Return the axes in the order of the loops around a tile, the outermost first."""
    axes = list(range(len(found.spatial)))
    read = next(each for each in (0, 1) if found.is_read_by(each, tile.vector))
    if found.elements[read] * bytes_of(found.dtype) <= _NEAR:
        return axes
    first = [axis for axis in axes if found.is_read_by(read, axis) and axis < tile.vector]
    return [*first, tile.vector, *(each for each in axes if each not in (*first, tile.vector))]


def _order(writing: Writing, found: Contraction, tile: Tile, outer: int) -> None:
    """Order the loops of the sums: reduction axes outside, tile axes inside."""
    block = found.block

    def loops(axes: range | list[int]) -> list[At]:
        every = (writing.inner(block, axis, outer) for axis in axes)
        return [loop for loop in every if loop is not None]

    count = len(found.spatial)
    reduced = range(count, count + len(found.reduced))
    summed = _ordered(writing, "order of what is summed", list(reduced))
    lanes: list[Reference] = [*loops([tile.vector])]
    if tile.vectors > 1:
        why = "one register each"
        lanes = [*writing.do("split", why, loop=lanes[0], factors=(None, tile.lanes))]
    inside = sorted(tile.cuts)
    writing.do(
        "reorder",
        "all sums of the tile are added to before the next product",
        loops=(*loops(summed), *loops(inside), *lanes),
    )
    if tile.vectors == 1:
        lanes = [*loops([tile.vector])]
    writing.do("vectorize", f"{tile.lanes} values are one vector register", loop=lanes[-1])
    for loop in (*loops(inside), *lanes[:-1]):
        writing.do("unroll", "registers have names, and no places that are counted", loop=loop)


def _store(writing: Writing, last: str, found: Contraction, tile: Tile, outer: int) -> None:
    """Vectorize the stores of adjacent elements."""
    final = len(found.spatial) - 1
    loop: Reference = writing.loops(last)[-1]
    if tile.padded and tile.vector == final:
        # Each of the values is tested for whether it has a place to be stored to.
        return
    if tile.vector == final:
        if tile.vectors > 1:
            why = "one register each"
            loop = writing.do("split", why, loop=loop, factors=(None, tile.lanes))[1]
        writing.do("vectorize", "a register is stored at once", loop=loop)
    elif tile.cuts.get(final, 1) > 2:
        why = "the sums of neighbours are brought together, and stored at once"
        writing.do("vectorize", why, loop=loop)


def _share(
    writing: Writing,
    last: str,
    found: Contraction,
    outer: int,
    machine: Machine,
    before: tuple[str, ...],
) -> None:
    """Distribute the tiles and the blocks before among threads, and initialise the sums to zero."""
    worth = int(found.work >= WORTH_THREADS)
    if machine.threads > 1 and writing.choose("threads", (0, 1), worth):
        outer -= max(0, share_out(writing, writing.loops(last)[:outer], machine) - 1)
    writing.do(
        "decompose_reduction",
        "sums begin with zero, once before the first product",
        block=At(block=found.block),
        loop=At(block=found.block, loop=outer),
    )
    if machine.threads > 1:
        for block in before:
            share_out(writing, writing.loops(block)[:-1], machine)

"""Convolutions by Winograd's algorithm: transformed, multiplied and transformed back in parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import takewhile

from lowerscope.core.model.reasons import Reason, reason
from lowerscope.core.model.schedule import At, Reference
from lowerscope.core.schedule.rules.contraction import (
    WORTH_THREADS,
    Tile,
    finish_in_tiles,
    pack,
    tile_of,
)
from lowerscope.core.schedule.rules.recorder import (
    Contraction,
    Machine,
    ScheduleRecorder,
    blocks_of,
    bytes_of,
    contraction_of,
    gather,
    is_spatial,
    parallelise,
)

_NEAR = 1 << 18
"""Bytes of transformed input that stay in the cache of a core, beside weights and products."""

_BALANCED = 0.8
"""Minimum share of the time in which all threads have work."""
_PLANE = 2
"""Number of dimensions of a tile of rows and columns."""
_RANK = 4
"""Number of axes of products beside the places in a tile: batch, rows, columns and filters."""


@dataclass(frozen=True)
class _Parts:
    """The blocks around the products.

    `places`: number of dimensions of a tile.
    `planes`: number of axes before those of rows and columns: of the batch, and of depth.
    `rows`: number of rows of tiles that are transformed at once; 0 for the whole input.
    """

    padded: str
    transformed: str
    last: str
    places: int
    planes: int
    rows: int

    @property
    def around(self) -> int:
        """Number of loops around a part of the input."""
        return self.planes + 1 if self.rows else 0

    @property
    def depth(self) -> int:
        """Number of loops around the products of a vector of filters."""
        return self.planes + 2 if self.rows else 2


def winograd(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Products of tiles of 4×4 values that are transformed before, and back afterwards."""
    found = contraction_of(writing)
    if found is None or not _is_winograd(writing, found):
        return False
    # The transformed input is computed here, so it is not padded to whole tiles.
    unpadded = replace(found, plain=((-1,) * len(found.plain[0]), found.plain[1]))
    tile = tile_of(unpadded, machine, writing.choose)
    if tile is None or tile.vector != len(found.spatial) - 1 or tile.padded:
        return False
    rows = _rows(writing, found, tile, machine)
    if tile.packed >= 0:
        pack(writing, found, tile, machine, filled="", free=found.free[1])
    padded, transformed = found.before
    last = gather(writing, found.block, found.after)
    places = _places(found)
    parts = _Parts(padded, transformed, last, places, len(found.spatial) - places - 3, rows)
    _cut_outputs(writing, parts, tile)
    outer = _multiply(writing, found, parts, tile)
    _transform(writing, parts, machine.lanes(found.dtype))
    worth = int(found.work >= WORTH_THREADS)
    if machine.threads > 1 and writing.choose("threads", (0, 1), worth):
        outer -= _share(writing, parts, machine)
    why = reason("the sums are set to zero once, before the first product")
    writing.begin(found.block, outer, why)
    return True


def _is_winograd(writing: ScheduleRecorder, found: Contraction) -> bool:
    axes = {each.name: len(each.stmt.iter_vars) for each in blocks_of(writing)}
    spatial = {each.name for each in blocks_of(writing) if is_spatial(each.stmt)}
    places, rank = _places(found), len(found.spatial)
    return (
        places >= _PLANE
        and rank >= places + _RANK
        and [axes[each] for each in found.before] == [rank - places, rank]
        and bool(found.after)
        and {axes[each] for each in found.after} == {rank - places}
        and spatial.issuperset(found.before)
    )


def _places(found: Contraction) -> int:
    """Return the number of dimensions of a tile: of the first axes of length 4 of both factors."""
    axes = zip(found.spatial, *found.plain, strict=False)
    return len(list(takewhile(lambda at: at[1] == (4, at[0], at[0]), enumerate(axes))))


def _rows(writing: ScheduleRecorder, found: Contraction, tile: Tile, machine: Machine) -> int:
    """Return the number of rows of tiles to transform at once; 0 for the whole input.

    It is the one for which the fewest bytes come from a farther cache: the weights for each part,
    and a part for each vector of filters unless it is near.
    """
    inputs, weights = (each * bytes_of(found.dtype) for each in found.elements)
    *planes, rows, _columns, filters = found.spatial[_places(found) :]
    vectors = math.ceil(filters / tile.width)
    # A part is as deep as the kernel.
    near = _NEAR // math.prod(found.reduced[:-1])

    def bytes_read(count: int) -> int:
        parts = math.prod(planes) * rows // count if count else 1
        return parts * weights + (vectors * inputs if inputs > parts * near else inputs)

    def is_balanced(count: int) -> bool:
        shares = math.prod(planes) * rows // count if count else planes[0] * vectors
        return shares >= _BALANCED * machine.threads * math.ceil(shares / machine.threads)

    cut = tile.cuts.get(len(found.spatial) - 3, 1)
    counts = [0, *(each for each in range(cut, rows + 1, cut) if rows % each == 0)]
    usual = min(counts, key=lambda each: (not is_balanced(each), bytes_read(each)))
    return writing.choose("rows of tiles at once", counts, usual)


def _cut_outputs(writing: ScheduleRecorder, parts: _Parts, tile: Tile) -> None:
    """Split the loops of the output into tiles, and the filters into vectors."""
    last = parts.last
    _batch, filters, *planes, rows, columns = writing.loops(last)
    why = reason("a tile of 4 products per dimension has 2 outputs")
    x, *pixels = writing.do("split", why, loop=columns, factors=(None, 2))
    sizes = (None, parts.rows, 2) if parts.rows else (None, 2)
    *part, dy = writing.do("split", why, loop=rows, factors=sizes)
    pixels.insert(0, dy)
    if parts.places > _PLANE:
        pixels.insert(0, writing.split(planes[-1], 2, why)[1])
    why = reason("{width} filters are computed side by side", width=tile.width)
    outer, *lanes = writing.do("split", why, loop=filters, factors=(None, tile.vectors, tile.lanes))
    # The loops over planes have moved: those over filters are three now.
    deep = [At(last, loop=each) for each in range(4, 4 + len(planes))]
    near = (x, lanes[0], *pixels, lanes[1])
    writing.reorder(
        (*deep, *part[:-1], outer, part[-1], *near) if parts.rows else (outer, *deep, *part, *near),
        reason("part by part: what is transformed is used up while it is in the cache"),
    )
    for loop in pixels:
        writing.unroll(loop, reason("the outputs of a tile share sums of products"))
    why = reason("{lanes} values are one vector register", lanes=tile.lanes)
    writing.vectorize(lanes[1], why)


def _multiply(writing: ScheduleRecorder, found: Contraction, parts: _Parts, tile: Tile) -> int:
    """Compute the products of a part and a vector of filters before their outputs.

    Returns the number of loops around a tile of sums.
    """
    (copy,) = writing.do(
        "cache_write",
        reason("partial results are kept apart until they are complete"),
        block=At(found.block),
        write_buffer_index=0,
        storage_scope="local",
    )
    stored = str(writing.block(copy).name_hint)
    writing.compute_at(
        stored,
        parts.last,
        parts.depth - 1,
        reason("products are computed just before they are transformed back"),
    )
    inside: list[Reference] = []
    for axis in sorted(tile.cuts, reverse=True):
        (loop,) = writing.inners(stored, (axis,), parts.depth)
        why = reason("each vector that is read serves {count} of these", count=tile.cuts[axis])
        inside.insert(0, writing.split(loop, tile.cuts[axis], why)[1])
    inside.append(writing.loops(stored)[-1])
    if len(inside) > 1:
        writing.reorder(inside, reason("tile by tile"))
    outer = len(writing.loops(stored)) - len(inside)
    finish_in_tiles(writing, stored, found, tile, outer)
    return outer


def _transform(writing: ScheduleRecorder, parts: _Parts, lanes: int) -> None:
    """Pad and transform the input, with channels in the lanes."""
    for block in (parts.transformed, parts.padded):
        if parts.rows:
            why = reason("a part of the input is transformed just before it is multiplied")
            writing.compute_at(block, parts.last, parts.around - 1, why)
    why = reason("{lanes} channels are one vector register", lanes=lanes)
    outer, inner = _lanes(writing, parts.transformed, lanes, why)
    axes = (range(parts.places, parts.places + parts.planes + 2), range(parts.places))
    tiles, places = (writing.inners(parts.transformed, each, parts.around) for each in axes)
    writing.reorder(
        (*tiles, outer, *places, inner),
        reason("the values of a tile share what they read, and their sums"),
    )
    for loop in writing.inners(parts.transformed, range(parts.places), parts.around):
        writing.unroll(loop, reason("each of the values is another sum"))
    outer, inner = _lanes(writing, parts.padded, lanes, why)
    pixels = writing.inners(parts.padded, range(1, parts.planes + 2), parts.around)
    writing.reorder((outer, *pixels, inner), reason("few channels are read at a time"))


def _lanes(
    writing: ScheduleRecorder, block: str, lanes: int, why: str | Reason
) -> tuple[Reference, Reference]:
    """Split the loop over channels, the last one, by the lanes of a register."""
    outer, inner = writing.split(writing.loops(block)[-1], lanes, why)
    writing.vectorize(inner, why)
    return outer, inner


def _share(writing: ScheduleRecorder, parts: _Parts, machine: Machine) -> int:
    """Distribute the parts among threads; for the whole input, each block by itself.

    Returns the number of loops around the products that were fused away.
    """
    if not parts.rows:
        for block in (parts.padded, parts.transformed):
            parallelise(writing, writing.loops(block)[:3], machine)
    loops = writing.loops(parts.last)[: parts.around or 2]
    return max(0, parallelise(writing, loops, machine) - 1)

"""Matrix products and convolutions: a tile of sums is held in vector registers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.model.reasons import Reason, reason, reason_n
from lowerscope.core.model.schedule import At, Reference
from lowerscope.core.schedule.block_primitives import intrinsics
from lowerscope.core.schedule.dot_instructions import DOTS
from lowerscope.core.schedule.loop_primitives import LAYOUT_REWRITE
from lowerscope.core.schedule.references import Place
from lowerscope.core.schedule.rules.movement import write_elements
from lowerscope.core.schedule.rules.recorder import (
    CHEAP,
    SPATIAL,
    STACK,
    Contraction,
    Machine,
    Reduction,
    ScheduleRecorder,
    are_same,
    blocks_of,
    bytes_of,
    contraction_of,
    gather,
    goes_along,
    is_spatial,
    names_of,
    parallelise,
    reads_at,
    reduction_of,
    share,
)

WORTH_THREADS = 1 << 18
"""Multiply-adds that take about as long as waking other threads."""

SPARE = 2
"""Registers that are reserved for the factor that all lanes share, and for a product."""

LATENCY = 8
"""Sums in flight for a processor to begin two of them in each cycle."""

TILES = 24
"""Number of tiles, the best by estimate, that are worth a try."""

REUSE = 8
"""Multiplications of each element from which on a change of layout at each run is worth it."""

_SSE = 16
"""Bytes of a vector register, and number of these, of a processor without fused multiply-adds."""

_NEAR = 1 << 19
"""Bytes that fit into the cache of a core."""

_BEYOND = 1 << 21
"""Bytes that do not."""

_NEAREST = 1 << 15
"""Bytes that fit into its first-level cache."""

_FAR = 2
"""Cycles to read a register from beyond that."""

_TESTED = 0.5
"""Speed of sums of which each is tested for whether it exists: they are kept in memory."""

_DOT_LANES = 16
"""Number of sums of an instruction that adds several products to each."""

_LAYING_OUT = 4
"""Cost of changing the layout of a value, in vectors of products."""


Choose = Callable[[str, Sequence[int], int], int]
"""See `ScheduleRecorder.choose`."""


def _usual(name: str, offered: Sequence[int], usual: int) -> int:
    return usual


@dataclass(frozen=True)
class Tile:
    """The sums that are computed together.

    `vector`: the spatial axis that is in the lanes of a register.
    `lanes`, `vectors`: number of values in a register, and number of registers along that axis.
    `cuts`: number of values of other axes in the tile, where that is more than one.
    `packed`: the buffer that is read with the lanes far apart, or whose layout can change when the
        model is built; -1 for none.
    `padded`: whether the vector axis is padded to a whole number of tiles.
    `dot`: name of the instruction that adds several products to each sum; empty for none.
    """

    vector: int
    lanes: int
    vectors: int
    cuts: Mapping[int, int]
    packed: int
    padded: bool = False
    dot: str = ""

    @property
    def terms(self) -> int:
        """Number of products that are added to a sum at once."""
        return DOTS[self.dot][0] if self.dot else 1

    @property
    def width(self) -> int:
        """Number of values of the vector axis in the tile."""
        return self.lanes * self.vectors

    @property
    def registers(self) -> int:
        """Number of registers of the sums."""
        return self.vectors * math.prod(self.cuts.values())


@dataclass(frozen=True)
class _Lanes:
    """An axis that can be in the lanes: their number, and the buffer whose layout changes."""

    axis: int
    lanes: int
    read: int
    packed: int
    padded: bool = False
    dot: str = ""


def tile_of(
    found: Contraction,
    machine: Machine,
    choose: Choose = _usual,
    instructions: Collection[str] = (),
) -> Tile | None:
    """Return the tile of a contraction; ``None`` where no axis can be in the lanes.

    `choose`: may decide on another one of those with the best estimates. `instructions`: of those
    that add several products to each sum, the ones that the target has.
    """
    ranked: list[tuple[tuple[float, int, int], Tile]] = []
    for lanes in list(_added_at_once(found, instructions)) or _lanes(found, machine):
        for tile in _tiles(found, lanes, machine):
            worth = _worth(found, tile, lanes, machine)
            # Of the same worth, the one that is stored in the order of the lanes, and the smaller
            # buffer.
            rank = (round(worth, 6), lanes.axis, -found.elements[lanes.read])
            ranked.append((rank, tile))
    if not ranked:
        return None
    ranked.sort(key=lambda each: each[0], reverse=True)
    return ranked[choose("tile", range(min(TILES, len(ranked))), 0)][1]


def _lanes(found: Contraction, machine: Machine) -> Iterator[_Lanes]:
    last, most = len(found.spatial) - 1, machine.lanes(found.dtype)
    for axis, extent in enumerate(found.spatial):
        readers = [read for read in (0, 1) if found.is_read_by(read, axis)]
        if len(readers) != 1 or extent < 2:
            continue
        read = readers[0]
        if axis not in found.plain[read] or found.times_read(read, axis) > 1:
            continue
        # A plane has one index fewer here than its buffer.
        is_plane = found.flat and found.plain[read][-1] == last
        can_be_packed = not is_plane and (found.free[read] or found.uses(read) >= REUSE)
        is_named = axis in found.named
        if (extent % most or is_named) and can_be_packed and found.is_plain:
            yield _Lanes(axis, most, read, read, padded=True)
        if is_named:
            continue
        lanes = most
        while extent % lanes:
            lanes //= 2
        if lanes < 2:
            continue
        if axis == last and found.plain[read][-1] == axis and not found.free[read]:
            yield _Lanes(axis, lanes, read, -1)
        elif can_be_packed:
            yield _Lanes(axis, lanes, read, read)


def _added_at_once(found: Contraction, instructions: Collection[str]) -> Iterator[_Lanes]:
    """Yield the axes that can be in the lanes of an instruction that adds several products.

    These products are those of adjacent values in the last axis of the factor that lanes share,
    the first one.
    """
    if not found.reduced or found.plain[0][-1] != found.last or found.last not in found.plain[1]:
        return
    own = [*found.dtypes, found.dtype]
    for name, (count, *dtypes) in DOTS.items():
        is_padded = found.is_plain and len(found.reduced) == 1
        if (
            name not in instructions
            or dtypes != own
            or not (is_padded or not _has_rest(found, count))
        ):
            continue
        for axis, extent in enumerate(found.spatial):
            readers = [read for read in (0, 1) if found.is_read_by(read, axis)]
            if readers != [1] or extent < 2 or axis not in found.plain[1]:
                continue
            padded = axis in found.named or extent % _DOT_LANES > 0
            is_packed = found.free[1] or (found.is_plain and found.uses(1) >= REUSE)
            if is_packed and found.times_read(1, axis) == 1 and (found.is_plain or not padded):
                yield _Lanes(axis, _DOT_LANES, 1, 1, padded, name)


def _has_rest(found: Contraction, terms: int) -> bool:
    """Return whether the last axis of a sum may not divide into so many terms."""
    return bool(found.reduced[-1] % terms or found.named.get(found.last, 0) % terms)


def _tiles(found: Contraction, lanes: _Lanes, machine: Machine) -> Iterator[Tile]:
    most_kept = (STACK - 1) // (lanes.lanes * bytes_of(found.dtype))
    reused = _reused(found, lanes)
    most = [found.spatial[axis] for axis in reused] + [1, 1]
    count = math.ceil(found.spatial[lanes.axis] / lanes.lanes)
    for vectors in range(1, count + 1):
        # Without fused multiply-adds, the factors of the lanes are read from memory.
        factors = vectors if machine.vector_bytes > _SSE or machine.registers > _SSE else 1
        room = min(machine.registers - SPARE - factors, most_kept)
        if vectors > 1 and room < vectors:
            break
        if count % vectors and not lanes.padded:
            continue
        room = max(1, room)
        for first in range(1, min(most[0], room // vectors) + 1):
            for second in range(1, min(most[1], room // (vectors * first)) + 1):
                cuts = dict(zip(reused, (first, second), strict=False))
                cuts = {axis: count for axis, count in cuts.items() if count > 1}
                if not found.is_plain and any(
                    found.named.get(axis, count) % count for axis, count in cuts.items()
                ):
                    continue
                packing = lanes.packed, lanes.padded, lanes.dot
                yield Tile(lanes.axis, lanes.lanes, vectors, cuts, *packing)


def _reused(found: Contraction, lanes: _Lanes) -> list[int]:
    """Return up to two axes that reuse the reads of the lanes for all their values."""
    return [
        axis
        for axis in reversed(range(len(found.spatial)))
        if axis != lanes.axis
        and found.spatial[axis] > 1
        and not found.is_read_by(lanes.read, axis)
        and (found.is_plain or found.named.get(axis) != 1)
    ][:2]


def _worth(found: Contraction, tile: Tile, lanes: _Lanes, machine: Machine) -> float:
    """Return the estimated efficiency of a tile, as a share of the fastest possible one.

    In a cycle, a processor begins as many multiply-adds as it reads registers. Work beyond a whole
    number of tiles is wasted, and threads without a tile wait.
    """
    sums, values = tile.registers, tile.registers // tile.vectors
    reads = tile.vectors * _cycles_to_read(found, tile, lanes) + values
    # Fewer reads for each sum are better even where they are hidden.
    worth = sums / max(sums, reads, LATENCY) - 0.1 * (tile.vectors + values) / sums
    rest = _with_rest(found, tile)
    if rest and found.is_plain:
        other = 1 - lanes.read
        worth /= 1 + _LAYING_OUT * tile.lanes / found.uses(other)
    elif rest:
        worth *= _TESTED
    tiles = 1
    for axis, extent in enumerate(found.spatial):
        size = tile.width if axis == tile.vector else tile.cuts.get(axis, 1)
        count = math.ceil(extent / size)
        worth *= extent / (count * size)
        tiles *= count
    # Adjacent rows read the same columns; rows below one another do not.
    reused = _reused(found, lanes)
    if len(reused) > 1 and reused[1] in tile.cuts:
        worth -= 0.02
    if tile.vector != len(found.spatial) - 1:
        # The lanes are not stored contiguously.
        worth -= 0.2
    worth *= tile.terms * tile.lanes / machine.lanes(found.dtype)
    if found.finishing > CHEAP:
        # Operations on a complete sum use as many lanes as are contiguous in the result.
        final = len(found.spatial) - 1
        beside = tile.lanes if tile.vector == final else tile.cuts.get(final, 1)
        summing = math.prod(found.reduced) / (tile.lanes * tile.terms)
        finishing = found.finishing / tile.lanes
        worth *= (summing + finishing) / (summing + found.finishing / beside)
    if tile.packed >= 0 and not found.free[tile.packed]:
        # Changing the layout of an element takes as long as a few of its products for each lane.
        worth /= 1 + _LAYING_OUT * tile.lanes / found.uses(tile.packed)
    if found.work >= WORTH_THREADS:
        worth *= tiles / (math.ceil(tiles / machine.threads) * machine.threads)
    return worth


def _cycles_to_read(found: Contraction, tile: Tile, lanes: _Lanes) -> int:
    """Return the cycles to read a register for the lanes, which tile after tile reads again."""
    is_read_again = any(
        found.spatial[axis] > tile.cuts.get(axis, 1) for axis in _reused(found, lanes)
    )
    size = math.prod(found.reduced) * tile.width * bytes_of(found.dtype)
    return _FAR if is_read_again and size > _NEAREST else 1


def _with_rest(found: Contraction, tile: Tile) -> list[int]:
    """Return the axes, but for that of the lanes, that may be no whole number of tiles."""
    return [
        axis
        for axis, size in tile.cuts.items()
        if found.named.get(axis, found.spatial[axis]) % size
    ]


def leave_out_copies(writing: ScheduleRecorder) -> None:
    """Inline the blocks before the sums that only copy, such as a padding of zero width."""
    found = blocks_of(writing)
    for place in itertools.takewhile(lambda each: is_spatial(each.stmt), found[:-1]):
        if _is_copy(place):
            writing.inline(place.name, reason("it copies values that can be read in place"))


def _is_copy(place: Place) -> bool:
    block: Any = place.stmt
    store = block.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, TensorLoad):
        return False
    own = [axis.var for axis in block.iter_vars]
    return are_same(store.indices, own) and are_same(store.value.indices, own)


def pad(
    writing: ScheduleRecorder, found: Contraction, tile: Tile, axes: Sequence[int]
) -> tuple[Contraction, str]:
    """Pad axes to whole tiles.

    Returns the contraction then, and the block that pads the input of the registers; empty for
    none.
    """
    known = set(writing.blocks())
    sizes = [1] * (len(found.spatial) + len(found.reduced))
    for axis in axes:
        # The summed axis is padded to what an instruction adds at once.
        sizes[axis] = tile.width if axis == tile.vector else tile.cuts.get(axis, tile.terms)
    why = reason(
        "{spatial} is not a multiple of the tile: zeros fill the last one",
        spatial=found.spatial[axes[0]],
    )
    if axes[0] in found.named:
        why = reason("the size need not be a multiple of the tile: zeros fill the last one")
    writing.do(
        "pad_einsum",
        why,
        block=At(found.block),
        padding=tuple(sizes),
    )
    longer = contraction_of(writing)
    assert longer is not None, "padding leaves a product a product"
    read = writing.block(At(found.block)).reads[tile.packed].source if tile.padded else None
    filled = (
        block
        for block in longer.before
        if block not in known and writing.block(At(block)).writes[0].source.same_as(read)
    )
    return longer, next(filled, "")


def pack(
    writing: ScheduleRecorder,
    found: Contraction,
    tile: Tile,
    machine: Machine,
    *,
    filled: str,
    free: bool,
) -> None:
    """Change the layout of the registers' input to the order in which they are filled.

    `filled`: the block that pads it to whole tiles, whose result gets the layout; empty for none.
    `free`: whether that can be done when the model is built.
    """
    read = tile.packed
    copy: Reference = At(filled)
    if not filled:
        (copy,) = writing.do(
            "cache_read",
            reason("registers are loaded from a copy with a layout of its own"),
            block=At(found.block),
            read_buffer_index=read,
            storage_scope="global",
        )
    axes = [f"i{each}" for each in range(len(found.plain[read]))]
    left = axes[found.plain[read].index(tile.vector)]
    others, inner = [each for each in axes if each != left], [f"{left} % {tile.width}"]
    if tile.dot:
        last = axes[found.plain[read].index(found.last)]
        others = [f"{each} // {tile.terms}" if each == last else each for each in others]
        inner.append(f"{last} % {tile.terms}")
    made = [f"{left} // {tile.width}", *others, *inner]
    writing.do(
        "transform_layout",
        reason_n(
            "{width} adjacent values are one vector register; those of the next product follow",
            "{width} adjacent values are {count} vector registers; those of the next product "
            "follow",
            tile.vectors,
            width=tile.width,
        ),
        block=At(found.block),
        buffer=str(writing.block(At(found.block)).reads[read].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(made)}",
    )
    if free:
        writing.do(
            "annotate",
            reason("for constants, this is done once, when the model is built"),
            block_or_loop=copy,
            ann_key=LAYOUT_REWRITE,
            ann_val=True,
        )
    else:
        block = str(writing.block(copy).name_hint)
        if tile.dot:
            _copy_terms(writing, found, tile, block)
        share(writing, writing.loops(block)[:-1], block, machine)


def _copy_terms(writing: ScheduleRecorder, found: Contraction, tile: Tile, block: str) -> None:
    """Write the layout of an instruction in order: registers side by side, of terms in turn."""
    plain = found.plain[tile.packed]
    left, terms = plain.index(tile.vector), plain.index(found.last)
    why = reason("the copy is written in the order of its layout")
    loops: dict[int, list[Reference]] = {n: [At(block, loop=n)] for n in range(len(plain))}
    for axis, size in sorted(((left, tile.width), (terms, tile.terms)), reverse=True):
        loops[axis] = list(writing.split(At(block, loop=axis), size, why))
    others = [loops[axis][0] for axis in range(len(plain)) if axis not in (left, terms)]
    near = (loops[left][0], loops[terms][0], loops[left][1], loops[terms][1])
    writing.reorder((*others, *near), why)
    writing.unroll(loops[terms][1], reason("what is added at once is written at once"))


def lay_out_sums(writing: ScheduleRecorder, found: Contraction, tile: Tile) -> None:
    """Change the layout of the sums to that of registers: the lanes are adjacent."""
    axes = [f"i{each}" for each in range(len(found.spatial))]
    left = axes[tile.vector]
    outer = [f"{each} // {tile.width}" if each == left else each for each in axes]
    why = reason("the sums get the same layout; otherwise each would be stored by itself")
    _map_sums(writing, found.block, axes, (*outer, f"{left} % {tile.width}"), why)


def _map_sums(
    writing: ScheduleRecorder,
    block: str,
    axes: Sequence[str],
    made: Sequence[str],
    why: str | Reason,
) -> None:
    """Change the layout of the sums of a block: from its `axes` to others, made of these."""
    writing.do(
        "transform_layout",
        why,
        block=At(block),
        buffer=str(writing.block(At(block)).writes[0].source.name),
        index_map=f"{', '.join(axes)} -> {', '.join(made)}",
    )


_SHORT = 4
"""Minimum length of rows for vectors."""


def any_size(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Products and convolutions whose last axis is summed row by row, its sums side by side."""
    found = reduction_of(writing)
    if found is None or not isinstance(found.store.value, tirx.Add) or len(found.regions) < 2:
        return False
    block, after, kinds = found.place.name, names_of(found.after), found.kinds
    last = max((axis for axis, kind in enumerate(kinds) if kind == SPATIAL), default=-1)
    if all(any(last in each for each in read) and last not in read[-1] for read in found.reads):
        # Dot products of rows: no factor serves several sums, and adjacent sums read far apart.
        return False
    loops = [writing.inner(block, axis, 0) for axis in range(len(kinds))]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == SPATIAL]
    summed = [loop for loop, kind in zip(loops, kinds, strict=True) if loop and kind != SPATIAL]
    row = spatial[-1] if spatial else None
    if row is None or not summed or (writing.extent(row) or _SHORT) < _SHORT:
        return False
    rows = [loop for loop in spatial[:-1] if loop is not None]
    writing.reorder(
        (*rows, *summed, row),
        reason("each factor is multiplied by a whole row: adjacent values can be vectors"),
    )
    for name in after[:-1]:
        writing.inline(name, reason("the sum is used where it is computed"))
    # A row of the sums is one of the last block, unless that has other axes.
    is_row = found.after and len(found.after[-1].stmt.iter_vars) == found.rank
    if rows and is_row:
        writing.do(
            "reverse_compute_at",
            reason("a row is processed as soon as its sums are complete"),
            block=At(after[-1]),
            loop=At(block, loop=len(rows) - 1),
        )
    outer = len(rows)
    if machine.threads > 1 and _is_worth_threads(writing, writing.loops(block)):
        outer -= max(0, parallelise(writing, writing.loops(block)[:outer], machine) - 1)
    writing.begin(block, outer, reason("the sums are set to zero once, before the first product"))
    return True


def _is_worth_threads(writing: ScheduleRecorder, loops: tuple[At, ...]) -> bool:
    """Return whether there is enough work for threads, as far as it is known."""
    return writing.work(map(writing.extent, loops)) >= WORTH_THREADS


_ORDERED = 4
"""Number of axes beyond which there are too many orders to try."""

_WIDE = 4
"""Registers along the lanes of a tile of a convolution of single pixels."""


def contraction(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Sums of products of which one axis can be in the lanes of a vector register."""
    if contraction_of(writing) is None:
        return False
    leave_out_copies(writing)
    _flatten(writing, machine)
    found = contraction_of(writing)
    offered = intrinsics(writing.target)
    tile = None if found is None else tile_of(found, machine, writing.choose, offered)
    if found is None or tile is None:
        return False
    free, filled = tile.packed >= 0 and found.free[tile.packed], ""
    axes = _with_rest(found, tile) if found.is_plain else []
    if tile.padded:
        axes = [tile.vector, *axes]
    if tile.dot and _has_rest(found, tile.terms):
        axes.append(found.last)
    if axes:
        found, filled = pad(writing, found, tile, axes)
    last = gather(writing, found.block, found.after)
    _split_groups(writing, found, last)
    if tile.packed >= 0:
        pack(writing, found, tile, machine, filled=filled, free=free)
    if tile.vector != len(found.spatial) - 1:
        lay_out_sums(writing, found, tile)
    outer = _cut(writing, last, found, tile)
    finish_in_tiles(writing, last, found, tile, outer)
    before = tuple(block for block in found.before if block != filled)
    _share(writing, last, found, outer, machine, before)
    if tile.dot:
        _multiply_terms(writing, found, tile)
    for block in found.beyond[:-1]:
        writing.inline(block, reason("no intermediate value is stored"))
    for block in found.beyond[-1:]:
        write_elements(writing, block, machine)
    return True


def _multiply_terms(writing: ScheduleRecorder, found: Contraction, tile: Tile) -> None:
    """Compute the sums of a register with an instruction that adds several products to each."""
    first, sums = f"{found.block}_init", f"{found.block}_update"
    writing.vectorize(writing.loops(first)[-1], reason("the sums of a register are set at once"))
    writing.do(
        "tensorize",
        reason_n(
            "one instruction adds {count} product of {dtype} to each sum",
            "one instruction adds {count} products of {dtype} to each sum",
            tile.terms,
            dtype=DOTS[tile.dot][2],
        ),
        block_or_loop=writing.loops(sums)[-2],
        tensor_intrin=tile.dot,
    )


def _flatten(writing: ScheduleRecorder, machine: Machine) -> None:
    """Make one axis of the rows and columns of a convolution of single pixels, to fill the lanes.

    The columns alone do not where their number is no multiple of the lanes.
    """
    found, product = reduction_of(writing), contraction_of(writing)
    if found is None or product is None or not _has_planes(found, product, machine):
        return
    if not writing.choose("rows and columns as one axis", (0, 1), 1):
        return
    last = gather(writing, product.block, product.after)
    names = [f"i{each}" for each in range(len(found.axes))]
    *around, row, column = names[: found.rank]
    made = [*around, f"{row} * {product.spatial[-1]} + {column}"]
    summed = [
        name
        for name, extent in zip(names[found.rank :], product.reduced, strict=True)
        if extent > 1
    ]
    spatial = names[: found.rank]
    why = reason("rows and columns are one axis: its length is a multiple of the lanes")
    for block, axes, kept in (
        (product.block, names, (*made, *summed)),
        (last, spatial, made),
    ):
        index_map = f"{', '.join(axes)} -> {', '.join(kept)}"
        writing.do("transform_block_layout", why, block=At(block), index_map=index_map)
    _map_sums(writing, product.block, spatial, made, reason("the sums have that axis as well"))


def _has_planes(found: Reduction, product: Contraction, machine: Machine) -> bool:
    """Return whether one factor is read at the place of the sum in its plane, and the other not.

    The columns are no multiple of the lanes, and a plane is; what a tile reads of it stays near for
    all filters.
    """
    rows, columns, lanes = found.rank - 2, found.rank - 1, machine.lanes(product.dtype)
    if found.rank < 3 or max(product.reduced) < 2:
        return False
    width = product.spatial[columns]
    plane = product.spatial[rows] * width
    read = min(plane, _WIDE * lanes) * math.prod(product.reduced) * bytes_of(product.dtype)
    if width % lanes == 0 or plane % lanes or read > _NEAREST:
        return False
    readers = [
        read
        for read in (0, 1)
        if product.is_read_by(read, rows) or product.is_read_by(read, columns)
    ]
    if len(readers) != 1 or product.free[readers[0]]:
        return False
    place = found.axes[rows].var * width + found.axes[columns].var
    return reads_at(found.regions[readers[0]], found.axes, place) and all(
        goes_along(each, found.store.buffer, found.rank) for each in found.after
    )


def _split_groups(writing: ScheduleRecorder, found: Contraction, last: str) -> None:
    """Make two axes of the filters of a convolution in the last block: groups, and their filters.

    The sums have these two.
    """
    block = writing.block(At(last))
    if len(block.iter_vars) == len(found.spatial):
        return
    sums = writing.block(At(found.block)).writes[0].source
    (read,) = (each for each in block.reads if each.source.same_as(sums))
    names = {axis.var: f"i{number}" for number, axis in enumerate(block.iter_vars)}
    made = ", ".join(_in_words(each.min, names) for each in read.region)
    writing.do(
        "transform_block_layout",
        reason("the sums of a group have an axis of their own"),
        block=At(last),
        index_map=f"{', '.join(names.values())} -> {made}",
    )


def _in_words(index: Any, names: Mapping[Any, str]) -> str:
    """Return an index: an axis, or the quotient or remainder of one."""
    if isinstance(index, (tirx.FloorDiv, tirx.FloorMod)):
        sign = "//" if isinstance(index, tirx.FloorDiv) else "%"
        return f"{names[index.a]} {sign} {int(index.b)}"
    return names[index]


def _cut(writing: ScheduleRecorder, last: str, found: Contraction, tile: Tile) -> int:
    """Split the loops of the last block into tiles; return the number of loops around a tile."""
    sizes = {tile.vector: tile.width, **tile.cuts}
    # The innermost first, so that the places of the loops that are still to be split do not change.
    for axis in sorted(sizes, reverse=True):
        loop, factors = At(last, loop=axis), (None, sizes[axis])
        writing.do("split", _why_cut(axis, found, tile), loop=loop, factors=factors)
    outer: dict[int, At] = {}
    inner: list[At] = []
    place = 0
    for axis in range(len(found.spatial)):
        outer[axis] = At(last, loop=place)
        if axis in sizes:
            inner.append(At(last, loop=place + 1))
            place += 1
        place += 1
    usual = _outer_order(found, tile)
    order = _ordered(writing, "order of the tiles", usual)
    why = reason("tile by tile")
    if order == usual != sorted(order):
        why = reason(
            "tile by tile: data that is larger than the cache is used up before more is read"
        )
    # Axes that are contiguous in the output come last.
    writing.reorder((*(outer[axis] for axis in order), *inner), why)
    return len(outer)


def _ordered(writing: ScheduleRecorder, name: str, usual: list[int]) -> list[int]:
    """Return axes in the usual order, or in another one that was decided on."""
    if not 1 < len(usual) <= _ORDERED:
        return usual
    orders = list(itertools.permutations(usual))
    return list(orders[writing.choose(name, range(len(orders)), 0)])


def _why_cut(axis: int, found: Contraction, tile: Tile) -> str | Reason:
    if axis == tile.vector:
        return reason_n(
            "{width} values are one vector register",
            "{width} values are {count} vector registers",
            tile.vectors,
            width=tile.width,
        )
    count = tile.cuts[axis]
    rest = found.spatial[axis] % count
    if rest and axis not in found.named:
        return reason(
            "each vector that is read serves {count} of these, and {rest} in the last tile",
            count=count,
            rest=rest,
        )
    return reason("each vector that is read serves {count} of these", count=count)


def _outer_order(found: Contraction, tile: Tile) -> list[int]:
    """Return the axes in the order of the loops around a tile, the outermost first."""
    axes = list(range(len(found.spatial)))
    read = next(each for each in (0, 1) if found.is_read_by(each, tile.vector))
    first = [axis for axis in axes if found.is_read_by(read, axis) and axis < tile.vector]
    size = bytes_of(found.dtype)
    if not found.flat:
        if found.elements[read] * size <= _NEAR:
            return axes
        # Of one product of a batch: what would be read again, or written in parts, for each tile.
        batch = math.prod(found.spatial[axis] for axis in first)
        others = (found.elements[1 - read] + math.prod(found.spatial)) // batch * size
        if found.elements[read] // batch * size <= _NEAR and others > _BEYOND:
            return axes
    return [*first, tile.vector, *(each for each in axes if each not in (*first, tile.vector))]


def finish_in_tiles(
    writing: ScheduleRecorder, last: str, found: Contraction, tile: Tile, outer: int
) -> None:
    """Compute the sums of a tile in registers, just before the last block finishes the tile.

    `outer`: number of loops around a tile.
    """
    writing.compute_at(
        found.block,
        last,
        outer - 1,
        reason("the sums of a tile are computed just before the tile is finished"),
    )
    writing.keep_local(found.block, reason("the sums stay in registers, not in memory"))
    _order_tile(writing, found, tile, outer)
    _store_tile(writing, last, found, tile, outer)


def _order_tile(writing: ScheduleRecorder, found: Contraction, tile: Tile, outer: int) -> None:
    """Order the loops of the sums: reduction axes outside, tile axes inside."""
    block = found.block

    def loops(axes: list[int]) -> list[At]:
        return writing.inners(block, axes, outer)

    count = len(found.spatial)
    reduced = range(count, count + len(found.reduced))
    summed = _ordered(writing, "order of the summed terms", list(reduced))
    lanes: list[Reference] = [*loops([tile.vector])]
    if tile.vectors > 1:
        why = reason("each part is one vector register")
        lanes = [*writing.split(lanes[0], tile.lanes, why)]
    inside = sorted(tile.cuts)
    terms: Sequence[Reference] = loops(summed)
    added: list[Reference] = []
    if tile.dot:
        at = terms.index(loops([reduced[-1]])[0])
        why = reason("the instruction adds these products at once")
        first, last = writing.split(terms[at], tile.terms, why)
        terms = [*terms[:at], first, *terms[at + 1 :]]
        added = [last]
    writing.reorder(
        (*terms, *loops(inside), *lanes, *added),
        reason("all sums of the tile are updated before the next product"),
    )
    if tile.vectors == 1:
        lanes = [*loops([tile.vector])]
    if not added:
        why = reason("{lanes} values are one vector register", lanes=tile.lanes)
        writing.vectorize(lanes[-1], why)
    for loop in (*loops(inside), *lanes[:-1]):
        writing.unroll(loop, reason("registers cannot be indexed"))


def _store_tile(
    writing: ScheduleRecorder, last: str, found: Contraction, tile: Tile, outer: int
) -> None:
    """Vectorize the stores of adjacent elements."""
    final = len(found.spatial) - 1
    loop: Reference = writing.loops(last)[-1]
    if tile.padded and tile.vector == final:
        # Each of the values is tested for whether it has a place to be stored to.
        return
    if tile.vector == final:
        if tile.vectors > 1:
            why = reason("each part is one vector register")
            loop = writing.split(loop, tile.lanes, why)[1]
        writing.vectorize(loop, reason("a register is stored at once"))
    elif tile.cuts.get(final, 1) > 2:
        why = reason("adjacent sums are gathered and stored at once")
        writing.vectorize(loop, why)


def _share(
    writing: ScheduleRecorder,
    last: str,
    found: Contraction,
    outer: int,
    machine: Machine,
    before: tuple[str, ...],
) -> None:
    """Distribute the tiles and the blocks before among threads, and initialise the sums to zero."""
    worth = int(found.work >= WORTH_THREADS)
    if machine.threads > 1 and writing.choose("threads", (0, 1), worth):
        outer -= max(0, parallelise(writing, writing.loops(last)[:outer], machine) - 1)
    writing.begin(
        found.block, outer, reason("the sums are set to zero once, before the first product")
    )
    for block in before:
        share(writing, writing.loops(block)[:-1], block, machine)

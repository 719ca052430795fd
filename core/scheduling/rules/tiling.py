"""Tiles of sums: the axis in the lanes of a register, and the number of registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tvm

from lowerscope.core.scheduling.rules.costs import CHEAP
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import Contraction

WORTH_THREADS = 1 << 18
"""Multiply-adds that take about as long as waking other threads."""

STACK = 1024
"""Bytes from which on TVM takes local buffers from a pool, and LLVM keeps them in memory."""

SPARE = 3
"""Registers that are reserved for the factors."""

LATENCY = 8
"""Sums in flight for a processor to begin two of them in each cycle."""

TILES = 24
"""Number of tiles, the best by estimate, that are worth a try."""

REUSE = 8
"""Multiplications of each element from which on a change of layout at each run is worth it."""

_LAYING_OUT = 4
"""Cost of changing the layout of a value, in vectors of products."""


Choose = Callable[[str, Sequence[int], int], int]
"""See `Writing.choose`."""


def _usual(name: str, offered: Sequence[int], usual: int) -> int:
    return usual


@dataclass(frozen=True)
class Tile:
    """The sums that are computed together.

    Attributes
    ----------
    vector
        The spatial axis that is in the lanes of a register.
    lanes, vectors
        Number of values in a register, and number of registers along that axis.
    cuts
        Number of values of other axes in the tile, where that is more than one.
    packed
        The buffer that is read with the lanes far apart, or whose layout can change when the model
        is built; -1 for none.
    padded
        Whether the vector axis is padded to a whole number of tiles.
    """

    vector: int
    lanes: int
    vectors: int
    cuts: Mapping[int, int]
    packed: int
    padded: bool = False

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


def tile_of(found: Contraction, machine: Machine, choose: Choose = _usual) -> Tile | None:
    """Return the tile of a contraction; ``None`` where no axis can be in the lanes.

    Parameters
    ----------
    choose
        May decide on another one of those with the best estimates.
    """
    ranked: list[tuple[tuple[float, int, int], Tile]] = []
    for lanes in _lanes(found, machine):
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


def bytes_of(dtype: str) -> int:
    """Return the size of a value, in bytes."""
    return max(1, int(tvm.DataType(dtype).bits) // 8)


def _lanes(found: Contraction, machine: Machine) -> Iterator[_Lanes]:
    last, most = len(found.spatial) - 1, machine.lanes(found.dtype)
    for axis, extent in enumerate(found.spatial):
        readers = [read for read in (0, 1) if found.is_read_by(read, axis)]
        if len(readers) != 1 or extent < 2:
            continue
        read = readers[0]
        if axis not in found.plain[read] or found.times_read(read, axis) > 1:
            continue
        can_be_packed = found.free[read] or found.uses(read) >= REUSE
        if extent % most and can_be_packed and found.is_plain:
            yield _Lanes(axis, most, read, read, padded=True)
        lanes = most
        while extent % lanes:
            lanes //= 2
        if lanes < 2:
            continue
        if axis == last and found.plain[read][-1] == axis and not found.free[read]:
            yield _Lanes(axis, lanes, read, -1)
        elif can_be_packed:
            yield _Lanes(axis, lanes, read, read)


def _tiles(found: Contraction, lanes: _Lanes, machine: Machine) -> Iterator[Tile]:
    room = (STACK - 1) // (lanes.lanes * bytes_of(found.dtype))
    room = max(1, min(machine.registers - SPARE, room))
    reused = _reused(found, lanes)
    most = [found.spatial[axis] for axis in reused] + [1, 1]
    count = math.ceil(found.spatial[lanes.axis] / lanes.lanes)
    for vectors in range(1, min(count, room) + 1):
        if count % vectors and not lanes.padded:
            continue
        for first in range(1, min(most[0], room // vectors) + 1):
            for second in range(1, min(most[1], room // (vectors * first)) + 1):
                cuts = dict(zip(reused, (first, second), strict=False))
                cuts = {axis: count for axis, count in cuts.items() if count > 1}
                yield Tile(lanes.axis, lanes.lanes, vectors, cuts, lanes.packed, lanes.padded)


def _reused(found: Contraction, lanes: _Lanes) -> list[int]:
    """Return up to two axes that reuse the reads of the lanes for all their values."""
    return [
        axis
        for axis in reversed(range(len(found.spatial)))
        if axis != lanes.axis and found.spatial[axis] > 1 and not found.is_read_by(lanes.read, axis)
    ][:2]


def _worth(found: Contraction, tile: Tile, lanes: _Lanes, machine: Machine) -> float:
    """Return the estimated efficiency of a tile, as a share of the fastest possible one.

    In a cycle, a processor begins as many multiply-adds as it reads registers. Work beyond a whole
    number of tiles is wasted, and threads without a tile wait.
    """
    sums, values = tile.registers, tile.registers // tile.vectors
    # Fewer reads for each sum are better even where they are hidden.
    worth = sums / max(sums, tile.vectors + values, LATENCY) - 0.1 * (tile.vectors + values) / sums
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
    worth *= tile.lanes / machine.lanes(found.dtype)
    if found.finishing > CHEAP:
        # Operations on a complete sum use as many lanes as are contiguous in the result.
        final = len(found.spatial) - 1
        beside = tile.lanes if tile.vector == final else tile.cuts.get(final, 1)
        summing = math.prod(found.reduced) / tile.lanes
        finishing = found.finishing / tile.lanes
        worth *= (summing + finishing) / (summing + found.finishing / beside)
    if tile.packed >= 0 and not found.free[tile.packed]:
        # Changing the layout of an element takes as long as a few of its products for each lane.
        worth /= 1 + _LAYING_OUT * tile.lanes / found.uses(tile.packed)
    if found.work >= WORTH_THREADS:
        worth *= tiles / (math.ceil(tiles / machine.threads) * machine.threads)
    return worth

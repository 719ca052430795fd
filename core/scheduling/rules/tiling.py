"""Tiles of sums: which axis is in the lanes of a register, and how many registers there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tvm

from lowerscope.core.scheduling.rules.costs import CHEAP
from lowerscope.core.scheduling.rules.machine import Machine
from lowerscope.core.scheduling.rules.reading import Contraction

WORTH_THREADS = 1 << 18
"""So many multiply-adds take as long as it takes to wake other threads, about."""

STACK = 1024
"""From so many bytes on, TVM takes what is local from a pool, and LLVM keeps it in memory."""

SPARE = 3
"""Registers that are left for what is multiplied."""

LATENCY = 8
"""So many sums have to be under way for a processor to begin two of them in each cycle."""

TILES = 24
"""So many of the tiles that are thought to be the best are worth a try."""

REUSE = 8
"""What is laid out anew at each run is worth that if each element is multiplied so often."""

_LAYING_OUT = 4
"""To lay a value out anew takes as long as so many vectors of products, about."""


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
        How many values are in a register, and how many registers lie along that axis.
    cuts
        How many values of other axes are in the tile, where that is more than one.
    packed
        The buffer that is read to which the lanes are far apart, or that can be laid out anew when
        the model is built; -1 for none.
    padded
        Whether the vector axis is made as long as a whole number of tiles is.
    """

    vector: int
    lanes: int
    vectors: int
    cuts: Mapping[int, int]
    packed: int
    padded: bool = False

    @property
    def width(self) -> int:
        """How many values of the vector axis are in the tile."""
        return self.lanes * self.vectors

    @property
    def registers(self) -> int:
        """How many registers the sums are in."""
        return self.vectors * math.prod(self.cuts.values())


@dataclass(frozen=True)
class _Lanes:
    """An axis that can be in the lanes: how many there are, and the buffer that is laid out."""

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
        May decide for another one of those that are thought to be the best.
    """
    ranked: list[tuple[tuple[float, int, int], Tile]] = []
    for lanes in _lanes(found, machine):
        for tile in _tiles(found, lanes, machine):
            worth = _worth(found, tile, lanes, machine)
            # Of the same worth, what is stored in the order of the lanes, and the smaller buffer.
            rank = (round(worth, 6), lanes.axis, -found.elements[lanes.read])
            ranked.append((rank, tile))
    if not ranked:
        return None
    ranked.sort(key=lambda each: each[0], reverse=True)
    return ranked[choose("tile", range(min(TILES, len(ranked))), 0)][1]


def bytes_of(dtype: str) -> int:
    """Return how many bytes a value is in."""
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
    """Return axes for all values of which what is read for the lanes is read once, two at most."""
    return [
        axis
        for axis in reversed(range(len(found.spatial)))
        if axis != lanes.axis and found.spatial[axis] > 1 and not found.is_read_by(lanes.read, axis)
    ][:2]


def _worth(found: Contraction, tile: Tile, lanes: _Lanes, machine: Machine) -> float:
    """Return which share of the fastest way a tile can come to, about.

    In a cycle, a processor begins as many multiply-adds as it reads registers. What is more than a
    whole number of tiles is computed for nothing, and threads that have no tile wait.
    """
    sums, values = tile.registers, tile.registers // tile.vectors
    # Fewer reads for each sum are better even where there is time for them.
    worth = sums / max(sums, tile.vectors + values, LATENCY) - 0.1 * (tile.vectors + values) / sums
    tiles = 1
    for axis, extent in enumerate(found.spatial):
        size = tile.width if axis == tile.vector else tile.cuts.get(axis, 1)
        count = math.ceil(extent / size)
        worth *= extent / (count * size)
        tiles *= count
    # Rows beside each other read the same columns, and rows below each other do not.
    reused = _reused(found, lanes)
    if len(reused) > 1 and reused[1] in tile.cuts:
        worth -= 0.02
    if tile.vector != len(found.spatial) - 1:
        # The lanes are not stored side by side.
        worth -= 0.2
    worth *= tile.lanes / machine.lanes(found.dtype)
    if found.finishing > CHEAP:
        # What is done with a sum is done in as many lanes as lie side by side in the result.
        final = len(found.spatial) - 1
        beside = tile.lanes if tile.vector == final else tile.cuts.get(final, 1)
        summing = math.prod(found.reduced) / tile.lanes
        finishing = found.finishing / tile.lanes
        worth *= (summing + finishing) / (summing + found.finishing / beside)
    if tile.packed >= 0 and not found.free[tile.packed]:
        # To lay an element out takes as long as a few of its products for each lane.
        worth /= 1 + _LAYING_OUT * tile.lanes / found.uses(tile.packed)
    if found.work >= WORTH_THREADS:
        worth *= tiles / (math.ceil(tiles / machine.threads) * machine.threads)
    return worth

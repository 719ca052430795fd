"""Tiles of sums: which axis is in the lanes of a register, and how many registers there are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tvm

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

REUSE = 8
"""What is laid out anew at each run is worth that if each element is multiplied so often."""


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
    """

    vector: int
    lanes: int
    vectors: int
    cuts: Mapping[int, int]
    packed: int

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


def tile_of(found: Contraction, machine: Machine) -> Tile | None:
    """Return the tile of a contraction; ``None`` where no axis can be in the lanes."""
    best = max(_lanes(found, machine), key=lambda each: _rank(found, each), default=None)
    if best is None:
        return None
    room = (STACK - 1) // (best.lanes * bytes_of(found.dtype))
    room = max(1, min(machine.registers - SPARE, room))
    # What is read for the lanes is read once for all values of such an axis.
    reused = [
        axis
        for axis, extent in enumerate(found.spatial)
        if axis != best.axis and extent > 1 and not found.is_read_by(best.read, axis)
    ][-2:]
    return max(
        _tiles(found, best, reused, room), key=lambda each: _worth(found, each, reused, machine)
    )


def bytes_of(dtype: str) -> int:
    """Return how many bytes a value is in."""
    return max(1, int(tvm.DataType(dtype).bits) // 8)


def _lanes(found: Contraction, machine: Machine) -> Iterator[_Lanes]:
    last = len(found.spatial) - 1
    for axis, extent in enumerate(found.spatial):
        readers = [read for read in (0, 1) if found.is_read_by(read, axis)]
        if len(readers) != 1:
            continue
        read = readers[0]
        lanes = machine.lanes(found.dtype)
        while extent % lanes:
            lanes //= 2
        plain = axis in found.plain[read] and found.times_read(read, axis) == 1
        if lanes < 2 or not plain:
            continue
        beside = axis == last and found.plain[read][-1] == axis
        if found.free[read]:
            yield _Lanes(axis, lanes, read, read)
        elif beside:
            yield _Lanes(axis, lanes, read, -1)
        elif found.uses(read) >= REUSE:
            yield _Lanes(axis, lanes, read, read)


def _rank(found: Contraction, lanes: _Lanes) -> tuple[bool, int, bool, int]:
    """Return what makes one axis better for the lanes than another, the most important first."""
    costs = lanes.packed >= 0 and not found.free[lanes.read]
    return not costs, lanes.lanes, found.free[lanes.read], -found.elements[lanes.read]


def _tiles(found: Contraction, lanes: _Lanes, reused: list[int], room: int) -> Iterator[Tile]:
    most = [found.spatial[axis] for axis in reversed(reused)] + [1, 1]
    for vectors in range(1, min(found.spatial[lanes.axis] // lanes.lanes, room) + 1):
        if found.spatial[lanes.axis] // lanes.lanes % vectors:
            continue
        for first in range(1, min(most[0], room // vectors) + 1):
            for second in range(1, min(most[1], room // (vectors * first)) + 1):
                cuts = dict(zip(reversed(reused), (first, second), strict=False))
                cuts = {axis: count for axis, count in cuts.items() if count > 1}
                yield Tile(lanes.axis, lanes.lanes, vectors, cuts, lanes.packed)


def _worth(found: Contraction, tile: Tile, reused: list[int], machine: Machine) -> float:
    """Return which share of the fastest way a tile can come to, about.

    In a cycle, a processor begins as many multiply-adds as it reads registers. What is more than a
    whole number of tiles is computed for nothing, and threads that have no tile wait.
    """
    sums, values = tile.registers, tile.registers // tile.vectors
    # Fewer reads for each sum are better even where there is time for them.
    worth = sums / max(sums, tile.vectors + values, LATENCY) - 0.1 * (tile.vectors + values) / sums
    tiles = found.spatial[tile.vector] // tile.width
    for axis, extent in enumerate(found.spatial):
        if axis != tile.vector:
            count = math.ceil(extent / tile.cuts.get(axis, 1))
            worth *= extent / (count * tile.cuts.get(axis, 1))
            tiles *= count
    # Rows beside each other read the same columns, and rows below each other do not.
    if len(reused) > 1 and reused[0] in tile.cuts:
        worth -= 0.02
    if found.work >= WORTH_THREADS:
        worth *= tiles / (math.ceil(tiles / machine.threads) * machine.threads)
    return worth

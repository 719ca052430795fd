"""Primitives that cure the coach's warnings, to be applied as one change.

A cure is written for the nest of its warning, in several variants where sizes are to be chosen. The
one with the shortest predicted time is kept, unless nothing becomes faster by it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import tvm
from tvm import tirx

from lowerscope.core.model.schedule import At
from lowerscope.core.model.schedule_records import Advice
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.nests import Loop, Nest, nests_of
from lowerscope.core.schedule.price import Rates, predicted_ms
from lowerscope.core.schedule.references import block_occurrences, function_of, loops_around, places
from lowerscope.core.schedule.rules.recorder import WORTH_THREADS, Machine, ScheduleRecorder
from lowerscope.core.schedule.step_errors import StepFailed

_GAIN = 0.98
"""Share of the predicted time that a cure may leave."""

_TILES = (16, 64, 256)
"""Extents of loops that are to stay in a cache."""


def with_cures(
    warnings: Sequence[Advice],
    function: tirx.PrimFunc,
    target: tvm.target.Target,
    rates: Rates,
    check: Callable[[], None],
) -> tuple[Advice, ...]:
    """Return the warnings, each with the primitives that cure it where there are some.

    `check`: called between two variants; may raise to cancel.
    """
    now = predicted_ms(function, rates)
    writing = ScheduleRecorder(function, target)
    found = []
    for each in warnings:
        best = now
        for cure in _variants(each, function, rates.machine):
            check()
            after = writing.again({}, math.inf)
            try:
                cure(after)
            except StepFailed:
                continue
            predicted = predicted_ms(function_of(after.sch), rates)
            if best is not None and predicted is not None and predicted < _GAIN * best:
                best, steps = predicted, tuple(after.primitives)
                primitive = "rfactor" if "rfactor" in {s.name for s in steps} else each.primitive
                each = msgspec.structs.replace(
                    each,
                    cure=str(steps[0].comment),
                    primitive=primitive,
                    steps=steps,
                    predicted_ms=best,
                )
        found.append(each)
    return tuple(found)


Cure = Callable[[ScheduleRecorder], None]


def _variants(warning: Advice, function: tirx.PrimFunc, machine: Machine) -> Iterator[Cure]:
    at = warning.place + 1
    nests = (each for each in nests_of(function) or () if each.block == warning.block)
    own = (each for each in nests if at in (each.place, *(loop.place for loop in each.loops)))
    nest = next(own, None)
    write = _CURES.get(warning.code)
    if nest is None or write is None:
        return
    found = places(function)
    occurrence = dict(block_occurrences(found))[nest.place]
    if loops_around(found, nest.place) == [each.place for each in nest.loops]:
        block = At(nest.block, occurrence=occurrence)
        for act in write(nest, machine):
            yield partial(_run, act, block, len(nest.loops), warning.cure)


def _run(act: Act, block: At, loops: int, why: str, writing: ScheduleRecorder) -> None:
    act(Writer(writing, block, loops, why))


class Writer:
    """Writes primitives on the loops around a block, which keep their numbers.

    A loop that is split keeps its number for the outer part; the inner one has its negative, less
    one. `why`: the comment of the first primitive.
    """

    def __init__(self, writing: ScheduleRecorder, block: At, loops: int, why: str) -> None:
        self._writing, self.why = writing, why
        self.block = block
        self.loops = list(range(loops))

    def do(self, name: str, **arguments: Any) -> None:
        """Apply a primitive."""
        self._writing.do(name, "" if self._writing.primitives else self.why, **arguments)

    def at(self, loop: int) -> At:
        """Return the reference to a loop."""
        return msgspec.structs.replace(self.block, loop=self.loops.index(loop))

    def split(self, loop: int, factor: int) -> int:
        """Split a loop, and return the number of its inner part."""
        self.do("split", loop=self.at(loop), factors=(None, factor))
        self.loops.insert(self.loops.index(loop) + 1, -1 - loop)
        return -1 - loop

    def order(self, loops: Sequence[int]) -> None:
        """Order all loops."""
        if list(loops) != self.loops:
            self.do("reorder", loops=tuple(self.at(each) for each in loops))
            self.loops = list(loops)


Act = Callable[[Writer], None]


def _number(nest: Nest, loop: Loop | None) -> int | None:
    return None if loop is None or loop.kind != "serial" else nest.loops.index(loop)


def _unit(nest: Nest, *, writes: bool) -> list[Loop]:
    """Return the loops along which some access is adjacent, the innermost first."""
    accesses = [each for each in nest.accesses if each.writes == writes]
    return [
        loop
        for loop in reversed(nest.moving)
        if not loop.reduces and any(nest.step(each, loop) == 1 for each in accesses)
    ]


def _divisor(extent: int, most: int) -> int:
    return next(each for each in range(max(1, min(most, extent)), 0, -1) if extent % each == 0)


def _lanes(nest: Nest, machine: Machine) -> int:
    size = max((each.size for each in nest.accesses if each.writes), default=4)
    return max(1, machine.vector_bytes // size)


def _tiled(nest: Nest, machine: Machine) -> Iterator[Act]:
    """Sum a tile of outputs at once, in vector registers; or parts of one sum, side by side."""
    columns = next(iter(_unit(nest, writes=True)), None)
    lane, width = _number(nest, columns), _lanes(nest, machine)
    yield from _factored(nest, width)
    if columns is None or lane is None or columns.extent < width // 2:
        return
    reads = [each for each in nest.accesses if not each.writes]
    others = [
        each
        for each in nest.moving
        if each is not columns
        and not each.reduces
        and each.kind == "serial"
        and any(nest.step(access, each) == 0 for access in reads)
    ]
    others.sort(key=lambda each: each.extent, reverse=True)
    rows, second = [*others, None, None][:2]
    sizes = dict.fromkeys(_divisor(columns.extent, count * width) for count in (2, 1, 4))
    # LLVM keeps sums over several loops in registers if they have a buffer of their own.
    deep = nest.starts and sum(each.reduces for each in nest.moving) > 1
    for size, apart in itertools.product(sizes, (False, True)[: 1 + deep]):
        vectors = -(-size // width)
        most = max(1, (machine.registers - 1 - vectors) // vectors)
        worth = machine.threads if nest.steps > 4 * WORTH_THREADS else 1
        tile = partial(_tile, nest, lane, size, threads=worth, apart=apart)
        yield partial(tile, [(rows, 1 if rows is None else _divisor(rows.extent, most))])
        # Along two loops, each value that is read serves several outputs.
        if rows is not None and second is not None and second.extent % 2 == 0:
            yield partial(tile, [(second, 2), (rows, _divisor(rows.extent, most // 2))])


def _tile(
    nest: Nest,
    lane: int,
    width: int,
    rows: Sequence[tuple[Loop | None, int]],
    writer: Writer,
    *,
    threads: int,
    apart: bool,
) -> None:
    """Sum `width` outputs along the loop `lane`, times a number of them along each of `rows`."""
    along = [(_number(nest, loop), count) for loop, count in rows]
    inner = [writer.split(loop, count) for loop, count in along if loop is not None and count > 1]
    inner.append(writer.split(lane, width))
    reduced = [number for number, each in enumerate(nest.loops) if each.reduces]
    outer = [each for each in writer.loops if each not in (*reduced, *inner)]
    if len(rows) > 1:
        # The others go through their values again for each step of the first.
        outer.sort(key=lambda each: each != along[0][0])
    writer.order([*outer, *reduced, *inner])
    writer.do("vectorize", loop=writer.at(inner[-1]))
    for each in inner[:-1]:
        writer.do("unroll", loop=writer.at(each))
    if apart and outer:
        writer.do("cache_write", block=writer.block, write_buffer_index=0, storage_scope="local")
        written = next(each.buffer for each in nest.accesses if each.writes)
        copy = At(f"{written}_local")
        writer.do("reverse_compute_at", block=copy, loop=writer.at(outer[-1]))
        writer.do("vectorize", loop=msgspec.structs.replace(copy, loop=len(outer) + len(inner) - 1))
    shared = next((each for each in outer if nest.loops[each].extent > 1), None)
    if threads > 1 and shared is not None and all(each.kind == "serial" for each in nest.loops):
        # Afterwards, the sums are no reduction any more.
        writer.do("parallel", loop=writer.at(shared))
    if nest.starts and reduced:
        writer.do("decompose_reduction", block=writer.block, loop=writer.at(reduced[0]))


def factored_text(loop: Loop) -> str:
    """Return the words for a reduction in parts."""
    return _("split {loop} and rfactor it: the parts are summed side by side", loop=loop.name)


def _factored(nest: Nest, width: int) -> Iterator[Act]:
    innermost = nest.moving[-1]
    reduced = _number(nest, innermost)
    if reduced is None or not innermost.reduces:
        return
    for count in (2, 1, 4):
        size = _divisor(innermost.extent, count * width)
        if size >= width // 2:
            yield partial(_factor, nest, reduced, size)


def _factor(nest: Nest, reduced: int, width: int, writer: Writer) -> None:
    writer.why = factored_text(nest.loops[reduced])
    inner = writer.split(reduced, width)
    writer.do("rfactor", loop=writer.at(inner), factor_axis=-1)
    parts = At(f"{nest.block}_rf")
    place = writer.loops.index(inner)
    writer.do("vectorize", loop=msgspec.structs.replace(parts, loop=place))
    if nest.starts:
        outer = msgspec.structs.replace(parts, loop=writer.loops.index(reduced))
        writer.do("decompose_reduction", block=parts, loop=outer)


def _adjacent(nest: Nest, machine: Machine) -> Iterator[Act]:
    """Go along memory, or through a tile whose cache lines are used to the end."""
    if any(each.reduces for each in nest.moving):
        yield from _tiled(nest, machine)
        return
    along = [
        number
        for writes in (True, False)
        for loop in _unit(nest, writes=writes)[:1]
        if (number := _number(nest, loop)) is not None
    ]
    for each in along:
        yield partial(_innermost, each)
    if len(set(along)) == 2:
        for size in (8, 16, 32):
            yield partial(_blocked, nest, along, size)


def _innermost(loop: int, writer: Writer) -> None:
    writer.order([each for each in writer.loops if each != loop] + [loop])


def _blocked(nest: Nest, loops: Sequence[int], size: int, writer: Writer) -> None:
    inner = [writer.split(each, _divisor(nest.loops[each].extent, size)) for each in loops]
    writer.order([each for each in writer.loops if each not in inner] + inner[::-1])


def _vectorized(nest: Nest, machine: Machine) -> Iterator[Act]:
    lane = None if nest.calls else _number(nest, nest.lanes)
    if lane is not None:
        width = _lanes(nest, machine)
        for size in dict.fromkeys(_divisor(nest.loops[lane].extent, n * width) for n in (1, 2)):
            yield partial(_vector, lane, size)


def _vector(lane: int, width: int, writer: Writer) -> None:
    inner = writer.split(lane, width)
    writer.do("vectorize", loop=writer.at(inner))


def _side_by_side(nest: Nest, machine: Machine) -> Iterable[Act]:
    reduces = nest.lanes is not None and nest.lanes.reduces
    return _tiled(nest, machine) if reduces else _vectorized(nest, machine)


def _smaller(nest: Nest, machine: Machine) -> Iterator[Act]:
    """Unroll fewer steps at a time."""
    loop = next(each for each in nest.moving if each.kind == "unrolled")
    for parts in (2, 4):
        if loop.extent % parts == 0:
            yield partial(_halved, nest, nest.loops.index(loop), loop.extent // parts)


def _halved(nest: Nest, loop: int, size: int, writer: Writer) -> None:
    inner = writer.split(loop, size)
    first = next((n for n, each in enumerate(nest.loops) if each.reduces), loop)
    outer = writer.loops[: writer.loops.index(first)]
    writer.order([*outer, loop, *(each for each in writer.loops if each not in (*outer, loop))])
    writer.do("unroll", loop=writer.at(inner))


def _in_cache(nest: Nest, machine: Machine) -> Iterator[Act]:
    """Go through a part of the innermost loops first, which stays in a cache."""
    serial = [each for each in nest.moving if each.kind == "serial"]
    for loop in serial[1:]:
        number = nest.loops.index(loop)
        for size in _TILES:
            if size < loop.extent and loop.extent % size == 0:
                yield partial(_part, number, size)
    yield from _tiled(nest, machine)


def _part(loop: int, size: int, writer: Writer) -> None:
    writer.split(loop, size)
    writer.order([loop, *(each for each in writer.loops if each != loop)])


def _shared(nest: Nest, machine: Machine) -> Iterator[Act]:
    """Run the outermost loops in parallel."""
    outer: list[int] = []
    for number, loop in enumerate(nest.loops):
        if loop.reduces or loop.kind != "serial":
            break
        outer.append(number)
        if math.prod(nest.loops[each].extent for each in outer) >= 4 * machine.threads:
            break
    if outer:
        yield partial(_parallel, outer)


def _parallel(outer: Sequence[int], writer: Writer) -> None:
    if len(outer) > 1:
        writer.do("fuse", loops=tuple(writer.at(each) for each in outer))
    writer.do("parallel", loop=writer.at(0))


_CURES: Mapping[str, Callable[[Nest, Machine], Iterable[Act]]] = {
    "serial-reduction": _tiled,
    "strided": _adjacent,
    "no-vectors": _vectorized,
    "beyond-cache": _in_cache,
    "llvm-scalar": _side_by_side,
    "spills": _smaller,
    "one-thread": _shared,
}
"""The cures by codes of warnings; others take back a step before, such as `compute_at`."""

"""Reasons why a scheduled function is slow, each with its figure and the primitives that cure it.

A rule reads the loop nests alone, without building anything, so that an answer takes milliseconds.
Nests with a small share of the predicted time are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import msgspec
import tvm
from tvm import tirx

from lowerscope.core.ir.tensorir import collected
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.schedule import At, Primitive
from lowerscope.core.model.schedule_records import Advice, Spills
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.nests import LINE, Access, Caches, Loop, Nest, nests_of
from lowerscope.core.schedule.price import Rates, cycles, predicted_ms
from lowerscope.core.schedule.references import block_occurrences, function_of, loops_around, places
from lowerscope.core.schedule.rules.recorder import STACK, WORTH_THREADS, Machine, ScheduleRecorder
from lowerscope.core.schedule.step_errors import StepFailed

# --- Primitives that cure the coach's warnings, to be applied as one change ---
# A cure is written for the nest of its warning, in several variants where sizes are to be chosen.
# The one with the shortest predicted time is kept, unless nothing becomes faster by it.

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
                    cure=_in_steps(steps),
                    primitive=primitive,
                    steps=steps,
                    predicted_ms=best,
                )
        found.append(each)
    return tuple(found)


def _in_steps(steps: Sequence[Primitive]) -> str:
    """Return the words for a cure, with all primitives of one that takes several."""
    cure, names = str(steps[0].comment), dict.fromkeys(each.name for each in steps)
    if len(names) == 1:
        return cure
    return _(
        "{cure} ({count} steps: {names})",
        cure=cure,
        count=len(steps),
        names=_(", ").join(names),
    )


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


# --- The reasons, by the loop nests and by the compiled code ---


_SHARE = 0.05
"""Least share of a function's cycles that a nest must have for a warning."""

_CYCLES = 1 << 13
"""Least number of cycles of such a nest: some 3 microseconds."""

_STARTED = 1 << 15
"""Cycles that threads must save: some 10 microseconds, twice the time to start them."""

_CHAIN = 8
"""Number of sums, one after the other, from which their latency matters."""

_REORDERS = "cannot prove it is safe to reorder floating-point operations"
"""LLVM's reason for loops that sum floating-point numbers, which it does not write for TVM."""

_SPILLED = 0.15
"""Share of the instructions of a loop from which moves of registers matter."""

_BYTES_PER_OPERATION = 0.5
"""Bytes from beyond the second cache for each operation above which a loop waits for memory."""


Rule = Callable[[Nest, Machine, Caches], "Advice | None"]


def advice(function: tirx.PrimFunc, machine: Machine, caches: Caches) -> tuple[Advice, ...]:
    """Return the warnings on a function, those on the slowest nest first.

    They are none where an extent is symbolic.
    """
    nests = nests_of(function)
    if not nests:
        return ()
    found = []
    for nest in _large(nests, machine):
        found += [each for rule in _RULES if (each := rule(nest, machine, caches)) is not None]
    found += _allocations(function, nests)
    return tuple(found)


def _large(nests: Sequence[Nest], machine: Machine) -> list[Nest]:
    """Return the nests that are worth a warning, the slowest first.

    By cycles, as sums wait for each other where other operations do not.
    """
    taken = {each: cycles(each, machine) for each in nests}
    least = max(_CYCLES, _SHARE * sum(taken.values()))
    return sorted((each for each in nests if taken[each] >= least), key=lambda each: -taken[each])


def _advice(
    code: str, nest: Nest, text: str, cure: str, primitive: str, loop: Loop | None = None
) -> Advice:
    place = nest.place if loop is None else loop.place
    return Advice(
        code=code, block=nest.block, place=place - 1, text=text, cure=cure, primitive=primitive
    )


def _serial_reduction(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Reduction in the innermost serial loop: each step waits for the one before."""
    del machine, caches
    innermost = nest.moving[-1] if nest.moving else None
    if innermost is None or not innermost.reduces or innermost.kind == "vectorized":
        return None
    chain = takewhile(lambda each: each.reduces, reversed(nest.moving))
    if math.prod(each.extent for each in chain) < _CHAIN:
        return None
    if any(each.kind == "vectorized" for each in nest.moving):
        return None
    spatial = _along_output(nest)
    text = _(
        "each of the {extent} steps of {loop} waits for the sum of the step before, some 4 cycles, "
        "and no vector is filled",
        extent=innermost.extent,
        loop=innermost.name,
    )
    cure = (
        _("reorder: put {loop} innermost, then vectorize it", loop=spatial.name)
        if spatial is not None
        else factored_text(innermost)
    )
    primitive = "reorder" if spatial is not None else "rfactor"
    return _advice("serial-reduction", nest, text, cure, primitive, innermost)


def _along_output(nest: Nest) -> Loop | None:
    """Return the loop along which outputs are adjacent."""
    written = next((each for each in nest.accesses if each.writes), None)
    if written is None:
        return None
    loops = (each for each in reversed(nest.moving) if not each.reduces)
    return next((each for each in loops if nest.step(written, each) == 1), None)


def _strided(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Innermost access that jumps from cache line to cache line."""
    del machine
    lanes = nest.lanes
    if lanes is None:
        return None
    worst = max(
        (
            each
            for each in nest.accesses
            if each.scope == "global" and each.touched(nest.loops) > caches.first
        ),
        key=lambda each: abs(nest.step(each, lanes)),
        default=None,
    )
    step = 0 if worst is None else abs(nest.step(worst, lanes))
    if worst is None or step * worst.size < LINE // 2:
        return None
    better = _unit_loop(nest, worst)
    if better is not None and worst.touched(nest.inside(better)) <= caches.first // 2:
        # The rest of each cache line is used before it is evicted.
        return None
    text = _(
        "{loop} goes through {buffer} in steps of {step}: of each cache line of {line} bytes, it "
        "uses {size}",
        loop=lanes.name,
        buffer=worst.buffer,
        step=bytes_text(step * worst.size),
        line=LINE,
        size=worst.size,
    )
    cure = (
        _("reorder: put {loop}, along which it is adjacent, innermost", loop=better.name)
        if better is not None and better is not lanes
        else _("cache_read {buffer} in the order in which it is read", buffer=worst.buffer)
    )
    primitive = "reorder" if better is not None and better is not lanes else "cache_read"
    return _advice("strided", nest, text, cure, primitive, lanes)


def _unit_loop(nest: Nest, access: Access) -> Loop | None:
    return next((each for each in reversed(nest.moving) if nest.step(access, each) == 1), None)


def _no_vectors(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Loop that is not vectorized, and that LLVM does not vectorize by itself."""
    del caches
    lanes = nest.lanes
    if lanes is None or lanes.kind == "vectorized" or lanes.reduces:
        return None
    size = max((each.size for each in nest.accesses if each.writes), default=4)
    width = machine.vector_bytes // size
    apart = [each for each in nest.accesses if nest.step(each, lanes) not in (0, 1)]
    if nest.calls:
        why = _("LLVM has no vector form of {names}", names=_(", ").join(nest.calls))
    elif nest.guard is not None:
        why = _("its block has a condition")
    elif apart:
        why = _("{buffer} is not adjacent along it", buffer=apart[0].buffer)
    elif any(each.kind == "unrolled" for each in nest.inside(lanes)):
        why = _("its body is unrolled")
    else:
        # Plain and adjacent: LLVM vectorizes it.
        return None
    text = _(
        "{loop} computes one value at a time, and a vector register holds {width}: {why}",
        loop=lanes.name,
        width=width,
        why=why,
    )
    cure = (
        _("add the pass VectorMath, then vectorize {loop}", loop=lanes.name)
        if nest.calls
        else _("split {loop} by {width} and vectorize the inner loop", loop=lanes.name, width=width)
    )
    return _advice("no-vectors", nest, text, cure, "vectorize", lanes)


def _tail(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Guarded steps of a loop whose extent is not divisible."""
    del machine, caches
    if nest.guard is None or nest.steps <= nest.domain:
        return None
    idle = 1 - nest.domain / nest.steps
    named = [each for each in nest.loops if _occurs(nest.guard, each.variable)]
    in_vectors = any(each.kind == "vectorized" for each in named)
    if not named or idle < (0.01 if in_vectors else 0.1):
        return None
    text = _(
        "{share:.0%} of the steps of {loop} do nothing, and each step tests for that",
        share=idle,
        loop=named[-1].name,
    )
    cure = _("split by factors of the extent, or pad the buffer, so that no step is wasted")
    return _advice("scalar-tail", nest, text, cure, "split", named[-1])


def _occurs(expression: Any, variable: Any) -> bool:
    return any(each.same_as(variable) for each in collected(expression, tirx.Var))


def _recomputed(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Block that is computed more often than it has elements."""
    del machine, caches
    times = nest.steps / max(1, nest.domain)
    if nest.guard is not None or times < 1.3:
        return None
    text = _(
        "each value of {block} is computed {times:.1f} times on average",
        block=nest.block,
        times=times,
    )
    cure = _("compute_at an outer loop, where each value is computed once")
    return _advice("recomputed", nest, text, cure, "compute_at")


def _beyond_cache(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Data that is used again after more than a cache of other data."""
    del machine
    worst: tuple[float, Loop, Access, int] | None = None
    for loop in nest.moving:
        inner = nest.inside(loop)
        between = sum(each.touched(inner) for each in nest.accesses)
        if between <= caches.second:
            continue
        outer = math.prod(each.extent for each in nest.loops[: nest.loops.index(loop) + 1])
        for access in nest.accesses:
            if nest.step(access, loop) == 0 and access.touched(inner) > caches.first:
                traffic = outer * access.touched(inner) / nest.work
                if worst is None or traffic > worst[0]:
                    worst = traffic, loop, access, between
    if worst is None or worst[0] < _BYTES_PER_OPERATION:
        return None
    _traffic, loop, access, between = worst
    text = _(
        "between two uses of {buffer}, in steps of {loop}, {between} are read; the cache of a "
        "processor holds {cache}",
        buffer=access.buffer,
        loop=loop.name,
        between=bytes_text(between),
        cache=bytes_text(caches.second),
    )
    cure = _(
        "split the loops inside {loop} and reorder: a tile that fits the cache", loop=loop.name
    )
    return _advice("beyond-cache", nest, text, cure, "split", loop)


def _threads(nest: Nest, machine: Machine, caches: Caches) -> Advice | None:
    """Too little, too fine or uneven parallel work."""
    del caches
    if machine.threads < 2:
        return None
    shared = next((each for each in nest.loops if each.kind == "parallel"), None)
    if shared is None:
        outer = next((each for each in nest.moving if not each.reduces), None)
        saved = cycles(nest, machine) * (1 - 1 / machine.threads)
        if saved < _STARTED or outer is None:
            return None
        text = _(
            "its {steps:,} steps run on one of {threads} threads",
            steps=nest.steps,
            threads=machine.threads,
        )
        return _advice(
            "one-thread", nest, text, _("parallel: {loop}", loop=outer.name), "parallel", outer
        )
    starts = math.prod(each.extent for each in nest.loops[: nest.loops.index(shared)])
    inside = nest.steps // max(1, starts)
    if starts > 1 and inside < WORTH_THREADS:
        text = _n(
            "the threads are started {starts:,} times, for {count:,} step each",
            "the threads are started {starts:,} times, for {count:,} steps each",
            inside,
            starts=starts,
        )
        cure = _("parallel: an outer loop instead of {loop}", loop=shared.name)
        return _advice("fine-threads", nest, text, cure, "parallel", shared)
    rounds = -(-shared.extent // machine.threads)
    idle = 1 - shared.extent / (rounds * machine.threads)
    if idle >= 0.2:
        text = _n(
            "{loop} has {count} part for {threads} threads: they are idle {idle:.0%} of the time",
            "{loop} has {count} parts for {threads} threads: they are idle {idle:.0%} of the time",
            shared.extent,
            loop=shared.name,
            threads=machine.threads,
            idle=idle,
        )
        cure = _("fuse it with the loop inside it before parallel")
        return _advice("uneven-threads", nest, text, cure, "fuse", shared)
    return _false_sharing(nest, shared, rounds)


def _false_sharing(nest: Nest, shared: Loop, rounds: int) -> Advice | None:
    inner = nest.inside(shared)
    for access in nest.accesses:
        own = rounds * abs(nest.step(access, shared)) * access.size
        again = math.prod(each.extent for each in inner if nest.step(access, each))
        if access.writes and access.scope == "global" and 0 < own < LINE and again > 1:
            text = _(
                "threads write to the same cache lines of {buffer}: the part of each is {own} of "
                "{line} bytes wide",
                buffer=access.buffer,
                own=own,
                line=LINE,
            )
            cure = _("parallel: a loop along which the output is not adjacent")
            return _advice("false-sharing", nest, text, cure, "parallel", shared)
    return None


_RULES: tuple[Rule, ...] = (
    _recomputed,
    _serial_reduction,
    _strided,
    _no_vectors,
    _beyond_cache,
    _tail,
    _threads,
)


def compiled_advice(
    function: tirx.PrimFunc, machine: Machine, reasons: Mapping[int, str], spills: Spills | None
) -> tuple[Advice, ...]:
    """Return the warnings on a function that its machine code gives.

    Args:
        reasons: Why LLVM does not vectorize loops, by their numbers in the script.
        spills: Of the function's code.
    """
    large = _large(nests_of(function) or (), machine)
    loops = [place for place, each in enumerate(places(function)) if not each.is_block]
    found = []
    for nest in large:
        lanes = nest.lanes
        if lanes is None or any(each.kind == "vectorized" for each in nest.moving):
            continue
        reason = reasons.get(loops.index(lanes.place))
        if reason == "" and lanes.reduces:
            reason = _REORDERS
        if reason:
            found.append(_scalar(nest, lanes, machine, reason))
    tiled = [each for each in large if any(loop.kind == "unrolled" for loop in each.moving)]
    moved = 0 if spills is None else spills.stored + spills.loaded
    if spills is not None and tiled and moved >= _SPILLED * spills.instructions:
        found.append(_spilled(tiled[0], machine, spills))
    return tuple(found)


def _scalar(nest: Nest, loop: Loop, machine: Machine, reason: str) -> Advice:
    size = max((each.size for each in nest.accesses if each.writes), default=4)
    text = _(
        "LLVM computes one value at a time in {loop}, where a vector register holds {width}: "
        "{reason}",
        loop=loop.name,
        width=machine.vector_bytes // size,
        reason=reason,
    )
    cure = (
        _("split, reorder and vectorize, so that sums stand side by side")
        if loop.reduces
        else _("vectorize {loop}", loop=loop.name)
    )
    primitive = "reorder" if loop.reduces else "vectorize"
    return _advice("llvm-scalar", nest, text, cure, primitive, loop)


def _spilled(nest: Nest, machine: Machine, spills: Spills) -> Advice:
    text = _(
        "the innermost loop of its code stores vector registers {stored} times and loads them "
        "{loaded} times, of {count} instructions: more values than the {registers} registers hold",
        stored=spills.stored,
        loaded=spills.loaded,
        count=spills.instructions,
        registers=machine.registers,
    )
    loop = next(each for each in nest.moving if each.kind == "unrolled")
    cure = _("unroll fewer steps of {loop}", loop=loop.name)
    return _advice("spills", nest, text, cure, "split", loop)


def _allocations(function: tirx.PrimFunc, nests: Sequence[Nest]) -> Iterator[Advice]:
    """Yield warnings on buffers that are allocated in a hot loop."""
    blocks = [each.stmt for each in places(function) if each.is_block]
    local = {
        str(buffer.name): buffer
        for block in blocks
        for buffer in block.alloc_buffers
        if (str(buffer.scope()) or "global") == "global"
    }
    for name in local:
        users = [nest for nest in nests if any(each.buffer == name for each in nest.accesses)]
        if len(users) < 2:
            continue
        shared = 0
        chains = [nest.loops for nest in users]
        while all(len(chain) > shared for chain in chains) and all(
            chain[shared].variable.same_as(chains[0][shared].variable) for chain in chains
        ):
            shared += 1
        times = math.prod(each.extent for each in chains[0][:shared])
        writer = next(
            (n for n in users if any(a.buffer == name and a.writes for a in n.accesses)), None
        )
        if (
            shared == 0
            or writer is None
            or any(each.kind == "parallel" for each in chains[0][shared - 1 : shared])
        ):
            continue
        access = next(each for each in writer.accesses if each.buffer == name and each.writes)
        size = access.touched(writer.loops[shared:])
        inside = writer.steps // max(1, times)
        if times >= 64 and size > STACK and inside < WORTH_THREADS:
            loop = chains[0][shared - 1]
            text = _(
                "{buffer}, {size}, is allocated {times:,} times: in each step of {loop}",
                buffer=name,
                size=bytes_text(size),
                times=times,
                loop=loop.name,
            )
            cure = _(
                "compute_at an outer loop, or make the tile smaller than {most}",
                most=bytes_text(STACK),
            )
            yield _advice("allocation", writer, text, cure, "compute_at", loop)

"""Reasons why a scheduled function is slow, each with its figure and the primitive that cures it.

A rule reads the loop nests alone, without building anything, so that an answer takes milliseconds.
Nests with a small share of the predicted time are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from tvm import tirx

from lowerscope.core.ir.tensorir import collected
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.schedule_records import Advice, Spills
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.cures import factored_text
from lowerscope.core.schedule.nests import LINE, Access, Caches, Loop, Nest, nests_of
from lowerscope.core.schedule.price import cycles
from lowerscope.core.schedule.references import places
from lowerscope.core.schedule.rules.recorder import STACK, WORTH_THREADS, Machine

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

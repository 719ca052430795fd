"""Predicted time of a scheduled function, from a cost model of this machine.

A function is the sum of its loop nests. A nest takes as long as its instructions, or as its data
need to arrive from each level of the caches, whichever is longer:

- The *body* is what runs without a jump: the steps of unrolled and vectorized loops, and of short
  loops, which LLVM unrolls. It costs its arithmetic, and its loads and stores, a vector at a time
  where they are adjacent along the loop of the vector. What does not change along the loop around
  the body stays in registers while there are enough; sums that do wait for each other.
- Data that are used again come from the first level that holds all that is touched in between.
- Threads divide the time of a parallel loop, and take some microseconds to start.

The peaks that the roofline is drawn with give the clock and the bandwidths. The order of the
predictions matters, and not their values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import tvm
from tvm import tirx

from lowerscope.core.model.schedule_records import Peaks
from lowerscope.core.schedule.nests import CALLS, LINE, Access, Loop, Nest, caches_here, nests_of
from lowerscope.core.schedule.rules.recorder import COSTLY, Machine, machine_of

_PORTS, _LOADS, _STORES = 2.5, 2.0, 1.0
"""Operations, loads and stores in a cycle."""

_BESIDE = 0.15
"""Share of the faster of them, arithmetic or memory, that the slower does not hide."""

_LATENCY, _FORWARD = 4.0, 10.0
"""Cycles from a sum to the next: in a register, and through memory."""

_GUARD, _JUMP = 2.0, 1.0
"""Cycles of a condition, and of a step of a loop."""

_SHORT = 300
"""Instructions of all steps of a loop up to which LLVM unrolls it."""

_WINDOW = 256
"""Instructions that a processor has in flight: shorter sums overlap with the next ones."""

_START, _ONCE = 4e3, 500.0
"""Nanoseconds to start threads and wait for them, and to call a function."""

_WAYS = 8
"""Lines of a cache that share a set."""


@dataclass(frozen=True)
class Rates:
    """A processor with its rates.

    `levels`: bytes of each cache, and bytes per nanosecond that come from behind it to one thread.
    """

    machine: Machine
    gigahertz: float
    levels: tuple[tuple[int, float], ...]


def rates_here(target: tvm.target.Target, peaks: Peaks | None) -> Rates:
    """Return the rates of this machine, from its measured peaks; usual ones without them."""
    machine, caches = machine_of(target), caches_here()
    gigahertz, near, far, last = 3.0, 90.0, 10.0, 16 << 20
    if peaks is not None and peaks.cache_bytes:
        gigahertz = peaks.gflops / (peaks.threads * machine.vector_bytes)
        near = peaks.cache_gbytes_per_second / peaks.threads
        far, last = peaks.gbytes_per_second / peaks.threads, peaks.cache_bytes
    between = math.sqrt(near * far)
    levels = (caches.first, near), (caches.second, between), (last, far)
    return Rates(machine, gigahertz, levels)


def predicted_ms(function: tirx.PrimFunc, rates: Rates) -> float | None:
    """Return the predicted time of a call, in milliseconds; ``None`` where extents are symbolic."""
    nests = nests_of(function)
    if nests is None:
        return None
    starts = {}
    total = _ONCE
    for nest in nests:
        time = max(cycles(nest, rates.machine) / rates.gigahertz, _waiting(nest, rates))
        shared = next((each for each in nest.loops if each.kind == "parallel"), None)
        if shared is not None:
            rounds = -(-shared.extent // rates.machine.threads)
            time *= rounds / max(1, shared.extent)
            # Once for all nests in the loop.
            outer = nest.loops[: nest.loops.index(shared)]
            starts[shared.place] = _START * math.prod(each.extent for each in outer)
        total += time
    return (total + sum(starts.values())) / 1e6


# --- Instructions ---


@dataclass(frozen=True)
class _Body:
    """The steps of a nest that run without a jump, with the loops around it.

    `lanes`: the loop of the vector, and how many of its steps one instruction makes.
    """

    nest: Nest
    rolled: tuple[Loop, ...]
    flat: tuple[Loop, ...]
    lanes: Loop | None
    width: int

    def instructions(self, access: Access) -> float:
        """Return the number of loads or stores of an access."""
        found = 1.0
        for loop in self.flat:
            step = abs(self.nest.step(access, loop))
            if loop is not self.lanes:
                found *= loop.extent if step else 1
            elif step == 1:
                found *= math.ceil(loop.extent / self.width)
            elif step:
                found *= 2 * loop.extent
        if self.lanes in self.rolled:
            found *= max(1, abs(self.nest.step(access, self.lanes)))
        return found

    @property
    def vectors(self) -> float:
        """Number of times that an operation of the block stands in the body."""
        found = 1.0
        for loop in self.flat:
            found *= math.ceil(loop.extent / (self.width if loop is self.lanes else 1))
        return found

    @property
    def runs(self) -> float:
        """Number of times that the body runs."""
        found = float(math.prod(each.extent for each in self.rolled))
        return found / self.width if self.lanes in self.rolled else found


def _body(nest: Nest, machine: Machine) -> _Body:
    flat = [each for each in nest.moving if each.kind in ("vectorized", "unrolled")]
    rolled = [each for each in nest.moving if each not in flat]
    lanes = next((each for each in flat if each.kind == "vectorized"), None)
    fits = max(1, machine.vector_bytes // max((each.size for each in nest.accesses), default=4))
    unrolled = math.prod(each.extent for each in flat if each.kind == "unrolled")
    size = unrolled * (nest.operations + len(nest.accesses) + 1)
    while len(rolled) > 1 and rolled[-1].kind == "serial":
        loop = rolled[-1]
        # Of the steps that LLVM unrolls, it makes whole vectors only.
        becomes_vectors = (
            lanes is None and loop.extent % fits == 0 and _is_vectorized_by_llvm(nest, loop)
        )
        size *= loop.extent // fits if becomes_vectors else loop.extent
        if size > _SHORT:
            break
        lanes = loop if becomes_vectors else lanes
        flat.append(rolled.pop())
    if lanes is None and rolled and _is_vectorized_by_llvm(nest, rolled[-1]):
        lanes = rolled[-1]
    width = 1 if lanes is None else min(lanes.extent, fits)
    return _Body(nest, tuple(rolled), tuple(flat), lanes, width)


def _is_vectorized_by_llvm(nest: Nest, loop: Loop) -> bool:
    """Return whether LLVM vectorizes a loop that the schedule does not."""
    plain = all(
        nest.step(each, loop) in ((0, 1) if each.writes else range(-1, 5)) for each in nest.accesses
    )
    return plain and not (loop.reduces or nest.calls or nest.guard is not None)


def cycles(nest: Nest, machine: Machine) -> float:
    """Return the cycles of the instructions of a nest, on one thread."""
    body = _body(nest, machine)
    steps = math.prod(each.extent for each in body.flat)
    scalars = steps * (body.width if body.lanes in body.rolled else 1)
    arithmetic = body.vectors * max(1, nest.operations - COSTLY * len(nest.calls)) / _PORTS
    arithmetic += scalars * sum(CALLS[each] for each in nest.calls)
    if nest.guard is not None:
        arithmetic += _GUARD * (steps if body.lanes is None else body.vectors)
    inner = body.rolled[-1] if body.rolled else None
    total = 0.0
    written = next((each for each in nest.accesses if each.writes), None)
    sums = 0.0 if written is None else body.instructions(written)
    reducing = any(each.reduces for each in nest.moving)
    # Over several loops, LLVM leaves a sum in its buffer, unless that is on the stack.
    deep = sum(each.reduces for each in body.rolled) > 1
    spilled = sums > machine.registers - 2 or (nest.starts and deep)
    stored = spilled or (deep and written is not None and written.scope == "global")
    ports = {"load": 0.0, "store": 0.0}
    for access in nest.accesses:
        count = body.instructions(access)
        fits = not spilled if access.writes else count <= machine.registers / 2
        times = 1.0
        for loop in reversed(body.rolled):
            if not fits or nest.step(access, loop):
                break
            times /= loop.extent
        if access.writes:
            ports["store"] += count * times / _STORES
        if not access.writes or reducing:
            ports["load"] += count * times / _LOADS
    moved = ports["load"] + ports["store"]
    once = max(arithmetic, moved) + _BESIDE * min(arithmetic, moved)
    if inner is None or inner.reduces:
        apart = math.prod(each.extent for each in body.flat if each.reduces)
        chain = apart * math.prod(
            each.extent for each in takewhile(lambda each: each.reduces, reversed(body.rolled))
        )
        latency = _FORWARD if stored else _LATENCY / max(1, _WINDOW / (2 * chain))
        once = max(once, apart * latency if reducing else 0.0)
    if nest.starts and any(each.reduces for each in body.rolled):
        once += _JUMP / 2
    total = body.runs * (once + (_JUMP if body.rolled else 0.0))
    outer = 1
    for loop in body.rolled[:-1]:
        outer *= loop.extent
        total += 2 * _JUMP * outer
    return total


# --- Data ---


def _waiting(nest: Nest, rates: Rates) -> float:
    return max(_traffic(nest, size) / speed for size, speed in rates.levels)


def _traffic(nest: Nest, size: int) -> float:
    """Return the bytes that come from behind a cache of a size."""
    loops = nest.loops
    fits = next(
        place
        for place in range(len(loops) + 1)
        if place == len(loops) or _held(nest, loops[place:], size) <= size
    )
    if fits == 0:
        return 0.0
    total = 0.0
    for access in nest.accesses:
        times = access.touched(loops[fits:])
        for place, loop in enumerate(loops[:fits]):
            # The loop around what fits keeps what does not change along it.
            if access.strides[place] or place < fits - 1:
                times *= loop.extent
        total += times * (2 if access.writes else 1)
    return total


def _held(nest: Nest, loops: Sequence[Loop], size: int) -> float:
    """Return the bytes of a cache that the data of inner loops take up."""
    return sum(_spread(nest, each, loops, size) * each.touched(loops) for each in nest.accesses)


def _spread(nest: Nest, access: Access, loops: Sequence[Loop], size: int) -> float:
    """Return how much more of a cache some data take up for falling into few of its sets."""
    steps = [abs(nest.step(access, each)) for each in loops if each.extent > 1]
    apart = min((each for each in steps if each), default=0) * access.size
    return max(1, math.gcd(apart, size // _WAYS) // LINE) if apart >= LINE else 1.0

"""Reasons why a scheduled function is slow, each with its figure and the primitive that cures it.

The function is read as loop nests: the leaf blocks with the loops around them, and for each access
to a buffer its stride along each loop, in elements. A rule reads the nests alone, without building
anything, so that an answer takes milliseconds. Nests with a small share of the work are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from lowerscope.core.ir.tensorir import ARITHMETIC, collected, known, loads_in, operator_name
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.schedule_records import Advice
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.loop_primitives import LAYOUT_REWRITE
from lowerscope.core.schedule.references import Place, places
from lowerscope.core.schedule.rules.recorder import (
    REDUCTION,
    WORTH_THREADS,
    Machine,
    bytes_of,
    operations,
)

LINE = 64
"""Bytes of a cache line."""

STACK = 1024
"""Bytes up to which TVM allocates a buffer on the stack (``kMaxStackAlloca``)."""

_SHARE = 0.05
"""Least share of a function's work that a nest must have for a warning."""

_WORK = 1 << 15
"""Least number of operations of such a nest: some 10 microseconds."""

_CHAIN = 8
"""Number of sums, one after the other, from which their latency matters."""

_BYTES_PER_OPERATION = 0.5
"""Bytes from beyond the second cache for each operation above which a loop waits for memory."""


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around a block.

    `kind`: ``"serial"``, ``"parallel"``, ``"vectorized"`` or ``"unrolled"``.
    `reduces`: whether an axis of a reduction depends on it.
    `place`: its index among the loops and blocks of the function.
    """

    name: str
    variable: Any
    extent: int
    kind: str
    reduces: bool
    place: int


@dataclass(frozen=True)
class Access:
    """An access to a buffer in a block.

    `strides`: by loop, from the outermost: the step along it, in elements.
    `size`: bytes of an element; `whole`: of the buffer.
    """

    buffer: str
    writes: bool
    scope: str
    strides: tuple[int, ...]
    size: int
    whole: int

    def touched(self, loops: Sequence[Loop]) -> int:
        """Return the bytes of the cache lines that it touches in all steps of the inner `loops`."""
        steps = self.strides[len(self.strides) - len(loops) :]
        moving = [(abs(step), each.extent) for step, each in zip(steps, loops, strict=True) if step]
        if not moving:
            return min(LINE, self.whole)
        elements = math.prod(extent for _step, extent in moving)
        span = 1 + sum(step * (extent - 1) for step, extent in moving)
        apart = min(step for step, _extent in moving) * self.size
        return min(elements * min(max(apart, self.size), LINE), span * self.size, self.whole)


@dataclass(frozen=True, eq=False)
class Nest:
    """A leaf block, the loops around it from the outermost, and its accesses.

    `operations`: estimated number in one step.
    `domain`: number of the different steps: the product of the extents of its axes.
    `guard`: the condition of the block, if it has one.
    `calls`: names of the functions that it calls, such as ``exp``.
    """

    block: str
    place: int
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: int
    domain: int
    guard: Any
    calls: tuple[str, ...]

    @cached_property
    def steps(self) -> int:
        """Number of its steps."""
        return math.prod(each.extent for each in self.loops)

    @property
    def work(self) -> int:
        """Estimated number of its operations."""
        return self.steps * max(1, self.operations)

    @cached_property
    def moving(self) -> tuple[Loop, ...]:
        """Loops of more than one step."""
        return tuple(each for each in self.loops if each.extent > 1)

    @cached_property
    def lanes(self) -> Loop | None:
        """The loop whose steps may be the lanes of a vector: vectorized, or the innermost one."""
        vectors = [each for each in self.moving if each.kind == "vectorized"]
        rolled = [each for each in self.moving if each.kind != "unrolled"]
        return next(iter((*vectors, *reversed(rolled), *reversed(self.moving))), None)

    def step(self, access: Access, loop: Loop) -> int:
        """Return the step of an access along a loop, in elements."""
        return access.strides[self.loops.index(loop)]

    def inside(self, loop: Loop) -> tuple[Loop, ...]:
        """Return the loops inside of one."""
        return self.loops[self.loops.index(loop) + 1 :]


def nests_of(function: tirx.PrimFunc) -> tuple[Nest, ...] | None:
    """Return the loop nests of a function; ``None`` where an extent or index is symbolic."""
    found = places(function)
    around: set[int] = set()  # of other blocks
    for place in found:
        parent = place.parent if place.is_block else -1
        while parent >= 0 and parent not in around:
            around.add(parent)
            parent = found[parent].parent
    nests = []
    for number, place in enumerate(found):
        # What repacks constants runs once, when the model is built.
        is_leaf = place.is_block and number not in around
        if is_leaf and place.stmt.iter_vars and LAYOUT_REWRITE not in place.stmt.annotations:
            nest = _nest(found, number)
            if nest is None:
                return None
            nests.append(nest)
    return tuple(nests)


_KINDS = {0: "serial", 1: "parallel", 2: "vectorized", 3: "unrolled"}


def _nest(found: Sequence[Place], number: int) -> Nest | None:
    chain = []
    at = number
    while at >= 0:
        chain.append(at)
        at = found[at].parent
    block = found[number]
    values: dict[Any, Any] = {}
    for each in reversed(chain):
        place = found[each]
        if place.is_block:
            for axis, value in zip(place.stmt.iter_vars, place.realize.iter_values, strict=True):
                values[axis.var] = value
    loops = [(found[each].stmt, each) for each in reversed(chain) if not found[each].is_block]
    extents = [known(stmt.extent) for stmt, _place in loops]
    axes = [known(axis.dom.extent) for axis in block.stmt.iter_vars]
    if None in extents or None in axes:
        return None
    reducing = [
        value
        for axis, value in zip(block.stmt.iter_vars, block.realize.iter_values, strict=True)
        if int(axis.iter_type) == REDUCTION
    ]
    variables = [stmt.loop_var for stmt, _place in loops]
    made = tuple(
        Loop(
            name=str(stmt.loop_var.name),
            variable=stmt.loop_var,
            extent=int(extent or 0),
            kind=_KINDS.get(int(stmt.kind), "serial"),
            reduces=any(_moves(value, stmt.loop_var, values) for value in reducing),
            place=place,
        )
        for (stmt, place), extent in zip(loops, extents, strict=True)
    )
    accesses = tuple(_accesses(block.stmt.body, variables, values))
    guard = block.realize.predicate
    return Nest(
        block=block.name,
        place=number,
        loops=made,
        accesses=accesses,
        operations=operations(block.stmt.body),
        domain=math.prod(int(each or 0) for each in axes),
        guard=None if known(guard) == 1 or isinstance(guard, tirx.IntImm) else guard,
        calls=tuple(sorted(_calls(block.stmt.body))),
    )


def _calls(body: Any) -> set[str]:
    return {
        name
        for each in collected(body, tvm.ir.Call)
        if (name := operator_name(each))
        in ("exp", "erf", "tanh", "log", "pow", "sigmoid", "sin", "cos")
    }


def _moves(value: Any, variable: Any, values: Mapping[Any, Any]) -> bool:
    return bool(_stride(value, variable, values))


def _stride(index: Any, variable: Any, values: Mapping[Any, Any]) -> int:
    """Return how far an index goes with the first step of a loop, with all others at 0."""
    one, other = (_at(index, variable, step, values) for step in (0, 1))
    return 0 if one is None or other is None else other - one


def _at(index: Any, variable: Any, step: int, values: Mapping[Any, Any]) -> int | None:
    """Return the value of an index; ``None`` if it depends on data."""
    if isinstance(index, tirx.IntImm):
        return int(index)
    if isinstance(index, tirx.Var):
        if index.same_as(variable):
            return step
        return _at(values[index], variable, step, values) if index in values else 0
    if isinstance(index, tirx.Cast):
        return _at(index.value, variable, step, values)
    act = ARITHMETIC.get(type(index))
    if act is None:
        return None
    a, b = (_at(each, variable, step, values) for each in (index.a, index.b))
    if a is None or b is None or (b == 0 and isinstance(index, (tirx.FloorDiv, tirx.FloorMod))):
        return None
    return int(act(a, b))


def _accesses(body: Any, variables: Sequence[Any], values: Mapping[Any, Any]) -> Iterator[Access]:
    seen = set()
    loads = [(each.source, each.indices, False) for each in loads_in(body)]
    stores = [(each.buffer, each.indices, True) for each in collected(body, tirx.BufferStore)]
    for buffer, indices, writes in (*stores, *loads):
        shape = [known(each) for each in buffer.shape]
        if None in shape:
            continue
        sizes = [int(each or 0) for each in shape]
        steps = []
        for variable in variables:
            flat = 0
            for index, extent in zip(indices, sizes, strict=True):
                flat = flat * extent + _stride(index, variable, values)
            steps.append(flat)
        size = bytes_of(str(buffer.dtype))
        access = Access(
            buffer=str(buffer.name),
            writes=writes,
            scope=str(buffer.scope()) or "global",
            strides=tuple(steps),
            size=size,
            whole=size * math.prod(sizes),
        )
        # A sum reads what it writes.
        key = (access.buffer, access.strides)
        if key not in seen:
            seen.add(key)
            yield access


# --- Rules ---


@dataclass(frozen=True)
class Caches:
    """Sizes of the first two data caches of one processor, in bytes."""

    first: int
    second: int


@cache
def caches_here() -> Caches:
    """Return the caches of this machine; usual ones where they are not known."""
    sizes = {1: 32 << 10, 2: 512 << 10}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        kind, level, size = (
            (folder / name).read_text().strip() for name in ("type", "level", "size")
        )
        if kind != "Instruction" and int(level) in sizes and size.endswith("K"):
            sizes[int(level)] = int(size[:-1]) << 10
    return Caches(sizes[1], sizes[2])


Rule = Callable[[Nest, Machine, Caches], "Advice | None"]


def advice(function: tirx.PrimFunc, machine: Machine, caches: Caches) -> tuple[Advice, ...]:
    """Return the warnings on a function, those on the largest share of its work first.

    They are none where an extent is symbolic.
    """
    nests = nests_of(function)
    if not nests:
        return ()
    total = sum(each.work for each in nests)
    found = []
    for nest in sorted(nests, key=lambda each: -each.work):
        if nest.work >= max(_WORK, _SHARE * total):
            found += [each for rule in _RULES if (each := rule(nest, machine, caches)) is not None]
    found += _allocations(function, nests)
    return tuple(found)


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
        else _(
            "split {loop} and rfactor it: the parts are summed side by side", loop=innermost.name
        )
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
        why = _("LLVM has no vector form of {names}", names=", ".join(nest.calls))
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
        vectors = math.prod(each.extent for each in nest.loops if each.kind == "vectorized")
        if nest.steps < 4 * WORTH_THREADS * vectors or outer is None:
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
        text = _(
            "the threads are started {starts:,} times, for {inside:,} steps each",
            starts=starts,
            inside=inside,
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

"""Loop nests of a function: leaf blocks, the loops around them, and strides of their accesses."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import tvm
from tvm import tirx

from lowerscope.core.ir.tensorir import ARITHMETIC, collected, known, loads_in, operator_name
from lowerscope.core.model.processors import cache_sizes
from lowerscope.core.schedule.loop_primitives import LAYOUT_REWRITE
from lowerscope.core.schedule.references import Place, places
from lowerscope.core.schedule.rules.recorder import REDUCTION, bytes_of, operations

LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True)
class Caches:
    """Sizes of the first two data caches of one processor, in bytes."""

    first: int
    second: int


def caches_here() -> Caches:
    """Return the caches of this machine; usual ones where they are not known."""
    sizes = cache_sizes()
    return Caches(sizes.get(1, 32 << 10), sizes.get(2, 512 << 10))


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
    `starts`: whether it sets its elements to a first value in the same loops.
    """

    block: str
    place: int
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: int
    domain: int
    guard: Any
    calls: tuple[str, ...]
    starts: bool = False

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
        is_leaf = place.is_block and number not in around
        if is_leaf and place.stmt.iter_vars and not _runs_once(place.stmt):
            nest = _nest(found, number)
            if nest is None:
                return None
            nests.append(nest)
    return tuple(nests)


def _runs_once(block: Any) -> bool:
    """Return whether a block repacks constants, when the model is built."""
    return LAYOUT_REWRITE in block.annotations and not _operations(block.body)


_KINDS = {0: "serial", 1: "parallel", 2: "vectorized", 3: "unrolled"}


_NESTS: OrderedDict[tuple[int, ...], tuple[list[Any], Nest | None]] = OrderedDict()
"""The nests read last, by the handles of the loops and blocks around them, with these."""

_NESTS_KEPT = 256


def _nest(found: Sequence[Place], number: int) -> Nest | None:
    """Return the nest of a block; ``None`` where an extent is symbolic.

    Most primitives change one nest, and leave the statements of the others as they are.
    """
    chain = []
    at = number
    while at >= 0:
        chain.append(at)
        at = found[at].parent
    around = [found[each].stmt for each in chain if each]
    key = tuple(each.__chandle__() for each in around)
    kept = _NESTS.pop(key, None) or (around, _read(found, chain))
    _NESTS[key] = kept
    while len(_NESTS) > _NESTS_KEPT:
        _NESTS.popitem(last=False)
    nest = kept[1]
    if nest is None or nest.place == number:
        return nest
    shift = number - nest.place
    loops = tuple(replace(each, place=each.place + shift) for each in nest.loops)
    return replace(nest, place=number, loops=loops)


def _read(found: Sequence[Place], chain: Sequence[int]) -> Nest | None:
    number = chain[0]
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
        operations=_operations(block.stmt.body),
        domain=math.prod(int(each or 0) for each in axes),
        guard=None if known(guard) == 1 or isinstance(guard, tirx.IntImm) else guard,
        calls=tuple(sorted(_calls(block.stmt.body))),
        starts=block.stmt.init is not None,
    )


def _operations(body: Any) -> int:
    """Return the estimated number of operations of a block, without those on indices."""
    stores = collected(body, tirx.BufferStore)
    indices = (index for each in stores for load in loads_in(each.value) for index in load.indices)
    found = sum(operations(each.value) for each in stores) - sum(map(operations, indices))
    cheap = (each for each in collected(body, tvm.ir.Call) if operator_name(each) in _CHEAP)
    return found - sum(operations(each) - 1 - sum(map(operations, each.args)) for each in cheap)


_CHEAP = ("sqrt", "fabs", "abs", "min_value", "max_value", "infinity", "round", "floor", "ceil")
"""Calls that are one instruction, or a constant."""

CALLS = {"exp": 7, "sin": 8, "cos": 8, "sigmoid": 8, "log": 9, "pow": 13, "tanh": 15, "erf": 21}
"""Cycles of calls of mathematical functions, as measured."""


def _calls(body: Any) -> set[str]:
    calls = map(operator_name, collected(body, tvm.ir.Call))
    return {name for name in calls if name in CALLS}


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

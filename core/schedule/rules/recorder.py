"""Recorder of the steps of rules, analysis of functions, and steps that rules share."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tvm
from tvm import sym, tirx
from tvm.ir.expr import TensorLoad
from tvm.s_tir import SBlock, Schedule
from tvm.tirx.analysis import undefined_vars
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.ir.tensorir import LAYOUT_FREE, collected, known, mentions, operator_name
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.reasons import Reason, reason
from lowerscope.core.model.schedule import Argument, At, Made, Primitive, Reference
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.block_primitives import negated_in
from lowerscope.core.schedule.references import (
    Output,
    Place,
    first_outputs,
    function_of,
    loops_of,
    places,
    resolve,
    sblock_named,
    stmt_at,
)
from lowerscope.core.schedule.step_errors import StepFailed

MAX_INLINED = 1000
"""Limit on the nodes of an expression after inlining: a chain of values that are each read twice
would double it with each of them."""

CHEAP = 12
"""Operations up to which a value is recomputed rather than stored and read."""

COSTLY = 20
"""Cost of a call, such as that of an exponential function, in operations."""


def operations(body: Any) -> int:
    """Return the estimated number of operations of a statement."""
    return sum(map(_cost, collected(body, _ARITHMETIC)))


def _cost(value: Any) -> int:
    if isinstance(value, tvm.ir.Call):
        return 1 if operator_name(value) in _FREE else COSTLY
    return 4 if isinstance(value, tirx.Div) else 1


def can_be_inlined(found: Sequence[Place], name: str) -> bool:
    """Return whether a block can be inlined into its readers.

    They must stay short with it, and the guard of ``compute_inline`` must accept it.
    """
    block = next(each.stmt for each in found if each.is_block and each.name == name)
    if not block.writes or negated_in(found, block):
        return False
    written, size = block.writes[0].source, _nodes(block.body)
    readers = (
        each.stmt
        for each in found
        if each.is_block and any(region.source.same_as(written) for region in each.stmt.reads)
    )
    return all(
        _nodes(each.body) + loads(each.body, written) * size <= MAX_INLINED for each in readers
    )


def _nodes(body: Any) -> int:
    return len(collected(body, tvm.ir.Expr))


def loads(body: Any, buffer: Any) -> int:
    """Return the number of reads of a buffer in a statement."""
    return sum(bool(each.source.same_as(buffer)) for each in collected(body, TensorLoad))


_FREE = ("if_then_else", "reinterpret", "likely")

_ARITHMETIC = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast),
    tvm.ir.Call,
)


SPATIAL, REDUCTION = 0, 2
"""Kinds of axes, as TVM numbers them."""


@dataclass(frozen=True)
class Contraction:
    """A block that sums the products of two buffers, with the blocks before and after it.

    `spatial`, `reduced`: extents of its axes, assumed ones where they are named; the spatial ones
        are the indices of its output, in order.
    `named`: the numbers of the axes whose extents are named dimensions, each with a known divisor
        of the extent.
    `reads`: for each of the two buffers that it reads, for each of its indices, the numbers of the
        axes that stand in it.
    `plain`: for each of the two, the numbers of the axes that are an index by themselves, or -1.
    `elements`, `dtypes`: how many elements each of the two has, and of which dtype.
    `flat`: whether its last axis runs over the planes of a buffer, the last two indices at once;
        they are one index in `reads` and `plain`.
    `free`: whether each of the two is an argument whose layout may change when the model is built:
        a constant.
    `after`, `beyond`: the blocks after it: first those with an element for each sum at most, then
        those that read one for several elements, as a factor that is broadcast.
    `finishing`: Estimated number of operations on a complete sum.
    """

    block: str
    spatial: tuple[int, ...]
    reduced: tuple[int, ...]
    named: Mapping[int, int]
    reads: tuple[tuple[frozenset[int], ...], ...]
    plain: tuple[tuple[int, ...], ...]
    elements: tuple[int, ...]
    dtypes: tuple[str, ...]
    free: tuple[bool, ...]
    dtype: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    beyond: tuple[str, ...]
    finishing: int
    flat: bool

    def is_read_by(self, read: int, axis: int) -> bool:
        """Return whether the element of a buffer changes with an axis."""
        return any(axis in each for each in self.reads[read])

    def times_read(self, read: int, axis: int) -> int:
        """Return the number of indices of a buffer in which an axis occurs."""
        return sum(axis in each for each in self.reads[read])

    @property
    def last(self) -> int:
        """Return the number of the last axis of the sum."""
        return len(self.spatial) + len(self.reduced) - 1

    @property
    def is_plain(self) -> bool:
        """Return whether all indices of the two buffers are plain axes, as in a matrix product."""
        return not self.flat and all(axis >= 0 for plain in self.plain for axis in plain)

    @property
    def work(self) -> int:
        """Number of products that are summed."""
        return math.prod((*self.spatial, *self.reduced))

    def uses(self, read: int) -> float:
        """Return the mean number of multiplications of an element of a buffer."""
        return self.work / self.elements[read]


def blocks_of(writing: ScheduleRecorder) -> list[Place]:
    """Return the blocks below the root, in the order of the script."""
    return [each for each in places(function_of(writing.sch))[1:] if each.is_block]


def is_spatial(block: SBlock) -> bool:
    """Return whether each value of the axes of a block writes an element of its own."""
    return all(int(axis.iter_type) == SPATIAL for axis in block.iter_vars)


@dataclass(frozen=True)
class Reduction:
    """The only reduction block of a function, with the blocks before and after it.

    Its body is `store`, one element for each value of its spatial axes.
    """

    place: Place
    store: Any
    before: list[Place]
    after: list[Place]

    @property
    def axes(self) -> list[Any]:
        return list(self.place.stmt.iter_vars)

    @property
    def kinds(self) -> list[int]:
        """Kinds of its axes: see `SPATIAL`."""
        return [int(axis.iter_type) for axis in self.axes]

    @property
    def rank(self) -> int:
        """Number of its spatial axes; `is_in_order` has them first."""
        return self.kinds.count(SPATIAL)

    @property
    def is_in_order(self) -> bool:
        """Return whether the spatial axes come before the others."""
        return self.kinds == sorted(self.kinds)

    @property
    def regions(self) -> list[Any]:
        """Regions of the buffers that it reads, without its own output."""
        reads = self.place.stmt.reads
        return [each for each in reads if not each.source.same_as(self.store.buffer)]

    @property
    def reads(self) -> tuple[tuple[frozenset[int], ...], ...]:
        """For each of `regions`, for each of its indices, the numbers of the axes in it."""
        return tuple(
            tuple(
                frozenset(n for n, axis in enumerate(self.axes) if mentions(each.min, axis.var))
                for each in region.region
            )
            for region in self.regions
        )


def reduction_of(writing: ScheduleRecorder) -> Reduction | None:
    """Return the only reduction block of a function, if it sets its elements to a value first."""
    found = blocks_of(writing)
    sums = [place for place, each in enumerate(found) if not is_spatial(each.stmt)]
    if len(sums) != 1 or len({each.name for each in found}) < len(found):
        return None
    at = sums[0]
    block: Any = found[at].stmt
    spatial = [axis.var for axis in block.iter_vars if int(axis.iter_type) == SPATIAL]
    if block.init is None or not isinstance(block.body, tirx.BufferStore):
        return None
    if not are_same(block.body.indices, spatial):
        return None
    return Reduction(found[at], block.body, found[:at], found[at + 1 :])


def are_same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two lists hold the same variables."""
    return len(ones) == len(others) and all(
        one.same_as(other) for one, other in zip(ones, others, strict=True)
    )


def goes_along(place: Place, reduced: Any, rank: int) -> bool:
    """Return whether a block uses each reduced element by itself."""
    block: Any = place.stmt
    if len(block.iter_vars) != rank or not isinstance(block.body, tirx.BufferStore):
        return False
    variables = [axis.var for axis in block.iter_vars]
    places = [
        [each.min for each in region.region]
        for region in block.reads
        if region.source.same_as(reduced)
    ]
    return all(are_same(each, variables) for each in [*places, block.body.indices])


def names_of(places: Sequence[Place]) -> tuple[str, ...]:
    """Return the names of blocks."""
    return tuple(each.name for each in places)


def contraction_of(writing: ScheduleRecorder) -> Contraction | None:
    """Return the only reduction block of a function, if it sums products of two buffers."""
    found = reduction_of(writing)
    if found is None or not found.is_in_order or not _is_sum_of_product(found.store):
        return None
    extents = [known(axis.dom.extent) for axis in found.axes]
    elements = [writing.work(map(known, each.source.shape)) for each in found.regions]
    sizes = [writing.work([extent]) for extent in extents]
    if len(elements) != 2:
        return None
    last = found.rank - 1
    plain = [_plain(each, found.axes) for each in found.regions]
    planes = [_is_plane(each, found.axes, last) for each in found.regions]
    sums = math.prod(sizes[: found.rank])
    spread = (
        writing.work(known(axis.dom.extent) for axis in each.stmt.iter_vars) for each in found.after
    )
    count = next((place for place, work in enumerate(spread) if work > sums), len(found.after))
    return Contraction(
        block=found.place.name,
        spatial=tuple(sizes[: found.rank]),
        reduced=tuple(sizes[found.rank :]),
        named={
            number: int(sym.Analyzer().modular_set(found.axes[number].dom.extent).coeff)
            for number, extent in enumerate(extents)
            if extent is None
        },
        reads=tuple(
            (*axes[:-2], frozenset({last})) if is_plane else axes
            for axes, is_plane in zip(found.reads, planes, strict=True)
        ),
        plain=tuple(
            (*axes[:-2], last) if is_plane else axes
            for axes, is_plane in zip(plain, planes, strict=True)
        ),
        flat=any(planes),
        elements=tuple(elements),
        dtypes=tuple(str(each.source.dtype) for each in found.regions),
        free=tuple(_is_free(writing, each.source) for each in found.regions),
        dtype=str(found.store.buffer.dtype),
        before=names_of(found.before),
        after=names_of(found.after[:count]),
        beyond=names_of(found.after[count:]),
        finishing=sum(operations(each.stmt.body) for each in found.after[:count]),
    )


def bytes_of(dtype: str) -> int:
    """Return the size of a value, in bytes."""
    return max(1, int(tvm.DataType(dtype).bits) // 8)


def _is_free(writing: ScheduleRecorder, buffer: Any) -> bool:
    function = function_of(writing.sch)
    free = function.attrs.get(LAYOUT_FREE, ()) if function.attrs else ()
    return any(function.params[int(each)].same_as(buffer) for each in free)


def _is_sum_of_product(store: Any) -> bool:
    value = store.value
    if not isinstance(value, tirx.Add):
        return False
    parts = [value.a, value.b]
    own = [each for each in parts if isinstance(each, TensorLoad)]
    own = [each for each in own if each.source.same_as(store.buffer)]
    others = [each for each in parts if not any(each.same_as(mine) for mine in own)]
    return len(own) == 1 and len(others) == 1 and isinstance(_bare(others[0]), tirx.Mul)


def _bare(value: Any) -> Any:
    while isinstance(value, tirx.Cast):
        value = value.value
    return value


def _plain(region: Any, axes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(
        next((number for number, axis in enumerate(axes) if axis.var.same_as(each.min)), -1)
        for each in region.region
    )


def reads_at(region: Any, axes: Sequence[Any], place: Any) -> bool:
    """Return whether the last two indices of a read are a place in its planes, row by row."""
    if len(region.region) < 2:
        return False
    row, column = (each.min for each in region.region[-2:])
    analyzer = sym.Analyzer()
    for axis in axes:
        analyzer.bind(axis.var, axis.dom)
    return bool(analyzer.can_prove_equal(row * region.source.shape[-1] + column, place))


def _is_plane(region: Any, axes: Sequence[Any], number: int) -> bool:
    own = axes[number].var
    is_in = all(mentions(each.min, own) for each in region.region[-2:])
    return is_in and reads_at(region, axes, own)


NONE_GIVEN: Mapping[str, int] = MappingProxyType({})
"""No decisions, or no sizes of dimensions."""


class OutOfTime(Exception):
    """Rules have reached the bound on their time for one function."""


@dataclass(frozen=True)
class Choice:
    """A number that a rule has chosen among several candidates."""

    name: str
    offered: tuple[int, ...]
    taken: int


class ScheduleRecorder:
    """Primitives so far, the choices behind them, and the function after them.

    `decisions`: values for the choices of a rule, by their names, in place of the usual ones.
    `sizes`: usual sizes of named dimensions, for estimates of the work.
    """

    def __init__(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        decisions: Mapping[str, int] = NONE_GIVEN,
        sizes: Mapping[str, int] = NONE_GIVEN,
    ) -> None:
        self._deadline = math.inf
        self.sch = Schedule(tvm.IRModule({"main": function}))
        self.primitives: list[Primitive] = []
        self.choices: list[Choice] = []
        self._decisions = decisions
        self.target = target
        self._outputs: dict[str | At, tuple[Output, ...]] = dict(first_outputs(self.sch))
        shapes = (size for each in function.params if is_buffer_var(each) for size in each.shape)
        names = {str(var.name) for each in shapes for var in undefined_vars(each)}
        self._assumed = max((sizes.get(each, ASSUMED) for each in names), default=ASSUMED)

    def again(self, decisions: Mapping[str, int], deadline: float) -> ScheduleRecorder:
        """Return an empty history, for another rule.

        `deadline`: deadline of that rule, by `time.thread_time`: methods raise `OutOfTime`
        afterwards.
        """
        made = copy(self)
        made.sch = self.sch.copy()
        made.primitives, made.choices = [], []
        made._outputs = dict(self._outputs)
        made._decisions, made._deadline = decisions, deadline
        return made

    def check(self) -> None:
        """Raise `OutOfTime` after the deadline."""
        if time.thread_time() > self._deadline:
            raise OutOfTime

    def choose(self, name: str, offered: Sequence[int], usual: int) -> int:
        """Return the rule's choice among several numbers: the usual one, or as decided.

        `name`: of the choice, its own within the function.
        """
        decided = self._decisions.get(name, usual)
        taken = decided if decided in offered else usual
        self.choices.append(Choice(name, tuple(offered), taken))
        return taken

    def do(
        self, name: str, why: str | Reason, *, forced: bool = False, **arguments: Argument
    ) -> tuple[Made, ...]:
        """Apply a primitive, and return references to its results.

        `why`: the comment of the step; empty where that of the step before applies. `forced`: apply
        it although it is unsafe by itself: a later step makes up for it. Raises `StepFailed` if TVM
        or a guard rejects it.
        """
        self.check()
        block = arguments.get("block") if name == "compute_inline" else None
        if isinstance(block, At) and not self.can_inline(block.block):
            raise StepFailed(
                _("the consumer of {block} cannot take its value in place of a load"),
                block=block.block,
            )
        step = f"s{len(self.primitives) + 1}"
        primitive = Primitive(id=step, name=name, arguments=arguments, comment=why, forced=forced)
        applied = apply(self.sch, primitive, self._outputs, self.target, titled=False)
        self.sch = applied.sch
        self._outputs[step] = applied.outputs
        self.primitives.append(primitive)
        return tuple(Made(step=step, output=index) for index in range(len(applied.outputs)))

    def inline(self, block: str, why: str | Reason) -> None:
        """Inline a block into its readers; see `do`."""
        self.do("compute_inline", why, block=At(block))

    def split(self, loop: Reference, factor: int, why: str | Reason) -> tuple[Made, ...]:
        """Split a loop by an inner extent, and return both loops; see `do`."""
        return self.do("split", why, loop=loop, factors=(None, factor))

    def vectorize(self, loop: Reference, why: str | Reason) -> None:
        """Compute the values of a loop in the lanes of registers; see `do`."""
        self.do("vectorize", why, loop=loop)

    def unroll(self, loop: Reference, why: str | Reason) -> None:
        """Write out the iterations of a loop; see `do`."""
        self.do("unroll", why, loop=loop)

    def reorder(self, loops: Iterable[Reference], why: str | Reason) -> None:
        """Order loops, the outermost first; see `do`."""
        self.do("reorder", why, loops=tuple(loops))

    def compute_at(self, block: str, last: str, loop: int, why: str | Reason) -> None:
        """Compute a block under a loop of another one; see `do`."""
        self.do("compute_at", why, block=At(block), loop=At(last, loop=loop))

    def keep_local(self, block: str, why: str | Reason) -> None:
        """Keep the output of a block in registers, or in memory of a thread; see `do`."""
        self.do("set_scope", why, block=At(block), buffer_index=0, storage_scope="local")

    def begin(self, block: str, loop: int, why: str | Reason) -> None:
        """Set the initial value of a reduction before one of its loops; see `do`."""
        self.do("decompose_reduction", why, block=At(block), loop=At(block, loop=loop))

    def outputs(self, made: Sequence[Made]) -> tuple[Output, ...]:
        """Return the outputs behind references that `do` has returned."""
        return tuple(self._outputs[each.step][each.output] for each in made)

    def blocks(self) -> tuple[str, ...]:
        """Return the names of the blocks below the root, in the order of the script."""
        self.check()
        return tuple(each.name for each in places(function_of(self.sch))[1:] if each.is_block)

    def block(self, reference: Reference) -> Any:
        """Return the present block that a reference names."""
        self.check()
        return stmt_at(self.sch, resolve(self.sch, reference, self._outputs, None))

    def can_inline(self, block: str) -> bool:
        """Return whether the readers of a block stay short with its value inlined."""
        return can_be_inlined(places(function_of(self.sch)), block)

    def loops(self, block: str) -> tuple[At, ...]:
        """Return the present loops around a block, the outermost first."""
        count = len(loops_of(self.sch, sblock_named(self.sch, block)))
        return tuple(At(block, loop=place) for place in range(count))

    def extent(self, loop: Reference) -> int | None:
        """Return the extent of a loop; ``None`` where it is not known."""
        return known(stmt_at(self.sch, resolve(self.sch, loop, self._outputs, None)).extent)

    def work(self, extents: Iterable[int | None]) -> int:
        """Return how many values loops visit; an unknown extent has the usual size."""
        return math.prod(self._assumed if each is None else each for each in extents)

    def inner(self, block: str, axis: int, below: int) -> At | None:
        """Return the innermost loop that an axis of a block is bound to, of those below a depth.

        ``None`` where the axis has only one value there.
        """
        depth = max(self.bound(block, axis), default=-1)
        return At(block, loop=depth) if depth >= below else None

    def inners(self, block: str, axes: Iterable[int], below: int) -> list[At]:
        """Return the innermost loops of several axes, see `inner`, of those that have one."""
        loops = (self.inner(block, axis, below) for axis in axes)
        return [loop for loop in loops if loop is not None]

    def bound(self, block: str, axis: int) -> list[int]:
        """Return the depths of the loops that an axis of a block is bound to, in order."""
        found = places(function_of(self.sch))
        place = next(each for each in found if each.is_block and each.name == block)
        loops = loops_of(self.sch, sblock_named(self.sch, block))
        variables = [stmt_at(self.sch, each).loop_var for each in loops]
        bound = place.realize.iter_values[axis]
        return [depth for depth, each in enumerate(variables) if mentions(bound, each)]


# --- Properties of a target's processor that rules need ---


@dataclass(frozen=True)
class Machine:
    """A processor.

    `vector_bytes` and `registers`: width of a vector register, and how many of them there are.
    """

    vector_bytes: int
    registers: int
    threads: int

    def lanes(self, dtype: str) -> int:
        """Return the number of values of a dtype in a vector register.

        Those of 16 bits are computed in float32.
        """
        bits = 32 if dtype in ("float16", "bfloat16") else int(tvm.DataType(dtype).bits)
        return max(1, self.vector_bytes * 8 // max(8, bits))


_VECTORS = (("avx512f", 64, 32), ("avx", 32, 16), ("sve", 16, 32), ("neon", 16, 32))


def machine_of(target: tvm.target.Target) -> Machine:
    """Return the processor of an LLVM target, by its features in LLVM."""
    has = tvm.get_global_func("target.llvm_cpu_has_feature")
    found = ((size, count) for feature, size, count in _VECTORS if has(feature, target))
    size, count = next(found, (16, 16))
    threads = int(target.attrs.get("num-cores", 0)) or MACHINE
    return Machine(size, count, threads)


def gather(writing: ScheduleRecorder, block: str, after: Sequence[str]) -> str:
    """Leave one block behind a reduction, by inlining or a cache, and return its name.

    `after`: those that are computed from its result, the last one last.
    """
    if not after:
        (made,) = writing.do(
            "cache_write",
            reason("partial results are kept apart until they are complete"),
            block=At(block),
            write_buffer_index=0,
            storage_scope="local",
        )
        return str(writing.block(made).name_hint)
    for each in after[:-1]:
        writing.inline(each, reason("the sum is used where it is computed"))
    return after[-1]


STACK = 1024
"""Bytes from which on TVM takes local buffers from a pool, and LLVM keeps them in memory: its
``kMaxStackAlloca``."""

WORTH_THREADS = 1 << 15
"""Values that take about as long as waking other threads."""

ASSUMED = 32
"""Assumed value of an unknown extent, where the dimensions that it depends on have no range."""


SHARES = 8
"""Shares for each thread, so that none waits long for another one."""


def threads(writing: ScheduleRecorder, machine: Machine) -> bool:
    """Parallel loops of every other function, distributed among threads."""
    found = blocks_of(writing)
    names = [each.name for each in found]
    if machine.threads < 2 or len(set(names)) < len(names):
        return False
    for place in found:
        loops = writing.loops(place.name)
        kinds = [int(axis.iter_type) for axis in place.stmt.iter_vars]
        axes = [axis for axis, kind in enumerate(kinds) if kind == SPATIAL]
        spatial = writing.inners(place.name, axes, 0)
        sizes = [writing.extent(each) for each in loops]
        # Outer loops on which only output elements depend.
        outer = [loop for loop, own in zip(loops, spatial, strict=False) if loop == own]
        if len(loops) < 1 or not outer or any(size is None for size in sizes):
            continue
        worth = math.prod(size for size in sizes if size is not None) >= WORTH_THREADS
        if writing.choose(f"threads for {place.name}", (0, 1), int(worth)):
            parallelise(writing, tuple(outer), machine)
    return bool(writing.primitives)


def parallelise(writing: ScheduleRecorder, loops: tuple[At, ...], machine: Machine) -> int:
    """Fuse as many loops, the outermost first, as each thread needs for a share.

    Returns the number of fused or parallel loops; 0 for none.
    """
    count, shares, known = 0, 1, True
    while count < len(loops) and shares < SHARES * machine.threads:
        extent = writing.extent(loops[count])
        # An unknown extent does not count: it may be one.
        shares, known = shares * (extent or 1), known and extent is not None
        count += 1
    if shares < 2 and known:
        return 0
    shared: At | Made = loops[0]
    if count > 1:
        shared = writing.do(
            "fuse", reason("one loop of parts that threads can share"), loops=loops[:count]
        )[0]
    writing.do("parallel", reason("each thread has parts of its own"), loop=shared)
    return count


def share(writing: ScheduleRecorder, loops: tuple[At, ...], block: str, machine: Machine) -> bool:
    """Distribute loops among threads if the block has enough work; return whether it has."""
    work = writing.work(map(writing.extent, writing.loops(block)))
    if work < WORTH_THREADS or machine.threads < 2 or not loops:
        return False
    return parallelise(writing, loops, machine) > 0

"""Loops and blocks of a schedule, and the references of primitives to them."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import msgspec
from tvm import DataType, tirx
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.ir.tensorir import known
from lowerscope.core.model.schedule import At, Made, Reference
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed

Output = Any
"""Result of a primitive: a ``LoopRV``, an ``SBlockRV``, or an ``ExprRV`` for a number."""

# Queries of TVM's without its checks of the types of arguments. These are written in Python, and
# take many times as long as the queries, of which each primitive takes some ten.
stmt_at = Schedule.get.__wrapped__
sblock_named = Schedule.get_sblock.__wrapped__
loops_of = Schedule.get_loops.__wrapped__

Outputs = Mapping[str | At, tuple[Output, ...]]
"""Results of the primitives of a schedule, by `Primitive.id`; and the blocks before them, each with
the loops around it, the outermost first, by an `At` that is ``first`` and names it."""


@dataclass(frozen=True)
class Place:
    """A loop or a block of a function, in the order of the script.

    `stmt`: the ``For`` or the ``SBlock``.
    `realize`: of a block: the ``SBlockRealize`` that binds its axes.
    `parent`: the place of the loop or block around it in the list; -1 at the top.
    `depth`: number of loops and blocks around it.
    """

    stmt: Any
    realize: Any
    parent: int
    depth: int

    @cached_property
    def is_block(self) -> bool:
        """Return whether the place is a block."""
        return self.realize is not None

    @property
    def kind(self) -> Any:
        """The ``ForKind`` of a loop; ``None`` for a block."""
        return None if self.is_block else self.stmt.kind

    # Each access to a field makes a new array, of which Python gets element by element.

    @cached_property
    def reads(self) -> tuple[Any, ...]:
        """The regions of buffers that a block reads."""
        return tuple(self.stmt.reads)

    @cached_property
    def writes(self) -> tuple[Any, ...]:
        """The regions of buffers that a block writes."""
        return tuple(self.stmt.writes)

    @property
    def regions(self) -> tuple[Any, ...]:
        """The regions of buffers that a block reads and writes."""
        return (*self.reads, *self.writes)

    @cached_property
    def allocated(self) -> tuple[Any, ...]:
        """The buffers that a block allocates; none for a loop."""
        return tuple(self.stmt.alloc_buffers) if self.is_block else ()

    @cached_property
    def bytes(self) -> int:
        """The bytes of these buffers, with symbolic extents counted as 1."""
        return sum(
            math.prod(known(extent) or 1 for extent in buffer.ty.shape)
            * ((DataType(str(buffer.ty.dtype)).bits + 7) // 8)
            for buffer in self.allocated
        )

    @cached_property
    def name(self) -> str:
        """The name of the block or of the loop variable."""
        return str(self.stmt.name_hint if self.is_block else self.stmt.loop_var.name)


def function_of(sch: Schedule) -> tirx.PrimFunc:
    """Return the function that a schedule works on: the only one of its module."""
    return next(each for each in sch.mod.functions.values() if isinstance(each, tirx.PrimFunc))


def places(func: tirx.PrimFunc) -> tuple[Place, ...]:
    """Return the loops and blocks of `func`, in the order of its script."""
    # Guards, rules and records each read the same function, which may have hundreds of blocks.
    key = func.__chandle__()
    kept = _PLACES.get(key)
    if kept is None:
        kept = func, tuple(below(func.body))
        _PLACES[key] = kept
        while len(_PLACES) > _PLACES_KEPT:
            _PLACES.popitem(last=False)
    return kept[1]


_PLACES: OrderedDict[int, tuple[tirx.PrimFunc, tuple[Place, ...]]] = OrderedDict()
"""The places of the functions read last, by handle, with the function that keeps the handle."""

_PLACES_KEPT = 16


def below(body: Any) -> list[Place]:
    """Return the loops and blocks of a statement, with itself, in the order of the script."""
    found: list[Place] = []

    def walk(stmt: Any, parent: int, depth: int) -> None:
        if isinstance(stmt, tirx.For):
            found.append(Place(stmt, None, parent, depth))
            walk(stmt.body, len(found) - 1, depth + 1)
        elif isinstance(stmt, SBlockRealize):
            found.append(Place(stmt.block, stmt, parent, depth))
            walk(stmt.block.body, len(found) - 1, depth + 1)
        elif isinstance(stmt, tirx.SeqStmt):
            for each in stmt.seq:
                walk(each, parent, depth)
        elif isinstance(stmt, tirx.IfThenElse):
            walk(stmt.then_case, parent, depth)
            if stmt.else_case is not None:
                walk(stmt.else_case, parent, depth)
        elif isinstance(stmt, tirx.While | tirx.AttrStmt):
            walk(stmt.body, parent, depth)

    walk(body, -1, 0)
    return found


def around(found: Sequence[Place], place: Place) -> Iterator[int]:
    """Yield the loops and blocks around a loop or block, the innermost first."""
    parent = place.parent
    while parent >= 0:
        yield parent
        parent = found[parent].parent


def loops_around(found: Sequence[Place], index: int) -> list[int]:
    """Return the loops between a block and the block around it, the outermost first."""
    return [*takewhile(lambda each: not found[each].is_block, around(found, found[index]))][::-1]


def outer_block(found: Sequence[Place], index: int) -> int:
    """Return the place of the block around a loop or block."""
    return next(each for each in around(found, found[index]) if found[each].is_block)


def index_of(found: Sequence[Place], stmt: Any) -> int | None:
    """Return the place of a ``For`` or ``SBlock``; ``None`` if it is not among them."""
    return next((index for index, each in enumerate(found) if each.stmt.same_as(stmt)), None)


def block_around(sch: Schedule, block: Any) -> str:
    """Return the name of the block around another; empty where that is the outermost."""
    found = places(function_of(sch))
    index = index_of(found, block)
    outer = outer_block(found, index) if index else 0
    return found[outer].name if outer else ""


def resolve(
    sch: Schedule, reference: Reference, outputs: Outputs, absent: Mapping[str, str] | None = None
) -> Output:
    """Return the loop, block or number of a schedule that `reference` names.

    `absent`: reasons why steps are not in `outputs`, such as ``"step 2, which made this, is off"``,
    by their ids. Raises `StepFailed` if there is no such loop or block, or no longer.
    """
    if isinstance(reference, At):
        return _first(sch, reference, outputs) if reference.first else _at(sch, reference)
    made = outputs.get(reference.step)
    if made is None:
        before = _("the step that created this is not one of those before it")
        raise StepFailed((absent or {}).get(reference.step, before))
    if not 0 <= reference.output < len(made):
        raise StepFailed(
            _n(
                "step {step} has {count} result; there is no result {output}",
                "step {step} has {count} results; there is no result {output}",
                len(made),
                step=reference.step,
                output=reference.output + 1,
            )
        )
    output = made[reference.output]
    if isinstance(output, LoopRV | SBlockRV) and stmt_of(sch, output) is None:
        if _is_no_place(sch, output):
            raise StepFailed(
                _("step {step} drew no loop: the block is to stay where it is, or to be inlined"),
                step=reference.step,
            )
        raise StepFailed(
            _(
                "the loop made by step {step} no longer exists: a later step changed it",
                step=reference.step,
            )
            if isinstance(output, LoopRV)
            else _(
                "the block made by step {step} no longer exists: a later step changed it",
                step=reference.step,
            )
        )
    return output


def first_outputs(sch: Schedule) -> dict[str | At, tuple[Output, ...]]:
    """Return the blocks and loops of an unscheduled function, as `Outputs`."""
    found = places(function_of(sch))
    outputs: dict[str | At, tuple[Output, ...]] = {}
    counts = Counter(each.name for each in found if each.is_block)
    for index, occurrence in block_occurrences(found):
        name = found[index].name
        block = sblock_named(sch, name) if counts[name] == 1 else _inside(sch, found, index)
        at = At(block=found[index].name, occurrence=occurrence, first=True)
        outputs[at] = (block, *loops_of(sch, block))
    return outputs


def stmt_of(sch: Schedule, output: Output) -> Any | None:
    """Return the ``For`` or ``SBlock`` of a loop or block of a schedule; ``None`` if it is gone."""
    try:
        stmt = stmt_at(sch, output)
    except REFUSED:
        return None
    return stmt if isinstance(stmt, tirx.For | SBlock) else None


def _is_no_place(sch: Schedule, output: Output) -> bool:
    """Return whether an output is the substitute for a loop of ``sample_compute_location``."""
    return any(
        made.kind.name == "SampleComputeLocation"
        and output.same_as(made.outputs[0])
        and int(sch.trace.decisions[made]) < 0
        for made in sch.trace.insts
    )


def references(sch: Schedule, outputs: Outputs) -> dict[Any, Reference]:
    """Return the reference of the next primitive to each loop and block, by ``For`` and ``SBlock``.

    Loops and blocks from before the first step are named as they were then, and results of steps
    after the first step that returned them, since that holds when other steps change; the rest are
    named by block and place.
    """
    func = function_of(sch)
    named: dict[Any, Reference] = {}
    for step, made in outputs.items():
        for index, output in enumerate(made):
            if isinstance(output, LoopRV | SBlockRV):
                stmt = stmt_of(sch, output)
                if stmt is not None:
                    named.setdefault(stmt, _named(step, index))
    found = places(func)
    for index, occurrence in block_occurrences(found):
        block = found[index]
        named.setdefault(block.stmt, At(block=block.name, occurrence=occurrence))
        for place, loop in enumerate(loops_around(found, index)):
            at = At(block=block.name, occurrence=occurrence, loop=place)
            named.setdefault(found[loop].stmt, at)
    return named


def _named(step: str | At, index: int) -> Reference:
    """Return the reference to an output, by its key and place in `Outputs`."""
    if isinstance(step, str):
        return Made(step=step, output=index)
    return msgspec.structs.replace(step, loop=index - 1) if index else step


def unresolved(reference: Reference) -> str:
    """Return a reference in words, unresolved: ``s3[1]``, ``matmul``, ``loop 2 of matmul``."""
    if isinstance(reference, Made):
        return f"{reference.step}[{reference.output}]"
    return (
        reference.block
        if reference.loop is None
        else _("loop {loop} of {block}", loop=reference.loop + 1, block=reference.block)
    )


def block_occurrences(found: Sequence[Place]) -> Iterator[tuple[int, int]]:
    """Yield the blocks: place in the list, and occurrence of its name."""
    counts: dict[str, int] = {}
    for index, place in enumerate(found):
        if place.is_block:
            counts[place.name] = counts.get(place.name, 0) + 1
            yield index, counts[place.name] - 1


def _first(sch: Schedule, at: At, outputs: Outputs) -> Output:
    """Return the loop or block of an `At` that is ``first``, wherever it has been moved."""
    found = outputs.get(msgspec.structs.replace(at, loop=None), ())
    place = 0 if at.loop is None else at.loop + 1
    if not 0 <= place < len(found):
        raise StepFailed(
            _("there was no {unresolved} before the first step"), unresolved=unresolved(at)
        )
    if stmt_of(sch, found[place]) is None:
        raise StepFailed(
            _("{unresolved} no longer exists: an earlier step changed it"),
            unresolved=unresolved(at),
        )
    return found[place]


def _at(sch: Schedule, at: At) -> Output:
    found = places(function_of(sch))
    same = [
        (index, occurrence)
        for index, occurrence in block_occurrences(found)
        if found[index].name == at.block
    ]
    if not 0 <= at.occurrence < len(same):
        raise StepFailed(
            _("there is no block {block}", block=at.block)
            if not same
            else _(
                "there is no block {block} number {occurrence}",
                block=at.block,
                occurrence=at.occurrence + 1,
            )
        )
    if len(same) == 1:
        block = sblock_named(sch, at.block)
    else:
        block = _inside(sch, found, same[at.occurrence][0])
    if at.loop is None:
        return block
    loops = loops_of(sch, block)
    if not 0 <= at.loop < len(loops):
        raise StepFailed(
            _n(
                "{block} has {count} loop around it; there is no loop {loop}",
                "{block} has {count} loops around it; there is no loop {loop}",
                len(loops),
                block=at.block,
                loop=at.loop + 1,
            )
        )
    return loops[at.loop]


def _inside(sch: Schedule, found: Sequence[Place], index: int) -> Output:
    """Return a block that shares its name with others, found from the block around it."""
    around = outer_block(found, index)
    # The outermost block has a name of its own: TVM calls it root.
    outer = sblock_named(sch, found[around].name) if around == 0 else _inside(sch, found, around)
    for block in sch.get_child_blocks(outer):
        if found[index].stmt.same_as(stmt_of(sch, block)):
            return block
    raise StepFailed(_("TVM does not find the block {name}"), name=found[index].name)

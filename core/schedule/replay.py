"""Replay of the primitives of a schedule on a function, and the loop tree after each.

The state after each primitive is cached: one more primitive costs a copy and a call.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.ir.script import (
    LOOP_KINDS,
    function_script,
    plain_extent,
    tensor_bytes,
    tensorir_text,
)
from lowerscope.core.ir.tensorir import Part, known, parts_of, root_block
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.reasons import worded
from lowerscope.core.model.schedule import At, Primitive, Reference, references_of
from lowerscope.core.model.schedule_records import (
    RULE_SECONDS,
    BufferNode,
    ByRule,
    LoopNode,
    ScheduleStep,
)
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _
from lowerscope.core.schedule.applying import apply, name_of, title_unresolved
from lowerscope.core.schedule.code import Code, call_of
from lowerscope.core.schedule.references import (
    Output,
    Outputs,
    first_outputs,
    places,
    references,
    resolve,
    stmt_of,
)
from lowerscope.core.schedule.rules.by_rule import scheduled_by_rule
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed

_AXIS_KINDS = {tirx.IterVar.DataPar: "S", tirx.IterVar.CommReduce: "R"}
_REGIONS = re.compile(r" *T\.(reads|writes)\((.*)\)$")


def loop_tree(
    parts: Sequence[Part], script: TextRecord, named: Mapping[Any, Reference]
) -> tuple[LoopNode, ...]:
    """Return the loops and blocks of a function in the order of its script.

    `script`: that of the function, whose spans have the ids of the parts. `named`: the references
    to them, by ``For`` and ``SBlock``.
    """
    headers = {span.entity: span.first for span in script.spans}
    lines = script.text.split("\n")
    nodes: list[LoopNode] = []
    for part in parts:
        depth = nodes[part.parent].depth + 1 if part.parent >= 0 else 0
        # A loop without a block cannot be named, and has no primitives.
        reference = named.get(part.statement, At(block=""))
        if part.kind == "loop":
            nodes.append(_loop(part, depth, reference))
        else:
            nodes.append(_block(part, depth, reference, lines[headers.get(part.id, 0) :]))
    return tuple(nodes)


def _loop(part: Part, depth: int, reference: Reference) -> LoopNode:
    loop = part.statement
    return LoopNode(
        id=part.id,
        kind="loop",
        name=str(loop.loop_var.name),
        depth=depth,
        parent=part.parent,
        reference=reference,
        extent=plain_extent(loop.extent),
        size=known(loop.extent),
        loop_kind=LOOP_KINDS[int(loop.kind)],
        annotations=_annotations(loop),
    )


def _block(part: Part, depth: int, reference: Reference, below: Sequence[str]) -> LoopNode:
    """Return the node of a block; `below` are the lines of the script below its header."""
    block = part.statement
    regions: dict[str, tuple[str, ...]] = {}
    for line in below:
        found = _REGIONS.match(line)
        if found is not None:
            regions[found[1]] = tuple(_split(found[2]))
        if len(regions) == 2 or " with T.sblock(" in line:
            break
    return LoopNode(
        id=part.id,
        kind="block",
        name=str(block.name_hint),
        depth=depth,
        parent=part.parent,
        reference=reference,
        annotations=_annotations(block),
        axes=tuple(
            (
                str(axis.var.name),
                _AXIS_KINDS.get(int(axis.iter_type), "O"),
                plain_extent(axis.dom.extent),
            )
            for axis in block.iter_vars
        ),
        reads=regions.get("reads", ()),
        writes=regions.get("writes", ()),
    )


def _split(text: str) -> Iterator[str]:
    """Yield the arguments of a call that are written in `text`."""
    depth, begin = 0, 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:place].strip()
            begin = place + 1
    if text[begin:].strip():
        yield text[begin:].strip()


def _annotations(statement: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(key), str(value)) for key, value in statement.annotations.items())


Role = Literal["input", "output", "intermediate"]


def buffers_of(function: Any, parts: Sequence[Part], script: TextRecord) -> tuple[BufferNode, ...]:
    """Return the buffers of a function: its parameters, then those that its blocks allocate.

    `script`: that of the function, which has the names of its buffers.
    """
    parameters = [each for each in function.params if is_buffer_var(each)]
    blocks = [part.statement for part in parts if part.kind == "block"]
    root = root_block(function)
    scopes = blocks if root is None else [root, *blocks]
    allocated = [buffer for block in scopes for buffer in block.alloc_buffers]
    written = {region.source for block in scopes for region in block.writes}
    found: list[tuple[Any, Role]] = [
        (each, "output" if each in written else "input") for each in parameters
    ]
    found += [(each, "intermediate") for each in allocated]
    # The script has other names where two buffers have the same one.
    names = [card.name for card in script.cards if card.kind == "buffer"]
    if len(names) != len(found):
        names = [str(each.name) for each, _other in found]
    return tuple(
        _buffer(name, buffer, role) for name, (buffer, role) in zip(names, found, strict=True)
    )


def _buffer(name: str, buffer: Any, role: Role) -> BufferNode:
    extents = [plain_extent(extent) for extent in buffer.ty.shape]
    dtype = str(buffer.ty.dtype.dtype)
    return BufferNode(
        name=name,
        shape=" × ".join(extents) or "scalar",
        dtype=dtype,
        scope=str(buffer.scope()),
        role=role,
        size=tensor_bytes(extents, dtype),
    )


KEPT = 1024
"""Number of cached states of functions."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """A function after some primitives of its schedule.

    `base`: the function before all of them.
    `sch`: the schedule, on a module that holds the function alone. It is copied to go on, and never
        changed.
    `outputs`: loops and blocks from before the primitives, and the results of these.
    `absent`: Reason why a primitive has no results, by its id: ``"step 2, which made this, is
        off"``.
    """

    name: str
    base: tirx.PrimFunc
    sch: s_tir.Schedule
    number: int
    outputs: Outputs
    absent: Mapping[str, str]
    steps: tuple[ScheduleStep, ...]
    code: Code

    @cached_property
    def function(self) -> tirx.PrimFunc:
        """The function in this state."""
        return self.sch.mod[self.name]

    @cached_property
    def text(self) -> str:
        """Its script, as differences show it."""
        return function_script(self.function, self.name)

    @cached_property
    def script(self) -> TextRecord:
        return tensorir_text(self.name, self.function, self._parts)

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        return parts_of(self.name, self.function)

    @cached_property
    def tree(self) -> tuple[LoopNode, ...]:
        """Its loops and blocks."""
        named = references(self.sch, self.outputs)
        return loop_tree(self._parts, self.script, named)

    @cached_property
    def buffers(self) -> tuple[BufferNode, ...]:
        return buffers_of(self.function, self._parts, self.script)


Ruled = tuple[ByRule, tirx.PrimFunc]
"""The schedule of a function by a rule, and the scheduled function."""


class Replays:
    """LRU cache of functions after the first primitives of schedules."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Replayed] = OrderedDict()
        self._ruled: OrderedDict[tuple[Any, ...], tuple[tirx.PrimFunc, Ruled]] = OrderedDict()
        self._numbers = itertools.count()
        self._lock = threading.RLock()

    def replay(
        self,
        name: str,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        primitives: Sequence[Primitive],
        check: Callable[[], None] = lambda: None,
        begins: Callable[[Primitive], None] = lambda primitive: None,
    ) -> list[Replayed]:
        """Return a function before the first primitive, and after each of them.

        A primitive that cannot be applied changes nothing, and its step says why.

        `check`: called before each primitive that has to be applied; may raise to cancel. `begins`:
        called then with each primitive that is on. Raises `LowerscopeError` if TVM cannot schedule
        the function.
        """
        with self._lock:
            key: tuple[Any, ...] = (function.__chandle__(), name, str(target))
            states = [self._keep(key, lambda: self._start(name, function))]
            for primitive in primitives:
                last = states[-1]

                def make(last: Replayed = last, primitive: Primitive = primitive) -> Replayed:
                    check()
                    if primitive.on:
                        begins(primitive)
                    return self._after(last, primitive, target)

                states.append(self._keep((last.number, primitive), make))
            return states

    def by_rule(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        sizes: Mapping[str, int],
        seconds: float = RULE_SECONDS,
    ) -> Ruled:
        """Return the result of the first rule that fits a function, and what it makes of it.

        `sizes`: usual sizes of named dimensions.
        """
        with self._lock:
            key = (function.__chandle__(), str(target), seconds, tuple(sorted(sizes.items())))
            if key not in self._ruled:
                # The function is cached as well, so that no other one gets its handle.
                self._ruled[key] = (function, scheduled_by_rule(function, target, seconds, sizes))
                while len(self._ruled) > KEPT:
                    self._ruled.popitem(last=False)
            return self._ruled[key][1]

    def _keep(self, key: tuple[Any, ...], make: Callable[[], Replayed]) -> Replayed:
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return found

    def _start(self, name: str, function: tirx.PrimFunc) -> Replayed:
        try:
            _check_names(name, function)
            sch = s_tir.Schedule(tvm.IRModule({name: function}))
            sch.work_on(name)
            outputs = first_outputs(sch)
        except REFUSED as error:
            raise LowerscopeError(
                _("TVM cannot schedule it: {last_line}", last_line=last_line(error)),
                where=name,
                todo=_("Choose a function with blocks, such as those made by LegalizeOps"),
            ) from error
        return Replayed(name, function, sch, next(self._numbers), outputs, {}, (), Code())

    def _after(self, state: Replayed, primitive: Primitive, target: tvm.target.Target) -> Replayed:
        began = time.perf_counter()
        outputs, absent, code = state.outputs, dict(state.absent), state.code
        sch, error = state.sch, None
        names = _names(state, primitive)
        # The number is what stands before the step in the history.
        number = len(state.steps) + 1
        if not primitive.on:
            absent[primitive.id] = _("step {number}, which made this, is off", number=number)
            title, call = _title(primitive, names), call_of(primitive)
            code = code.without(f"off: {call}")
        else:
            try:
                sch, outputs, title, code = _applied(state, primitive, target)
                call = code.last
            except StepFailed as failed:
                error = failed.error
                absent[primitive.id] = _(
                    "step {number}, which made this, could not be applied", number=number
                )
                title, call = _title(primitive, names), call_of(primitive)
                code = code.without(f"could not be applied: {call}")
        step = ScheduleStep(
            id=primitive.id,
            title=title,
            code=call,
            status="off" if not primitive.on else "done" if error is None else "failed",
            error=error,
            milliseconds=(time.perf_counter() - began) * 1000,
            names=tuple(names.get(each, "") for each in references_of(primitive)),
            comment=worded(primitive.comment),
        )
        return Replayed(
            state.name,
            state.base,
            sch,
            next(self._numbers),
            outputs,
            absent,
            (*state.steps, step),
            code,
        )


def _check_names(name: str, function: tirx.PrimFunc) -> None:
    """Reject a block that has TVM's name for the outermost one."""
    if sum(place.is_block and place.name == "root" for place in places(function)) > 1:
        raise LowerscopeError(
            _(
                "TVM cannot schedule it: a block inside of it is called root, as the outermost "
                "one is"
            ),
            where=name,
            todo=_("Give the block another name"),
        )


def state_at(states: Sequence[Replayed], index: int | None) -> Replayed:
    """Return a function after some of the primitives of its schedule; after all for ``None``.

    Raises `LowerscopeError` if its schedule has fewer.
    """
    last = len(states) - 1
    at = last if index is None else index
    if not 0 <= at <= last:
        raise LowerscopeError(
            _("the schedule of {name} has no step {at}", name=states[0].name, at=at),
            where="schedule",
            todo=_("Choose a step from 0 to {last}", last=last),
        )
    return states[at]


def _applied(
    state: Replayed, primitive: Primitive, target: tvm.target.Target
) -> tuple[s_tir.Schedule, Outputs, str, Code]:
    sch = state.sch.copy()
    code, variables = state.code.fetching(primitive, sch, state.outputs)
    applied = apply(sch, primitive, state.outputs, target, absent=state.absent)
    outputs = {**state.outputs, primitive.id: applied.outputs}
    code = code.after(primitive, variables, applied.sch, applied.outputs)
    if can_be_copied(applied.sch):
        return applied.sch, outputs, applied.title, code
    fresh, own = renewed(applied.sch, state.name)
    outputs = {key: tuple(map(own, made)) for key, made in outputs.items()}
    known = tuple((name, own(output)) for name, output in code.known)
    return fresh, outputs, applied.title, replace(code, known=known)


def _names(state: Replayed, primitive: Primitive) -> dict[Reference, str]:
    """Return the names of the loops and blocks that a primitive refers to, as far as they exist."""
    names: dict[Reference, str] = {}
    # Each look-up is a step of its own to TVM.
    sch = state.sch.copy()
    for reference in references_of(primitive):
        with contextlib.suppress(StepFailed):
            output = resolve(sch, reference, state.outputs, state.absent)
            if isinstance(output, LoopRV | SBlockRV):
                names[reference] = name_of(sch, output)
    return names


def _title(primitive: Primitive, names: Mapping[Reference, str]) -> str:
    try:
        return title_unresolved(primitive, names)
    except StepFailed:
        return primitive.name


def can_be_copied(sch: Schedule) -> bool:
    """Return whether TVM can copy a schedule.

    After ``tensorize`` of the result of ``decompose_reduction`` it cannot: it still refers to the
    block that the instruction replaced, and fails in ``unordered_map::at``.
    """
    try:
        sch.copy()
    except REFUSED:
        return False
    return True


def renewed(sch: Schedule, name: str) -> tuple[Schedule, Callable[[Output], Output]]:
    """Return a new schedule of a function in its present state.

    Returns it, and a map from the loops, blocks and numbers of the old schedule to its own; those
    that are gone from the old one are unknown to both.
    """
    fresh = Schedule(sch.mod)
    fresh.work_on(name)
    named = references(sch, {})

    def own(output: Output) -> Output:
        if not isinstance(output, LoopRV | SBlockRV):
            return sch.get(output)
        at = named.get(stmt_of(sch, output))
        return output if at is None else resolve(fresh, at, {})

    return fresh, own

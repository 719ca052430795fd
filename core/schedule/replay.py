"""Replay of the primitives of a schedule on a function.

The state after each primitive is cached: one more primitive costs a copy and a call.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from lowerscope.core.ir.tensorir import Part, parts_of
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.schedule import Primitive, Reference, references_of
from lowerscope.core.model.schedule_records import (
    RULE_SECONDS,
    BufferNode,
    ByRule,
    LoopNode,
    ScheduleStep,
)
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.schedule.applying import apply, name_of, title_unresolved
from lowerscope.core.schedule.code import Code, call_of
from lowerscope.core.schedule.failures import REFUSED, StepFailed
from lowerscope.core.schedule.references import (
    Output,
    Outputs,
    first_outputs,
    places,
    references,
    resolve,
    stmt_of,
)
from lowerscope.core.schedule.rules.by_rule import by_rule
from lowerscope.core.schedule.tree import buffers_of, loop_tree
from lowerscope.core.views.script import function_script, tensorir_text

KEPT = 1024
"""Number of cached states of functions."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """A function after some primitives of its schedule.

    Attributes
    ----------
    base
        The function before all of them.
    sch
        The schedule, on a module that holds the function alone. It is copied to go on, and never
        changed.
    outputs
        Loops and blocks from before the primitives, and the results of these.
    absent
        Reason why a primitive has no results, by its id: ``"step 2, which made this, is off"``.
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
        """Its script."""
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
        """Its buffers."""
        return buffers_of(self.function, self._parts, self.script)


class Replays:
    """LRU cache of functions after the first primitives of schedules."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[Any, ...], Replayed] = OrderedDict()
        self._ruled: OrderedDict[tuple[Any, ...], tuple[tirx.PrimFunc, ByRule]] = OrderedDict()
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
        self, function: tirx.PrimFunc, target: tvm.target.Target, seconds: float = RULE_SECONDS
    ) -> ByRule:
        """Return the result of the first rule that fits a function; see `by_rule`."""
        with self._lock:
            key = (function.__chandle__(), str(target), seconds)
            if key not in self._ruled:
                # The function is cached as well, so that no other one gets its handle.
                self._ruled[key] = (function, by_rule(function, target, seconds))
                while len(self._ruled) > self._limit:
                    self._ruled.popitem(last=False)
            return self._ruled[key][1]

    def _keep(self, key: tuple[Any, ...], make: Callable[[], Replayed]) -> Replayed:
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
            while len(self._kept) > self._limit:
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
                f"TVM cannot schedule it: {last_line(error)}",
                where=name,
                todo="Choose a function with blocks, such as LegalizeOps makes",
            ) from error
        return Replayed(name, function, sch, next(self._numbers), outputs, {}, (), Code())

    def _after(self, state: Replayed, primitive: Primitive, target: tvm.target.Target) -> Replayed:
        began = time.perf_counter()
        outputs, absent, code = state.outputs, dict(state.absent), state.code
        sch, error = state.sch, None
        names = _names(state, primitive)
        # The number is what stands before the step in the history.
        this = f"step {len(state.steps) + 1}, which made this,"
        if not primitive.on:
            absent[primitive.id] = f"{this} is off"
            title, call = _title(primitive, names), call_of(primitive)
            code = code.without(f"off: {call}")
        else:
            try:
                sch, outputs, title, code = _applied(state, primitive, target)
                call = code.last
            except StepFailed as failed:
                error = failed.error
                absent[primitive.id] = f"{this} could not be applied"
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
            comment=primitive.comment,
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
            "TVM cannot schedule it: a block inside of it is called root, as the outermost one is",
            where=name,
            todo="Give the block another name",
        )


def state_at(states: Sequence[Replayed], index: int | None) -> Replayed:
    """Return a function after some of the primitives of its schedule; after all for ``None``.

    Raises `LowerscopeError` if its schedule has fewer.
    """
    last = len(states) - 1
    at = last if index is None else index
    if not 0 <= at <= last:
        raise LowerscopeError(
            f"the schedule of {states[0].name} has no step {at}",
            where="schedule",
            todo=f"Choose one from 0 to {last}",
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

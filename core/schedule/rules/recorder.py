"""Recorder of the primitives that a rule applies."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from lowerscope.core.model.schedule import Argument, At, Made, Primitive, Reference
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.failures import StepFailed
from lowerscope.core.schedule.parameters import known, mentions
from lowerscope.core.schedule.references import Output, first_outputs, function_of, places, resolve
from lowerscope.core.schedule.rules.costs import can_be_inlined

_NONE: Mapping[str, int] = MappingProxyType({})


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
    """

    def __init__(
        self,
        function: tirx.PrimFunc,
        target: tvm.target.Target,
        decisions: Mapping[str, int] = _NONE,
    ) -> None:
        self._deadline = math.inf
        self.sch = Schedule(tvm.IRModule({"main": function}))
        self.primitives: list[Primitive] = []
        self.choices: list[Choice] = []
        self._decisions = decisions
        self._target = target
        self._outputs: dict[str | At, tuple[Output, ...]] = dict(first_outputs(self.sch))

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
        self, name: str, why: str, *, forced: bool = False, **arguments: Argument
    ) -> tuple[Made, ...]:
        """Apply a primitive, and return references to its results.

        `why`: the comment of the step; empty where that of the step before applies. `forced`: apply
        it although it is unsafe by itself: a later step makes up for it. Raises `StepFailed` if TVM
        or a guard rejects it.
        """
        self.check()
        block = arguments.get("block") if name == "compute_inline" else None
        if isinstance(block, At) and not self.can_inline(block.block):
            raise StepFailed(f"what reads {block.block} cannot have its value in place of a load")
        step = f"s{len(self.primitives) + 1}"
        primitive = Primitive(id=step, name=name, arguments=arguments, comment=why, forced=forced)
        applied = apply(self.sch, primitive, self._outputs, self._target)
        self.sch = applied.sch
        self._outputs[step] = applied.outputs
        self.primitives.append(primitive)
        return tuple(Made(step=step, output=index) for index in range(len(applied.outputs)))

    def inline(self, block: str, why: str) -> None:
        """Inline a block into its readers; see `do`."""
        self.do("compute_inline", why, block=At(block))

    def split(self, loop: Reference, factor: int, why: str) -> tuple[Made, ...]:
        """Split a loop by an inner extent, and return both loops; see `do`."""
        return self.do("split", why, loop=loop, factors=(None, factor))

    def reorder(self, loops: Iterable[Reference], why: str) -> None:
        """Order loops, the outermost first; see `do`."""
        self.do("reorder", why, loops=tuple(loops))

    def compute_at(self, block: str, last: str, loop: int, why: str) -> None:
        """Compute a block under a loop of another one; see `do`."""
        self.do("compute_at", why, block=At(block), loop=At(last, loop=loop))

    def keep_local(self, block: str, why: str) -> None:
        """Keep the output of a block in registers, or in memory of a thread; see `do`."""
        self.do("set_scope", why, block=At(block), buffer_index=0, storage_scope="local")

    def begin(self, block: str, loop: int, why: str) -> None:
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
        return self.sch.get(resolve(self.sch, reference, self._outputs, None))

    def can_inline(self, block: str) -> bool:
        """Return whether the readers of a block stay short with its value inlined."""
        return can_be_inlined(places(function_of(self.sch)), block)

    def loops(self, block: str) -> tuple[At, ...]:
        """Return the present loops around a block, the outermost first."""
        count = len(self.sch.get_loops(self.sch.get_sblock(block)))
        return tuple(At(block, loop=place) for place in range(count))

    def extent(self, loop: Reference) -> int | None:
        """Return the extent of a loop; ``None`` where it is not known."""
        return known(self.sch.get(resolve(self.sch, loop, self._outputs, None)).extent)

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
        loops = self.sch.get_loops(self.sch.get_sblock(block))
        variables = [self.sch.get(each).loop_var for each in loops]
        bound = place.realize.iter_values[axis]
        return [depth for depth, each in enumerate(variables) if mentions(bound, each)]

"""Schedules of the functions of a module, and their application to all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import msgspec
import tvm
from tvm import tirx

from lowerscope.core.ir.tensorir import prim_funcs_of, structure_of
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.schedule import (
    Applied,
    Primitive,
    Schedule,
    fits,
    schedule_for,
    shown_name,
)
from lowerscope.core.model.schedule_records import RULE_SECONDS
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _, joined
from lowerscope.core.schedule.replay import Replayed, Replays
from lowerscope.core.schedule.rules.recorder import NONE_GIVEN

Begins = Callable[[Schedule, Primitive | None], None]
"""Callback for the step of a schedule that is applied next; ``None`` at the end."""


@dataclass(frozen=True)
class Functions:
    """The TensorIR functions of a module before they are scheduled."""

    module: tvm.IRModule

    @cached_property
    def by_name(self) -> dict[str, tirx.PrimFunc]:
        """The functions."""
        return prim_funcs_of(self.module)

    @cached_property
    def structures(self) -> dict[str, str]:
        """Their structural hashes: see `structure_of`."""
        return {name: structure_of(each) for name, each in self.by_name.items()}

    def twins(self, function: str) -> tuple[str, ...]:
        """Return the names of the other functions of the same structure."""
        return tuple(
            name
            for name, structure in self.structures.items()
            if structure == self.structures[function] and name != function
        )

    def states(
        self,
        function: str,
        schedules: Sequence[Schedule],
        replays: Replays,
        target: tvm.target.Target,
        check: Callable[[], None],
        begins: Begins = lambda schedule, primitive: None,
    ) -> list[Replayed]:
        """Return a function before its schedule, and after each primitive of it.

        `check`: called before each primitive that has to be applied; may raise to cancel. `begins`:
        called with the schedule and each of them, then, and with ``None`` at the end. Raises
        `LowerscopeError` if there is no such function, or TVM cannot schedule it.
        """
        if function not in self.by_name:
            names = tuple(sorted(self.by_name))
            raise LowerscopeError(
                _("there is no TensorIR function {function!r} to schedule", function=function),
                where="--function",
                todo=_("Choose one of {listed}", listed=listed(names))
                if names
                else _("Legalise the operators of the module to get some"),
                choices=names,
            )
        schedule = schedule_for(schedules, function, self.structures[function])
        if schedule is None:
            return replays.replay(function, self.by_name[function], target, (), check)
        begin = partial(begins, schedule)
        primitives = schedule.primitives
        states = replays.replay(function, self.by_name[function], target, primitives, check, begin)
        begin(None)
        return states

    def module_with(self, state: Replayed) -> tvm.IRModule:
        """Return the module with one function after some primitives of its schedule."""
        return with_functions(self.module, {state.name: state.function})


def with_functions(module: tvm.IRModule, functions: Mapping[str, tirx.PrimFunc]) -> tvm.IRModule:
    """Return a module with some of its functions replaced, by name."""
    result = module.clone()
    for variable in module.get_global_vars():
        if str(variable.name_hint) in functions:
            result.update_func(variable, functions[str(variable.name_hint)])
    return result


SCHEDULE_NOTE = "schedule"
"""`Note.code` of notes on schedules that are applied to the model."""


_UNRULED = _("schedule it by hand, or give ApplyRules more seconds")

_Found = tuple[tuple[Primitive, ...], tirx.PrimFunc]
"""The primitives that a rule or tuning has found, and the function after them."""

Tuned = Callable[[tirx.PrimFunc], tuple[Primitive, ...] | None]
"""Returns the best history of a function; ``None`` where it was not tuned."""


class WholeModel:
    """Application of schedules in the steps of one recipe, each to a function once.

    `applied`: of each module, in order: the schedules of its functions.
    `at_function`: called with each function that a rule or tuning is looked up for, its index, and
        their count.
    """

    def __init__(
        self,
        schedules: Sequence[Schedule],
        replays: Replays,
        target: tvm.target.Target,
        check: Callable[[], None],
        begins: Begins = lambda schedule, primitive: None,
        at_function: Callable[[str, int, int], None] = lambda name, index, count: None,
        sizes: Mapping[str, int] = NONE_GIVEN,
    ) -> None:
        self._sizes = sizes
        self._begins = begins
        self._at_function = at_function
        self._schedules = [each for each in schedules if each.on]
        self._replays = replays
        self._target = target
        self._check = check
        self.applied: list[tuple[Applied, ...]] = []
        self._fitting: set[Schedule] = set()
        self._done: set[tuple[str, Schedule]] = set()
        self._notes: list[Note] = []
        # Reasons why those that fit no function do not.
        self._reasons: dict[Schedule, str] = {}

    def apply(self, module: tvm.IRModule) -> tvm.IRModule:
        """Return a module whose functions are scheduled, as far as that is possible.

        A primitive that cannot be applied is left out, as in the workbench, and `notes` say so.
        """
        functions = Functions(module)
        structures = functions.structures
        changed: dict[str, tuple[tirx.PrimFunc, Applied]] = {}
        for name, structure in structures.items():
            schedule = schedule_for(self._schedules, name, structure)
            if schedule is None or not schedule.primitives or (name, schedule) in self._done:
                continue
            self._done.add((name, schedule))
            try:
                states = functions.states(
                    name, self._schedules, self._replays, self._target, self._check, self._begins
                )
            except LowerscopeError as error:
                text = _("its schedule is not applied: {what}", what=error.problem.what)
                self._notes.append(Note(text=text, where=name, code=SCHEDULE_NOTE))
                continue
            self._notes += _left_out(states[-1])
            if states[-1].sch is not states[0].sch:
                last = states[-1]
                own = msgspec.structs.replace(schedule, function=name, structure=structure)
                changed[name] = last.function, Applied(own, lambda at=last: at.code.lines)  # type: ignore[misc]
        for schedule in self._schedules:
            if any(fits(schedule, *each) for each in structures.items()):
                self._fitting.add(schedule)
            there = schedule.function in structures
            self._reasons[schedule] = (
                _("its structure changed") if there else _("the module has none of its structure")
            )
        return self._with(module, changed)

    def apply_rules(self, module: tvm.IRModule, seconds: float = RULE_SECONDS) -> tvm.IRModule:
        """Return a module whose functions are scheduled by rules, except those with a schedule.

        `seconds`: bound on the time for each function; `notes` name those that reach it.
        """
        return self._by(module, lambda function, name: self._ruled(function, name, seconds))

    def apply_tuned(
        self, tuned: Tuned, module: tvm.IRModule, seconds: float = RULE_SECONDS
    ) -> tvm.IRModule:
        """Return a module scheduled by tuning results, and by rules where there are none."""

        def steps(function: tirx.PrimFunc, name: str) -> _Found:
            found = tuned(function)
            if found is not None:
                states = self._replays.replay(name, function, self._target, found, self._check)
                return found, states[-1].function
            ruled = self._ruled(function, name, seconds)
            self._notes.append(not_tuned(name, ruled[0]))
            return ruled

        return self._by(module, steps)

    def _ruled(self, function: tirx.PrimFunc, name: str, seconds: float) -> _Found:
        ruled, scheduled = self._replays.by_rule(function, self._target, self._sizes, seconds)
        if ruled.failed:
            text = _("rules do not schedule it: {reason}", reason=ruled.reason)
            self._notes.append(Note(text=text, where=name, todo=_UNRULED))
        return ruled.primitives, scheduled

    def _by(
        self, module: tvm.IRModule, steps_of: Callable[[tirx.PrimFunc, str], _Found]
    ) -> tvm.IRModule:
        functions = Functions(module)
        by_hand = {name for name, _other in self._done}
        changed: dict[str, tuple[tirx.PrimFunc, Applied]] = {}
        for index, (name, structure) in enumerate(functions.structures.items()):
            self._check()
            self._at_function(name, index, len(functions.structures))
            if name in by_hand or schedule_for(self._schedules, name, structure) is not None:
                continue
            function = functions.by_name[name]
            steps, scheduled = steps_of(function, name)
            if steps:
                schedule = Schedule(function=name, structure=structure, primitives=steps)
                lines = partial(self._program, name, function, steps)
                changed[name] = scheduled, Applied(schedule, lines)
        return self._with(module, changed)

    def _program(
        self, name: str, function: tirx.PrimFunc, steps: tuple[Primitive, ...]
    ) -> tuple[str, ...]:
        return self._replays.replay(name, function, self._target, steps)[-1].code.lines

    def _with(
        self, module: tvm.IRModule, changed: Mapping[str, tuple[tirx.PrimFunc, Applied]]
    ) -> tvm.IRModule:
        self.applied.append(tuple(applied for _other, applied in changed.values()))
        if not changed:
            return module
        return with_functions(module, {name: each for name, (each, _other) in changed.items()})

    def notes(self) -> tuple[Note, ...]:
        """Return notes on primitives that were left out, and on schedules that fit no function."""
        return (*self._notes, *self._unfitting())

    def _unfitting(self) -> Iterator[Note]:
        for schedule, reason in self._reasons.items():
            if schedule not in self._fitting:
                name = joined("", (" (", shown_name(schedule.variant), ")"))
                yield Note(
                    text=_(
                        "the schedule{variant} of {function} no longer fits a function: {reason}",
                        variant=name if schedule.variant else "",
                        function=schedule.function,
                        reason=reason,
                    ),
                    where=schedule.function,
                    todo=_("schedule the function again, or switch the schedule off"),
                    code=SCHEDULE_NOTE,
                )


def not_tuned(function: str, ruled: tuple[Primitive, ...]) -> Note:
    """Return the note on a function without tuning results, and on the rule that was applied."""
    return Note(
        text=_("it was not tuned for this target, and is scheduled by a rule")
        if ruled
        else _("it was not tuned for this target, and is unscheduled, since no rule fits it"),
        where=function,
        todo=_("tune it: lowerscope tune SOURCE --function {function}", function=function),
        code=SCHEDULE_NOTE,
    )


def _left_out(state: Replayed) -> Iterator[Note]:
    for number, step in enumerate(state.steps, start=1):
        if step.error is not None:
            yield Note(
                text=_(
                    "step {number} of its schedule is skipped ({title}): {message}",
                    number=number,
                    title=step.title,
                    message=step.error.message,
                ),
                where=state.name,
                todo=_("change the step, or switch it off"),
                code=SCHEDULE_NOTE,
            )

"""The functions of a module that can be scheduled, with their schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import tvm
from tvm import tirx

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.schedules import Primitive, Schedule, schedule_for
from lowerscope.core.scheduling.replaying import Replayed, Replays
from lowerscope.core.scheduling.structure import structure_of
from lowerscope.core.tensorir_parts import prim_funcs_of

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

        Parameters
        ----------
        schedules
            Those of all functions.
        check
            Called before each primitive that has to be applied; may raise to cancel.
        begins
            Called with the schedule and each of them, then, and with ``None`` at the end.

        Raises
        ------
        LowerscopeError
            If there is no such function, or TVM cannot schedule it.
        """
        if function not in self.by_name:
            names = tuple(sorted(self.by_name))
            raise LowerscopeError(
                f"there is no TensorIR function {function!r} to schedule",
                where="schedule",
                todo=f"Choose one of {listed(names)}"
                if names
                else "Legalise the operators of the module, so that there are some",
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

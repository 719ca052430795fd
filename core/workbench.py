"""The workbench: what can be asked of the schedule of one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from lowerscope.core.comparing.module_difference import changed_lines
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe, applies_schedules
from lowerscope.core.records.schedule import (
    ByRule,
    Move,
    RuledFunction,
    ScheduleRecord,
    ScheduleStep,
)
from lowerscope.core.records.steps import Moment
from lowerscope.core.schedules import Reference, schedule_for
from lowerscope.core.scheduling.code import program
from lowerscope.core.scheduling.moves import moves
from lowerscope.core.scheduling.replaying import Replayed, Replays, state_at
from lowerscope.core.scheduling.work import calls_from_main
from lowerscope.core.stages import Stages


class Workbench:
    """Answers about schedules, from what the pipeline keeps.

    Parameters
    ----------
    stages
        Returns those of a recipe.
    replays
        What schedules and rules have come to.
    """

    def __init__(self, stages: Callable[[Recipe, Progress], Stages], replays: Replays) -> None:
        self._stages = stages
        self._replays = replays

    def schedule(
        self, recipe: Recipe, function: str, index: int | None, progress: Progress
    ) -> ScheduleRecord:
        """Return a function after the first primitives of its schedule.

        Parameters
        ----------
        index
            How many primitives; ``None`` for all.

        Raises
        ------
        LowerscopeError
            If there is no such function.
        """
        return _record(self._stages(recipe, progress), function, index, progress)

    def moves(
        self,
        recipe: Recipe,
        function: str,
        index: int | None,
        chosen: tuple[Reference, ...],
        progress: Progress,
    ) -> tuple[Move, ...]:
        """Return the primitives that could come next for what is chosen: see `moves`.

        They have no id yet: whoever adds one to the schedule gives it one.

        Parameters
        ----------
        index
            After how many primitives; all for ``None``.

        Raises
        ------
        LowerscopeError
            If there is no such function.
        """
        stages = self._stages(recipe, progress)
        states = stages.states(function)
        state = state_at(states, index)
        return moves(state.sch, chosen, state.outputs, stages.target)

    def by_rule(self, recipe: Recipe, function: str, progress: Progress) -> ByRule:
        """Return the primitives that the first rule writes that fits a function.

        Raises
        ------
        LowerscopeError
            If there is no such function.
        """
        stages = self._stages(recipe, progress)
        state = stages.states(function)[0]
        return self._replays.by_rule(state.function, stages.target)

    def rules(self, recipe: Recipe, progress: Progress) -> tuple[RuledFunction, ...]:
        """Return what the rules make of the functions before the first step that schedules them.

        Functions of one structure are one of them.
        """
        stages = self._stages(recipe, progress)
        functions = stages.functions
        calls = calls_from_main(stages.unscheduled.module)
        schedules = recipe.schedules if applies_schedules(recipe) else ()
        found: list[RuledFunction] = []
        told: set[str] = set()
        for name, function in functions.by_name.items():
            structure = functions.structures[name]
            if structure in told:
                continue
            told.add(structure)
            progress.report(f"Scheduling {name} by rule", len(found) / len(functions.by_name))
            ruled = self._replays.by_rule(function, stages.target)
            twins = functions.twins(name)
            by_hand = schedule_for(schedules, name, structure) is not None
            found.append(
                RuledFunction(
                    function=name,
                    twins=twins,
                    calls=sum(calls.get(each, 0) for each in (name, *twins)),
                    by_hand=by_hand,
                    rule=ruled.rule,
                    steps=len(ruled.primitives),
                    reason=ruled.reason,
                )
            )
        return tuple(found)


def _record(stages: Stages, function: str, index: int | None, progress: Progress) -> ScheduleRecord:
    states = stages.states(function)
    state = state_at(states, index)
    at = len(state.steps)
    moment = Moment(clock="schedule", index=at, function=function)
    progress.check()
    return ScheduleRecord(
        function=function,
        structure=stages.functions.structures[function],
        index=at,
        script=state.script,
        changed=changed_lines(stages, moment, state.script),
        tree=state.tree,
        buffers=state.buffers,
        steps=_steps(states),
        code=program(function, states[-1].code),
        twins=stages.functions.twins(function),
    )


def _steps(states: Sequence[Replayed]) -> tuple[ScheduleStep, ...]:
    """Return the records of the primitives, with those that changed nothing marked."""
    return tuple(
        step
        if step.status != "done" or before.text != after.text
        else msgspec.structs.replace(step, changes=False)
        for step, (before, after) in zip(states[-1].steps, pairwise(states), strict=True)
    )

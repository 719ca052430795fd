"""The workbench: what can be asked of the schedule of one function."""

from __future__ import annotations

from collections.abc import Callable

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.rendering.line_matching import matching_lines
from lowerscope.core.schedule_records import ByRule, Move, ScheduleRecord
from lowerscope.core.schedules import Reference
from lowerscope.core.scheduling.code import program
from lowerscope.core.scheduling.moves import moves
from lowerscope.core.scheduling.replaying import Replayed, state_at
from lowerscope.core.scheduling.rules.by_rule import by_rule
from lowerscope.core.stages import Stages


class Workbench:
    """Answers about schedules, from what the pipeline keeps.

    Parameters
    ----------
    stages
        Returns those of a recipe.
    """

    def __init__(self, stages: Callable[[Recipe, Progress], Stages]) -> None:
        self._stages = stages

    def schedule(
        self, recipe: Recipe, function: str, index: int | None, progress: Progress
    ) -> ScheduleRecord:
        """Return the record of a schedule, if its function is kept: see `derived_schedule`.

        Raises
        ------
        LowerscopeError
            With the code ``"not-kept"`` if the module would have to be derived first.
        """
        return _record(self.kept(recipe, progress), function, index, progress)

    def derived_schedule(
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
            With the code ``"not-kept"`` if the module would have to be derived first; if there is
            no such function.
        """
        stages = self.kept(recipe, progress)
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
        return by_rule(state.function, stages.target)

    def kept(self, recipe: Recipe, progress: Progress) -> Stages:
        """Return the stages of a recipe whose functions are kept.

        Raises
        ------
        LowerscopeError
            With the code ``"not-kept"`` if the module would have to be derived first.
        """
        stages = self._stages(recipe, progress)
        if not stages.is_kept(stages.unscheduled_key):
            raise LowerscopeError("the module is not kept", code="not-kept")
        return stages


def _record(stages: Stages, function: str, index: int | None, progress: Progress) -> ScheduleRecord:
    states = stages.states(function)
    state = state_at(states, index)
    at = len(state.steps)
    progress.check()
    return ScheduleRecord(
        function=function,
        structure=stages.functions.structures[function],
        index=at,
        script=state.script,
        changed=_changed(states[at - 1], state) if at else (),
        tree=state.tree,
        buffers=state.buffers,
        steps=states[-1].steps,
        code=program(function, states[-1].code),
        twins=stages.functions.twins(function),
    )


def _changed(before: Replayed, after: Replayed) -> tuple[int, ...]:
    """Return the lines of a script, from 1, that are not in the one before, however indented."""
    if before.sch is after.sch:
        return ()
    old, new = ([line.strip() for line in each.script.text.split("\n")] for each in (before, after))
    same = {
        second + offset
        for _, second, length in matching_lines(old, new)
        for offset in range(length)
    }
    return tuple(number + 1 for number in range(len(new)) if number not in same)

"""Schedules of functions: their steps, their legal primitives, and the rules that fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    ByRuleQuery,
    MovesQuery,
    RulesQuery,
    ScheduleProgramQuery,
    ScheduleQuery,
    answers,
)
from lowerscope.core.model.recipe import Recipe, applies_schedules
from lowerscope.core.model.schedule import APPLY_SCHEDULES, schedule_for
from lowerscope.core.model.schedule_records import (
    ByRule,
    Move,
    RuledFunction,
    ScheduleRecord,
    ScheduleStep,
)
from lowerscope.core.schedule.code import program, program_by_name
from lowerscope.core.schedule.moves import moves
from lowerscope.core.schedule.replay import Replayed, state_at
from lowerscope.core.schedule.table import check_schedules
from lowerscope.core.schedule.work import calls_from_main
from lowerscope.core.stages import Stages
from lowerscope.core.views.module_difference import changed_lines


def _has_functions(query: ScheduleQuery | MovesQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_functions()


@answers(ScheduleQuery, _has_functions)
def schedule(query: ScheduleQuery, pipeline: Pipeline, job: Progress) -> ScheduleRecord:
    """Return a function after the first primitives of its schedule.

    Raises `LowerscopeError` if there is no such function.
    """
    return _record(pipeline.stages(query.recipe, job), query.function, query.index, job)


@answers(MovesQuery, _has_functions)
def legal_primitives(query: MovesQuery, pipeline: Pipeline, job: Progress) -> tuple[Move, ...]:
    """Return the primitives that are legal next for the selection: see `moves`.

    They have no id yet: the caller assigns one on adding it to the schedule.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    state = state_at(stages.states(query.function), query.index)
    return moves(state.sch, query.chosen, state.outputs, stages.target)


@answers(ByRuleQuery)
def by_rule(query: ByRuleQuery, pipeline: Pipeline, job: Progress) -> ByRule:
    """Return the primitives of the first rule that fits a function.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    state = stages.states(query.function)[0]
    return pipeline.replays.by_rule(state.function, stages.target)


@answers(RulesQuery)
def rules(query: RulesQuery, pipeline: Pipeline, job: Progress) -> tuple[RuledFunction, ...]:
    """Return the outcome of the rules for the functions before the first step that schedules them.

    Functions of one structure are one of them.
    """
    recipe = query.recipe
    stages = pipeline.stages(recipe, job)
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
        job.report(f"Scheduling {name} by rule", len(found) / len(functions.by_name))
        ruled = pipeline.replays.by_rule(function, stages.target)
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
    moment = Moment(section="schedule", index=at, function=function)
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


@answers(ScheduleProgramQuery)
def schedule_program(query: ScheduleProgramQuery, _pipeline: Pipeline, _job: Progress) -> str:
    """Return a schedule as a Python program."""
    return program_by_name(query.schedule)


def check_recipe_schedules(pipeline: Pipeline, recipe: Recipe) -> None:
    """Reject schedules that do not fit the model that they are to be applied to.

    Raises `LowerscopeError`: see `table.check_schedules`.
    """
    # Where several steps apply schedules, the functions of a schedule may be made after the first.
    if sum(step.name == APPLY_SCHEDULES and step.on for step in recipe.steps) == 1:
        structures = pipeline.stages(recipe).functions.structures
        check_schedules(recipe.schedules, structures, "--schedule")

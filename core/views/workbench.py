"""Schedules of functions: their steps, legal primitives with forms and help, and fitting rules."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

import msgspec
import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from lowerscope.core.build.build import compile_function
from lowerscope.core.build.remarks import scalar_loops, spills_of
from lowerscope.core.ir.tensorir import known
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    ByRuleQuery,
    CoachQuery,
    CompiledCoachQuery,
    MovesQuery,
    RulesQuery,
    ScheduleProgramQuery,
    ScheduleQuery,
    answers,
)
from lowerscope.core.model.recipe import Recipe, applies_schedules
from lowerscope.core.model.schedule import Argument, At, Made, Primitive, Reference, schedule_for
from lowerscope.core.model.schedule_records import (
    Advice,
    ByRule,
    Coaching,
    Field,
    Move,
    RuledFunction,
    ScheduleRecord,
    ScheduleStep,
    StepError,
)
from lowerscope.core.model.texts import _, language
from lowerscope.core.run.function_metrics import calls_from_main, kept_peaks, peaks_key
from lowerscope.core.schedule.applying import apply, buffer_names
from lowerscope.core.schedule.coach import advice, compiled_advice, with_cures
from lowerscope.core.schedule.code import program, program_by_name
from lowerscope.core.schedule.index_maps import axes_of, block_axes
from lowerscope.core.schedule.nests import caches_here
from lowerscope.core.schedule.price import Rates, predicted_ms, rates_here
from lowerscope.core.schedule.primitive import FunctionSelection, PrimitiveSpec
from lowerscope.core.schedule.primitive_table import PRIMITIVES
from lowerscope.core.schedule.references import (
    Outputs,
    function_of,
    places,
    references,
    resolve,
    stmt_of,
)
from lowerscope.core.schedule.replay import Replayed, state_at
from lowerscope.core.schedule.step_errors import StepFailed
from lowerscope.core.stages import Pipeline, Stages, has_functions
from lowerscope.core.views.module_difference import changed_lines

MAX_TRIES = 8
"""Attempts for a primitive before it is greyed out."""


def moves(
    sch: Schedule,
    chosen: tuple[Reference, ...],
    outputs: Outputs,
    target: tvm.target.Target,
    *,
    step: str = "",
    rates: Rates | None = None,
) -> tuple[Move, ...]:
    """Return the primitives for the selection, legal or not, with the reason.

    `sch`: the function alone in its module; it is not changed. `step`: id of the primitives that it
    returns. `rates`: of the machine that times are predicted for. In the order of `PRIMITIVES`;
    those for another kind of selection are left out.
    """
    site = _site(sch, chosen, outputs, target)
    found = (_move(site, entry, step, rates) for entry in PRIMITIVES.values())
    return tuple(move for move in found if move is not None)


def _site(
    sch: Schedule, chosen: tuple[Reference, ...], outputs: Outputs, target: tvm.target.Target
) -> FunctionSelection:
    found = tuple(places(function_of(sch)))
    by_stmt = references(sch, outputs)
    indices = {place.stmt: index for index, place in enumerate(found)}
    looking = sch.copy()
    selected: list[int] = []
    for reference in chosen:
        try:
            stmt = stmt_of(looking, resolve(looking, reference, outputs))
        except StepFailed:
            continue
        if stmt in indices:
            selected.append(indices[stmt])
    return FunctionSelection(
        sch=sch,
        target=target,
        found=found,
        # A loop without a block cannot be named, nor changed.
        named=tuple(by_stmt.get(place.stmt) for place in found),  # type: ignore[misc]
        outputs=outputs,
        chosen=tuple(selected),
    )


def _move(
    site: FunctionSelection, entry: PrimitiveSpec, step: str, rates: Rates | None
) -> Move | None:
    first: Primitive | None = None
    unsafe: tuple[Primitive, StepError] | None = None
    error = StepError(message="")
    for primitive in _tried(site, entry, step):
        after = _applied(site, primitive)
        if not isinstance(after, StepError):
            made = _made(site, entry, primitive, StepError(message=""))
            predicted = None if rates is None else predicted_ms(function_of(after), rates)
            return msgspec.structs.replace(made, predicted_ms=predicted)
        refused = after
        if refused.unsafe:
            anyway = _applied(site, msgspec.structs.replace(primitive, forced=True))
            if isinstance(anyway, StepError):
                refused = anyway
            else:
                unsafe = unsafe or (primitive, refused)
        if first is None:
            first, error = primitive, refused
    if unsafe is not None:
        return _made(site, entry, *unsafe)
    return None if first is None else _made(site, entry, first, error)


def _applied(site: FunctionSelection, primitive: Primitive) -> Schedule | StepError:
    """Return the schedule after a primitive, or why it is not applied."""
    try:
        return apply(site.sch, primitive, site.outputs, site.target).sch
    except StepFailed as failed:
        return failed.error


def _tried(site: FunctionSelection, entry: PrimitiveSpec, step: str) -> Iterator[Primitive]:
    for arguments in itertools.islice(entry.candidates(site), MAX_TRIES):
        whole = {field.name: field.default for field in entry.parameters} | arguments
        yield Primitive(id=step, name=entry.name, arguments=whole)


def _made(
    site: FunctionSelection, entry: PrimitiveSpec, primitive: Primitive, error: StepError
) -> Move:
    text = help_texts()[entry.name]
    return Move(
        name=entry.name,
        title=entry.offer,
        group=entry.group,
        help=text.help,
        before=text.before,
        after=text.after,
        legal=not error.message,
        primitive=primitive,
        reason=error.message,
        unsafe=error.unsafe,
        fields=form(site, entry, primitive.arguments),
    )


def form(
    site: FunctionSelection, entry: PrimitiveSpec, arguments: Mapping[str, Argument]
) -> tuple[Field, ...]:
    """Return the fields of a primitive, with `arguments` as their initial values."""
    stmts = {
        name: _stmt(site, argument)
        for name, argument in arguments.items()
        if isinstance(argument, Made | At)
    }
    return tuple(_filled(site, field, entry, arguments, stmts) for field in entry.parameters)


def _stmt(site: FunctionSelection, argument: Made | At) -> Any:
    sch = site.sch.copy()
    try:
        return stmt_of(sch, resolve(sch, argument, site.outputs))
    except StepFailed:
        return None


def _filled(
    site: FunctionSelection,
    field: Field,
    entry: PrimitiveSpec,
    arguments: Mapping[str, Argument],
    stmts: Mapping[str, Any],
) -> Field:
    changes: dict[str, Any] = {"default": arguments.get(field.name, field.default)}
    block, target = stmts.get("block"), next(iter(stmts.values()), None)
    if field.kind == "factors" and isinstance(target, tirx.For) and entry.name == "split":
        changes["product"] = known(target.extent)
    elif field.name in entry.choices and target is not None:
        changes["choices"] = entry.choices[field.name](site, target)
    elif field.kind == "buffer" and block is not None:
        changes["choices"] = tuple(buffer_names(block, field.name))
    elif field.kind == "order" and block is not None:
        changes["choices"] = block_axes(block)
    elif field.kind == "index map" and block is not None:
        changes["choices"] = axes_of(block, arguments.get("buffer"))
    return msgspec.structs.replace(field, **changes)


PAGE = "primitives.md"

_SECTION = re.compile(
    r"^### (?P<name>\w+)\n\n(?P<help>.*?)\n\n"
    r"(?:Before:\n\n```tvmscript\n(?P<before>.*?)\n```\n\n"
    r"After `(?P<call>[^\n]*)`:\n\n```tvmscript\n(?P<after>.*?)\n```\n)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class HelpText:
    """Help on a primitive.

    `before` and `after`: the loops of an example, in TVMScript; empty without one.
    """

    help: str
    before: str = ""
    after: str = ""
    call: str = ""


def page(code: str = "en") -> str:
    """Return the page of all primitives in a language; the English one if there is no other."""
    folder = resources.files("lowerscope.resources") / "help"
    translated = folder / code / PAGE
    return (translated if translated.is_file() else folder / PAGE).read_text(encoding="utf-8")


@cache
def help_texts() -> dict[str, HelpText]:
    """Return the help texts of the page, by names of primitives."""
    said = {found["name"]: found["help"] for found in _SECTION.finditer(page(language()) + "\n")}
    return {
        found["name"]: HelpText(
            help=" ".join(said.get(found["name"], found["help"]).split()),
            before=found["before"] or "",
            after=found["after"] or "",
            call=found["call"] or "",
        )
        for found in _SECTION.finditer(page() + "\n")
    }


@answers(ScheduleQuery, has_functions)
def schedule(query: ScheduleQuery, pipeline: Pipeline, job: Progress) -> ScheduleRecord:
    """Return a function after the first primitives of its schedule.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    record = _record(stages, query.function, query.index, job)
    if not query.priced:
        return record
    function = state_at(stages.states(query.function), query.index).function
    predicted = predicted_ms(function, _rates(stages, query.recipe))
    return msgspec.structs.replace(record, predicted_ms=predicted)


@answers(MovesQuery, has_functions)
def legal_primitives(query: MovesQuery, pipeline: Pipeline, job: Progress) -> tuple[Move, ...]:
    """Return the primitives that are legal next for the selection: see `moves`.

    They have no id yet: the caller assigns one on adding it to the schedule.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    state = state_at(stages.states(query.function), query.index)
    rates = _rates(stages, query.recipe)
    return moves(state.sch, query.chosen, state.outputs, stages.target, rates=rates)


def _rates(stages: Stages, recipe: Recipe) -> Rates:
    """Return the rates of this machine, from its peaks if they were measured."""
    threads = recipe.threads or MACHINE
    return rates_here(stages.target, kept_peaks(peaks_key(recipe.target, threads)))


@answers(CoachQuery, has_functions)
def coach(query: CoachQuery, pipeline: Pipeline, job: Progress) -> Coaching:
    """Return what makes a function slow after the first primitives of its schedule.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    function = state_at(stages.states(query.function), query.index).function
    rates = _rates(stages, query.recipe)
    warnings = warnings_on(function, stages)
    return Coaching(
        predicted_ms=predicted_ms(function, rates),
        advice=with_cures(warnings, function, stages.target, rates, job.check),
    )


def warnings_on(function: tirx.PrimFunc, stages: Stages) -> tuple[Advice, ...]:
    """Return what makes a function slow on this machine, without cures."""
    return tuple(advice(function, _rates(stages, stages.recipe).machine, caches_here()))


@answers(CompiledCoachQuery)
def coach_by_code(
    query: CompiledCoachQuery, pipeline: Pipeline, job: Progress
) -> tuple[Advice, ...]:
    """Return what makes a function slow in its machine code: see `compiled_advice`.

    Raises `LowerscopeError` if there is no such function, or TVM fails to compile it.
    """
    stages = pipeline.stages(query.recipe, job)
    function = state_at(stages.states(query.function), query.index).function
    rates, target = _rates(stages, query.recipe), stages.target
    try:
        assembly = compile_function(query.function, function, target).mod.inspect_source("asm")
        found = compiled_advice(
            function, rates.machine, scalar_loops(function, target), spills_of(assembly)
        )
    except TVM_ERRORS as error:
        raise LowerscopeError(
            _("TVM could not compile the function: {last_line}", last_line=last_line(error)),
            where="build",
        ) from error
    return with_cures(found, function, target, rates, job.check)


@answers(ByRuleQuery)
def by_rule(query: ByRuleQuery, pipeline: Pipeline, job: Progress) -> ByRule:
    """Return the primitives of the first rule that fits a function.

    Raises `LowerscopeError` if there is no such function.
    """
    stages = pipeline.stages(query.recipe, job)
    state = stages.states(query.function)[0]
    return pipeline.replays.by_rule(state.function, stages.target, stages.usual_sizes)[0]


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
        job.report(_("Scheduling {name} by rules", name=name), len(found) / len(functions.by_name))
        ruled, _scheduled = pipeline.replays.by_rule(function, stages.target, stages.usual_sizes)
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

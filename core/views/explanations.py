"""Explanations of passes and of schedules, in words, with the change that would alter them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial

import msgspec
from tvm_ffi import structural_equal

from lowerscope.core.model.explanation_records import Change, Explanation
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import (
    ChangingPassesQuery,
    ReasonsQuery,
    WhyFunctionQuery,
    WhyPassQuery,
    answers,
)
from lowerscope.core.model.recipe import Recipe, Step
from lowerscope.core.model.schedule import APPLY_RULES, APPLY_TUNED, SCHEDULING, Primitive
from lowerscope.core.model.texts import _, _n, capitalized, english, joined, without_stop
from lowerscope.core.passes.recording import PassRun
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.function_metrics import calls_from_main, flops_of
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.module_difference import module_difference
from lowerscope.core.views.unchanged import why_unchanged
from lowerscope.core.views.workbench import warnings_on


@answers(WhyPassQuery)
def why_pass(query: WhyPassQuery, pipeline: Pipeline, job: Progress) -> Explanation:
    """Return what a pass changed, or why it changed nothing, with a change of the pipeline.

    Raises `LowerscopeError` if there is no such pass, or it cannot be applied.
    """
    recipe, name = query.recipe, query.step.name.removeprefix("relax.")
    steps = recipe.steps
    places = [n for n, step in enumerate(steps) if step.name.removeprefix("relax.") == name]
    if not places:
        tried = msgspec.structs.replace(recipe, steps=(*steps, query.step))
        answer = _pass_answer(pipeline, tried, len(steps) + 1, job)
        text = _(
            "{name} is not in the pipeline. Tried at its end: {text}", name=name, text=answer.text
        )
        answer = msgspec.structs.replace(answer, text=text, cites=answer.cites[1:])
        if answer.cause != "changed":
            change = _enabling(pipeline, tried, len(steps), job)
            return msgspec.structs.replace(answer, change=change)
        change = Change(text=_("Add {name}", name=name), steps=tried.steps)
        return msgspec.structs.replace(answer, cause="pass-missing", change=change)
    on = [place for place in places if steps[place].on]
    if not on:
        (place, *_others) = places
        step = msgspec.structs.replace(steps[place], on=True)
        return Explanation(
            by=name,
            cause="pass-off",
            text=_("Step {place} ({name}) is off", place=place + 1, name=name),
            cites=(_step(place + 1),),
            change=Change(
                text=_("Switch it on"), steps=(*steps[:place], step, *steps[place + 1 :])
            ),
        )
    found = [(place, _pass_answer(pipeline, recipe, place + 1, job)) for place in on]
    unchanged = ((place, answer) for place, answer in found if answer.cause != "changed")
    place, answer = next(unchanged, found[0])
    if answer.cause == "changed":
        return answer
    return msgspec.structs.replace(answer, change=_enabling(pipeline, recipe, place, job))


def _step(place: int) -> str:
    return _("step {place}", place=place)


def _run(stages: Stages, place: int) -> tuple[int, PassRun]:
    """Return the number and the run of a step, counted from 1."""
    transformed = stages.transformed
    for number, run in enumerate(transformed.runs, start=1):
        if run.step == place and run.depth == 0 and run.after is not None:
            return number, run
    transformed.check()
    raise LowerscopeError(
        _("step {place} of the pipeline was not applied", place=place), where="why"
    )


def _pass_answer(pipeline: Pipeline, recipe: Recipe, place: int, job: Progress) -> Explanation:
    stages = pipeline.stages(recipe, job)
    number, run = _run(stages, place)
    moment = Moment(section="passes", index=number)
    sides = (
        ComparedModule(recipe=recipe, moment=moment, before=True),
        ComparedModule(recipe=recipe, moment=moment),
    )
    difference = module_difference(stages, stages, sides)
    kinds = {"relax": "relax:", "tensorir": "tir:"}
    touched = [
        kinds.get(each.kind, "") + each.name
        for each in difference.functions
        if each.status != "same"
    ]
    unmet = None if touched else why_unchanged(run.name, run.before)
    text, cites = without_stop(difference.sentence), (_step(place),)
    if touched:
        return Explanation(by=run.name, cause="changed", text=text, cites=(*cites, *touched))
    if unmet is None:
        text = _("{sentence}, and the reason is not known", sentence=text)
        return Explanation(by=run.name, cause="unknown", text=text, cites=cites)
    return Explanation(by=run.name, cause="unmet", text=text, cites=(*cites, *unmet.cites))


def _enabling(pipeline: Pipeline, recipe: Recipe, place: int, job: Progress) -> Change | None:
    """Return a change by which a pass would change something; ``None`` if none is known.

    It has been tried.
    """
    stages = pipeline.stages(recipe, job)
    _number, run = _run(stages, place + 1)
    unmet = why_unchanged(run.name, run.before)
    if unmet is None or not unmet.needs:
        return None
    before = recipe.steps[:place]
    on = {run.name, *(step.name for step in before if step.on)}
    added = tuple(Step(name=each) for each in unmet.needs if each not in on)
    steps = (*before, *added, *recipe.steps[place:])
    changed = msgspec.structs.replace(recipe, steps=steps)
    try:
        answer = _pass_answer(pipeline, changed, place + 1 + len(added), job)
    except LowerscopeError:
        return None
    if not added or answer.cause != "changed":
        return None
    names = listed([each.name for each in added])
    return Change(text=_("Add {names} before it", names=names), steps=steps)


@answers(ChangingPassesQuery)
def changing_passes(
    query: ChangingPassesQuery, pipeline: Pipeline, job: Progress
) -> tuple[str, ...]:
    """Return the passes that would change something, in the order of the catalogue.

    Raises `LowerscopeError` if one of the steps before cannot be applied.
    """
    recipe = msgspec.structs.replace(query.recipe, steps=query.recipe.steps[: query.place])
    stages = pipeline.stages(recipe, job)
    before = stages.completed
    types = [each.type for each in stages.passes.values()]
    names = [
        each.name
        for each in types
        if not each.hindrance and not any(option.required for option in each.options)
    ]
    script = cache(before.script)
    found = []
    for number, name in enumerate(names):
        job.report(_("Trying {name}", name=name), number / len(names))
        step = Step(name=name)
        if name in SCHEDULING:
            tried = msgspec.structs.replace(recipe, steps=(*recipe.steps, step))
            made = pipeline.stages(tried, job).transformed
        else:
            values, target = stages.parameters, stages.target
            with warnings.catch_warnings(action="ignore"):  # of renamed passes
                made = transform(before, (step,), job.check, values, stages.passes, target)
        after = made.module
        if (
            made.problem is None
            and not after.same_as(before)
            and not structural_equal(after, before)
            and after.script() != script()
        ):
            found.append(name)
    return tuple(found)


# --- Schedules ---


@answers(WhyFunctionQuery)
def why_scheduled(query: WhyFunctionQuery, pipeline: Pipeline, job: Progress) -> Explanation:
    """Return by which schedule or rule a function is scheduled and why so, or why it is not.

    Raises `LowerscopeError` if there is no such function.
    """
    recipe, name = query.recipe, query.function.removeprefix("tir:")
    stages = pipeline.stages(recipe, job)
    function = stages.states(name)[0].function
    cites = (f"tir:{name}",)
    applied = _applied(stages, name)
    ruled = pipeline.replays.by_rule(function, stages.target, stages.usual_sizes)[0]
    rule = _("the rule {name}", name=ruled.rule)
    if applied is None:
        if not ruled.primitives:
            text = _("rules cannot schedule it: {reason}", reason=ruled.reason)
            return Explanation(cause="no-rule", text=capitalized(text), cites=cites)
        text = _("no step of the pipeline schedules it; {rule} would", rule=rule)
        change = Change(text=_("Add {name}", name=APPLY_RULES), steps=_with_rules(recipe.steps))
        return Explanation(
            cause="not-scheduled", text=capitalized(text), cites=cites, change=change
        )
    step, primitives = applied
    by = f"rule: {ruled.rule}" if primitives == ruled.primitives else "schedule"
    if by == "schedule" and step == APPLY_TUNED:
        by = "tuning"
    who = {"schedule": _("the recipe's schedule"), "tuning": _("the result of tuning")}.get(
        by, rule
    )
    text = _n(
        "{step} scheduled it by {who}, in {count} step",
        "{step} scheduled it by {who}, in {count} steps",
        len(primitives),
        step=step,
        who=who,
    )
    replayed = pipeline.replays.replay(name, function, stages.target, primitives, job.check)[-1]
    lines = [
        _("{title}: {comment}", title=done.title, comment=done.comment)
        if done.comment
        else done.title
        for done in replayed.steps
    ]
    if lines:
        steps = (
            joined("", (f"\n  {number}. ", line)) for number, line in enumerate(lines, start=1)
        )
        text = joined("", (_("{text}:", text=text), *steps))
    return Explanation(by=by, cause="scheduled", text=text, cites=cites)


MOST_FUNCTIONS = 8
"""Functions, those with most work first, that a report explains."""


@answers(ReasonsQuery)
def reasons(query: ReasonsQuery, pipeline: Pipeline, job: Progress) -> tuple[tuple[str, str], ...]:
    """Return what a report says of the passes and of the functions with most work, in English.

    One that cannot be explained has its problem in place of the reason.
    """
    recipe = query.recipe
    stages = pipeline.stages(recipe, job)
    calls, functions = calls_from_main(stages.unscheduled.module), stages.functions.by_name
    work = {name: (flops_of(each) or 0.0) * calls.get(name, 0) for name, each in functions.items()}
    asked: list[tuple[str, Callable[[], str]]] = [
        (f"{place} {step.name}", partial(_of_pass, pipeline, recipe, place, job))
        for place, step in enumerate(recipe.steps, start=1)
        if step.on
    ]
    asked += [
        (name, partial(_of_function, pipeline, recipe, name, job))
        for name in sorted(work, key=lambda each: -work[each])[:MOST_FUNCTIONS]
    ]
    found = []
    for number, (about, answer) in enumerate(asked):
        job.report(_("Explaining {name}", name=about), number / len(asked))
        try:
            found.append((about, answer()))
        except LowerscopeError as error:
            found.append((about, english(error.problem.what)))
    return tuple(found)


def _of_pass(pipeline: Pipeline, recipe: Recipe, place: int, job: Progress) -> str:
    return english(capitalized(_pass_answer(pipeline, recipe, place, job).text))


def _of_function(pipeline: Pipeline, recipe: Recipe, name: str, job: Progress) -> str:
    """Return how a function is scheduled and what makes it slow on this machine."""
    stages = pipeline.stages(recipe, job)
    answer = why_scheduled(WhyFunctionQuery(recipe, name), pipeline, job)
    texts = [english(answer.text).partition("\n")[0].rstrip(":")]
    if recipe.remote is None:
        applied, function = _applied(stages, name), stages.functions.by_name[name]
        if applied is not None:
            _step, steps = applied
            states = pipeline.replays.replay(name, function, stages.target, steps, job.check)
            function = states[-1].function
        texts += [f"{each.block}: {english(each.text)}" for each in warnings_on(function, stages)]
    return ". ".join(texts)


def _applied(stages: Stages, function: str) -> tuple[str, tuple[Primitive, ...]] | None:
    """Return the step that scheduled a function, and its primitives; ``None`` if none did."""
    transformed = stages.transformed
    scheduling = [
        run.name
        for run in transformed.runs
        if run.depth == 0 and run.after is not None and run.name in SCHEDULING
    ]
    for name, schedules in zip(scheduling, transformed.schedules, strict=False):
        for each in schedules:
            if each.schedule.function == function:
                return name, each.schedule.primitives
    return None


def _with_rules(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps with the one that schedules by rules, behind those that make functions."""
    making = ("LegalizeOps", "FuseTIR")
    places = [place for place, step in enumerate(steps) if step.name in making]
    end = places[-1] + 1 if places else len(steps)
    return (*steps[:end], Step(name=APPLY_RULES), *steps[end:])

"""Comparison of the counted, the marked and the shown changes of each step of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lowerscope.app.document.stepping import StepLine, node_lines, pass_lines, schedule_lines
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.module_steps import ComparedModule, FunctionDifference, Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import ByRuleQuery, ScheduleQuery
from lowerscope.core.model.recipe import Recipe, Source, Strategy
from lowerscope.core.model.schedule import Schedule
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.views.module_difference import module_difference
from lowerscope.core.views.source_text import write_text
from lowerscope.core.views.translation import translation_records


@dataclass
class Compared:
    """Counts of what was compared, and what did not agree.

    Attributes
    ----------
    steps, changing
        Steps, and those of them that changed something.
    marked
        Texts with marked lines.
    found
        A line for each contradiction.
    """

    steps: int = 0
    changing: int = 0
    marked: int = 0
    found: list[str] = field(default_factory=list)


def recipe_of(sample: str, preset: str, lowering: Strategy = "high-level") -> Recipe:
    """Return a recipe of a sample with the steps of a preset."""
    source = Source(spec=f"sample:{sample}")
    return Recipe(source=source, steps=find_pipeline(preset).steps, lowering=lowering)


def with_rules_as_schedules(pipeline: Pipeline, recipe: Recipe) -> Recipe:
    """Return a recipe with what the rules write for each function as schedules of its own."""
    schedules = []
    for function in pipeline.stages(recipe).functions.by_name:
        primitives = pipeline.answer(ByRuleQuery(recipe, function)).primitives
        if primitives:
            schedules.append(Schedule(function=function, primitives=primitives))
    return Recipe(
        source=recipe.source,
        steps=recipe.steps,
        lowering=recipe.lowering,
        schedules=tuple(schedules),
    )


def compare_steps(pipeline: Pipeline, recipe: Recipe) -> Compared:
    """Compare count, marks and difference of all steps: of nodes, passes, schedules and build."""
    compared = Compared()
    stages = pipeline.stages(recipe)
    for start, lines in _lines(pipeline, stages, recipe).items():
        for line in lines:
            if line.status != "done":
                continue
            moment = Moment(section=start.section, index=line.number, function=start.function)
            where = f"{recipe.source.spec} {start.section} {line.label} {line.title}"
            compared.steps += 1
            compared.changing += bool(line.changed)
            found = _of_step(pipeline, stages, recipe, moment, line, compared)
            compared.found += (f"{where}: {each}" for each in found)
    return compared


def _lines(
    pipeline: Pipeline, stages: Stages, recipe: Recipe
) -> Mapping[Moment, tuple[StepLine, ...]]:
    traced, lowered = stages.traced, stages.lowered
    nodes: tuple[StepLine, ...] = ()
    if traced is not None and lowered is not None:
        bounds = stages.transformed.walked.of(stages.module)
        nodes = node_lines(translation_records(lowered, traced.graph_module, bounds))
    return {
        Moment(section="translate", index=0): nodes,
        Moment(section="passes", index=0): pass_lines(pass_records(stages.transformed.runs)),
        Moment(section="build", index=0): pass_lines(stages.recorded.records()),
        **{
            Moment(section="schedule", index=0, function=each.function): schedule_lines(
                each.function, pipeline.answer(ScheduleQuery(recipe, each.function, None)).steps
            )
            for each in recipe.schedules
        },
    }


def _of_step(
    pipeline: Pipeline,
    stages: Stages,
    recipe: Recipe,
    moment: Moment,
    line: StepLine,
    compared: Compared,
) -> Iterator[str]:
    sides = (
        ComparedModule(recipe=recipe, moment=moment, before=True),
        ComparedModule(recipe=recipe, moment=moment),
    )
    difference = module_difference(stages, stages, sides)
    shown = {each.name: each for each in difference.functions if each.status != "same"}
    if set(line.changed) != set(shown):
        yield f"counted {sorted(line.changed)}, shown {sorted(shown)}"
    if moment.section == "schedule":
        record = pipeline.answer(ScheduleQuery(recipe, moment.function, moment.index))
        compared.marked += bool(record.changed)
        if bool(record.changed) != (moment.function in shown):
            yield f"lines {record.changed} are marked, shown {sorted(shown)}"
        return
    left = {name for name, each in shown.items() if each.status != "removed"}
    tensorir = {name for name in left if shown[name].kind == "tensorir"}
    for name in ("", *sorted(tensorir)):
        try:
            text = write_text(stages, "script", name, moment)
        except LowerscopeError:
            continue
        compared.marked += bool(text.changed)
        wanted = {name} if name else left - tensorir
        yield from _of_text(text, shown, wanted)


def _of_text(
    record: TextRecord, shown: Mapping[str, FunctionDifference], wanted: set[str]
) -> Iterator[str]:
    assert record.changed is not None
    spans = {span.entity.partition(":")[2]: span for span in record.spans if "/" not in span.entity}
    marks = {
        name: [line for line in record.changed if span.first <= line <= span.last]
        for name, span in spans.items()
    }
    marked = {name for name, lines in marks.items() if lines}
    if marked != wanted:
        yield f"marked {sorted(marked)}, shown {sorted(wanted)}"
    lines = record.text.split("\n")
    for name in marked & wanted:
        function = shown[name]
        new = function.new.split("\n")
        differing = {
            new[number - 1].strip()
            for run in function.runs
            if run.status in ("changed", "added", "moved-in")
            for number in range(run.new, run.new + run.length)
        }
        known = {lines[line - 1].strip() for line in marks[name]}
        if differing and len(known) > len(differing):
            yield f"{name}: {len(known)} lines marked, {len(differing)} shown"

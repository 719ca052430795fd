"""Comparison of the counted, the marked and the shown changes of each pass of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lowerscope.app.step_lines import StepLine, pass_lines
from lowerscope.core.comparing.module_difference import module_difference
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.passes.presets import find_pipeline
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.recipe import Recipe, Source
from lowerscope.core.records.difference import FunctionDifference, Side
from lowerscope.core.records.snapshot import TextRecord
from lowerscope.core.records.steps import Clock, Moment
from lowerscope.core.stages import Stages
from lowerscope.core.texts import write_text


def contradictions(pipeline: Pipeline, sample: str, preset: str) -> Iterator[str]:
    """Yield the passes of which count, marks and difference do not say the same."""
    steps = find_pipeline(preset).steps
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), steps=steps)
    stages = pipeline.stages(recipe)
    for clock, lines in _lines(stages).items():
        for line in lines:
            if line.status != "done":
                continue
            moment = Moment(clock=clock, index=line.number)
            where = f"{sample} {preset} {clock} {line.label} {line.title}"
            yield from (f"{where}: {each}" for each in _of_step(stages, recipe, moment, line))


def _lines(stages: Stages) -> Mapping[Clock, tuple[StepLine, ...]]:
    return {"passes": pass_lines(pass_records(stages.transformed.runs))}


def _of_step(stages: Stages, recipe: Recipe, moment: Moment, line: StepLine) -> Iterator[str]:
    sides = (
        Side(recipe=recipe, moment=moment, before=True),
        Side(recipe=recipe, moment=moment),
    )
    difference = module_difference(stages, stages, sides)
    shown = {each.name: each for each in difference.functions if each.status != "same"}
    if set(line.changed) != set(shown):
        yield f"counted {sorted(line.changed)}, shown {sorted(shown)}"
    left = {name for name, each in shown.items() if each.status != "removed"}
    tensorir = {name for name in left if shown[name].kind == "tensorir"}
    for name in ("", *sorted(tensorir)):
        try:
            record = write_text(stages, "script", name, moment)
        except LowerscopeError:
            continue
        wanted = {name} if name else left - tensorir
        yield from _of_text(record, shown, wanted)


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
            if run.status in ("changed", "added")
            for number in range(run.new, run.new + run.length)
        }
        known = {lines[line - 1].strip() for line in marks[name]}
        if differing and len(known) > len(differing):
            yield f"{name}: {len(known)} lines marked, {len(differing)} shown"

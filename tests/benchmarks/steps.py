"""What it costs to record the passes of a build, and how long a step of it takes to show.

The build is held against the same one without a recorder; a step against the time that it may take,
over all steps of ResNet-18's largest functions.
"""

from __future__ import annotations

import itertools

from lowerscope.core.build.build import build, recorded_build
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.queries import BuildStepsQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.benchmarks.figures import (
    Figure,
    alternately,
    milliseconds,
    processor_milliseconds,
    within,
)

RECORDING = 1.1
PAIRS = {"fashion_mlp": 15, "conv_net": 9, "resnet18": 3}

LIMIT = 100.0
"""Milliseconds."""

STEPS = 20


def _recording(name: str, pairs: int) -> Figure:
    stages = Pipeline().stages(Recipe(source=Source(spec=f"sample:{name}")))
    module, target = stages.completed, stages.target

    def ours() -> float:
        return processor_milliseconds(lambda: recorded_build(module, target))

    def theirs() -> float:
        return processor_milliseconds(lambda: build(module, target))

    for warm in (ours, theirs):
        warm()
    times = alternately(ours, theirs, pairs)
    return Figure(f"record the build of {name}", *times, "without a recorder", RECORDING)


def _stepping() -> Figure:
    pipeline = Pipeline()
    recipe = Recipe(source=Source(spec="sample:resnet18"))
    steps = pipeline.answer(BuildStepsQuery(recipe))
    stages = pipeline.stages(recipe)
    module = stages.recorded.module
    names = sorted(stages.recorded.tensorir, key=lambda name: len(module[name].script()))[-2:]
    numbers = range(1, len(steps) + 1, max(1, len(steps) // STEPS))

    def show(name: str, number: int) -> object:
        moment = Moment(section="build", index=number)
        return pipeline.answer(TextQuery(recipe, name, "script", moment))

    # What is made once for a function, or for the build.
    for name in ("", *names):
        show(name, len(steps))
    pairs = itertools.product(("", *names), (each for each in numbers if each != len(steps)))
    times = [milliseconds(lambda at=pair: show(*at)) for pair in pairs]
    return within("show a step of the build of resnet18", times, LIMIT)


def measure() -> list[Figure]:
    """Measure recording, and the way to a step."""
    return [*(_recording(name, pairs) for name, pairs in PAIRS.items()), _stepping()]

"""What it costs to record the passes of a recipe, and how long a step of these takes to show.

The passes are held against TVM's own, applied one by one without a recorder; a step against the
time that it may take, for the whole module after each pass.
"""

from __future__ import annotations

import tvm
from tvm import relax

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.queries import FunctionsQuery, SnapshotQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.passes.transforming import transform
from lowerscope.core.stages import Pipeline
from tests.benchmarks.figures import (
    Figure,
    alternately,
    milliseconds,
    processor_milliseconds,
    within,
)

RECORDING = 1.1
PAIRS = {"fashion_mlp": 9, "conv_net": 7, "resnet18": 5}

LIMIT = 100.0
"""Milliseconds."""

FUSE = next(each.steps for each in PRESETS if each.name == "fuse")


def _recording(name: str, pairs: int) -> Figure:
    stages = Pipeline().stages(Recipe(source=Source(spec=f"sample:{name}"), steps=FUSE))
    module, target = stages.module, stages.target

    def ours() -> float:
        def work() -> None:
            transformed = transform(module, FUSE, target=target)
            assert pass_records(transformed.runs)

        return processor_milliseconds(work)

    def theirs() -> float:
        def work() -> None:
            current = module
            with tvm.transform.PassContext(opt_level=3), target:
                for step in FUSE:
                    current = getattr(relax.transform, step.name)()(current)

        return processor_milliseconds(work)

    for warm in (ours, theirs):
        warm()
    times = alternately(ours, theirs, pairs)
    return Figure(f"record the passes of {name}", *times, "TVM's passes alone", RECORDING)


def _stepping() -> Figure:
    pipeline = Pipeline()
    recipe = Recipe(source=Source(spec="sample:resnet18"), steps=FUSE)
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))

    def show(number: int) -> object:
        moment = Moment(section="passes", index=number)
        pipeline.answer(FunctionsQuery(recipe, moment))
        return pipeline.answer(TextQuery(recipe, "", "script", moment))

    times = [milliseconds(lambda at=each.number: show(at)) for each in snapshot.passes]
    return within("show a step of the passes of resnet18", times, LIMIT)


def measure() -> list[Figure]:
    """Measure recording, and the way to a step."""
    return [*(_recording(name, pairs) for name, pairs in PAIRS.items()), _stepping()]

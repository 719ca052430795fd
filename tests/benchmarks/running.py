"""What it costs to compare ResNet-18 node by node, and that what is measured is not watched.

A comparison is all that a run does for it: one watched run whose values are kept, torch's walk
through the graph, both differences of each node, and the node alone. It is held against one run of
torch and one of TVM, whose times are added, alternately. The times of `run` are held against those
of a virtual machine that nothing was ever told of.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lowerscope.core.model.queries import RunQuery
from tests.benchmarks.figures import Figure, alternately, milliseconds

if TYPE_CHECKING:
    from lowerscope.core.model.recipe import Recipe, Strategy

PAIRS = 3
LIMIT = 3.0
"""Times torch's run and TVM's together."""

UNWATCHED = 1.15
"""How far the end-to-end time of a small model may be from that of a machine of its own."""


def _comparing(lowering: Strategy, pipeline: str) -> Iterator[Figure]:
    """Yield the figure for one thread in processor time, and for all in elapsed time.

    The first is the same on a machine that has other work.
    """
    from lowerscope.core.files.pipelines_and_schedules import find_pipeline
    from lowerscope.core.model.recipe import Recipe, Source

    steps = find_pipeline(pipeline).steps
    source = Source(spec="sample:resnet18")
    title = f"resnet18 node by node ({lowering}, {pipeline})"
    for threads, clock, how in ((1, time.process_time, "processor time"), (0, None, "elapsed")):
        recipe = Recipe(source=source, lowering=lowering, steps=steps, threads=threads)
        times = _times(recipe, clock or time.perf_counter)
        yield Figure(f"{title}, {how}", *times, "one run of torch and one of TVM", LIMIT)


def _times(recipe: Recipe, clock: Callable[[], float]) -> tuple[list[float], list[float]]:
    from lowerscope.core.build.targets import use_threads
    from lowerscope.core.model.progress import SILENT
    from lowerscope.core.run.execution import Execution
    from lowerscope.core.run.implementations import reference_of
    from lowerscope.core.run.node_runs import node_runs
    from lowerscope.core.stages import Pipeline

    use_threads(recipe.threads)
    stages = Pipeline().stages(recipe)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    with stages.running():
        execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
        _, reference = reference_of(stages.loaded, inputs, recipe.seed)
        assert reference is not None

        def taken(work: Callable[[], object]) -> float:
            start = clock()
            work()
            return (clock() - start) * 1000

        def ours() -> float:
            return taken(lambda: node_runs(stages, recipe, inputs, SILENT, repeats=1))

        def theirs() -> float:
            return taken(execution.call) + taken(reference.call)

        ours(), theirs()
        return alternately(ours, theirs, PAIRS)


def _unwatched() -> Figure:
    from lowerscope.core.model.recipe import Recipe, Source
    from lowerscope.core.run.execution import Execution
    from lowerscope.core.stages import Pipeline

    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
    pipeline = Pipeline()
    stages = pipeline.stages(recipe)
    inputs = tuple(each.value for each in stages.loaded.inputs)
    execution = Execution(stages.built.executable, "main", stages.arguments(inputs))

    def alone() -> float:
        execution.call()
        return statistics.median(milliseconds(execution.call) for _ in range(200))

    times = alternately(lambda: pipeline.answer(RunQuery(recipe)).tvm_ms, alone, PAIRS)
    return Figure("end to end, as a run says", *times, "a machine never watched", UNWATCHED)


def measure() -> list[Figure]:
    """Measure unscheduled code, and code that is fused and scheduled for the processor."""
    return [*_comparing("te", "none"), *_comparing("high-level", "cpu"), _unwatched()]

"""Queries on the values of the last run, which are available until the next one."""

from __future__ import annotations

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.arrays import save_array
from lowerscope.core.model.queries import (
    ComparisonQuery,
    RunStepQuery,
    SaveRunValuesQuery,
    WindowQuery,
    answers,
)
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.comparison import Comparison, Window
from lowerscope.core.records.run_step import RunStep
from lowerscope.core.running.kept_run import KeptRun
from lowerscope.core.running.step_tensors import run_step
from lowerscope.core.stages import Stages


class LastRun:
    """The last run of a pipeline.

    Attributes
    ----------
    kept
        Its values; ``None`` before it, and if its calls are unknown.
    """

    def __init__(self) -> None:
        self.kept: KeptRun | None = None

    def of(self, stages: Stages) -> KeptRun:
        """Return the last run, if it was of these stages.

        Raises
        ------
        LowerscopeError
            With the code ``"not-kept"`` if it was not.
        """
        _ = stages.loaded
        if self.kept is None or self.kept.key != stages.run_key:
            raise LowerscopeError(
                "the values of this model's last run are not kept",
                todo="Run it again to look at its values",
                code="not-kept",
            )
        return self.kept


@answers(ComparisonQuery)
def comparison(query: ComparisonQuery, pipeline: Pipeline, job: Progress) -> Comparison:
    """Return the statistics of a tensor of the last run and of torch's.

    Raises
    ------
    LowerscopeError
        As `LastRun.of`, and if there is no such tensor.
    """
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages)
    with stages.running():
        return kept.comparison(query.place, query.recipe.tolerances)


@answers(WindowQuery)
def window(query: WindowQuery, pipeline: Pipeline, job: Progress) -> Window:
    """Return a window of a tensor of the last run, and of torch's: see `WindowQuery`.

    Raises
    ------
    LowerscopeError
        As `comparison`, and if no values are cached.
    """
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages)
    area = query.top, query.left, query.rows, query.columns
    with stages.running():
        return kept.window(query.place, query.recipe.tolerances, query.leading, area, query.cells)


@answers(SaveRunValuesQuery)
def save_run_values(query: SaveRunValuesQuery, pipeline: Pipeline, job: Progress) -> str:
    """Write a tensor of the last run as ``.npy``; return the file's path.

    Raises
    ------
    LowerscopeError
        As `comparison`, if there are no such values, and if it cannot be written.
    """
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages)
    with stages.running():
        array = kept.array(query.place, query.side)
    return save_array(array, query.file)


@answers(RunStepQuery)
def step_of_run(query: RunStepQuery, pipeline: Pipeline, job: Progress) -> RunStep:
    """Return the inputs and outputs of a call of the last run: see `RunStepQuery`.

    Raises
    ------
    LowerscopeError
        As `comparison`, and if there is no such call.
    """
    stages = pipeline.stages(query.recipe, job)
    kept = pipeline.part(LastRun).of(stages).values.calls.get(query.call)
    if kept is None:
        raise LowerscopeError(
            f"the last run has no call {query.call + 1}", where="run", todo="Run the model again"
        )
    return run_step(stages, kept, query.call, query.lines)

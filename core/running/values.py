"""The values of the last run, which can be looked at until the next one."""

from __future__ import annotations

from collections.abc import Callable

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.arrays import save_array
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.comparison import Comparison, Saved, TensorPlace, Window
from lowerscope.core.records.run_step import RunStep
from lowerscope.core.running.kept_run import KeptRun
from lowerscope.core.running.step_tensors import run_step
from lowerscope.core.stages import Stages


class RunValues:
    """What can be asked of the values of the last run.

    Parameters
    ----------
    stages
        Returns the stages of a recipe.

    Attributes
    ----------
    kept
        Of the last run; ``None`` before it, and where its calls could not be told.
    """

    def __init__(self, stages: Callable[[Recipe, Progress], Stages]) -> None:
        self._stages = stages
        self.kept: KeptRun | None = None

    def comparison(self, recipe: Recipe, place: TensorPlace, progress: Progress) -> Comparison:
        """Return a tensor of the last run beside torch's, in figures.

        Raises
        ------
        LowerscopeError
            With the code ``"not-kept"`` if the last run was not of this recipe, or if there is no
            such tensor.
        """
        stages = self._stages(recipe, progress)
        kept = self._of(stages)
        with stages.running():
            return kept.comparison(place, recipe.tolerances)

    def window(
        self,
        recipe: Recipe,
        place: TensorPlace,
        leading: tuple[int, ...],
        area: tuple[int, int, int, int],
        cells: int,
        progress: Progress,
    ) -> Window:
        """Return a piece of a tensor of the last run, and of torch's: see `WindowParams`.

        Raises
        ------
        LowerscopeError
            As `comparison`, and where no values are kept.
        """
        stages = self._stages(recipe, progress)
        kept = self._of(stages)
        with stages.running():
            return kept.window(place, recipe.tolerances, leading, area, cells)

    def save(
        self, recipe: Recipe, place: TensorPlace, side: Saved, file: str, progress: Progress
    ) -> str:
        """Write a tensor of the last run as ``.npy``; return the file's path.

        Raises
        ------
        LowerscopeError
            As `comparison`, where there are no such values, and if it cannot be written.
        """
        stages = self._stages(recipe, progress)
        kept = self._of(stages)
        with stages.running():
            array = kept.array(place, side)
        return save_array(array, file)

    def step(
        self, recipe: Recipe, call: int, lines: tuple[int, int], progress: Progress
    ) -> RunStep:
        """Return what a call of the last run has read and written: see `RunStepParams`.

        Raises
        ------
        LowerscopeError
            As `comparison`, and if there is no such call.
        """
        stages = self._stages(recipe, progress)
        kept = self._of(stages).values.calls.get(call)
        if kept is None:
            raise LowerscopeError(
                f"the last run has no call {call + 1}", where="run", todo="Run the model again"
            )
        return run_step(stages, kept, call, lines)

    def _of(self, stages: Stages) -> KeptRun:
        _ = stages.loaded
        if self.kept is None or self.kept.key != stages.run_key:
            raise LowerscopeError(
                "the values of this model's last run are not kept",
                todo="Run it again to look at its values",
                code="not-kept",
            )
        return self.kept

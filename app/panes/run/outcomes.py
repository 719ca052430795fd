"""Cache of the outcomes of runs, so that undo restores the verdict too."""

from __future__ import annotations

import msgspec

from lowerscope.core.model.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.model.run_records import RunRecord

MOST = 100


class Outcomes:
    """The last outcome of each recipe, the newest `MOST` of them."""

    def __init__(self) -> None:
        self._records: dict[Recipe, RunRecord] = {}

    def keep(self, recipe: Recipe, record: RunRecord) -> None:
        """Store the outcome of a recipe, replacing an earlier one."""
        run = run_of(recipe)
        self._records.pop(run, None)
        self._records[run] = record
        while len(self._records) > MOST:
            del self._records[next(iter(self._records))]

    def of(self, recipe: Recipe, key: str) -> RunRecord | None:
        """Return the outcome of a recipe if its run has this key; see `RunRecord.key`."""
        record = self._records.get(run_of(recipe))
        return record if record is not None and record.key == key else None

    def like(self, recipe: Recipe, key: str) -> tuple[Recipe, RunRecord] | None:
        """Return the newest run with this key that was judged or timed differently."""
        same = same_run_of(recipe)
        found = reversed(self._records.items())
        return next(
            (each for each in found if each[1].key == key and same_run_of(each[0]) == same), None
        )


def same_run_of(recipe: Recipe) -> Recipe:
    """Return the parts of a recipe that determine its run, without tolerances and timing."""
    plain = Recipe(source=recipe.source)
    return msgspec.structs.replace(
        run_of(recipe), tolerances=plain.tolerances, measuring=plain.measuring
    )


def run_of(recipe: Recipe) -> Recipe:
    """Return the part of a recipe that is run: schedules count if they are applied to the model."""
    return recipe if applies_schedules(recipe) else without_schedules(recipe)

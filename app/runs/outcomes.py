"""The outcomes of runs that are remembered, so that undo brings the verdict back as well."""

from __future__ import annotations

import msgspec

from lowerscope.core.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.records.run import RunRecord

MOST = 100


class Outcomes:
    """The last outcome of each recipe, the newest `MOST` of them."""

    def __init__(self) -> None:
        self._records: dict[Recipe, RunRecord] = {}

    def keep(self, recipe: Recipe, record: RunRecord) -> None:
        """Remember the outcome of a recipe in place of an earlier one."""
        run = run_of(recipe)
        self._records.pop(run, None)
        self._records[run] = record
        while len(self._records) > MOST:
            del self._records[next(iter(self._records))]

    def of(self, recipe: Recipe, key: str) -> RunRecord | None:
        """Return the outcome of a recipe if what was run has this key; see `RunRecord.key`."""
        record = self._records.get(run_of(recipe))
        return record if record is not None and record.key == key else None

    def like(self, recipe: Recipe, key: str) -> tuple[Recipe, RunRecord] | None:
        """Return the newest run of this key that was judged or measured in another way."""
        same = same_run_of(recipe)
        found = reversed(self._records.items())
        return next(
            (each for each in found if each[1].key == key and same_run_of(each[0]) == same), None
        )


def same_run_of(recipe: Recipe) -> Recipe:
    """Return what is run of a recipe, whatever its outcome is held to and how it is timed."""
    plain = Recipe(source=recipe.source)
    return msgspec.structs.replace(
        run_of(recipe), tolerances=plain.tolerances, measuring=plain.measuring
    )


def run_of(recipe: Recipe) -> Recipe:
    """Return what is run of a recipe: schedules count where they are applied to the model."""
    return recipe if applies_schedules(recipe) else without_schedules(recipe)

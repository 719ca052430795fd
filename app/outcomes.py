"""The outcomes of runs that are remembered, so that undo brings the verdict back as well."""

from __future__ import annotations

from lowerscope.core.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.run_records import RunRecord

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


def run_of(recipe: Recipe) -> Recipe:
    """Return what is run of a recipe: schedules count where they are applied to the model."""
    return recipe if applies_schedules(recipe) else without_schedules(recipe)

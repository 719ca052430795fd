"""The variants of a function's schedule, their files, and their application to the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.workbench import order as order
from lowerscope.app.workbench import sharing as sharing
from lowerscope.app.workbench.by_rule import SchedulingByRule
from lowerscope.app.workbench.left_over import LeftOver
from lowerscope.app.workbench.rules import RulesInModel
from lowerscope.app.workbench.scheduling import Scheduling
from lowerscope.core.recipe import Recipe, applied_to_model, applies_schedules
from lowerscope.core.schedule_files import load_schedules
from lowerscope.core.schedules import Schedule, fits


class Variants:
    """The schedules of the scheduled function, at most one of which is enabled.

    Attributes
    ----------
    left_over
        The orphaned schedules.
    by_rule
        Creates one by a rule.
    rules
        Schedules the whole model by rules.
    """

    def __init__(self, document: Document, queries: Queries, scheduling: Scheduling) -> None:
        self._document = document
        self._scheduling = scheduling
        self.left_over = LeftOver(document, queries, self.add_with)
        self.by_rule = SchedulingByRule(document, queries, scheduling, self.add_with)
        self.rules = RulesInModel(document, queries)

    @property
    def all(self) -> tuple[Schedule, ...]:
        """All schedules of the function."""
        scheduling = self._scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return ()
        return sharing.variants(scheduling.recipe, scheduling.function, scheduling.structure)

    @property
    def alike(self) -> int:
        """Number of functions that use the enabled schedule."""
        scheduling = self._scheduling
        recipe, record, schedule = scheduling.recipe, scheduling.record, scheduling.schedule
        if recipe is None or record is None or schedule is None:
            return 0
        functions = (record.function, *record.twins)
        return sharing.sharing(recipe, functions, record.structure, schedule)

    def choose(self, variant: str | None) -> None:
        """Enable another one; none for ``None``."""
        schedule = next((each for each in self.all if each.variant == variant), None)
        self._change(sharing.with_chosen, schedule, to_end=True)

    def add(self, name: str, *, copied: bool = False) -> None:
        """Add an empty one, or a copy of the enabled one, and enable it."""
        self.add_with(name, self._scheduling.primitives if copied else ())

    def add_with(self, name: str, primitives: order.Primitives, *, everywhere: bool = True) -> None:
        """Add one with these steps, and enable it.

        Functions of the same structure share it, if `everywhere` and as long as this one has none
        of its own.
        """
        added = partial(sharing.with_added, everywhere=everywhere)
        self._change(added, name, primitives, to_end=True)

    def rename(self, name: str) -> None:
        """Rename the enabled one."""
        self._change(sharing.with_name, name)

    def remove(self) -> None:
        """Remove the enabled one; the last of the others is then enabled."""
        self._change(sharing.without_chosen, to_end=True)

    def set_everywhere(self, everywhere: bool) -> None:
        """Share the schedule with all functions of this structure, or keep it for this one only."""
        self._change(sharing.with_shared, everywhere)

    def _change(
        self, change: Callable[..., Recipe], *arguments: object, to_end: bool = False
    ) -> None:
        scheduling = self._scheduling
        recipe = scheduling.recipe
        if recipe is None or scheduling.record is None:
            return
        after = change(recipe, scheduling.function, scheduling.structure, *arguments)
        if to_end:
            scheduling.go_to_end()
        scheduling.change(after)

    # The model

    @property
    def in_model(self) -> bool:
        """Return whether schedules are applied to the model."""
        recipe = self._document.wanted
        return recipe is not None and applies_schedules(recipe)

    def set_in_model(self, on: bool) -> None:
        """Add the step that applies the schedules at the end of the pipeline, or remove it."""
        recipe = self._document.wanted
        if recipe is not None:
            self._document.change(applied_to_model(recipe, on))

    # Files

    def load(self, path: str) -> None:
        """Load a schedule from a file as a variant of the scheduled function, and enable it.

        Of several, one that fits the function is used. One of another function is tried as well:
        its steps show what does not fit.

        Raises
        ------
        LowerscopeError
            If the file cannot be read or holds something else: see `load_schedules`.
        """
        scheduling = self._scheduling
        function, structure = scheduling.function, scheduling.structure
        loaded = load_schedules(path)
        schedule = next((each for each in loaded if fits(each, function, structure)), loaded[0])
        self.add_with(
            schedule.variant or Path(path).stem,
            schedule.primitives,
            everywhere=schedule.everywhere,
        )

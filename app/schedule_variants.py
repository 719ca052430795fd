"""The variants of a function's schedule, and what becomes of one: files, text, the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lowerscope.app import schedule_order as order
from lowerscope.core.recipe import applies_schedules
from lowerscope.core.schedule_files import load_schedules, save_schedules
from lowerscope.core.schedules import Schedule, fits

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class Variants:
    """The schedules of the function that is scheduled, one of which is on at most."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def all(self) -> tuple[Schedule, ...]:
        """All schedules of the function."""
        scheduling = self._workspace.scheduling
        if scheduling.recipe is None or scheduling.record is None:
            return ()
        return order.variants(scheduling.recipe, scheduling.function, scheduling.structure)

    def choose(self, variant: str | None) -> None:
        """Have another one on; none for ``None``."""
        scheduling = self._workspace.scheduling
        if scheduling.recipe is not None and scheduling.record is not None:
            recipe, function = scheduling.recipe, scheduling.function
            scheduling.go_to_end()
            self._workspace.change(
                order.with_chosen(recipe, function, scheduling.structure, variant)
            )

    def add(self, name: str, *, copied: bool = False) -> None:
        """Begin another one, or a copy of the one that is on, and have that on."""
        self.add_with(name, self._workspace.scheduling.primitives if copied else ())

    def add_with(self, name: str, primitives: order.Primitives) -> None:
        """Have these steps as another one, and have that on."""
        scheduling = self._workspace.scheduling
        names = tuple(each.variant for each in self.all)
        schedule = Schedule(
            function=scheduling.function,
            structure=scheduling.structure,
            variant=order.free_name(names, name),
            primitives=primitives,
        )
        self._add(schedule)

    def _add(self, schedule: Schedule) -> None:
        scheduling = self._workspace.scheduling
        if scheduling.recipe is None:
            return
        scheduling.go_to_end()
        off = order.with_chosen(scheduling.recipe, scheduling.function, scheduling.structure, None)
        self._workspace.change(order.with_schedule(off, None, schedule))

    def rename(self, name: str) -> None:
        """Give the one that is on another name."""
        schedule = self._workspace.scheduling.schedule
        if schedule is not None and name != schedule.variant:
            others = tuple(each.variant for each in self.all if each is not schedule)
            self._change(schedule, variant=order.free_name(others, name))

    def remove(self) -> None:
        """Take the one that is on away; the last of the others is on then."""
        scheduling = self._workspace.scheduling
        recipe, schedule = scheduling.recipe, scheduling.schedule
        if recipe is None or schedule is None:
            return
        rest = [each for each in self.all if each is not schedule]
        recipe = order.with_schedule(recipe, schedule, None)
        if rest:
            recipe = order.with_chosen(
                recipe, scheduling.function, scheduling.structure, rest[-1].variant
            )
        scheduling.go_to_end()
        self._workspace.change(recipe)

    def set_everywhere(self, everywhere: bool) -> None:
        """Have the schedule for all functions of this structure, or for this name alone."""
        schedule = self._workspace.scheduling.schedule
        if schedule is not None:
            self._change(schedule, everywhere=everywhere)

    def _change(self, schedule: Schedule, **fields: object) -> None:
        recipe = self._workspace.scheduling.recipe
        if recipe is not None:
            after = msgspec.structs.replace(schedule, **fields)
            self._workspace.change(order.with_schedule(recipe, schedule, after))

    # The model

    @property
    def in_model(self) -> bool:
        """Whether schedules are applied to the model."""
        recipe = self._workspace.wanted
        return recipe is not None and applies_schedules(recipe)

    def set_in_model(self, on: bool) -> None:
        """Apply the schedules to the model, or not: the step is at the end of the pipeline."""
        recipe = self._workspace.wanted
        if recipe is not None:
            self._workspace.change(order.applied_to_model(recipe, on))

    # Files

    def save(self, path: str) -> None:
        """Write the schedule that is on into a file: see `save_schedules`."""
        schedule = self._workspace.scheduling.schedule
        assert schedule is not None
        save_schedules([schedule], path)

    def load(self, path: str) -> None:
        """Have the schedule of a file on, as a variant of the function that is scheduled.

        Of several, that is one which fits the function. One of another function is tried as well:
        its steps say what does not fit.

        Raises
        ------
        LowerscopeError
            If the file cannot be read, or holds something else: see `load_schedules`.
        """
        scheduling = self._workspace.scheduling
        function, structure = scheduling.function, scheduling.structure
        loaded = load_schedules(path)
        schedule = next((each for each in loaded if fits(each, function, structure)), loaded[0])
        names = tuple(each.variant for each in self.all)
        name = schedule.variant or Path(path).stem
        self._add(
            msgspec.structs.replace(
                schedule,
                function=function,
                structure=structure,
                variant=order.free_name(names, name),
                on=True,
            )
        )

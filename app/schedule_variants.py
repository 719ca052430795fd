"""The variants of a function's schedule, and what becomes of one: files, text, the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lowerscope.app import schedule_order as order
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import applies_schedules
from lowerscope.core.schedules import Schedule

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
        scheduling = self._workspace.scheduling
        names = tuple(each.variant for each in self.all)
        schedule = Schedule(
            function=scheduling.function,
            structure=scheduling.structure,
            variant=order.free_name(names, name),
            primitives=scheduling.primitives if copied else (),
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
        """Write the schedule that is on into a file, as JSON.

        Raises
        ------
        LowerscopeError
            If it cannot be written.
        """
        schedule = self._workspace.scheduling.schedule
        assert schedule is not None
        text = msgspec.json.format(msgspec.json.encode(schedule), indent=2)
        try:
            Path(path).write_bytes(text)
        except OSError as error:
            raise LowerscopeError(
                f"the schedule cannot be written: {error.strerror}",
                where=path,
                todo="Choose another place",
            ) from error

    def load(self, path: str) -> None:
        """Have the schedule of a file on, as a variant of the function that is scheduled.

        Raises
        ------
        LowerscopeError
            If the file cannot be read, or holds something else.
        """
        try:
            schedule = msgspec.json.decode(Path(path).read_bytes(), type=Schedule)
        except OSError as error:
            raise LowerscopeError(
                f"the schedule cannot be read: {error.strerror}", where=path
            ) from error
        except msgspec.MsgspecError as error:
            raise LowerscopeError(
                f"the file holds no schedule: {error}",
                where=path,
                todo="Choose a file that was saved from the workbench",
            ) from error
        scheduling = self._workspace.scheduling
        names = tuple(each.variant for each in self.all)
        name = schedule.variant or Path(path).stem
        self._add(
            msgspec.structs.replace(
                schedule,
                function=scheduling.function,
                structure=scheduling.structure,
                variant=order.free_name(names, name),
                on=True,
            )
        )

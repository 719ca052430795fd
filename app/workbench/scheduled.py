"""A function after some primitives: the subject of measurements and checks."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from lowerscope.app.workbench.order import Primitives
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.schedule import ScheduleRecord
from lowerscope.core.schedules import Schedule


@dataclass(frozen=True)
class Scheduled:
    """A function after some primitives, the key of its metrics.

    ``recipe`` has no schedules.
    """

    recipe: Recipe
    function: str
    structure: str
    primitives: Primitives = ()

    @property
    def with_schedule(self) -> Recipe:
        """The recipe that has these primitives as the schedule of the function."""
        schedule = Schedule(
            function=self.function, structure=self.structure, primitives=self.primitives
        )
        return msgspec.structs.replace(self.recipe, schedules=(schedule,))

    def after(self, primitives: Primitives) -> Scheduled:
        """Return the same function after other primitives; disabled ones are ignored."""
        applied = tuple(each for each in primitives if each.on)
        return Scheduled(self.recipe, self.function, self.structure, applied)

    @property
    def unscheduled(self) -> Scheduled:
        """The function before all primitives."""
        return self.after(())


def done(record: ScheduleRecord, primitives: Primitives) -> Primitives:
    """Return the primitives that were applied: others have no metrics of their own."""
    applied = {step.id for step in record.steps if step.status == "done"}
    return tuple(each for each in primitives if each.id in applied)

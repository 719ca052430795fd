"""The history of a schedule as it is changed: steps applied, edited, switched, moved, taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject

from lowerscope.app.workbench import order as order
from lowerscope.app.workbench import sharing as sharing
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.schedule import ScheduleRecord
from lowerscope.core.schedules import Made, Primitive

if TYPE_CHECKING:
    from lowerscope.app.workbench.scheduling import Scheduling
    from lowerscope.app.workspace import Workspace


class Editing(QObject):
    """Changes the steps of the function that is scheduled, each as a change of the recipe.

    Attributes
    ----------
    edited
        Id of the step that was changed last, until the record after it has come; ``""`` for none.
    """

    def __init__(self, workspace: Workspace, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._workspace = workspace
        self._scheduling = scheduling
        self.edited = ""

    def apply(self, primitive: Primitive) -> None:
        """Add a primitive behind the step that is looked at."""
        scheduling = self._scheduling
        primitive = msgspec.structs.replace(primitive, id=order.new_id(scheduling.primitives))
        after = order.placed(scheduling.primitives, scheduling.place, primitive)
        scheduling.stop_at(scheduling.index_after)
        self.edited = primitive.id
        self._write(after)

    def replace(self, primitive: Primitive) -> None:
        """Have a step with other arguments."""
        scheduling = self._scheduling
        self.edited = primitive.id
        place = order.place_of(scheduling.primitives, primitive.id)
        scheduling.stop_at(scheduling.index_at(place))
        self._write(order.replaced(scheduling.primitives, primitive))

    def switch(self, step: str) -> None:
        """Switch a step off, or on."""
        self.edited = step
        self._write(order.switched(self._scheduling.primitives, step))

    def force(self, step: str) -> None:
        """Apply a step although it can make the function compute something else."""
        primitives = self._scheduling.primitives
        place = order.place_of(primitives, step)
        if place >= 0:
            forced = msgspec.structs.replace(primitives[place], forced=True)
            self.edited = step
            self._write(order.replaced(primitives, forced))

    def remove(self, step: str) -> None:
        """Take a step out; the rest is applied again."""
        scheduling = self._scheduling
        place = order.place_of(scheduling.primitives, step)
        if place >= 0:
            index = scheduling.index
            if index is not None and index > place:
                scheduling.stop_at(index - 1)
            self._write(order.without(scheduling.primitives, step))

    def move(self, place: int, to: int) -> None:
        """Apply the step at `place` at `to`, both from 0."""
        primitives = self._scheduling.primitives
        if 0 <= place < len(primitives) and 0 <= to < len(primitives) and place != to:
            self.edited = primitives[place].id
            self._write(order.moved(primitives, place, to))

    def recipe_with(self, primitives: order.Primitives) -> Recipe:
        """Return the recipe with these steps for the function."""
        scheduling = self._scheduling
        recipe, function, structure = (
            scheduling.recipe,
            scheduling.function,
            scheduling.structure,
        )
        assert recipe is not None
        return sharing.with_primitives(recipe, function, structure, primitives)

    def _write(self, primitives: order.Primitives) -> None:
        if self._scheduling.recipe is None or self._scheduling.record is None:
            return
        self._scheduling.change(self.recipe_with(primitives))

    # What came of it

    def choose_made(self, record: ScheduleRecord) -> None:
        """Select what the step has made in place of what is gone."""
        edited, self.edited = self.edited, ""
        chosen = self._workspace.selection.chosen
        inside = f"tir:{record.function}/"
        ids = {each.id for each in record.tree}
        if any(each in ids for each in chosen) or not any(
            each.startswith(inside) for each in chosen
        ):
            return
        made = [
            each.id
            for each in record.tree
            if isinstance(each.reference, Made) and each.reference.step == edited
        ]
        self._workspace.select((made[-1] if made else f"tir:{record.function}",))

    def leave_out(self, recipe: Recipe) -> None:
        """Go over to a recipe without a step that the engine has died of.

        If that was applied just now, undo goes back to what was before it.
        """
        just_now, self.edited = self.edited, ""
        self._scheduling.index = None
        if just_now:
            self._workspace.changes.amend(recipe)
        else:
            self._workspace.change(recipe)

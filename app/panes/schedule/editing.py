"""Editing of a schedule's history: steps are applied, changed, disabled, moved and removed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.recipe import Recipe, changed, inserted, moved, removed, replaced
from lowerscope.core.model.schedule import Made, Primitive, references_of
from lowerscope.core.model.schedule_records import ScheduleRecord

if TYPE_CHECKING:
    from lowerscope.app.panes.schedule.model import Scheduling


# --- Ids and positions of schedule primitives ---

_NUMBERED = re.compile(r"s([0-9]{1,9})")
"""The ids assigned here; a file may have any others."""

Primitives = tuple[Primitive, ...]


def new_id(primitives: Primitives) -> str:
    """Return an unused id, which none had before that a later step refers to."""
    known = [each.id for each in primitives]
    references = (each for step in primitives for each in references_of(step))
    known += [each.step for each in references if isinstance(each, Made)]
    found = (_NUMBERED.fullmatch(each) for each in known)
    return f"s{max((int(each[1]) for each in found if each is not None), default=0) + 1}"


def place_of(primitives: Primitives, step: str) -> int:
    """Return the index of a step; -1 if it does not exist."""
    return next((at for at, each in enumerate(primitives) if each.id == step), -1)


class Editing(QObject):
    """Edits the steps of the scheduled function, each edit as a recipe change."""

    def __init__(self, document: Document, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._document = document
        self._scheduling = scheduling
        # Id of the step changed last, until the resulting record arrives; ``""`` for none.
        self.edited = ""

    def apply(self, *primitives: Primitive) -> None:
        """Add primitives after the current step, as one change."""
        scheduling = self._scheduling
        after, place = scheduling.primitives, scheduling.place
        at_end = scheduling.index_after is None
        for number, each in enumerate(primitives):
            self.edited = new_id(after)
            named = msgspec.structs.replace(each, id=self.edited)
            after = inserted(after, place + number, named)
        scheduling.stop_at(None if at_end else place + len(primitives))
        self._write(after)

    def replace(self, primitive: Primitive) -> None:
        """Change the arguments of a step."""
        scheduling = self._scheduling
        self.edited = primitive.id
        place = place_of(scheduling.primitives, primitive.id)
        scheduling.stop_at(scheduling.index_at(place))
        self._write(replaced(scheduling.primitives, place, primitive))

    def switch(self, step: str) -> None:
        """Enable or disable a step."""
        primitives = self._scheduling.primitives
        place = place_of(primitives, step)
        if place >= 0:
            self.edited = step
            self._write(changed(primitives, place, on=not primitives[place].on))

    def force(self, step: str) -> None:
        """Apply a step although it can change the function's results."""
        primitives = self._scheduling.primitives
        place = place_of(primitives, step)
        if place >= 0:
            self.edited = step
            self._write(changed(primitives, place, forced=True))

    def remove(self, step: str) -> None:
        """Remove a step; the rest is applied again."""
        scheduling = self._scheduling
        place = place_of(scheduling.primitives, step)
        if place >= 0:
            index = scheduling.index
            if index is not None and index > place:
                scheduling.stop_at(index - 1)
            self._write(removed(scheduling.primitives, place))

    def move(self, place: int, to: int) -> None:
        """Move the step at `place` to `to`, both from 0."""
        primitives = self._scheduling.primitives
        if 0 <= place < len(primitives) and 0 <= to < len(primitives) and place != to:
            self.edited = primitives[place].id
            self._write(moved(primitives, place, to))

    def recipe_with(self, primitives: Primitives) -> Recipe:
        """Return the recipe with these steps for the function."""
        scheduling = self._scheduling
        recipe, function, structure = (scheduling.recipe, scheduling.function, scheduling.structure)
        assert recipe is not None
        return sharing.with_primitives(recipe, function, structure, primitives)

    def _write(self, primitives: Primitives) -> None:
        if self._scheduling.recipe is None or self._scheduling.record is None:
            return
        self._scheduling.change(self.recipe_with(primitives))

    # Results

    def choose_made(self, record: ScheduleRecord) -> None:
        """Select the results of the step in place of what it replaced."""
        edited, self.edited = self.edited, ""
        chosen = self._document.selection.chosen
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
        self._document.select((made[-1] if made else f"tir:{record.function}",))

    def leave_out(self, recipe: Recipe) -> None:
        """Switch to a recipe without the step that crashed the engine.

        If that was applied just now, undo returns to the recipe before it.
        """
        just_now, self.edited = self.edited, ""
        self._scheduling.index = None
        if just_now:
            self._document.amend(recipe)
        else:
            self._document.change(recipe)

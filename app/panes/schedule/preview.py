"""Previews of primitives before they are applied, and the form being filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.kit.background import single_shot
from lowerscope.app.panes.schedule import editing as order
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ScheduleQuery
from lowerscope.core.model.schedule import Argument, Primitive
from lowerscope.core.model.schedule_records import Field, Move, ScheduleRecord, StepError
from lowerscope.core.model.step_list import inserted, replaced

if TYPE_CHECKING:
    from lowerscope.app.panes.schedule.model import Scheduling

PREVIEW_MS = 60
"""Delay before the primitive under the mouse or the cursor is previewed."""

SETTLED = ("loop", "loops", "block", "loop or block", "flag")
"""Kinds of fields that need no form: the selection or a default determines them."""

ORDERED = ("reorder", "reorder_block_iter_var")
"""Primitives that depend on the order of the selection."""


@dataclass(frozen=True)
class Preview:
    """The effect of a primitive on the function."""

    primitive: Primitive  # The previewed primitive.
    # The function without and with it; ``record`` is ``None`` while pending or after a failure.
    base: ScheduleRecord
    record: ScheduleRecord | None = None
    problem: str = ""  # The problem that prevented the preview.

    @property
    def error(self) -> StepError | None:
        """The error that prevents applying it; ``None`` if it can be applied, or while unknown."""
        if self.problem:
            return StepError(message=self.problem)
        steps = () if self.record is None else self.record.steps
        step = next((each for each in steps if each.id == self.primitive.id), None)
        return None if step is None else step.error


@dataclass(frozen=True)
class Draft:
    """A primitive whose form is being filled in."""

    move: Move  # The entry that defines its fields.
    primitive: Primitive  # The primitive as filled in.
    place: int  # Its index, existing or intended, among the primitives.
    edits: bool = False  # Whether it edits an existing step.
    wrong: str = ""  # Error in the typed values, in one line.


class Trying(QObject):
    """The previewed primitive, and its form if there is one."""

    preview_changed = Signal()  # `preview` changed.
    draft_changed = Signal()  # `draft` changed.

    def __init__(self, document: Document, queries: Queries, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._document = document
        self._queries = queries
        self._scheduling = scheduling
        self._slot = Slot(queries)
        self._deadly: set[Primitive] = set()
        self.preview: Preview | None = None
        self.draft: Draft | None = None
        self._soon = single_shot(self, PREVIEW_MS, self._ask)

    # Previews

    def show(self, primitive: Primitive | None) -> None:
        """Preview a primitive after the current step; none for ``None``.

        While a form is open, its preview is shown instead.
        """
        if self.draft is not None:
            return
        if primitive is None:
            self.clear()
        else:
            step = order.new_id(self._scheduling.primitives)
            self._try(msgspec.structs.replace(primitive, id=step))

    def clear(self) -> None:
        """Clear the preview."""
        self.stop()
        self._set_preview(None)

    def stop(self) -> None:
        """Cancel the preview; the last one stays until another replaces it."""
        self._soon.stop()
        self._drop()

    def _drop(self) -> None:
        self._slot.drop()

    def _try(self, primitive: Primitive) -> None:
        record = self._scheduling.record
        if record is None or (self.preview is not None and self.preview.primitive == primitive):
            return
        self._drop()
        if _plain(primitive) in self._deadly:
            self._set_preview(Preview(primitive, record, problem=self.tr("The engine dies of it")))
            return
        self._set_preview(Preview(primitive, record))
        self._soon.start()

    def _query(self, primitive: Primitive) -> ScheduleQuery | None:
        scheduling = self._scheduling
        if scheduling.recipe is None:
            return None
        before = scheduling.primitives
        if self.draft is not None and self.draft.edits:
            index = scheduling.index_at(self.draft.place)
            after = replaced(before, order.place_of(before, primitive.id), primitive)
        else:
            index = scheduling.index_after
            after = inserted(before, scheduling.place, primitive)
        return ScheduleQuery(scheduling.editing.recipe_with(after), scheduling.function, index)

    def _ask(self) -> None:
        preview = self.preview
        query = None if preview is None else self._query(preview.primitive)
        if preview is None or query is None:
            return
        known = self._queries.cached(query)
        if known is not None:
            self._set_preview(replace(preview, record=known))
            return
        self._slot.ask(query, self._take, self._take_problem)

    def _take(self, record: ScheduleRecord) -> None:
        if self.preview is not None:
            self._set_preview(replace(self.preview, record=record))

    def _take_problem(self, problem: Problem) -> None:
        if self.preview is None:
            return
        if problem.code == "crashed":
            name = self.preview.primitive.name
            self._deadly.add(_plain(self.preview.primitive))
            text = self.tr(
                "The engine died while it tried {0}. It is started anew, and the history is as it"
                " was."
            )
            self._document.notify(text.format(name), "wrong")
        self._set_preview(replace(self.preview, problem=problem.line()))

    def _set_preview(self, preview: Preview | None) -> None:
        if preview != self.preview:
            self.preview = preview
            self.preview_changed.emit()

    # The form

    def asks(self, move: Move) -> bool:
        """Return whether a primitive needs a form before it is applied."""
        return move.name in ORDERED or any(_asks(each) for each in move.fields)

    def choose(self, move: Move) -> None:
        """Apply a primitive without choices; otherwise show its form."""
        primitive = move.primitive
        if move.legal and not self.asks(move) and _plain(primitive) not in self._deadly:
            self._scheduling.editing.apply(primitive)
        else:
            self.open(move)

    def open(self, move: Move) -> None:
        """Show the form of a primitive."""
        step = order.new_id(self._scheduling.primitives)
        primitive = msgspec.structs.replace(move.primitive, id=step)
        self._set_draft(Draft(move, primitive, self._scheduling.place))

    def edit(self, step: str) -> None:
        """Show the form of a step, with its arguments, as soon as its fields are known."""
        scheduling = self._scheduling
        place = order.place_of(scheduling.primitives, step)
        if place < 0 or scheduling.record is None:
            return
        self.cancel_draft()
        scheduling.go(place + 1)
        scheduling.moves.ask_for_step(step, place)

    def open_step(self, step: str, moves: tuple[Move, ...]) -> None:
        """Show the form of a step: `moves` are those offered there for its operands."""
        primitives = self._scheduling.primitives
        place = order.place_of(primitives, step)
        if place < 0:
            return
        primitive = primitives[place]
        move = next((each for each in moves if each.name == primitive.name), None)
        if move is None:
            text = self.tr("What {0} is about is not there at this step.").format(primitive.name)
            self._document.notify(text, "wrong")
            return
        self._set_draft(Draft(move, primitive, place, edits=True))

    def fill_in(self, arguments: dict[str, Argument], wrong: str = "") -> None:
        """Set the form's current arguments, and their error."""
        if self.draft is None:
            return
        primitive = msgspec.structs.replace(self.draft.primitive, arguments=arguments, forced=False)
        draft = replace(self.draft, primitive=primitive, wrong=wrong)
        if draft != self.draft:
            self._set_draft(draft)

    def cancel_draft(self) -> None:
        """Close the form and discard its values."""
        if self.draft is not None:
            self._set_draft(None)

    def apply_draft(self, *, forced: bool = False) -> None:
        """Apply the primitive of the form."""
        draft = self.draft
        if draft is None or draft.wrong:
            return
        self.cancel_draft()
        primitive = msgspec.structs.replace(draft.primitive, forced=forced)
        if draft.edits:
            self._scheduling.editing.replace(primitive)
        else:
            self._scheduling.editing.apply(primitive)

    def _set_draft(self, draft: Draft | None) -> None:
        self.draft = draft
        if draft is None or draft.wrong:
            self.clear()
        else:
            self._try(draft.primitive)
        self.draft_changed.emit()


def _asks(field: Field) -> bool:
    if field.kind in ("choice", "buffer"):
        return len(field.choices) > 1
    return field.kind not in SETTLED


def _plain(primitive: Primitive) -> Primitive:
    """Return a primitive without its id and other data that do not affect its result."""
    return msgspec.structs.replace(primitive, id="", on=True, forced=False)

"""The function that is scheduled: its record, and the history that can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app import schedule_order as order
from lowerscope.app.requests import Requests
from lowerscope.app.schedule_moves import Moves
from lowerscope.app.schedule_order import Place, params_of
from lowerscope.app.schedule_trying import Trying
from lowerscope.app.step_lines import schedule_lines
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, without_schedules
from lowerscope.core.schedule_records import LoopNode, ScheduleRecord, ScheduleStep
from lowerscope.core.schedules import Made, Primitive, Reference, Schedule, schedule_for
from lowerscope.core.step_records import Moment

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

SLOW_MS = 200
"""What takes longer is said."""

KEPT = 64
"""So many records are remembered, so that undo, redo and the slider need not ask."""


class Scheduling(QObject):
    """The function that is scheduled, while the list of steps is that of its schedule.

    Signals
    -------
    changed
        `function`, `record` or `problem` is new.
    busy_changed
        `busy` is new.

    Attributes
    ----------
    function
        Its name; empty for none.
    record
        It, after the steps that are looked at; ``None`` before it has come.
    problem
        Why it does not come.
    busy
        Whether it takes long.
    moves
        What could come next.
    trying
        What is tried before it is applied.
    """

    changed = Signal()
    busy_changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._stepping = workspace.stepping
        self._requests = Requests()
        self._request: int | None = None
        self._known: dict[Place, ScheduleRecord] = {}
        self._asked: Place | None = None
        self.shown: Place | None = None
        self._index: int | None = None
        self._edited = ""
        self.function = ""
        self.record: ScheduleRecord | None = None
        self.problem: Problem | None = None
        self.busy = False
        self.moves = Moves(workspace, self)
        self.trying = Trying(workspace, self)
        self._slow = QTimer(self)
        self._slow.setSingleShot(True)
        self._slow.setInterval(SLOW_MS)
        self._slow.timeout.connect(self._note_slow)
        workspace.recipe_wanted.connect(self._follow)
        workspace.replayed.connect(self._ask_again)
        self._stepping.list_changed.connect(self._follow)
        self._stepping.schedule_moved.connect(self._follow_step)

    # What there is to see

    @property
    def active(self) -> bool:
        """Whether schedules are looked at."""
        return self._stepping.clock == "schedule"

    @property
    def recipe(self) -> Recipe | None:
        """The recipe whose schedules are shown: the one on its way, if the model stays as it is."""
        shown, wanted = self._workspace.recipe, self._workspace.wanted
        if shown is None or wanted is None:
            return None
        return wanted if without_schedules(wanted) == without_schedules(shown) else shown

    @property
    def is_settled(self) -> bool:
        """Whether what is shown is what is wanted, with the moves that there are."""
        wanted = (self.recipe, self.function, self._index)
        return self.shown == wanted and self._asked is None and not self.moves.are_coming

    @property
    def structure(self) -> str:
        """Structural hash of the function before it was scheduled."""
        return "" if self.record is None else self.record.structure

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of the function that is on."""
        recipe = self.recipe
        return (
            None
            if recipe is None
            else schedule_for(recipe.schedules, self.function, self.structure)
        )

    @property
    def primitives(self) -> order.Primitives:
        """Its steps."""
        schedule = self.schedule
        return () if schedule is None else schedule.primitives

    @property
    def place(self) -> int:
        """Where the next primitive goes, from 0: behind the step that is looked at."""
        count = len(self.primitives)
        return count if self._index is None else min(self._index, count)

    @property
    def index_after(self) -> int | None:
        """After how many steps is looked at, once one more is applied there."""
        at_end = self._index is None or self._index >= len(self.primitives)
        return None if at_end else self.place + 1

    def index_at(self, place: int) -> int | None:
        """After how many steps is looked at, to see what the one at a place makes."""
        return None if place == len(self.primitives) - 1 else place + 1

    @property
    def moment(self) -> Moment:
        """What is looked at, for texts of the function other than its script."""
        return Moment(clock="schedule", index=self.place, function=self.function)

    @property
    def step(self) -> ScheduleStep | None:
        """The step that is looked at; ``None`` before the first, and where all are looked at."""
        if self.record is None or not self._index:
            return None
        return self.record.steps[self._index - 1] if self._index <= len(self.record.steps) else None

    @property
    def chosen(self) -> tuple[LoopNode, ...]:
        """The rows of the loop tree that are selected, in the order in which they were."""
        if self.record is None:
            return ()
        nodes = {each.id: each for each in self.record.tree}
        return tuple(nodes[each] for each in self._workspace.selection.chosen if each in nodes)

    def name_of(self, reference: Reference) -> str:
        """Return what a loop or block is called in the tree, or how a step names it."""
        nodes = () if self.record is None else self.record.tree
        known = next((each.name for each in nodes if each.reference == reference), "")
        if known:
            return known
        if isinstance(reference, Made):
            return self.tr("{0} of step {1}").format(reference.output, reference.step)
        if reference.loop is None:
            return reference.block
        return self.tr("loop {0} around {1}").format(reference.loop, reference.block)

    # Which function

    def look(self, function: str) -> None:
        """Schedule another function; none for ``""``."""
        if function != self.function:
            self.function = function
            self._forget()
            self._follow()

    def _forget(self) -> None:
        self._drop()
        self._asked = self.shown = None
        self._index = None
        self._edited = ""
        self.record, self.problem = None, None
        self.trying.cancel_draft()
        self.moves.forget()
        self._stepping.take_schedule(self.function, ())
        self.changed.emit()

    def _drop(self) -> None:
        if self._request is not None:
            self._requests.drop(self._request)
            self._request = None

    # The record

    def _follow_step(self) -> None:
        index = self._stepping.schedule_index
        if self.active and index != self._index:
            self._index = index
            self.trying.cancel_draft()
            self._follow()

    def _follow(self) -> None:
        """Go over to the record of what is wanted now."""
        recipe = self.recipe
        if not self.active or recipe is None or not self.function:
            self.trying.cancel_draft()
            self.trying.clear()
            return
        if self._index is not None and self._index > len(self.primitives):
            self._index = None
        wanted = (recipe, self.function, self._index)
        if wanted == (self._asked or self.shown):
            return
        if self.shown is not None and recipe != self.shown[0]:
            self.trying.cancel_draft()
            self.trying.stop()
        self._drop()
        self._asked = wanted
        known = self.known(wanted)
        if known is not None:
            self._take(known)
            return
        self._slow.start()
        self._request = self._requests.ask(
            self._workspace.engine, "schedule", params_of(wanted), self._take, self._take_problem
        )

    def _ask_again(self) -> None:
        """Ask anew what the engine that died was asked for."""
        if self.problem is not None or self._asked is not None:
            self._asked = self.shown = None
            self._follow()
        self.moves.ask_again()

    def known(self, place: Place) -> ScheduleRecord | None:
        """Return the record of a place, if it is remembered."""
        return self._known.get(place)

    def keep(self, place: Place, record: ScheduleRecord) -> None:
        """Remember the record of a place."""
        self._known.pop(place, None)
        self._known[place] = record
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]

    def _take(self, record: ScheduleRecord) -> None:
        assert self._asked is not None
        self._request = None
        place, self._asked = self._asked, None
        self.keep(place, record)
        self.shown = place
        self.record, self.problem = record, None
        self._end_slow()
        self._look_at_failed(record)
        self._stepping.take_schedule(self.function, schedule_lines(self.function, record.steps))
        if self._index is None:
            self._stepping.leave()
        else:
            self._stepping.go(Moment(clock="schedule", index=self._index, function=self.function))
        if self.trying.draft is None:
            self.trying.clear()
        self.changed.emit()
        self._choose_made(record)
        self.moves.follow()

    def _look_at_failed(self, record: ScheduleRecord) -> None:
        """Look at the step that was applied or changed, if it failed."""
        for number, step in enumerate(record.steps, start=1):
            if step.id == self._edited and step.status == "failed":
                self._index = number

    def _choose_made(self, record: ScheduleRecord) -> None:
        """Select what the step has made in place of what is gone."""
        edited, self._edited = self._edited, ""
        chosen = self._workspace.selection.chosen
        inside = f"tir:{self.function}/"
        ids = {each.id for each in record.tree}
        if any(each in ids for each in chosen) or not any(
            each.startswith(inside) for each in chosen
        ):
            return
        made = [each.id for each in record.tree if _is_of(each.reference, edited)]
        self._workspace.select((made[-1] if made else f"tir:{self.function}",))

    def _take_problem(self, problem: Problem) -> None:
        self._request = None
        place, self._asked = self._asked, None
        self._end_slow()
        if problem.code == "crashed" and place is not None:
            self._leave_deadly_out()
        self.shown = place
        self.problem = problem
        self.changed.emit()

    def _leave_deadly_out(self) -> None:
        """Switch the step off that the engine seems to have died of: it is kept as a draft."""
        tried = self.primitives[: self._index]
        deadly = next((each for each in tried if each.id == self._edited), None)
        if deadly is None:
            deadly = next((each for each in reversed(tried) if each.on), None)
        if deadly is None or not deadly.on:
            return
        self._edited = ""
        self._workspace.announced.emit(
            self.tr(
                "The engine died while it applied {0}. It is started anew; the step is kept,"
                " switched off."
            ).format(deadly.name),
            "wrong",
        )
        self._write(order.switched(self.primitives, deadly.id), amend=True)

    def _note_slow(self) -> None:
        self.busy = True
        self._workspace.say(self.tr("Scheduling {0}").format(self.function))
        self.busy_changed.emit()

    def _end_slow(self) -> None:
        self._slow.stop()
        if self.busy:
            self.busy = False
            self._workspace.say("")
            self.busy_changed.emit()

    def cancel(self) -> None:
        """Stop what is tried."""
        self._requests.cancel_all(self._workspace.engine)
        self.moves.cancel()
        self.trying.cancel()

    # The history

    def apply(self, primitive: Primitive) -> None:
        """Add a primitive behind the step that is looked at."""
        primitive = msgspec.structs.replace(primitive, id=order.new_id(self.primitives))
        after = order.placed(self.primitives, self.place, primitive)
        self._index = self.index_after
        self._edited = primitive.id
        self._write(after)

    def replace(self, primitive: Primitive) -> None:
        """Have a step with other arguments."""
        self._edited = primitive.id
        self._index = self.index_at(order.place_of(self.primitives, primitive.id))
        self._write(order.replaced(self.primitives, primitive))

    def switch(self, step: str) -> None:
        """Switch a step off, or on."""
        self._edited = step
        self._write(order.switched(self.primitives, step))

    def force(self, step: str) -> None:
        """Apply a step although it can make the function compute something else."""
        place = order.place_of(self.primitives, step)
        if place >= 0:
            forced = msgspec.structs.replace(self.primitives[place], forced=True)
            self._edited = step
            self._write(order.replaced(self.primitives, forced))

    def remove(self, step: str) -> None:
        """Take a step out; the rest is applied again."""
        place = order.place_of(self.primitives, step)
        if place >= 0:
            if self._index is not None and self._index > place:
                self._index -= 1
            self._write(order.without(self.primitives, step))

    def move(self, place: int, to: int) -> None:
        """Apply the step at `place` at `to`, both from 0."""
        if 0 <= place < len(self.primitives) and 0 <= to < len(self.primitives) and place != to:
            self._edited = self.primitives[place].id
            self._write(order.moved(self.primitives, place, to))

    def go(self, index: int) -> None:
        """Look at the function after so many steps."""
        self._stepping.go(Moment(clock="schedule", index=index, function=self.function))

    def go_to_end(self) -> None:
        """Look at the function after all steps."""
        self._stepping.leave()

    def recipe_with(self, primitives: order.Primitives) -> Recipe:
        """Return the recipe with these steps for the function."""
        recipe = self.recipe
        assert recipe is not None
        schedule = schedule_for(recipe.schedules, self.function, self.structure)
        if schedule is not None:
            after = msgspec.structs.replace(schedule, primitives=primitives)
            return order.with_schedule(recipe, schedule, after)
        names = [each.variant for each in order.variants(recipe, self.function, self.structure)]
        name = order.free_name(names, "variant") if "" in names else ""
        after = Schedule(
            function=self.function,
            structure=self.structure,
            variant=name,
            primitives=primitives,
        )
        return order.with_schedule(recipe, None, after)

    def _write(self, primitives: order.Primitives, *, amend: bool = False) -> None:
        if self.recipe is None or self.record is None:
            return
        after = self.recipe_with(primitives)
        if amend:
            self._workspace.amend(after)
        else:
            self._workspace.change(after)


def _is_of(reference: Reference, step: str) -> bool:
    return isinstance(reference, Made) and reference.step == step

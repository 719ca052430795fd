"""The function that is scheduled: its record after the steps that are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.children.requests import Requests
from lowerscope.app.step_lines import schedule_lines
from lowerscope.app.workbench import order as order
from lowerscope.app.workbench.editing import Editing
from lowerscope.app.workbench.moves import Moves
from lowerscope.app.workbench.order import Place, params_of
from lowerscope.app.workbench.trying import Trying
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe, without_schedules
from lowerscope.core.records.schedule import LoopNode, ScheduleRecord, ScheduleStep
from lowerscope.core.records.steps import Moment
from lowerscope.core.schedules import (
    Made,
    Reference,
    Schedule,
    name_before_packing,
    references_of,
    schedule_for,
)

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
    index
        After how many of its steps it is looked at; ``None`` for all.
    record
        It, after the steps that are looked at; ``None`` before it has come.
    problem
        Why it does not come.
    busy
        Whether it takes long.
    editing
        Changes the history.
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
        # What was asked for again after a crash, once.
        self._again: Place | None = None
        self.shown: Place | None = None
        self.index: int | None = None
        self.function = ""
        self.record: ScheduleRecord | None = None
        self.problem: Problem | None = None
        self.busy = False
        self.editing = Editing(workspace, self)
        self.moves = Moves(workspace, self)
        self.trying = Trying(workspace, self)
        self._slow = QTimer(self)
        self._slow.setSingleShot(True)
        self._slow.setInterval(SLOW_MS)
        self._slow.timeout.connect(self._note_slow)
        workspace.recipe_wanted.connect(self._follow)
        workspace.recovering.replayed.connect(self._ask_again)
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
        wanted = (self.recipe, self.function, self.index)
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
        return count if self.index is None else min(self.index, count)

    @property
    def index_after(self) -> int | None:
        """After how many steps is looked at, once one more is applied there."""
        at_end = self.index is None or self.index >= len(self.primitives)
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
        if self.record is None or not self.index:
            return None
        return self.record.steps[self.index - 1] if self.index <= len(self.record.steps) else None

    @property
    def chosen(self) -> tuple[LoopNode, ...]:
        """The rows of the loop tree that are selected, in the order in which they were."""
        if self.record is None:
            return ()
        nodes = {each.id: each for each in self.record.tree}
        return tuple(nodes[each] for each in self._workspace.selection.chosen if each in nodes)

    def name_of(self, reference: Reference) -> str:
        """Return what a loop or block is called in the tree, or how a step names it.

        What the step that is edited works on has the name that it had there.
        """
        edited = self._edited_names()
        if edited.get(reference):
            return edited[reference]
        nodes = () if self.record is None else self.record.tree
        known = next((each.name for each in nodes if each.reference == reference), "")
        if known:
            return known
        if isinstance(reference, Made):
            return self.tr("{0} of step {1}").format(reference.output, reference.step)
        if reference.loop is None:
            return reference.block
        return self.tr("loop {0} around {1}").format(reference.loop, reference.block)

    def _edited_names(self) -> dict[Reference, str]:
        """Return the names of what the step that is edited works on."""
        draft = self.trying.draft
        if draft is None or not draft.edits or self.record is None:
            return {}
        step = next((each for each in self.record.steps if each.id == draft.primitive.id), None)
        primitive = next((each for each in self.primitives if each.id == draft.primitive.id), None)
        if step is None or primitive is None:
            return {}
        return dict(zip(references_of(primitive), step.names, strict=False))

    # Which function

    def look(self, function: str) -> None:
        """Schedule another function; none for ``""``.

        Of one whose weights a step after the schedules lays out, that is the function before it.
        """
        function = name_before_packing(function)
        if function != self.function:
            self.function = function
            self._forget()
            self._follow()

    def _forget(self) -> None:
        self._drop()
        self._end_slow()
        self._asked = self.shown = None
        self.index = None
        self.editing.edited = ""
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
        if self.active and index != self.index:
            self.index = index
            self.trying.cancel_draft()
            self._follow()

    def _follow(self) -> None:
        """Go over to the record of what is wanted now."""
        recipe = self.recipe
        if not self.active or recipe is None or not self.function:
            self.trying.cancel_draft()
            self.trying.clear()
            return
        if self.index is not None and self.index > len(self.primitives):
            self.index = None
        wanted = (recipe, self.function, self.index)
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

    def take(self, recipe: Recipe) -> None:
        """Ask for the record anew if a recipe that was shown is derived once more."""
        if recipe != self._workspace.recipe:
            return
        # The files behind it may be others, and the function with them.
        self._known.clear()
        self.trying.cancel_draft()
        self.trying.clear()
        self.moves.forget()
        self._drop()
        self._end_slow()
        self._asked = self.shown = None

    def change(self, after: Recipe) -> None:
        """Go over to the schedules of what was made of `recipe`; what else is wanted stays so."""
        wanted, base = self._workspace.wanted, self.recipe
        if wanted is not None and base is not None:
            same = (wanted.source, wanted.schedules) == (base.source, base.schedules)
            after = msgspec.structs.replace(wanted, schedules=after.schedules) if same else after
        self._workspace.change(after)

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
        self._request = self._again = None
        self._workspace.recovering.survived("engine", "primitive")
        place, self._asked = self._asked, None
        self.keep(place, record)
        self.shown = place
        self.record, self.problem = record, None
        self._end_slow()
        self._look_at_failed(record)
        self._stepping.take_schedule(self.function, schedule_lines(self.function, record.steps))
        if self.index is None:
            self._stepping.leave()
        else:
            self._stepping.go(Moment(clock="schedule", index=self.index, function=self.function))
        if self.trying.draft is None:
            self.trying.clear()
        self.changed.emit()
        self.editing.choose_made(record)
        self.moves.follow()

    def _look_at_failed(self, record: ScheduleRecord) -> None:
        """Look at the step that was applied or changed, if it failed."""
        for number, step in enumerate(record.steps, start=1):
            if step.id == self.editing.edited and step.status == "failed":
                self.index = number

    def _take_problem(self, problem: Problem) -> None:
        self._request = None
        place, self._asked = self._asked, None
        self._end_slow()
        if problem.code == "crashed" and place is not None and self._goes_on_after(place):
            return
        self.shown = place
        self.problem = problem
        self.changed.emit()

    def _goes_on_after(self, place: Place) -> bool:
        """Ask once more what the engine has died of, or for it without the deadly step."""
        recipe = place[0]
        again = self._workspace.recovering.remedy(recipe)
        if again is not None and again != recipe:
            self.shown = place
            self.editing.leave_out(again)
            return True
        if again is None or place == self._again:
            return False
        self._again = place
        self._follow()
        return True

    def _note_slow(self) -> None:
        self.busy = True
        self._workspace.say(self.tr("Scheduling {0}").format(self.function), of="schedule")
        self.busy_changed.emit()

    def _end_slow(self) -> None:
        self._slow.stop()
        if self.busy:
            self.busy = False
            self._workspace.say("", of="schedule")
            self.busy_changed.emit()

    # Where in the history

    def go(self, index: int) -> None:
        """Look at the function after so many steps."""
        self._stepping.go(Moment(clock="schedule", index=index, function=self.function))

    def go_to_end(self) -> None:
        """Look at the function after all steps."""
        self._stepping.leave()

    def stop_at(self, index: int | None) -> None:
        """Look at the function after so many steps of the recipe that comes next."""
        self.index = index

"""The scheduled function: its record after the current step, its history, primitives, previews."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Change, Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.document.stepping import Stepping, schedule_lines
from lowerscope.app.engine.recovery import Recovering
from lowerscope.app.kit.background import single_shot
from lowerscope.core.model import shared_schedules as sharing
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import MovesQuery, ScheduleQuery
from lowerscope.core.model.recipe import (
    Recipe,
    changed,
    inserted,
    moved,
    removed,
    replaced,
    without_schedules,
)
from lowerscope.core.model.schedule import (
    Argument,
    Made,
    Primitive,
    Reference,
    Schedule,
    name_before_packing,
    references_of,
    schedule_for,
)
from lowerscope.core.model.schedule_records import (
    Field,
    LoopNode,
    Move,
    ScheduleRecord,
    ScheduleStep,
    StepError,
)
from lowerscope.core.model.snapshot import FunctionRecord
from lowerscope.core.model.texts import _

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
        self._scheduling = scheduling
        self._deadly: set[Primitive] = set()
        self.preview: Preview | None = None
        self.draft: Draft | None = None
        self._wanted = ""
        self._watch = queries.watch(self, self._query, self._take, self._take_problem)
        self._soon = single_shot(self, PREVIEW_MS, self._watch.update)
        self._edited = Slot(queries)  # The fields of the step that is to be edited.

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
            step = new_id(self._scheduling.primitives)
            self._try(msgspec.structs.replace(primitive, id=step))

    def clear(self) -> None:
        """Clear the preview."""
        self._soon.stop()
        self._set_preview(None)
        self._watch.update()

    def _try(self, primitive: Primitive) -> None:
        record = self._scheduling.record
        if record is None or (self.preview is not None and self.preview.primitive == primitive):
            return
        problem = _("The engine crashes on it") if _plain(primitive) in self._deadly else ""
        self._soon.start()
        self._watch.update()
        self._set_preview(Preview(primitive, record, problem=problem))

    def _query(self) -> ScheduleQuery | None:
        """Return the query of the preview, unless its answer is known, or the user may go on."""
        scheduling, preview = self._scheduling, self.preview
        if scheduling.recipe is None or preview is None or self._soon.isActive():
            return None
        if preview.record is not None or preview.problem:
            return None
        primitive = preview.primitive
        before = scheduling.primitives
        if self.draft is not None and self.draft.edits:
            index = scheduling.index_at(self.draft.place)
            after = replaced(before, place_of(before, primitive.id), primitive)
        else:
            index = scheduling.index_after
            after = inserted(before, scheduling.place, primitive)
        recipe = scheduling.editing.recipe_with(after)
        # A form may follow, which shows the price.
        return ScheduleQuery(recipe, scheduling.function, index, priced=True)

    def _take(self, record: ScheduleRecord) -> None:
        if self.preview is not None:
            self._set_preview(replace(self.preview, record=record))

    def _take_problem(self, problem: Problem) -> None:
        if self.preview is None:
            return
        if problem.code == "crashed":
            name = self.preview.primitive.name
            self._deadly.add(_plain(self.preview.primitive))
            text = _(
                "The engine crashed while trying {name}. It was restarted, and the history is "
                "unchanged.",
                name=name,
            )
            self._document.notify(text, "wrong")
        self._set_preview(replace(self.preview, problem=problem.line()))

    def _set_preview(self, preview: Preview | None) -> None:
        if preview != self.preview:
            self.preview = preview
            self.preview_changed.emit()

    # The form

    def asks(self, move: Move) -> bool:
        """Return whether a primitive needs a form before it is applied."""
        return move.name in ORDERED or any(_asks(each) for each in move.fields)

    @property
    def can_apply(self) -> bool:
        """Return whether the form can be applied."""
        error = None if self.preview is None else self.preview.error
        return self.draft is not None and not self.draft.wrong and error is None

    def choose_named(self, name: str) -> None:
        """Choose a primitive for the selection by its name, once those for it are known."""
        moves = self._scheduling.moves
        self._wanted = name if moves.are_coming else ""
        if self._wanted or self._scheduling.record is None:
            return
        move = next((each for each in moves.all if each.name == name), None)
        if move is None:
            text = _("{name} does not apply here: select another loop or block.", name=name)
            self._document.notify(text, "info")
        else:
            self.cancel_draft()
            self.choose(move)

    def take_moves(self) -> None:
        """Choose the primitive that was wanted before those for the selection were known."""
        if self._wanted:
            self.choose_named(self._wanted)

    def choose(self, move: Move) -> None:
        """Apply a primitive without choices; otherwise show its form."""
        primitive = move.primitive
        if move.legal and not self.asks(move) and _plain(primitive) not in self._deadly:
            self._scheduling.editing.apply(primitive)
        else:
            self.open(move)

    def open(self, move: Move) -> None:
        """Show the form of a primitive."""
        step = new_id(self._scheduling.primitives)
        primitive = msgspec.structs.replace(move.primitive, id=step)
        self._set_draft(Draft(move, primitive, self._scheduling.place))

    def edit(self, step: str) -> None:
        """Show the form of a step, with its arguments, as soon as its fields are known."""
        scheduling = self._scheduling
        place = place_of(scheduling.primitives, step)
        if place < 0 or scheduling.record is None:
            return
        self.cancel_draft()
        scheduling.go(place + 1)
        assert scheduling.recipe is not None
        references = references_of(scheduling.primitives[place])
        query = MovesQuery(scheduling.recipe, scheduling.function, place, references)
        self._edited.ask(query, partial(self._open_step, step), self._document.notify_of)

    def _open_step(self, step: str, moves: tuple[Move, ...]) -> None:
        """Show the form of a step: `moves` are those offered there for its operands."""
        primitives = self._scheduling.primitives
        place = place_of(primitives, step)
        if place < 0:
            return
        primitive = primitives[place]
        move = next((each for each in moves if each.name == primitive.name), None)
        if move is None:
            text = _("The operands of {name} do not exist at this step.", name=primitive.name)
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
        self._edited.drop()
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


# --- Primitives applicable to the selection in the scheduled function ---


class Moves(QObject):
    """The primitives offered."""

    changed = Signal()  # `all` changed.

    def __init__(self, document: Document, queries: Queries, scheduling: Scheduling) -> None:
        super().__init__(scheduling)
        self._document = document
        self._scheduling = scheduling
        # Queries on which two engines crashed: one may also be killed from outside.
        self._deadly: set[MovesQuery] = set()
        self._watch = queries.watch(
            self, self._query, self._set, self._take_problem, self._note_busy
        )
        self.all: tuple[Move, ...] = ()  # The primitives for the selection, legal or not.
        document.on(("selection", "snapshot"), self.follow)

    @property
    def are_coming(self) -> bool:
        """Return whether `all` is outdated: a query is pending."""
        return self._watch.pending is not None

    @property
    def are_deadly(self) -> bool:
        """Return whether engines crashed on the query for the selection."""
        return self._wanted() in self._deadly

    def follow(self) -> None:
        """Switch to the primitives for the current selection."""
        if self._scheduling.active:
            self._watch.update()
            if self.all and self.are_deadly:
                self._set(())

    def forget(self) -> None:
        """Clear the primitives: there is another function."""
        self._watch.update()
        if self.all:
            self._set(())

    def _wanted(self) -> MovesQuery | None:
        shown, chosen = self._scheduling.shown, self._scheduling.chosen
        if shown is None:
            return None
        references = tuple(each.reference for each in chosen)
        return MovesQuery(shown.recipe, shown.function, shown.index, references)

    def _query(self) -> MovesQuery | None:
        wanted = self._wanted()
        return None if wanted in self._deadly else wanted

    def _note_busy(self, busy: bool) -> None:
        if busy:
            self.changed.emit()

    def _set(self, moves: tuple[Move, ...]) -> None:
        self.all = moves
        self.changed.emit()

    def _take_problem(self, problem: Problem) -> None:
        query = self._watch.refused
        if problem.code == "crashed" and self._watch.was_retried and query is not None:
            assert isinstance(query, MovesQuery)
            self._deadly.add(query)
        self._set(())
        self._document.notify_of(problem)


SLOW_MS = 200
"""Delay before a request is shown as busy."""


def _work(function: FunctionRecord) -> tuple[int, int, str]:
    return (function.runs, function.loops, function.name)


class Scheduling(QObject):
    """The scheduled function, while the timeline is that of its schedule."""

    changed = Signal()  # `function`, `record` or `problem` changed.
    busy_changed = Signal()  # `busy` changed.

    def __init__(
        self, document: Document, queries: Queries, stepping: Stepping, recovering: Recovering
    ) -> None:
        super().__init__(document)
        self._document = document
        self._recovering = recovering
        self._stepping = stepping
        self._watch = queries.watch(
            self, self._query, self._take, self._take_problem, self._note_busy
        )
        self.shown: ScheduleQuery | None = None  # The query of `record`.
        self.index: int | None = None  # Number of its steps shown as applied; ``None`` for all.
        self.function = ""  # Name of the function; empty for none.
        # The function after these steps; ``None`` before the record arrives.
        self.record: ScheduleRecord | None = None
        self.problem: Problem | None = None  # The problem that prevented the record.
        self.busy = False  # Whether the request takes long.
        self.editing = Editing(document, self)  # Edits the history.
        self.moves = Moves(document, queries, self)  # The applicable primitives.
        self.trying = Trying(document, queries, self)  # Previews and the form.
        self.moves.changed.connect(self.trying.take_moves)
        self._slow = single_shot(self, SLOW_MS, self._note_slow)
        document.changed.connect(self._renew)
        document.on(("selection", "snapshot"), self._follow_selection)
        document.on(("recipe", "pending"), self._follow)
        self._stepping.list_changed.connect(self._follow)
        self._stepping.section_changed.connect(self._follow)
        self._stepping.schedule_moved.connect(self._follow_step)

    # State

    @property
    def active(self) -> bool:
        """Return whether the timeline is that of the schedule."""
        return self._stepping.section == "schedule"

    @property
    def recipe(self) -> Recipe | None:
        """The recipe whose schedules are shown: the pending one, if its model is the same."""
        shown, wanted = self._document.recipe, self._document.wanted
        if shown is None or wanted is None:
            return None
        return wanted if without_schedules(wanted) == without_schedules(shown) else shown

    @property
    def is_settled(self) -> bool:
        """Return whether the wanted record and its primitives are shown."""
        known = self._watch.is_current or self.problem is not None
        return known and self._watch.pending is None and not self.moves.are_coming

    @property
    def structure(self) -> str:
        """Structural hash of the unscheduled function."""
        return "" if self.record is None else self.record.structure

    @property
    def schedule(self) -> Schedule | None:
        """The enabled schedule of the function."""
        recipe = self.recipe
        return (
            None
            if recipe is None
            else schedule_for(recipe.schedules, self.function, self.structure)
        )

    @property
    def primitives(self) -> Primitives:
        """The steps of the enabled schedule."""
        schedule = self.schedule
        return () if schedule is None else schedule.primitives

    @property
    def can_undo(self) -> bool:
        """Return whether the last change was one of the function's schedules."""
        wanted, undo = self._document.wanted, self._document.history.undo
        if wanted is None or self.record is None or not undo:
            return False
        now, before = (
            sharing.variants(each, self.function, self.structure) for each in (wanted, undo[-1])
        )
        return now != before and without_schedules(wanted) == without_schedules(undo[-1])

    @property
    def place(self) -> int:
        """Index at which the next primitive is inserted: after the current step."""
        count = len(self.primitives)
        return count if self.index is None else min(self.index, count)

    @property
    def index_after(self) -> int | None:
        """The `index` to show once a primitive has been inserted there."""
        at_end = self.index is None or self.index >= len(self.primitives)
        return None if at_end else self.place + 1

    def index_at(self, place: int) -> int | None:
        """Return the `index` that shows the result of the step at a place."""
        return None if place == len(self.primitives) - 1 else place + 1

    @property
    def moment(self) -> Moment:
        """The current step, for texts of the function other than its script."""
        return Moment(section="schedule", index=self.place, function=self.function)

    @property
    def step(self) -> ScheduleStep | None:
        """The current step; ``None`` before the first, and if all are applied."""
        if self.record is None or not self.index:
            return None
        return self.record.steps[self.index - 1] if self.index <= len(self.record.steps) else None

    @property
    def chosen(self) -> tuple[LoopNode, ...]:
        """The selected rows of the loop tree, in the order of selection."""
        if self.record is None:
            return ()
        nodes = {each.id: each for each in self.record.tree}
        return tuple(nodes[each] for each in self._document.selection.chosen if each in nodes)

    def name_of(self, reference: Reference) -> str:
        """Return the name of a loop or block in the tree, or else as a step refers to it.

        The operands of the step that is edited have the names they had there.
        """
        edited = self._edited_names()
        if edited.get(reference):
            return edited[reference]
        nodes = () if self.record is None else self.record.tree
        known = next((each.name for each in nodes if each.reference == reference), "")
        if known:
            return known
        if isinstance(reference, Made):
            return _("{output} of step {step}", output=reference.output, step=reference.step)
        if reference.loop is None:
            return reference.block
        return _("loop {loop} around {block}", loop=reference.loop, block=reference.block)

    def _edited_names(self) -> dict[Reference, str]:
        """Return the names of the operands of the step that is edited."""
        draft = self.trying.draft
        if draft is None or not draft.edits or self.record is None:
            return {}
        step = next((each for each in self.record.steps if each.id == draft.primitive.id), None)
        primitive = next((each for each in self.primitives if each.id == draft.primitive.id), None)
        if step is None or primitive is None:
            return {}
        return dict(zip(references_of(primitive), step.names, strict=False))

    # Selecting a function

    @property
    def functions(self) -> tuple[FunctionRecord, ...]:
        """The TensorIR functions of the model, those with the most work first."""
        snapshot = self._document.snapshot
        functions = () if snapshot is None else snapshot.functions
        found = (each for each in functions if each.kind == "tensorir")
        return tuple(sorted(found, key=_work, reverse=True))

    def _follow_selection(self) -> None:
        """Schedule the function that is selected, or that the selection became.

        The only function of a model needs no selection. With nothing selected, the function stays.
        """
        if self._document.snapshot is None:
            return
        # Those after all steps are scheduled, whatever the current step is.
        links = self._document.links.at_step(())
        functions, selection = self.functions, links.select(self._document.selection.chosen)
        pointed = {each.partition("/")[0] for each in selection.chosen}
        if len(functions) == 1:
            found = list(functions)
        elif selection.chosen:
            linked = [each for each in functions if each.id in selection.linked]
            found = [each for each in linked if each.id in pointed] or linked
        else:
            found = [each for each in functions if name_before_packing(each.name) == self.function]
        names = [name_before_packing(each.name) for each in found]
        if self.function not in names:
            self.look(names[0] if names else "")

    def look(self, function: str) -> None:
        """Schedule another function; none for ``""``.

        For a function whose weights are laid out by a step after the schedules, that is the
        function before that step.
        """
        function = name_before_packing(function)
        if function != self.function:
            self.function = function
            self._forget()
            self._follow()

    def _forget(self) -> None:
        self.shown = None
        self.index = None
        self.editing.edited = ""
        self.record, self.problem = None, None
        self.trying.cancel_draft()
        self.moves.forget()
        self._stepping.take_schedule(self.function, ())
        self.changed.emit()

    # The record

    def _query(self) -> ScheduleQuery | None:
        recipe = self.recipe
        if not self.active or recipe is None or not self.function:
            return None
        return ScheduleQuery(recipe, self.function, self.index)

    def _follow_step(self) -> None:
        index = self._stepping.schedule_index
        if self.active and index != self.index:
            self.index = index
            self.trying.cancel_draft()
            self._follow()

    def _follow(self) -> None:
        """Switch to the record of the wanted recipe and step."""
        if self.index is not None and self.index > len(self.primitives):
            self.index = None
        wanted = self._query()
        if wanted is None:
            self.trying.cancel_draft()
            self.trying.clear()
        elif wanted != self._watch.pending and self._shows_other(wanted.recipe):
            self.trying.cancel_draft()
        self._watch.update()

    def _shows_other(self, recipe: Recipe) -> bool:
        return self.shown is not None and self.shown.recipe != recipe

    def _renew(self, change: Change) -> None:
        """Discard previews if the recipe shown is derived again: its files may have changed."""
        if "snapshot" in change.fields and change.before.recipe == change.after.recipe:
            self.trying.cancel_draft()
            self.trying.clear()

    def change(self, after: Recipe) -> None:
        """Apply the schedule changes made to `recipe`; other pending changes stay."""
        wanted, base = self._document.wanted, self.recipe
        if wanted is not None and base is not None:
            same = (wanted.source, wanted.schedules) == (base.source, base.schedules)
            after = msgspec.structs.replace(wanted, schedules=after.schedules) if same else after
        self._document.change(after)

    def _take(self, record: ScheduleRecord) -> None:
        query = self._watch.shown
        assert isinstance(query, ScheduleQuery)
        self._recovering.survived("engine", "primitive")
        is_new = (query, None) != (self.shown, self.problem) or record is not self.record
        self.shown = query
        self.record, self.problem = record, None
        self._look_at_failed(record)
        self._stepping.take_schedule(self.function, schedule_lines(self.function, record.steps))
        if self.index is None:
            self._stepping.leave()
        else:
            self._stepping.go(Moment(section="schedule", index=self.index, function=self.function))
        if self.trying.draft is None:
            self.trying.clear()
        if is_new:
            self.changed.emit()
        self.editing.choose_made(record)
        self.moves.follow()

    def _look_at_failed(self, record: ScheduleRecord) -> None:
        """Go to the step that was applied or changed, if it failed."""
        for number, step in enumerate(record.steps, start=1):
            if step.id == self.editing.edited and step.status == "failed":
                self.index = number

    def _take_problem(self, problem: Problem) -> None:
        query = self._watch.refused
        assert isinstance(query, ScheduleQuery)
        if problem.code == "crashed" and self._continues_after(query):
            return
        self.shown = query
        self.problem = problem
        self.changed.emit()

    def _continues_after(self, query: ScheduleQuery) -> bool:
        """Return whether the query is sent again, or leave out the step that crashed the engine."""
        again = self._recovering.remedy(query.recipe)
        if again is not None and again != query.recipe:
            self.shown = query
            self.editing.leave_out(again)
            return True
        return again is not None and not self._watch.was_retried

    def _note_busy(self, busy: bool) -> None:
        if busy:
            self._slow.start()
            return
        self._slow.stop()
        if self.busy:
            self.busy = False
            self._document.say("", of="schedule")
            self.busy_changed.emit()

    def _note_slow(self) -> None:
        self.busy = True
        self._document.say(_("Scheduling {function}", function=self.function), of="schedule")
        self.busy_changed.emit()

    # Position in the history

    def go(self, index: int) -> None:
        """Show the function after this many steps."""
        self._stepping.go(Moment(section="schedule", index=index, function=self.function))

    def go_to_end(self) -> None:
        """Look at the function after all steps."""
        self._stepping.leave()

    def stop_at(self, index: int | None) -> None:
        """Show the function after this many steps of the next recipe."""
        self.index = index

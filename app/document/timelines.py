"""Steps of the timelines Build and Run, breakpoints, and the passes that change a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.document.stepping import Stepping, call_lines
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import BuildStepsQuery, TouchingStepsQuery
from lowerscope.core.model.recipe import Source
from lowerscope.core.model.run_records import (
    NOT_THERE,
    CallRun,
    RunRecord,
    parts_of_name,
)
from lowerscope.core.model.texts import _

# --- The passes of TVM's own build, listed by the worker while they are shown ---


class BuildSteps(QObject):
    """Requests the passes of the timeline ``"build"`` and puts them into the stepping.

    Args:
        queries: Sends the query.
    """

    changed = Signal()  # `busy` or `problem` changed.

    def __init__(self, document: Document, queries: Queries, stepping: Stepping) -> None:
        super().__init__(document)
        self._document = document
        self._stepping = stepping
        self._looked_at = False
        self._is_built = False
        self._slot = Slot(queries)
        self.problem: Problem | None = None  # The problem that prevented the list, if any.
        stepping.section_changed.connect(self._ask)
        document.on(("snapshot",), self._take)
        document.on(("run",), self._note_run)

    @property
    def busy(self) -> bool:
        """Return whether the list is being requested."""
        return self._slot.is_busy

    def look(self, looked_at: bool) -> None:
        """Set whether the list is shown; while it is, it is updated with the recipe."""
        self._looked_at = looked_at
        self._ask()

    def note_built(self) -> None:
        """Note that the worker has built the recipe for another request, so its list is cached."""
        self._is_built = True
        self._ask()

    def _note_run(self) -> None:
        if self._document.run_record is not None:
            self.note_built()

    def _take(self) -> None:
        """Reset after the recipe changed: its build is another one."""
        # A run that is shown again has built it.
        self._is_built = self._document.run_record is not None
        self._slot.drop()
        self.problem = None
        self.changed.emit()
        self._ask()

    def _ask(self) -> None:
        recipe = self._document.recipe
        looked_at = self._looked_at or self._is_built or self._stepping.section == "build"
        there = self.busy or self.problem is not None or self._stepping.lines("build")
        if recipe is None or not looked_at or there:
            return
        self._slot.ask(BuildStepsQuery(recipe), self._accept, self._refuse)
        self.changed.emit()

    def _accept(self, records: tuple[PassRecord, ...]) -> None:
        self._stepping.take_build(records)
        self.changed.emit()

    def _refuse(self, problem: Problem) -> None:
        self.problem = problem
        self.changed.emit()


class RunSteps(QObject):
    """The current call of the last run, and the breakpoints.

    A failed run has the calls it got to, as far as these are known.

    Breakpoints are FX nodes or bindings, by id. They belong to the window and are no part of the
    recipe: when that changes, they stay for nodes and bindings that still exist.

    Args:
        failure: Returns the problem that the last run ended with, if it failed.
    """

    call_changed = Signal()  # `call` changed.
    breaks_changed = Signal()  # `breaks` changed, or the links of these did.

    def __init__(
        self, document: Document, stepping: Stepping, failure: Callable[[], Problem | None]
    ) -> None:
        super().__init__(document)
        self._document = document
        self._stepping = stepping
        self._failure = failure
        self._source: Source | None = None
        self._record: RunRecord | None = None
        # The problem of the last run, if it is known to have failed in the last of `calls`.
        self.failed: Problem | None = None
        # The FX nodes and bindings at whose calls playing stops.
        self.breaks: frozenset[str] = frozenset()
        # The calls of the last run of the recipe shown, in order.
        self.calls: tuple[CallRun, ...] = ()
        self.call: CallRun | None = None  # The current call.
        document.on(("run", "running"), self.take_run)
        document.on(("snapshot",), self._take_snapshot)
        stepping.run_moved.connect(self._follow)

    # The current call

    @property
    def index(self) -> int | None:
        """Index of the current call in `calls`; ``None`` for none."""
        index = self._stepping.run_index
        return index - 1 if index and index <= len(self.calls) else None

    @property
    def lines(self) -> tuple[int, int]:
        """The bytecode lines from after the previous call up to that of `call`; 0 for none."""
        index, call = self.index, self.call
        if index is None or call is None or not call.line:
            return 0, 0
        # The first line of a function is its name.
        return max(2, (self.calls[index - 1].line if index else 0) + 1), call.line

    @property
    def why_none(self) -> str:
        """Reason that a run has no calls to step through; empty without a run."""
        record = self._record
        if record is None or record.calls:
            return ""
        if record.ran_on:
            return NOT_THERE
        return next(
            (each.reason for each in record.nodes if each.reason),
            _("its calls cannot be distinguished, or it has none"),
        )

    def _follow(self) -> None:
        """Select the results of the call, so that all panes mark them."""
        index = self.index
        call, before = None if index is None else self.calls[index], self.call
        if call is not before:
            self.call = call
            self.call_changed.emit()
        # A run that is measured again has the same calls: a selection made since stays.
        if call is not None and (before is None or _computed(call) != _computed(before)):
            self._document.select(_computed(call))

    def take_run(self) -> None:
        """Take the calls of the last run, or those of one that failed."""
        record, failed = self._document.run_record, self._failure()
        failed = failed if failed is not None and failed.calls else None
        if record is self._record and failed is self.failed:
            return
        before, self._record, self.failed = self.failed, record, failed
        if failed is not None:
            parts = [parts_of_name(name) for name in failed.calls]
            self.calls = tuple(
                CallRun(
                    function=callee, milliseconds=0.0, nodes=nodes, entity=self._entity_of(callee)
                )
                for callee, nodes in parts
            )
        else:
            self.calls = () if record is None else record.calls
        index = self._stepping.run_index
        self._show_lines()
        if self._stepping.run_index == index:
            # The index is the same, but the call is of another run.
            self._follow()
        is_other = failed is not None and (before is None or failed.calls != before.calls)
        if is_other and self._stepping.section == "run":
            self._stepping.last()

    def _entity_of(self, callee: str) -> str:
        snapshot = self._document.snapshot
        functions = () if snapshot is None else snapshot.functions
        return next((each.id for each in functions if each.name == callee), "")

    def _show_lines(self) -> None:
        error = "" if self.failed is None else self.failed.what
        self._stepping.take_run(call_lines(self.calls, self.breaks, error))

    # Breakpoints

    def marked(self) -> frozenset[str]:
        """Return the breakpoints, with the nodes linked to bindings and vice versa."""
        linked = self._document.linked_to(*self.breaks)
        return self.breaks | {each for each in linked if can_break(each)}

    def toggle(self, entities: Iterable[str]) -> None:
        """Add breakpoints on some nodes or bindings, or remove them if all of these have one."""
        meant = frozenset(each for each in entities if can_break(each))
        if not meant:
            return
        self._set(self.breaks - meant if meant <= self.breaks else self.breaks | meant)
        stops = {each for call in self.calls for each in (*call.nodes, *call.bindings)}
        if meant <= self.breaks and self.calls and meant.isdisjoint(stops):
            text = _("No call of the last run computes it, so there is nothing to break at.")
            self._document.notify(text, "info")

    def toggle_selected(self) -> None:
        """Toggle breakpoints on the selected nodes or bindings: for a function, on its nodes."""
        selection = self._document.selection
        chosen = [each for each in selection.chosen if can_break(each)]
        self.toggle(chosen or selection.of_kind("fx"))

    def clear(self) -> None:
        """Remove all breakpoints."""
        self._set(frozenset())

    def _set(self, breaks: frozenset[str]) -> None:
        if breaks != self.breaks:
            self.breaks = breaks
            self._show_lines()
            self.breaks_changed.emit()

    def _take_snapshot(self) -> None:
        recipe = self._document.recipe
        source = None if recipe is None else recipe.source
        if source != self._source:
            self._source = source
            self._set(frozenset())
        elif self.breaks:
            self.breaks_changed.emit()


def _computed(call: CallRun) -> tuple[str, ...]:
    """Return the entities selected at a call."""
    return call.bindings or call.nodes or (call.entity,)


def can_break(entity: str) -> bool:
    """Return whether an id is that of a node or a binding."""
    return entity.startswith("fx:") or (entity.startswith("relax:") and "/" in entity)


# --- The passes that change something of a node: for playing until one, and for breakpoints ---


class NodeSteps(QObject):
    """Plays until a pass changes the selection, and tells the stepping where breakpoints are."""

    def __init__(
        self, document: Document, queries: Queries, stepping: Stepping, run_steps: RunSteps
    ) -> None:
        super().__init__(document)
        self._document = document
        self._stepping = stepping
        self._run_steps = run_steps
        self._wanted = Slot(queries)
        self._touched = Slot(queries)
        run_steps.breaks_changed.connect(self._ask_touched)

    def selected(self) -> tuple[str, ...]:
        """Return the selected nodes or bindings; of a function, its nodes."""
        selection = self._document.selection
        chosen = tuple(each for each in selection.chosen if can_break(each))
        return chosen or tuple(selection.of_kind("fx"))

    def play_until_changed(self) -> None:
        """Play the passes until one changes something of the selection."""
        recipe, entities = self._document.recipe, self.selected()
        if recipe is not None and entities:
            self._stepping.pause()
            self._wanted.ask(TouchingStepsQuery(recipe, entities), self._play, self._refuse)

    def _play(self, numbers: tuple[int, ...]) -> None:
        stepping = self._stepping
        here = stepping.moment
        index = here.index if here is not None and here.section == "passes" else 0
        later = [number for number in numbers if number > index]
        if not later:
            words = _("No later pass changes the selection.")
            self._document.notify(words, "info")
            return
        if here is None or here.section != "passes":
            stepping.go(Moment(section="passes", index=0))
        stepping.play(until=later[:1])

    def _refuse(self, problem: Problem) -> None:
        self._document.report(problem)

    def _ask_touched(self) -> None:
        recipe, breaks = self._document.recipe, tuple(sorted(self._run_steps.breaks))
        if recipe is None or not breaks:
            self._touched.drop()
            self._stepping.set_touched(())
            return
        query = TouchingStepsQuery(recipe, breaks)
        self._touched.ask(query, self._stepping.set_touched, self._refuse)

"""The steps of the clock Run: the calls of the last run, and the nodes that playing stops at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from lowerscope.app.step_lines import call_lines
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Source
from lowerscope.core.records.run import NOT_THERE, CallRun, RunRecord
from lowerscope.core.running.running_call import parts_of_name

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class RunSteps(QObject):
    """Where in the last run the window is, and where it stops.

    A run that came to a bad end has the calls that it came to, as far as these are known.

    Breaks are FX nodes or bindings, by id. They are the window's own, and no part of the recipe:
    whatever that is changed to, they hold for what is still there.

    Signals
    -------
    call_changed
        `call` is another one.
    breaks_changed
        `breaks` are others, or other things belong to them.
    """

    call_changed = Signal()
    breaks_changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._source: Source | None = None
        self._record: RunRecord | None = None
        self._failed: Problem | None = None
        self._breaks: frozenset[str] = frozenset()
        self._calls: tuple[CallRun, ...] = ()
        self._call: CallRun | None = None
        workspace.run_changed.connect(self._take_run)
        workspace.faults.changed.connect(self._take_run)
        workspace.snapshot_changed.connect(self._take_snapshot)
        workspace.stepping.run_moved.connect(self._follow)

    # The call that is looked at

    @property
    def calls(self) -> tuple[CallRun, ...]:
        """The calls of the last run of what is shown, in order."""
        return self._calls

    @property
    def failed(self) -> Problem | None:
        """What the last run ended with, if that is known to have been in the last of `calls`."""
        return self._failed

    @property
    def index(self) -> int | None:
        """Place of the call that is looked at among `calls`; ``None`` for none."""
        index = self._workspace.stepping.run_index
        return index - 1 if index and index <= len(self.calls) else None

    @property
    def call(self) -> CallRun | None:
        """The call that is looked at."""
        return self._call

    @property
    def lines(self) -> tuple[int, int]:
        """The lines of the bytecode from after the call before up to that of `call`; 0 for none."""
        index, call = self.index, self._call
        if index is None or call is None or not call.line:
            return 0, 0
        # The first line of a function is its name.
        return max(2, (self.calls[index - 1].line if index else 0) + 1), call.line

    @property
    def why_none(self) -> str:
        """Why a run that there was has no calls to step through; empty without a run."""
        record = self._record
        if record is None or record.calls:
            return ""
        if record.ran_on:
            return self.tr(NOT_THERE)
        return next(
            (each.reason for each in record.nodes if each.reason),
            self.tr("its calls cannot be told apart, or there is none"),
        )

    def _follow(self) -> None:
        """Select what the call computes, so that all panes mark it."""
        index = self.index
        call, before = None if index is None else self.calls[index], self._call
        if call is not before:
            self._call = call
            self.call_changed.emit()
        # A run that is measured again has the same calls: what was selected since stays.
        if call is not None and (before is None or _computed(call) != _computed(before)):
            self._workspace.select(_computed(call))

    def _take_run(self) -> None:
        record, failed = self._workspace.run_record, self._workspace.faults.failed
        failed = failed if failed is not None and failed.calls else None
        if record is self._record and failed is self._failed:
            return
        before, self._record, self._failed = self._failed, record, failed
        if failed is not None:
            parts = [parts_of_name(name) for name in failed.calls]
            self._calls = tuple(
                CallRun(
                    function=callee, milliseconds=0.0, nodes=nodes, entity=self._entity_of(callee)
                )
                for callee, nodes in parts
            )
        else:
            self._calls = () if record is None else record.calls
        index = self._workspace.stepping.run_index
        self._show_lines()
        if self._workspace.stepping.run_index == index:
            # It did not move, and is a call of another run nevertheless.
            self._follow()
        is_other = failed is not None and (before is None or failed.calls != before.calls)
        if is_other and self._workspace.stepping.clock == "run":
            self._workspace.stepping.last()

    def _entity_of(self, callee: str) -> str:
        snapshot = self._workspace.snapshot
        functions = () if snapshot is None else snapshot.functions
        return next((each.id for each in functions if each.name == callee), "")

    def _show_lines(self) -> None:
        error = "" if self._failed is None else self._failed.what
        self._workspace.stepping.take_run(call_lines(self._calls, self._breaks, error))

    # Breaks

    @property
    def breaks(self) -> frozenset[str]:
        """The FX nodes and bindings at whose calls playing stops."""
        return self._breaks

    def marked(self) -> frozenset[str]:
        """Return the breaks, with the nodes of bindings and the bindings of nodes among them."""
        linked = self._workspace.linked_to(*self._breaks)
        return self._breaks | {each for each in linked if can_break(each)}

    def toggle(self, entities: Iterable[str]) -> None:
        """Make breaks of some nodes or bindings; or no more, if all of them are."""
        meant = frozenset(each for each in entities if can_break(each))
        if not meant:
            return
        self._set(self._breaks - meant if meant <= self._breaks else self._breaks | meant)
        stops = {each for call in self.calls for each in (*call.nodes, *call.bindings)}
        if meant <= self._breaks and self.calls and meant.isdisjoint(stops):
            text = self.tr("No call of the last run computes it, so there is nothing to break at.")
            self._workspace.announced.emit(text, "info")

    def toggle_selected(self) -> None:
        """Make breaks of the selected nodes or bindings, or no more: of a function, its nodes."""
        selection = self._workspace.selection
        chosen = [each for each in selection.chosen if can_break(each)]
        self.toggle(chosen or selection.of_kind("fx"))

    def clear(self) -> None:
        """Take all breaks away."""
        self._set(frozenset())

    def _set(self, breaks: frozenset[str]) -> None:
        if breaks != self._breaks:
            self._breaks = breaks
            self._show_lines()
            self.breaks_changed.emit()

    def _take_snapshot(self) -> None:
        recipe = self._workspace.recipe
        source = None if recipe is None else recipe.source
        if source != self._source:
            self._source = source
            self._set(frozenset())
        elif self._breaks:
            self.breaks_changed.emit()


def _computed(call: CallRun) -> tuple[str, ...]:
    """Return what is selected at a call."""
    return call.bindings or call.nodes or (call.entity,)


def can_break(entity: str) -> bool:
    """Return whether an id is that of a node or a binding."""
    return entity.startswith("fx:") or (entity.startswith("relax:") and "/" in entity)

"""The open document: recipe, undo, selection, records and problems; signals, no widgets.

All state of the window apart from its appearance lives here. Views connect to the signals, draw the
records, and call the methods.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal

from lowerscope.app.activity import Activities, Activity, Of
from lowerscope.app.build_steps import BuildSteps
from lowerscope.app.changes import Changes
from lowerscope.app.children.at_work import AtWork
from lowerscope.app.children.hanging import Hanging
from lowerscope.app.children.recovering import Recovering
from lowerscope.app.children.whole_log import WholeLog
from lowerscope.app.colouring import Colouring
from lowerscope.app.document.queries import Queries
from lowerscope.app.engine_client import EngineClient
from lowerscope.app.history import Change
from lowerscope.app.inputs import Inputs
from lowerscope.app.overrides import calls_among, with_strategy
from lowerscope.app.pins import Pins
from lowerscope.app.runs.faults import Faults
from lowerscope.app.runs.running import Runs
from lowerscope.app.runs.steps import RunSteps
from lowerscope.app.selecting import Selecting
from lowerscope.app.selection import Selection
from lowerscope.app.stepping import Stepping
from lowerscope.app.trouble import Trouble
from lowerscope.app.workbench.measurements import Measurements
from lowerscope.app.workbench.scheduling import Scheduling
from lowerscope.app.workbench.tuning import Tuning
from lowerscope.app.workbench.variants import Variants
from lowerscope.core.engine import temporary_files
from lowerscope.core.errors import Problem
from lowerscope.core.model.text_metrics import DEFAULT, TextMetrics
from lowerscope.core.recipe import Recipe, Strategy
from lowerscope.core.records.run import RunRecord
from lowerscope.core.records.snapshot import FunctionRecord, Note, Snapshot


class Workspace(QObject):
    """The open document.

    Signals
    -------
    snapshot_changed
        `recipe` and `snapshot` changed, possibly to ``None``.
    recipe_wanted
        The shown or pending recipe changed: for switches and fields.
    selection_changed
        `selection` changed.
    run_changed
        `run_record` changed, or was discarded because the recipe changed.
    problems_changed
        `problems` changed.
    activity_changed
        `activity` changed.
    children_changed
        The state of the engine or of the worker changed.
    logged
        Text printed by torch, TVM or the user's file; `whole_log` has all of it.
    unseen(object)
        The `Problem` of a file that was not run for lack of the user's approval.
    stop_wanted
        All work is to be cancelled, the workspace's own or not.
    announced
        One line for the banner, and its role: ``"info"`` or ``"wrong"``.
    """

    snapshot_changed = Signal()
    recipe_wanted = Signal()
    selection_changed = Signal()
    run_changed = Signal()
    problems_changed = Signal()
    activity_changed = Signal()
    children_changed = Signal()
    logged = Signal(str)
    unseen = Signal(object)
    stop_wanted = Signal()
    announced = Signal(str, str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.engine = EngineClient("engine", parent=self)
        self.worker = EngineClient("worker", parent=self)
        self.whole_log = WholeLog()
        self.metrics: TextMetrics = DEFAULT
        self.queries = Queries(self.engine, self.worker, self)
        self._snapshot: Snapshot | None = None
        self._activities = Activities()
        self.trouble = Trouble(self)
        self.changes = Changes(self)
        self.selecting = Selecting(self)
        self.runs = Runs(self)
        self.faults = Faults(self)
        self.recovering = Recovering(self)
        self._hanging = Hanging(self)
        self.inputs = Inputs(self)
        self.recovering.replayed.connect(self.queries.retry)
        self.changes.reloading.connect(self.queries.note_reload)
        self.stepping = Stepping(self)
        self.build = BuildSteps(self.queries, lambda: self.recipe, self.stepping, self)
        self.scheduling = Scheduling(self)
        self.variants = Variants(self)
        self.measurements = Measurements(self)
        self.pins = Pins(lambda: self.recipe, self.stepping, self)
        self.colouring = Colouring(lambda: self._snapshot, lambda: self.selecting.links, self)
        self.trouble.changed.connect(self.problems_changed)
        self.changes.wanted_changed.connect(self.recipe_wanted)
        self.selecting.changed.connect(self.selection_changed)
        self.runs.changed.connect(self.run_changed)
        self.run_steps = RunSteps(self)
        self.tuning = Tuning(self)
        self.at_work = AtWork(self)
        for client in (self.engine, self.worker):
            client.state_changed.connect(self._note_state)
            self.hear(client)

    def hear(self, client: EngineClient) -> None:
        """Log the output of a client's children, and pass on their `unseen` signals."""
        client.log.connect(self.logged)
        client.unseen.connect(self.unseen)
        client.printed.connect(self.whole_log.add)

    # State

    @property
    def recipe(self) -> Recipe | None:
        """The recipe whose records are shown."""
        return self.changes.recipe

    @property
    def wanted(self) -> Recipe | None:
        """The recipe that the user requested last: the pending one, or the one shown."""
        return self.changes.wanted

    @property
    def refused(self) -> Recipe | None:
        """The recipe that caused `problems`; ``None`` if it was a run."""
        refused = self.trouble.refused
        return None if refused is None else refused.recipe

    @property
    def snapshot(self) -> Snapshot | None:
        """The records of `recipe`."""
        return self._snapshot

    def is_open(self) -> bool:
        """Return whether a model is open."""
        return self._snapshot is not None

    def has_torch(self) -> bool:
        """Return whether the open model is a PyTorch model."""
        return self._snapshot is not None and self._snapshot.model.kind == "torch"

    @property
    def selection(self) -> Selection:
        """The selection shared by all views."""
        return self.selecting.selection

    @property
    def run_record(self) -> RunRecord | None:
        """The outcome of the last run of `recipe`; ``None`` if there is none."""
        return self.runs.record

    @property
    def running(self) -> bool:
        """Return whether a run is in progress or waits for the engine."""
        return self.runs.running

    @property
    def changing(self) -> bool:
        """Return whether a recipe change is pending."""
        return self.changes.under_way is not None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the last change or run."""
        return self.trouble.problems

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes for the user about the open model."""
        return () if self._snapshot is None else self._snapshot.notes

    @property
    def activity(self) -> Activity:
        """The current activity."""
        return self._activities.shown

    def say(self, text: str, fraction: float | None = None, *, of: Of = "change") -> None:
        """Set the activity of an owner; ``""`` ends it."""
        before = self.activity
        self._activities.say(of, Activity(text, fraction))
        if before != self.activity:
            self.activity_changed.emit()

    # Start and end

    def start(self) -> None:
        """Start the engine; the worker is started when the engine is ready."""
        threading.Thread(target=temporary_files.sweep, name="sweep", daemon=True).start()
        self.engine.start()

    def stop(self) -> None:
        """Stop all children."""
        self.tuning.close()
        self.engine.stop()
        self.worker.stop()

    def restart(self) -> None:
        """Restart both children, whatever they are doing, and derive the recipe shown again."""
        for client in (self.engine, self.worker):
            client.restart()
        self.recovering.replay()

    # The recipe

    def open(self, recipe: Recipe) -> None:
        """Open another source. The current document stays until the new one's records arrive."""
        self.changes.open(recipe)

    def change(self, recipe: Recipe) -> None:
        """Request a changed recipe of the same source, as one undo step."""
        self.changes.change(recipe)

    def lower_nodes(self, nodes: Iterable[str], strategy: Strategy | None) -> None:
        """Set the strategy of some nodes, or restore the default."""
        recipe = self.wanted
        chosen = [] if self._snapshot is None else calls_among(self._snapshot, nodes)
        if recipe is not None and chosen:
            self.change(with_strategy(recipe, chosen, strategy))

    def take(self, change: Change, snapshot: Snapshot) -> None:
        """Apply a change, with the records that the engine derived from it."""
        recipe = change.recipe
        # Must run before settle(): both compare against the recipe still shown.
        another_run = self.runs.take(recipe, snapshot)
        self.scheduling.take(recipe)
        self.changes.settle(change)
        self._snapshot = snapshot
        self.queries.show(recipe, snapshot.key)
        if another_run:
            self.run_changed.emit()
        self.trouble.clear()
        self.say("")
        self.selecting.take(snapshot)
        self.stepping.take(recipe.source, snapshot)
        self.build.take()
        self.pins.take()
        self.snapshot_changed.emit()
        self.recipe_wanted.emit()
        self.selection_changed.emit()
        self.recovering.take(recipe)
        self.runs.run_if_waiting()

    def report(self, problem: Problem) -> None:
        """Show a problem that was found before a request was sent to the engine."""
        if problem.code != "cancelled":
            self.trouble.show(problem)

    # Selection

    def select(self, entities: Iterable[str], *, extend: bool = False) -> None:
        """Select entities by id, replacing the selection or, with `extend`, adding to it."""
        self.selecting.select(entities, extend=extend)

    def function_at_step(self, entity: str) -> FunctionRecord | None:
        """Return the function with an id at the current step."""
        return self.selecting.links.function_at_step(entity)

    def linked_to(self, *entities: str) -> frozenset[str]:
        """Return the ids linked to any of these."""
        return self.selecting.linked_to(*entities)

    # Run

    def run(self) -> None:
        """Compile and run the recipe in the worker, as soon as the engine is idle."""
        self.runs.run()

    def cancel(self) -> None:
        """Cancel the current work; the document stays open."""
        self.runs.cancel()
        self.faults.cancel()
        self.inputs.cancel()
        self.at_work.cancel()
        self.stop_wanted.emit()

    # Children

    def _note_state(self, _state: str) -> None:
        if self.engine.state == "ready" and self.worker.state == "stopped":
            self.worker.start()
        self.children_changed.emit()
        self.runs.run_if_waiting()

"""The open document: recipe, undo, selection, records and problems; signals, no widgets.

All state of the window that is not a matter of looks lives here, and nowhere else. Views listen to
the signals, draw the records, and call the methods.
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
from lowerscope.app.children.requests import REPLACED_MS
from lowerscope.app.children.whole_log import WholeLog
from lowerscope.app.colouring import Colouring
from lowerscope.app.engine_client import EngineClient
from lowerscope.app.fetching import Fetches
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
from lowerscope.core.recipe import Recipe, Strategy
from lowerscope.core.records.run import RunRecord
from lowerscope.core.records.snapshot import FunctionRecord, Note, Snapshot
from lowerscope.core.rendering.graph_layout.metrics import DEFAULT, TextMetrics


class Workspace(QObject):
    """The open document.

    Signals
    -------
    snapshot_changed
        Another recipe is open, or none: `recipe` and `snapshot` are new.
    recipe_wanted
        The recipe that is shown or on its way is another one: for switches and fields.
    selection_changed
        `selection` is new.
    run_changed
        `run_record` is new, or gone because the recipe changed.
    problems_changed
        `problems` is new.
    activity_changed
        `activity` is new.
    children_changed
        The state of the engine or of the worker is new.
    logged
        Text that torch, TVM or the user's file printed; all of it is in `whole_log`.
    unseen(object)
        The `Problem` of a file that was not run, since the user has not seen it.
    stop_wanted
        What is under way is to be stopped, be it the workspace's own or not.
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
        self.fetches = Fetches(self.engine, self.worker, self._shown)
        self.stepping = Stepping(self)
        self.build = BuildSteps(self.worker, lambda: self.recipe, self.stepping, self)
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
        """Log what a client's children print, and pass on which files they may not run."""
        client.log.connect(self.logged)
        client.unseen.connect(self.unseen)
        client.printed.connect(self.whole_log.add)

    # What there is to show

    @property
    def recipe(self) -> Recipe | None:
        """The recipe whose records are shown."""
        return self.changes.recipe

    def _shown(self) -> tuple[Recipe, TextMetrics]:
        assert self.recipe is not None
        return self.recipe, self.metrics

    @property
    def wanted(self) -> Recipe | None:
        """The recipe that the user asked for last: the one on its way, or the one shown."""
        return self.changes.wanted

    @property
    def refused(self) -> Recipe | None:
        """The recipe that led to `problems`; ``None`` where it was a run."""
        refused = self.trouble.refused
        return None if refused is None else refused.recipe

    @property
    def snapshot(self) -> Snapshot | None:
        """The records of `recipe`."""
        return self._snapshot

    @property
    def selection(self) -> Selection:
        """What is selected in all views."""
        return self.selecting.selection

    @property
    def run_record(self) -> RunRecord | None:
        """The outcome of the last run of `recipe`; ``None`` before it."""
        return self.runs.record

    @property
    def running(self) -> bool:
        """Whether a run is under way or waits for the engine."""
        return self.runs.running

    @property
    def changing(self) -> bool:
        """Whether a changed recipe is on its way."""
        return self.changes.under_way is not None

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong with the last change or run."""
        return self.trouble.problems

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the user should know of the model that is open."""
        return () if self._snapshot is None else self._snapshot.notes

    @property
    def activity(self) -> Activity:
        """What is under way."""
        return self._activities.shown

    def say(self, text: str, fraction: float | None = None, *, of: Of = "change") -> None:
        """Say what is under way of somebody's; nothing any more for ``""``."""
        before = self.activity
        self._activities.say(of, Activity(text, fraction))
        if before != self.activity:
            self.activity_changed.emit()

    # Start and end

    def start(self) -> None:
        """Start the engine; the worker follows when the engine is ready."""
        threading.Thread(target=temporary_files.sweep, name="sweep", daemon=True).start()
        self.engine.start()

    def stop(self) -> None:
        """End all children."""
        self.tuning.close()
        self.engine.stop()
        self.worker.stop()

    def restart(self) -> None:
        """Start both children anew, whatever they are at, and derive what is shown again."""
        for client in (self.engine, self.worker):
            client.restart()
        self.recovering.replay()

    # The recipe

    def open(self, recipe: Recipe) -> None:
        """Open another source. What is open stays until the new one's records are there."""
        self.changes.open(recipe)

    def change(self, recipe: Recipe) -> None:
        """Go over to a changed recipe of the same source, as one step of undo."""
        self.changes.change(recipe)

    def lower_nodes(self, nodes: Iterable[str], strategy: Strategy | None) -> None:
        """Lower some nodes in a way of their own, or as the default says."""
        recipe = self.wanted
        chosen = [] if self._snapshot is None else calls_among(self._snapshot, nodes)
        if recipe is not None and chosen:
            self.change(with_strategy(recipe, chosen, strategy))

    def abandon(self, client: EngineClient, request: int | None) -> None:
        """Forget a request whose answer nobody wants any more."""
        if request is not None:
            client.abandon(request, REPLACED_MS)

    def take(self, change: Change, snapshot: Snapshot) -> None:
        """Go over to a change, and to the records that the engine has derived of it."""
        recipe = change.recipe
        # These look at what has been shown until now as well.
        another_run = self.runs.take(recipe, snapshot)
        self.scheduling.take(recipe)
        self.changes.settle(change)
        self._snapshot = snapshot
        self.fetches.replace()
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
        """Show a problem that was found before the engine was asked."""
        if problem.code != "cancelled":
            self.trouble.show(problem)

    # Selection

    def select(self, entities: Iterable[str], *, extend: bool = False) -> None:
        """Select entities by id, in place of what is selected or, with `extend`, besides it."""
        self.selecting.select(entities, extend=extend)

    def function_at_step(self, entity: str) -> FunctionRecord | None:
        """Return the function with an id at the step that is looked at."""
        return self.selecting.links.function_at_step(entity)

    def linked_to(self, *entities: str) -> frozenset[str]:
        """Return the ids that are linked to one of these."""
        return self.selecting.linked_to(*entities)

    # Run

    def run(self) -> None:
        """Compile and run the recipe in the worker, as soon as the engine is idle."""
        self.runs.run()

    def cancel(self) -> None:
        """Stop what is under way; what was open stays."""
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

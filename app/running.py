"""Runs of the recipe that is open, and their outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.outcomes import Outcomes, run_of
from lowerscope.app.variants import RunVariants
from lowerscope.core.engine.run_params import RunParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.records import Snapshot
from lowerscope.core.run_records import RunRecord

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


class Runs(QObject):
    """The run that is under way or waits for the engine, and what the last one came to.

    Signals
    -------
    changed
        `record` or `running` is new.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._outcomes = Outcomes()
        self._request: int | None = None
        self._waits = False
        self._reopening = False
        self.record: RunRecord | None = None
        self.variants = RunVariants(workspace, self._keep_outcome)
        self.variants.running_changed.connect(self.changed)

    @property
    def running(self) -> bool:
        """Whether a run, or a row of them, is under way or waits for the engine."""
        return self._waits or self._request is not None or self.variants.running

    def run(self) -> None:
        """Compile and run the recipe in the worker, as soon as the engine is idle."""
        workspace = self._workspace
        if self.running or workspace.wanted is None:
            return
        self._waits = True
        self.record = None
        workspace.say(workspace.tr("Waiting for the engine"))
        self.changed.emit()
        self.run_if_waiting()

    def run_if_waiting(self) -> None:
        """Start the run that waits, if the engine has nothing to do any more."""
        workspace = self._workspace
        self.variants.go_on()
        recipe = workspace.recipe
        busy = workspace.changing or workspace.engine.state in ("starting", "busy")
        if not self._waits or busy or recipe is None:
            return
        self._waits = False
        workspace.say(workspace.tr("Compiling"))
        self._request = workspace.worker.request(
            "run", RunParams(recipe=recipe), self._accept, self._refuse, workspace.say
        )

    def cancel(self) -> None:
        """Stop the run, or do not start it; the outcome of before is shown again."""
        self.variants.cancel()
        if self._waits:
            self._waits = False
            self._bring_back()
            self._workspace.say("")
            self.changed.emit()
        if self._request is not None:
            self._workspace.worker.cancel(self._request)

    def abandon(self) -> None:
        """Forget the run that is under way: another recipe is wanted."""
        self._reopening = False
        if self._request is not None:
            request, self._request = self._request, None
            self._workspace.abandon(self._workspace.worker, request)
            self.changed.emit()

    def give_up(self) -> None:
        """Do not run what could not be opened."""
        self._waits = False
        self._bring_back()

    def take(self, recipe: Recipe, snapshot: Snapshot) -> bool:
        """Go over to a recipe with these records, and to its outcome if that is known.

        `Workspace.snapshot` is still that of before. Returns whether `record` is another one.
        """
        before = self._workspace.snapshot
        if self._reopening and self.record is not None and before is not None:
            if snapshot.key == before.key:
                # Opened anew, it is what it was: the children have read different files, such as
                # one that the model's file has written when it was run for the first time.
                self._outcomes.keep(recipe, msgspec.structs.replace(self.record, key=snapshot.key))
            else:
                text = self._workspace.tr("The file has changed since: it was opened anew.")
                self._workspace.announced.emit(text, "info")
        self.variants.take(recipe, snapshot)
        shown, self.record = self.record, self._outcomes.of(recipe, snapshot.key)
        return self.record is not shown

    def _accept(self, record: RunRecord) -> None:
        workspace = self._workspace
        self._request = None
        self.record = record
        recipe, snapshot = workspace.recipe, workspace.snapshot
        if recipe is not None:
            self._outcomes.keep(recipe, record)
            self.variants.keep(recipe, record)
        workspace.show_trouble()
        workspace.say("")
        self.changed.emit()
        if snapshot is not None and record.key != snapshot.key:
            # What was run may not be what is shown: a file may have been changed in between.
            workspace.reload()
            self._reopening = True

    def _refuse(self, problem: Problem) -> None:
        self._request = None
        self._workspace.say("")
        # What was measured before stays, whatever has become of this run.
        self._bring_back()
        if problem.code != "cancelled":
            self._workspace.faults.take(problem)
        elif problem.where:
            self._workspace.faults.take(self._stopped(problem))
        self.changed.emit()

    def _keep_outcome(self, recipe: Recipe, record: RunRecord) -> None:
        """Remember the outcome of one of a row of runs, and show it if it is of what is shown."""
        self._outcomes.keep(recipe, record)
        shown, snapshot = self._workspace.recipe, self._workspace.snapshot
        if shown is not None and snapshot is not None and run_of(shown) == run_of(recipe):
            self.record = self._outcomes.of(shown, snapshot.key)
            self.changed.emit()

    def _stopped(self, problem: Problem) -> Problem:
        """Return the problem of a run that did not come out of a call, and was killed."""
        return Problem(
            what=self._workspace.tr("The run was stopped {0}").format(problem.where),
            todo=self._workspace.tr("If it never ends, mend the function or its schedule"),
            code="stopped",
        )

    def _bring_back(self) -> None:
        """Show the outcome of before, since the run that was to replace it came to nothing."""
        recipe, snapshot = self._workspace.recipe, self._workspace.snapshot
        if recipe is not None and snapshot is not None:
            self.record = self._outcomes.of(recipe, snapshot.key)

"""Runs of the open recipe, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.queries import Slot
from lowerscope.app.runs.outcomes import Outcomes, run_of
from lowerscope.app.runs.quiet import Quiet
from lowerscope.app.runs.variants import RunVariants
from lowerscope.core.errors import Problem
from lowerscope.core.measuring import Measuring
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import KEEP, RunPart, RunRecord
from lowerscope.core.records.snapshot import Snapshot
from lowerscope.core.records.times import is_disturbed

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


@dataclass(frozen=True)
class _Wanted:
    """A requested run: a whole one, or a part of an existing one anew.

    A ``quick`` one is to answer soon.
    """

    part: RunPart = "all"
    before: RunRecord | None = None
    quick: bool = False


class Runs(QObject):
    """The run that is in progress or waits for the engine, and the outcome of the last one.

    Attributes
    ----------
    keep
        Size of the cache of a run's values, in bytes.

    Signals
    -------
    changed
        `record` or `running` changed.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._outcomes = Outcomes()
        self._quiet = Quiet(workspace.engine, self)
        self._slot = Slot(workspace.queries)
        self._waits: _Wanted | None = None
        self._repeats = False
        self._reopening = False
        self.record: RunRecord | None = None
        self.keep = KEEP
        self.variants = RunVariants(workspace, self._keep_outcome)
        self.variants.running_changed.connect(self.changed)

    @property
    def running(self) -> bool:
        """Return whether a run, or a batch, is in progress or waits for the engine."""
        return self._waits is not None or self._slot.is_busy or self.variants.running

    def run(self, *, quick: bool = False) -> None:
        """Compile and run the recipe in the worker, as soon as the engine is idle.

        Parameters
        ----------
        quick
            Answer soon, with times of one call: see `RunRecord.quick`.
        """
        workspace = self._workspace
        if not self.running and workspace.wanted is not None:
            self.record = None
            self._want(_Wanted(quick=quick))

    def measure_again(self) -> None:
        """Measure the same executable again; the verdict stays."""
        if not self.running and not self._workspace.changing and self.record is not None:
            self._want(_Wanted("times", self.record))

    def measure_as(self, threads: int, measuring: Measuring) -> None:
        """Change how runs are timed, and time the current one again.

        With another number of threads it is run again, as its values may differ.
        """
        workspace, ran = self._workspace, self.record
        recipe = workspace.wanted
        if recipe is None or self.running:
            return
        changed = msgspec.structs.replace(recipe, threads=threads, measuring=measuring)
        workspace.change(changed)
        if ran is None:
            return
        if threads != recipe.threads:
            self.run()
        else:
            self._want(_Wanted("times", ran))

    def toggle_torch_compile(self) -> None:
        """Toggle the timing of ``torch.compile``."""
        recipe = self._workspace.wanted
        if recipe is not None:
            on = not recipe.measuring.torch_compile
            self.measure_as(
                recipe.threads, msgspec.structs.replace(recipe.measuring, torch_compile=on)
            )

    def _want(self, wanted: _Wanted) -> None:
        self._waits, self._repeats = wanted, False
        self._workspace.say(self._workspace.tr("Waiting for the engine"), of="run")
        self.changed.emit()
        self.run_if_waiting()

    def run_if_waiting(self) -> None:
        """Start the waiting run, if the engine is idle."""
        workspace = self._workspace
        self.variants.go_on()
        recipe = workspace.recipe
        busy = workspace.changing or workspace.engine.state in ("starting", "busy")
        busy = busy or workspace.tuning.measures
        wanted = self._waits
        if wanted is None or busy or recipe is None:
            return
        self._quiet.begin()
        workspace.say(workspace.tr("Compiling"), of="run")
        params = RunQuery(
            recipe=recipe,
            part=wanted.part,
            before=wanted.before,
            quick=wanted.quick,
            keep=self.keep,
        )
        # Not before: it counts as running all the while.
        self._waits = None
        self._slot.ask(params, self._accept, self._refuse, self._tell)

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self._quiet.follow(text)
        self._workspace.say(text, fraction, of="run")

    def cancel(self) -> None:
        """Cancel the run, or do not start it; the previous outcome is shown again."""
        self.variants.cancel()
        if self._waits is not None:
            self._waits = None
            self._bring_back()
            self._workspace.say("", of="run")
            self.changed.emit()
        self._slot.cancel()

    def abandon(self) -> None:
        """Drop the current run: another recipe is requested."""
        self._reopening = False
        timed_anew = self._waits is not None and self._waits.before is not None
        if not timed_anew and not self._slot.is_busy:
            return
        self._slot.supersede()
        if timed_anew:
            self._waits = None
        self._forget()

    def give_up(self) -> None:
        """Drop the run of a recipe that could not be opened."""
        self._waits = None
        self._forget()

    def _forget(self) -> None:
        """Show the state before the run that was cancelled."""
        if not self.running:
            self._workspace.say("", of="run")
        self._bring_back()
        self.changed.emit()

    def take(self, recipe: Recipe, snapshot: Snapshot) -> bool:
        """Switch to a recipe with these records, and to its cached outcome if there is one.

        `Workspace.snapshot` is still the previous one. Returns whether `record` changed.
        """
        before = self._workspace.snapshot
        if self._reopening and self.record is not None and before is not None:
            if snapshot.key == before.key:
                # Reloading restores it: the children have read different files, such as one that
                # the model's file wrote when it was run for the first time.
                self._outcomes.keep(recipe, msgspec.structs.replace(self.record, key=snapshot.key))
            else:
                text = self._workspace.tr("The file has changed since: it was opened anew.")
                self._workspace.announced.emit(text, "info")
        self.variants.take(recipe, snapshot)
        shown, self.record = self.record, self._outcomes.of(recipe, snapshot.key)
        if self.record is None:
            self._adopt(recipe, snapshot)
        return self.record is not shown or self._waits is not None

    def _adopt(self, recipe: Recipe, snapshot: Snapshot) -> None:
        """Reuse a run that differs in timing only; apply other tolerances to it."""
        found = self._outcomes.like(recipe, snapshot.key)
        if found is None:
            return
        before, record = found
        if before.tolerances == recipe.tolerances:
            self.record = record
            self._outcomes.keep(recipe, record)
        elif self._waits is None:
            self._waits = _Wanted("verdict", record)

    def _accept(self, record: RunRecord) -> None:
        workspace = self._workspace
        workspace.recovering.survived("worker", "", "step", "override", "primitive")
        self.record = record = self._quiet.end(record)
        recipe, snapshot = workspace.recipe, workspace.snapshot
        if recipe is not None:
            self._outcomes.keep(recipe, record)
            if not record.quick:
                self.variants.keep(recipe, record)
        workspace.trouble.clear()
        workspace.say("", of="run")
        self.changed.emit()
        if snapshot is not None and record.key != snapshot.key:
            # The run may not be of the recipe shown: a file may have been changed in between.
            workspace.changes.reload()
            self._reopening = True
        elif is_disturbed(record.times) and not self._repeats and not record.quick:
            # Once only: otherwise it would be measured forever while the user keeps working.
            self.measure_again()
            self._repeats = True

    def _refuse(self, problem: Problem) -> None:
        self._workspace.say("", of="run")
        # Previous measurements stay, whatever happened to this run.
        self._bring_back()
        if problem.code != "cancelled":
            self._workspace.faults.take(problem)
        elif problem.where:
            self._workspace.faults.take(self._stopped(problem))
        self.changed.emit()

    def _keep_outcome(self, recipe: Recipe, record: RunRecord) -> None:
        """Store the outcome of one run of a batch, and show it if it is of the recipe shown."""
        self._outcomes.keep(recipe, record)
        shown, snapshot = self._workspace.recipe, self._workspace.snapshot
        if shown is not None and snapshot is not None and run_of(shown) == run_of(recipe):
            self.record = self._outcomes.of(shown, snapshot.key)
            self.changed.emit()

    def _stopped(self, problem: Problem) -> Problem:
        """Return the problem of a run that hung in a call and was killed."""
        return Problem(
            what=self._workspace.tr("The run was stopped {0}").format(problem.where),
            todo=self._workspace.tr("If it never ends, mend the function or its schedule"),
            code="stopped",
            calls=problem.calls,
        )

    def _bring_back(self) -> None:
        """Show the previous outcome, since the run that was to replace it failed."""
        recipe, snapshot = self._workspace.recipe, self._workspace.snapshot
        if recipe is not None and snapshot is not None:
            self.record = self._outcomes.of(recipe, snapshot.key)

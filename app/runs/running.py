"""Runs of the recipe that is open, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.runs.outcomes import Outcomes, run_of
from lowerscope.app.runs.quiet import Quiet
from lowerscope.app.runs.variants import RunVariants
from lowerscope.core.engine.run_params import RunParams
from lowerscope.core.errors import Problem
from lowerscope.core.measuring import Measuring
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import KEEP, RunPart, RunRecord
from lowerscope.core.records.snapshot import Snapshot
from lowerscope.core.records.times import is_disturbed

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace


@dataclass(frozen=True)
class _Wanted:
    """A run that is asked for: all of it, or a part of it anew that there was before.

    A ``quick`` one is to answer soon.
    """

    part: RunPart = "all"
    before: RunRecord | None = None
    quick: bool = False


class Runs(QObject):
    """The run that is under way or waits for the engine, and what the last one came to.

    Attributes
    ----------
    keep
        Bytes of the values of a run that are kept.

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
        self._quiet = Quiet(workspace.engine, self)
        self._request: int | None = None
        self._waits: _Wanted | None = None
        self._repeats = False
        self._reopening = False
        self.record: RunRecord | None = None
        self.keep = KEEP
        self.variants = RunVariants(workspace, self._keep_outcome)
        self.variants.running_changed.connect(self.changed)

    @property
    def running(self) -> bool:
        """Whether a run, or a row of them, is under way or waits for the engine."""
        return self._waits is not None or self._request is not None or self.variants.running

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
        """Measure what was run once more, by the same executable; the verdict stays."""
        if not self.running and not self._workspace.changing and self.record is not None:
            self._want(_Wanted("times", self.record))

    def measure_as(self, threads: int, measuring: Measuring) -> None:
        """Time runs in another way from now on, and what was run at once.

        With another number of threads it is run anew, as its values may be others.
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
        """Time ``torch.compile`` as well, or no more."""
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
        """Start the run that waits, if the engine has nothing to do any more."""
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
        params = RunParams(
            recipe=recipe,
            part=wanted.part,
            before=wanted.before,
            quick=wanted.quick,
            keep=self.keep,
        )
        # Not before: it is running all the while.
        self._waits = None
        self._request = workspace.worker.request(
            "run", params, self._accept, self._refuse, self._tell
        )

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self._quiet.follow(text)
        self._workspace.say(text, fraction, of="run")

    def cancel(self) -> None:
        """Stop the run, or do not start it; the outcome of before is shown again."""
        self.variants.cancel()
        if self._waits is not None:
            self._waits = None
            self._bring_back()
            self._workspace.say("", of="run")
            self.changed.emit()
        if self._request is not None:
            self._workspace.worker.cancel(self._request)

    def abandon(self) -> None:
        """Forget the run that is under way: another recipe is wanted."""
        self._reopening = False
        timed_anew = self._waits is not None and self._waits.before is not None
        if not timed_anew and self._request is None:
            return
        request, self._request = self._request, None
        self._workspace.abandon(self._workspace.worker, request)
        if timed_anew:
            self._waits = None
        self._forget()

    def give_up(self) -> None:
        """Do not run what could not be opened."""
        self._waits = None
        self._forget()

    def _forget(self) -> None:
        """Show what was known before the run that is not made."""
        if not self.running:
            self._workspace.say("", of="run")
        self._bring_back()
        self.changed.emit()

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
        if self.record is None:
            self._adopt(recipe, snapshot)
        return self.record is not shown or self._waits is not None

    def _adopt(self, recipe: Recipe, snapshot: Snapshot) -> None:
        """Take over a run that was only timed in another way; hold it to other tolerances."""
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
        self._request = None
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
            # What was run may not be what is shown: a file may have been changed in between.
            workspace.changes.reload()
            self._reopening = True
        elif is_disturbed(record.times) and not self._repeats and not record.quick:
            # Once: somebody who goes on working would have it measured for ever.
            self.measure_again()
            self._repeats = True

    def _refuse(self, problem: Problem) -> None:
        self._request = None
        self._workspace.say("", of="run")
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
            calls=problem.calls,
        )

    def _bring_back(self) -> None:
        """Show the outcome of before, since the run that was to replace it came to nothing."""
        recipe, snapshot = self._workspace.recipe, self._workspace.snapshot
        if recipe is not None and snapshot is not None:
            self.record = self._outcomes.of(recipe, snapshot.key)

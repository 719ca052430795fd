"""Runs of the open recipe, generations of tokens, and failed runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.document import Change, Document, Notice, State
from lowerscope.app.document.queries import KeptAnswer, Queries, Slot
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.recovery import Recovering
from lowerscope.app.panes.run.outcomes import Outcomes, Quiet, run_of
from lowerscope.app.panes.run.run_variants import RunVariants
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, variant_names
from lowerscope.core.model.formatting import estimate_text
from lowerscope.core.model.generation_records import GenerationRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import GenerationQuery, RunEstimateQuery, RunQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import (
    FAILING,
    Measuring,
    RunEstimate,
    RunPart,
    RunRecord,
    is_disturbed,
    parts_of_name,
)
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _


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

    Args:
        is_held_back: Returns whether a tuning measures, so that nothing may run.
    """

    failed = Signal(object)  # A run failed, or was stopped in a call.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        children: Children,
        recovering: Recovering,
        is_held_back: Callable[[], bool],
    ) -> None:
        super().__init__(document)
        self.queries = queries
        self._document = document
        self._children = children
        self._recovering = recovering
        self._is_held_back = is_held_back
        self._outcomes = Outcomes()
        self._quiet = Quiet(children.engine, self)
        self._slot = Slot(queries)
        self._estimate = Slot(queries)
        self._waits: _Wanted | None = None
        self._repeats = False
        self._reopening = False
        self._said_slow: Notice | None = None  # The notice on the run in progress.
        self.record: RunRecord | None = None  # The outcome, which the document shows.
        # The newest outcome of the source, also of another recipe, with its recipe.
        self._last: tuple[Recipe, RunRecord] | None = None
        self.variants = RunVariants(document, queries, children, self._keep_outcome, is_held_back)
        self.variants.running_changed.connect(self._tell_document)
        children.changed.connect(self.run_if_waiting)
        document.changed.connect(self._follow)

    @property
    def keep(self) -> int:
        """Size of the cache of a run's values, in bytes."""
        return self.variants.keep_bytes

    @keep.setter
    def keep(self, size: int) -> None:
        self.variants.keep_bytes = size

    @property
    def running(self) -> bool:
        """Return whether a run, or a batch, is in progress or waits for the engine."""
        return self._waits is not None or self._slot.is_busy or self.variants.running

    @property
    def newest(self) -> RunRecord | None:
        """The outcome of the recipe shown; without one, the newest of the source."""
        return None if self._last is None else self._last[1]

    @property
    def outdated(self) -> str:
        """Reason why `newest` is not the outcome of the recipe shown; empty if it is."""
        recipe = self._document.recipe
        if self.record is not None or self._last is None or recipe is None:
            return ""
        before = self._last[0]
        if self.running:
            return _("This is the previous run; the next one is in progress.")
        if run_of(before) == run_of(recipe):
            return _("The files have changed since this run. Run it again (F5).")
        old, new = variant_names((before, recipe))
        return _("This is the run of {old}. {new} has not run yet (F5).", old=old, new=new)

    def run(self, *, quick: bool = False) -> None:
        """Compile and run the recipe in the worker, as soon as the engine is idle.

        Args:
            quick: Answer soon, with times of one call: see `RunRecord.quick`.
        """
        if not self.running and self._document.wanted is not None:
            self.record = None
            self._want(_Wanted(quick=quick))

    def optimise(self) -> None:
        """Apply the steps that schedule all functions; they replace those of the recipe."""
        self._document.change_fields(steps=find_pipeline("optimise-cpu").steps)

    def run_optimised(self) -> None:
        """Run with the steps that schedule all functions, in place of the current run."""
        self.optimise()
        self.run()

    def measure_again(self) -> None:
        """Measure the same executable again; the verdict stays."""
        if not self.running and not self._document.is_changing and self.record is not None:
            self._want(_Wanted("times", self.record))

    def measure_as(self, threads: int, measuring: Measuring) -> None:
        """Change how runs are timed, and time the current one again.

        With another number of threads it is run again, as its values may differ.
        """
        document, ran = self._document, self.record
        recipe = document.wanted
        if recipe is None or self.running:
            return
        changed = msgspec.structs.replace(recipe, threads=threads, measuring=measuring)
        document.change(changed)
        if ran is None:
            return
        if threads != recipe.threads:
            self.run()
        else:
            self._want(_Wanted("times", ran))

    def toggle_torch_compile(self) -> None:
        """Toggle the timing of ``torch.compile``."""
        recipe = self._document.wanted
        if recipe is not None:
            on = not recipe.measuring.torch_compile
            self.measure_as(
                recipe.threads, msgspec.structs.replace(recipe.measuring, torch_compile=on)
            )

    def _want(self, wanted: _Wanted) -> None:
        self._waits, self._repeats = wanted, False
        self._document.say(_("Waiting for the engine"), of="run", cancel=self.cancel)
        self._tell_document()
        self.run_if_waiting()

    def run_if_waiting(self) -> None:
        """Start the waiting run, if the engine is idle."""
        document = self._document
        self.variants.go_on()
        recipe = document.recipe
        busy = document.is_changing or self._children.engine_is_busy or self._is_held_back()
        wanted = self._waits
        if wanted is None or busy or recipe is None:
            return
        self._quiet.begin()
        document.say(_("Compiling"), of="run", cancel=self.cancel)
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
        if wanted.part == "all" and recipe.remote is None:
            query = RunEstimateQuery(recipe)
            self._estimate.ask(query, partial(self._say_slow, recipe), lambda _problem: None)

    def _say_slow(self, recipe: Recipe, estimate: RunEstimate) -> None:
        text = estimate_text(estimate, recipe.measuring)
        if text and self._slot.is_busy:
            offers = [(_("Optimise for CPU"), self.run_optimised)]
            if recipe.steps == find_pipeline("optimise-cpu").steps:
                offers = []
            self._document.notify(text, "info", *offers)
            self._said_slow = self._document.state.notice

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self._quiet.follow(text)
        self._document.say(text, fraction, of="run")

    def cancel(self) -> None:
        """Cancel the run, or do not start it; the previous outcome is shown again."""
        self.variants.cancel()
        if self._waits is not None:
            self._waits = None
            self._bring_back()
            self._document.say("", of="run")
            self._tell_document()
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
        # The engine became idle before it was known that nothing is pending any more.
        self.run_if_waiting()

    def _forget(self) -> None:
        """Show the state before the run that was cancelled."""
        if not self.running:
            self._document.say("", of="run")
        self._bring_back()
        self._tell_document()

    def _follow(self, change: Change) -> None:
        document = self._document
        if "snapshot" in change.fields and document.recipe and document.snapshot:
            self._take(change.before, document.recipe, document.snapshot)
            # Once all have followed this change.
            QTimer.singleShot(0, self, self.run_if_waiting)
        elif "pending" not in change.fields:
            return
        elif document.is_changing:
            self.abandon()
        elif document.recipe is None:
            self.give_up()

    def _take(self, before: State, recipe: Recipe, snapshot: Snapshot) -> None:
        """Switch to a recipe with these records, and to its cached outcome if there is one."""
        shown = before.snapshot
        if self._reopening and self.record is not None and shown is not None:
            if snapshot.key == shown.key:
                # Reloading restores it: the children have read different files, such as one that
                # the model's file wrote when it was run for the first time.
                self._outcomes.keep(recipe, msgspec.structs.replace(self.record, key=snapshot.key))
            else:
                text = _("The file has changed since and was reopened.")
                self._document.notify(text, "info")
        if before.recipe is not None and before.recipe.source != recipe.source:
            self._last = None
        self.variants.take(before, recipe, snapshot)
        self.record = self._outcomes.of(recipe, snapshot.key)
        if self.record is None:
            self._adopt(recipe, snapshot)
        self._tell_document()

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
        document = self._document
        self._recovering.survived("worker", "", "step", "override", "primitive")
        self.record = record = self._quiet.end(record)
        recipe, snapshot = document.recipe, document.snapshot
        if recipe is not None:
            self._outcomes.keep(recipe, record)
            if not record.quick:
                self.variants.keep(recipe, record)
        document.clear_problems()
        document.say("", of="run")
        self._tell_document()
        if snapshot is not None and record.key != snapshot.key:
            # The run may not be of the recipe shown: a file may have been changed in between.
            document.reload()
            self._reopening = True
        elif is_disturbed(record.times) and not self._repeats and not record.quick:
            # Once only: otherwise it would be measured forever while the user keeps working.
            self.measure_again()
            self._repeats = True

    def _refuse(self, problem: Problem) -> None:
        self._document.say("", of="run")
        # Previous measurements stay, whatever happened to this run.
        self._bring_back()
        if problem.code != "cancelled":
            self.failed.emit(problem)
        elif problem.where:
            self.failed.emit(self._stopped(problem))
        self._tell_document()

    def _keep_outcome(self, recipe: Recipe, record: RunRecord) -> None:
        """Store the outcome of one run of a batch, and show it if it is of the recipe shown."""
        self._outcomes.keep(recipe, record)
        shown, snapshot = self._document.recipe, self._document.snapshot
        if shown is not None and snapshot is not None and run_of(shown) == run_of(recipe):
            self.record = self._outcomes.of(shown, snapshot.key)
            self._tell_document()

    def _tell_document(self) -> None:
        recipe = self._document.recipe
        if self.record is not None and recipe is not None:
            self._last = recipe, self.record
        self._document.set(run=self.record, running=self.running)
        if not self.running and self._said_slow is not None:
            if self._document.state.notice is self._said_slow:
                self._document.set(notice=None)
            self._said_slow = None

    def _stopped(self, problem: Problem) -> Problem:
        """Return the problem of a run that hung in a call and was killed."""
        return Problem(
            what=_("The run was stopped ({where})", where=problem.where),
            todo=_("If it never ends, correct the function or its schedule"),
            code="stopped",
            calls=problem.calls,
        )

    def _bring_back(self) -> None:
        """Show the previous outcome, since the run that was to replace it failed."""
        recipe, snapshot = self._document.recipe, self._document.snapshot
        if recipe is not None and snapshot is not None:
            self.record = self._outcomes.of(recipe, snapshot.key)


# --- The generation of tokens by the open model: its progress and its outcome ---

TOKENS = 64
"""Number of tokens that are generated by default."""


class Generations(KeptAnswer[GenerationRecord]):
    """The current generation, and the last one of the prefill or the decode step shown."""

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document, queries, "tokens")
        document.on(("snapshot", "recipe"), self.changed)

    @property
    def is_there(self) -> bool:
        """Return whether the open source declares how it generates."""
        snapshot = self._document.snapshot
        return snapshot is not None and snapshot.model.generates

    def run(self, tokens: int = TOKENS) -> None:
        """Generate tokens in the worker."""
        recipe = self._document.recipe
        if recipe is not None and self.is_there:
            query = GenerationQuery(recipe=recipe, tokens=tokens)
            self._start(recipe, query, _("Waiting for the worker"))

    def open_entry(self) -> None:
        """Open the decode step of the last generation; or the prefill if the step is open."""
        record, recipe = self.record, self._document.recipe
        if record is not None and recipe is not None:
            self._document.change(record.prefill if recipe.source.decode else record.decode)

    def open_token(self, token: int) -> None:
        """Open the function that gave a token of the last generation."""
        if self.record is not None:
            self._document.change(self.record.recipe_of(token))

    def _part_of(self, recipe: Recipe) -> Recipe:
        """Return a recipe without what differs between the prefill and the decode step."""
        source = msgspec.structs.replace(recipe.source, decode=False, after=0)
        return msgspec.structs.replace(recipe, source=source, inputs=(), dimensions=())


# --- Failed runs: their diagnosis, and reverting the recipe ---


class Faults(QObject):
    """The last run, if it failed, and the last recipe that ran successfully."""

    changed = Signal()  # `failed` or `can_go_back` changed.

    def __init__(self, document: Document) -> None:
        super().__init__(document)
        self._document = document
        self._worked: Recipe | None = None
        # The problem that the last run of the recipe shown ended with, if it failed.
        self.failed: Problem | None = None
        document.on(("run", "running"), self._note_run)
        document.on(("snapshot",), self.forget)
        document.on(("recipe", "pending"), self.changed)

    @property
    def can_go_back(self) -> bool:
        """Return whether another recipe of the open source has run successfully."""
        wanted, worked = self._document.wanted, self._worked
        return (
            worked is not None
            and wanted is not None
            and worked != wanted
            and worked.source == wanted.source
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the FX nodes of the call that `failed` names, if any."""
        problem = self.failed
        if problem is None:
            return ()
        return problem.choices or (parts_of_name(problem.calls[-1])[1] if problem.calls else ())

    def remedies(self, problem: Problem) -> list[tuple[str, Callable[[], object]]]:
        """Return titles and actions that help with a problem; none if no run ended with it."""
        found: list[tuple[str, Callable[[], object]]] = []
        if problem is self.failed and self.nodes:
            select = partial(self._document.select, self.nodes)
            found.append((_("Select the called function"), select))
        if problem is self.failed and self.can_go_back:
            found.append((_("Back to the last correct state"), self.go_back))
        return found

    def go_back(self) -> None:
        """Return to the last recipe that ran successfully, as one undo step."""
        if self.can_go_back and self._worked is not None:
            self._document.change(self._worked)

    def forget(self) -> None:
        """Forget how the last run ended: another run started, or another recipe is shown."""
        self.failed = None
        self.changed.emit()

    def take(self, problem: Problem) -> None:
        """Show how a run failed."""
        self.failed = problem
        self._document.report(problem)
        self.changed.emit()

    def _note_run(self) -> None:
        document = self._document
        if document.running and self.failed is not None:
            self.forget()
        record = document.run_record
        if record is not None and record.verdict not in FAILING and self.failed is None:
            self._worked = self._document.recipe
            self.changed.emit()

"""Variants: cached runs of one source, side by side, and batches of runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document, State
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.children import Children
from lowerscope.app.panes.run.outcomes import Quiet, run_of, same_run_of
from lowerscope.core.files.pipelines_and_schedules import (
    find_pipeline,
    variant_names,
    with_pipeline,
)
from lowerscope.core.model.comparison_records import Variant
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import RunQuery, VariantTimesQuery
from lowerscope.core.model.recipe import Recipe, Strategy
from lowerscope.core.model.run_records import KEEP, RunRecord, RunTimes, with_times
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _, labelled

MOST = 100
"""Maximum number of variants; the oldest are dropped."""

LOWERINGS: tuple[Strategy, ...] = ("high-level", "te")
PIPELINES = ("legalise", "fuse")


@dataclass(frozen=True)
class KeptRun:
    """A cached run."""

    id: str  # Unique while it is cached.
    recipe: Recipe  # The recipe that was run.
    record: RunRecord | None  # Outcome of the run; both if it failed and an earlier run did not.
    problem: Problem | None
    name: str = ""  # Name given by the user; empty to be named by what distinguishes its recipe.
    outdated: bool = False  # Whether the files have changed since the run.


class RunVariants(QObject):
    """The variants of the open source: each recipe that was run, with its last outcome.

    Args:
        found: Called with the outcome of each run of a batch.
        is_held_back: Returns whether a tuning measures, so that nothing may run.
    """

    changed = Signal()  # Variants were added, removed or renamed.
    running_changed = Signal()  # A batch started or ended.
    ended = Signal()  # A batch was completed or cancelled.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        children: Children,
        found: Callable[[Recipe, RunRecord], None],
        is_held_back: Callable[[], bool],
    ) -> None:
        super().__init__(document)
        self._document = document
        self._children = children
        self._found = found
        self._is_held_back = is_held_back
        self.kept: tuple[KeptRun, ...] = ()  # The cached runs, in the order of their first run.
        self._last_id = 0
        self._row: tuple[Recipe, ...] = ()
        self._done = 0
        self._slot = Slot(queries)
        self._waits = False
        self._quiet = Quiet(children.engine, self)
        self._measured: tuple[tuple[Recipe, RunRecord], ...] = ()
        self.keep_bytes = KEEP  # Size of the cache of a run's values.

    # State

    @property
    def all(self) -> tuple[Variant, ...]:
        """The variants with their names, for reports and comparisons."""
        given = variant_names([each.recipe for each in self.kept])
        return tuple(
            Variant(
                name=each.name or name, recipe=each.recipe, record=each.record, problem=each.problem
            )
            for each, name in zip(self.kept, given, strict=True)
        )

    @property
    def running(self) -> bool:
        """Return whether a batch is in progress or waits for the engine."""
        return bool(self._row)

    @property
    def shown(self) -> str:
        """Id of the run of the recipe shown; empty if that was not run."""
        recipe = self._document.recipe
        here = None if recipe is None else self._of(recipe)
        return "" if here is None else here.id

    # Commands

    def rename(self, run: str, name: str) -> None:
        """Rename a run; an empty name restores the one derived from its recipe."""
        self._replace(
            [replace(each, name=name.strip()) if each.id == run else each for each in self.kept]
        )

    def remove(self, runs: Collection[str]) -> None:
        self._replace([each for each in self.kept if each.id not in runs])

    def go_back(self, run: str) -> None:
        """Return to the recipe of a run, as one undo step."""
        recipe = next((each.recipe for each in self.kept if each.id == run), None)
        if recipe is not None:
            self._document.change(recipe)

    def keep(
        self, recipe: Recipe, record: RunRecord | None, problem: Problem | None = None
    ) -> None:
        """Store a run, replacing an earlier one of the same recipe."""
        before = self._of(recipe)
        if before is None:
            self._last_id += 1
            added = KeptRun(f"run:{self._last_id}", recipe, record, problem)
            self._replace([*self.kept, added][-MOST:])
            return
        after = replace(before, recipe=recipe, record=record, problem=problem, outdated=False)
        self._replace([after if each is before else each for each in self.kept])

    def take(self, before: State, recipe: Recipe, snapshot: Snapshot) -> None:
        """Switch to a recipe with these records.

        The runs of another source are dropped, and those of a changed file are outdated.
        """
        shown = before.snapshot
        if before.recipe is None or shown is None:
            return
        if before.recipe.source != recipe.source:
            self._abandon()
            self._replace(())
        elif before.recipe == recipe and shown.key != snapshot.key:
            now = [
                each.record is not None and each.record.key == snapshot.key for each in self.kept
            ]
            self._replace(
                [
                    each if is_now else replace(each, outdated=True)
                    for each, is_now in zip(self.kept, now, strict=True)
                ]
            )

    # Batches

    def run_all(self) -> None:
        """Run high-level and TE, unfused and fused, and the recipe shown."""
        recipe = self._document.wanted
        if recipe is not None:
            has_torch = self._document.has_torch()
            self.run(variants_of(recipe, LOWERINGS if has_torch else (recipe.lowering,)))

    def run(self, recipes: Sequence[Recipe]) -> None:
        """Run some recipes one after the other, as soon as the engine is idle."""
        if not self._document.running and recipes:
            self._row, self._done, self._waits = tuple(recipes), 0, True
            self._document.say(_("Waiting for the engine"), of="run", cancel=self.cancel)
            self.running_changed.emit()
            self.go_on()

    def go_on(self) -> None:
        """Start the next run of the batch, if there is one and the engine is idle."""
        busy = self._document.is_changing or self._children.engine_is_busy
        if not self._waits or busy or self._is_held_back():
            return
        # A request makes the worker busy, which calls this again.
        self._waits = False
        self._quiet.begin()
        if self._done == len(self._row):
            self._measure()
            return
        self._tell("")
        params = RunQuery(recipe=self._row[self._done], keep=self.keep_bytes)
        self._slot.ask(params, self._accept, self._refuse, self._tell)

    def cancel(self) -> None:
        """Cancel the batch; completed runs stay."""
        if self._slot.is_busy:
            self._slot.cancel()
        elif self._row:
            self._end()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self._quiet.follow(text)
        name = variant_names(self._row)[self._done]
        words = _(
            "Variant {done} of {count}, {name}",
            done=self._done + 1,
            count=len(self._row),
            name=name,
        )
        share = (self._done + (fraction or 0.0)) / len(self._row)
        self._document.say(labelled(words, text) if text else words, share, of="run")

    def _accept(self, record: RunRecord) -> None:
        recipe, record = self._row[self._done], self._quiet.end(record)
        self.keep(recipe, record)
        self._found(recipe, record)
        self._next()

    def _refuse(self, problem: Problem) -> None:
        if problem.code == "cancelled":
            self._end()
            return
        recipe = self._row[self._done]
        before = self._of(recipe)
        # Previous measurements are not lost.
        self.keep(recipe, None if before is None else before.record, problem)
        self._next()

    def _next(self) -> None:
        self._done += 1
        self._waits = True
        self.go_on()

    def _measure(self) -> None:
        """Time the successful runs of the batch again, interleaved: noise affects all alike."""
        self._measured = tuple(
            (recipe, kept.record)
            for recipe in self._row
            if (kept := self._of(recipe)) is not None
            and kept.record is not None
            and kept.problem is None
        )
        if len(self._measured) < 2:
            self._end()
            return
        self._tell_measuring("")
        params = VariantTimesQuery(recipes=tuple(recipe for recipe, _ in self._measured))
        self._slot.ask(params, self._take_times, self._refuse_times, self._tell_measuring)

    def _tell_measuring(self, text: str, _fraction: float | None = None) -> None:
        self._quiet.follow(text)
        words = _("All variants in turn")
        self._document.say(labelled(words, text) if text else words, of="run")

    def _take_times(self, times: tuple[tuple[RunTimes, ...], ...]) -> None:
        for (recipe, record), found in zip(self._measured, times, strict=True):
            # One may have been deleted meanwhile.
            if self._of(recipe) is not None:
                measured = self._quiet.end(with_times(record, found))
                self.keep(recipe, measured)
                self._found(recipe, measured)
        self._end()

    def _refuse_times(self, problem: Problem) -> None:
        """Use the times that each run measured itself."""
        self._end()
        self._document.report(problem)

    def _end(self) -> None:
        self._abandon()
        self.ended.emit()

    def _abandon(self) -> None:
        """Drop the batch: another source is open, or it is finished."""
        self._waits = False
        self._slot.supersede()
        if self._row:
            self._row = ()
            self._document.say("", of="run")
            self.running_changed.emit()

    def _of(self, recipe: Recipe) -> KeptRun | None:
        run = same_run_of(recipe)
        return next((each for each in self.kept if same_run_of(each.recipe) == run), None)

    def _replace(self, kept: Sequence[KeptRun]) -> None:
        if tuple(kept) != self.kept:
            self.kept = tuple(kept)
            self.changed.emit()


def variants_of(recipe: Recipe, lowerings: Sequence[Strategy]) -> tuple[Recipe, ...]:
    """Return a recipe with each lowering and pipeline to compare, and the recipe itself."""
    pipelines = [find_pipeline(name).steps for name in PIPELINES]
    recipes = [
        with_pipeline(msgspec.structs.replace(recipe, lowering=lowering), steps)
        for steps in pipelines
        for lowering in lowerings
    ]
    known = [run_of(each) for each in recipes]
    return (*recipes, *(() if run_of(recipe) in known else (recipe,)))

"""The runs of one source that are kept side by side, and runs of several recipes in a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.runs.outcomes import run_of, same_run_of
from lowerscope.app.runs.quiet import Quiet
from lowerscope.core.comparing.variant_names import variant_names
from lowerscope.core.engine.run_params import RunParams, VariantTimesParams
from lowerscope.core.errors import Problem
from lowerscope.core.passes.presets import find_pipeline, with_pipeline
from lowerscope.core.recipe import Recipe, Strategy
from lowerscope.core.records.run import RunRecord, with_times
from lowerscope.core.records.snapshot import Snapshot
from lowerscope.core.records.times import RunTimes
from lowerscope.core.records.variant import Variant

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

MOST = 100
"""So many variants are kept, the newest."""

LOWERINGS: tuple[Strategy, ...] = ("high-level", "te")
PIPELINES = ("legalise", "fuse")


@dataclass(frozen=True)
class KeptRun:
    """A run that is kept.

    Attributes
    ----------
    id
        Its own, as long as it is kept.
    recipe
        What the user had decided.
    record, problem
        What the run came to; both where it has failed, and had not before.
    name
        The user's own for it; empty for what its recipe has that others have not.
    outdated
        Whether the files have changed since.
    """

    id: str
    recipe: Recipe
    record: RunRecord | None
    problem: Problem | None
    name: str = ""
    outdated: bool = False


class RunVariants(QObject):
    """The variants of the source that is open: each recipe that was run, with its last outcome.

    Signals
    -------
    changed
        There are others, or one has another name.
    running_changed
        A row of runs has begun or is over.
    ended
        A row of runs has come to its end, or to its cancel.

    Parameters
    ----------
    found
        Called with the outcome of each run of a row.
    """

    changed = Signal()
    running_changed = Signal()
    ended = Signal()

    def __init__(self, workspace: Workspace, found: Callable[[Recipe, RunRecord], None]) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._found = found
        self._kept: tuple[KeptRun, ...] = ()
        self._last_id = 0
        self._row: tuple[Recipe, ...] = ()
        self._done = 0
        self._request: int | None = None
        self._waits = False
        self._quiet = Quiet(workspace.engine, self)
        self._measured: tuple[tuple[Recipe, RunRecord], ...] = ()

    # What there is

    @property
    def kept(self) -> tuple[KeptRun, ...]:
        """The runs that are kept, in the order of their first run."""
        return self._kept

    @property
    def all(self) -> tuple[Variant, ...]:
        """The same with their names, as reports and comparisons take them."""
        given = variant_names([each.recipe for each in self._kept])
        return tuple(
            Variant(
                name=each.name or name,
                recipe=each.recipe,
                record=each.record,
                problem=each.problem,
            )
            for each, name in zip(self._kept, given, strict=True)
        )

    @property
    def running(self) -> bool:
        """Whether a row of runs is under way or waits for the engine."""
        return bool(self._row)

    @property
    def shown(self) -> str:
        """Id of the run of the recipe that is shown; empty where that was not run."""
        recipe = self._workspace.recipe
        here = None if recipe is None else self._of(recipe)
        return "" if here is None else here.id

    # What can be done with them

    def rename(self, run: str, name: str) -> None:
        """Give a run a name of the user's own; with none, it has that of its recipe again."""
        self._replace(
            [replace(each, name=name.strip()) if each.id == run else each for each in self._kept]
        )

    def remove(self, runs: Collection[str]) -> None:
        """Keep some runs no more."""
        self._replace([each for each in self._kept if each.id not in runs])

    def go_back(self, run: str) -> None:
        """Go over to the recipe of a run, as one step of undo."""
        recipe = next((each.recipe for each in self._kept if each.id == run), None)
        if recipe is not None:
            self._workspace.change(recipe)

    def keep(
        self, recipe: Recipe, record: RunRecord | None, problem: Problem | None = None
    ) -> None:
        """Keep a run, in place of an earlier one of the same recipe."""
        before = self._of(recipe)
        if before is None:
            self._last_id += 1
            added = KeptRun(f"run:{self._last_id}", recipe, record, problem)
            self._replace([*self._kept, added][-MOST:])
            return
        after = replace(before, recipe=recipe, record=record, problem=problem, outdated=False)
        self._replace([after if each is before else each for each in self._kept])

    def take(self, recipe: Recipe, snapshot: Snapshot) -> None:
        """Go over to a recipe with these records, while the workspace still has those of before.

        The runs of another source are gone, and those of a file as it was are out of date.
        """
        before, shown = self._workspace.recipe, self._workspace.snapshot
        if before is None or shown is None:
            return
        if before.source != recipe.source:
            self._abandon()
            self._replace(())
        elif before == recipe and shown.key != snapshot.key:
            now = [
                each.record is not None and each.record.key == snapshot.key for each in self._kept
            ]
            self._replace(
                [
                    each if is_now else replace(each, outdated=True)
                    for each, is_now in zip(self._kept, now, strict=True)
                ]
            )

    # A row of runs

    def run_all(self) -> None:
        """Run high-level and TE, as they are and fused, and the recipe that is shown."""
        recipe = self._workspace.wanted
        if recipe is not None:
            has_torch = _has_torch(self._workspace.snapshot)
            self.run(variants_of(recipe, LOWERINGS if has_torch else (recipe.lowering,)))

    def run(self, recipes: Sequence[Recipe]) -> None:
        """Run some recipes one after the other, as soon as the engine is idle."""
        if not self._workspace.running and recipes:
            self._row, self._done, self._waits = tuple(recipes), 0, True
            self._workspace.say(self._workspace.tr("Waiting for the engine"), of="run")
            self.running_changed.emit()
            self.go_on()

    def go_on(self) -> None:
        """Start the next run of the row, if there is one and the engine has nothing to do."""
        workspace = self._workspace
        busy = workspace.changing or workspace.engine.state in ("starting", "busy")
        if not self._waits or busy or workspace.tuning.measures:
            return
        # To ask the worker makes it busy, which comes back here.
        self._waits = False
        self._quiet.begin()
        if self._done == len(self._row):
            self._measure()
            return
        self._tell("")
        params = RunParams(recipe=self._row[self._done], keep=workspace.runs.keep)
        self._request = workspace.worker.request(
            "run", params, self._accept, self._refuse, self._tell
        )

    def cancel(self) -> None:
        """Stop the row; what has been run is kept."""
        if self._request is not None:
            self._workspace.worker.cancel(self._request)
        elif self._row:
            self._end()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        self._quiet.follow(text)
        name = variant_names(self._row)[self._done]
        words = self.tr("Variant {0} of {1}, {2}").format(self._done + 1, len(self._row), name)
        share = (self._done + (fraction or 0.0)) / len(self._row)
        self._workspace.say(f"{words}: {text}" if text else words, share, of="run")

    def _accept(self, record: RunRecord) -> None:
        recipe, record = self._row[self._done], self._quiet.end(record)
        self.keep(recipe, record)
        self._found(recipe, record)
        self._next()

    def _refuse(self, problem: Problem) -> None:
        self._request = None
        if problem.code == "cancelled":
            self._end()
            return
        recipe = self._row[self._done]
        before = self._of(recipe)
        # Nothing that was measured is lost.
        self.keep(recipe, None if before is None else before.record, problem)
        self._next()

    def _next(self) -> None:
        self._request = None
        self._done += 1
        self._waits = True
        self.go_on()

    def _measure(self) -> None:
        """Time those of the row that have run once more, by turns: noise hits all alike."""
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
        params = VariantTimesParams(recipes=tuple(recipe for recipe, _ in self._measured))
        self._request = self._workspace.worker.request(
            "variant_times", params, self._take_times, self._refuse_times, self._tell_measuring
        )

    def _tell_measuring(self, text: str, _fraction: float | None = None) -> None:
        self._quiet.follow(text)
        words = self.tr("All variants by turns")
        self._workspace.say(f"{words}: {text}" if text else words, of="run")

    def _take_times(self, times: tuple[tuple[RunTimes, ...], ...]) -> None:
        self._request = None
        for (recipe, record), found in zip(self._measured, times, strict=True):
            # One may have been deleted meanwhile.
            if self._of(recipe) is not None:
                measured = self._quiet.end(with_times(record, found))
                self.keep(recipe, measured)
                self._found(recipe, measured)
        self._end()

    def _refuse_times(self, problem: Problem) -> None:
        """Go with the times that each has of its own run."""
        self._request = None
        self._end()
        if problem.code != "cancelled":
            self._workspace.trouble.show(problem)

    def _end(self) -> None:
        self._abandon()
        self.ended.emit()

    def _abandon(self) -> None:
        """Forget the row: another source is open, or it has come to its end."""
        self._waits = False
        request, self._request = self._request, None
        if request is not None:
            self._workspace.abandon(self._workspace.worker, request)
        if self._row:
            self._row = ()
            self._workspace.say("", of="run")
            self.running_changed.emit()

    def _of(self, recipe: Recipe) -> KeptRun | None:
        run = same_run_of(recipe)
        return next((each for each in self._kept if same_run_of(each.recipe) == run), None)

    def _replace(self, kept: Sequence[KeptRun]) -> None:
        if tuple(kept) != self._kept:
            self._kept = tuple(kept)
            self.changed.emit()


def _has_torch(snapshot: Snapshot | None) -> bool:
    return snapshot is not None and snapshot.model.kind == "torch"


def variants_of(recipe: Recipe, lowerings: Sequence[Strategy]) -> tuple[Recipe, ...]:
    """Return a recipe with each lowering and pipeline that is compared, and the recipe itself."""
    pipelines = [find_pipeline(name).steps for name in PIPELINES]
    recipes = [
        with_pipeline(msgspec.structs.replace(recipe, lowering=lowering), steps)
        for steps in pipelines
        for lowering in lowerings
    ]
    known = [run_of(each) for each in recipes]
    return (*recipes, *(() if run_of(recipe) in known else (recipe,)))

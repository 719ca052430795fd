"""Outcomes of runs, cached for undo, and the nodes that differ from torch's."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

import msgspec
from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model.recipe import Recipe, applies_schedules, without_schedules
from lowerscope.core.model.run_records import COMPARED, MEASURING, NodeRun, RunRecord

MOST = 100


class Outcomes:
    """The last outcome of each recipe, the newest `MOST` of them."""

    def __init__(self) -> None:
        self._records: dict[Recipe, RunRecord] = {}

    def keep(self, recipe: Recipe, record: RunRecord) -> None:
        """Store the outcome of a recipe, replacing an earlier one."""
        run = run_of(recipe)
        self._records.pop(run, None)
        self._records[run] = record
        while len(self._records) > MOST:
            del self._records[next(iter(self._records))]

    def of(self, recipe: Recipe, key: str) -> RunRecord | None:
        """Return the outcome of a recipe if its run has this key; see `RunRecord.key`."""
        record = self._records.get(run_of(recipe))
        return record if record is not None and record.key == key else None

    def like(self, recipe: Recipe, key: str) -> tuple[Recipe, RunRecord] | None:
        """Return the newest run with this key that was judged or timed differently."""
        same = same_run_of(recipe)
        found = reversed(self._records.items())
        return next(
            (each for each in found if each[1].key == key and same_run_of(each[0]) == same), None
        )


def same_run_of(recipe: Recipe) -> Recipe:
    """Return the parts of a recipe that determine its run, without tolerances and timing."""
    plain = Recipe(source=recipe.source)
    return msgspec.structs.replace(
        run_of(recipe), tolerances=plain.tolerances, measuring=plain.measuring
    )


def run_of(recipe: Recipe) -> Recipe:
    """Return the part of a recipe that is run: schedules count if they are applied to the model."""
    return recipe if applies_schedules(recipe) else without_schedules(recipe)


class Quiet(QObject):
    """Adds up how long a run measures, and how long the engine is busy meanwhile.

    Args:
        engine: The other child, which shares the processors.
    """

    def __init__(self, engine: EngineClient, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self._measuring = self._busy = False
        self._since = 0.0
        self._measured = self._worked = 0.0
        engine.state_changed.connect(self._add)

    def begin(self) -> None:
        """Start with another run."""
        self._measuring = False
        self._measured = self._worked = 0.0

    def follow(self, text: str) -> None:
        """Update the phase of the run from its progress message."""
        self._add()
        self._measuring = MEASURING in text

    def end(self, record: RunRecord) -> RunRecord:
        """Return the record of the finished run, with the extent of the disturbance."""
        self.follow("")
        if record.times is None or not self._measured:
            return record
        times = msgspec.structs.replace(record.times, disturbed=self._worked / self._measured)
        return msgspec.structs.replace(record, times=times)

    def _add(self) -> None:
        now = time.monotonic()
        if self._measuring:
            self._measured += now - self._since
            self._worked += now - self._since if self._busy else 0.0
        self._since, self._busy = now, self._engine.state in ("starting", "busy")


# --- The nodes whose values differ from torch's, and which of them start a difference ---


def starts_here(run: NodeRun) -> bool:
    """Return whether a node also differs in isolation, on torch's inputs: its error is its own."""
    return run.matches is not True and run.own_matches is False


def is_inherited(run: NodeRun) -> bool:
    """Return whether a node differs in the run, but not in isolation on torch's inputs."""
    return run.matches is False and run.own_matches is True


def differing(document: Document) -> tuple[str, ...]:
    """Return the ids of the nodes that differed in the last run, in the graph's order."""
    return tuple(run.id for run in fx_runs(document.run_record) if run.matches is False)


def starting(document: Document) -> tuple[str, ...]:
    """Return the ids of the nodes that start a difference, in the graph's order."""
    return tuple(run.id for run in fx_runs(document.run_record) if starts_here(run))


def runs_alone(document: Document) -> bool:
    """Return whether the selected node can be run alone, on torch's values at its inputs."""
    chosen = document.selection.of_kind("fx")
    runs = (each for each in fx_runs(document.run_record) if each.id in chosen[-1:])
    return any(each.own_status in COMPARED for each in runs)


def fx_runs(record: RunRecord | None) -> Iterator[NodeRun]:
    """Yield the results of FX nodes, without those of bindings."""
    yield from (each for each in (record.nodes if record else ()) if each.id.startswith("fx:"))


def select_next(
    document: Document, among: Callable[[Document], tuple[str, ...]], step: int
) -> None:
    """Select the next or previous of some nodes, wrapping around."""
    snapshot, found = document.snapshot, among(document)
    if snapshot is None or not found:
        return
    places = {node.id: place for place, node in enumerate(snapshot.fx)}
    where = sorted(places[each] for each in found if each in places)
    marked = [places[each] for each in document.selection.of_kind("fx") if each in places]
    if not marked:
        place = 0 if step > 0 else -1
    elif step > 0:
        place = bisect_right(where, max(marked)) % len(where)
    else:
        # In Python, index −1 is that of the last one.
        place = bisect_left(where, min(marked)) - 1
    document.select((snapshot.fx[where[place]].id,))

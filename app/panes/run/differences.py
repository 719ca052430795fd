"""The nodes whose values differ from torch's, and which of them start a difference."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from lowerscope.app.document.document import Document
from lowerscope.core.model.run_records import COMPARED, NodeRun, RunRecord


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

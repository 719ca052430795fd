"""Results of a run for each FX node: the time of its calls, and its value compared with torch's."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from lowerscope.core.comparing.node_comparison import NodeComparison
from lowerscope.core.comparing.node_findings import Found, fields_of
from lowerscope.core.comparing.node_parts import NodeParts
from lowerscope.core.comparing.nodes_alone import NodesAlone
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.passes.following import inverse
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.run import KEEP, CallRun, NodeRun
from lowerscope.core.running.kept_run import KeptRun
from lowerscope.core.running.node_calls import Owners
from lowerscope.core.running.steps import call_runs
from lowerscope.core.running.torch_times import torch_times
from lowerscope.core.running.watched_run import WatchedRun
from lowerscope.core.stages import Stages

REPEATS = 20
"""Most instrumented runs that are timed."""

_OVERWRITTEN = "what it reads had been overwritten"


@dataclass(frozen=True)
class NodeRuns:
    """Records of nodes and bindings, and of calls, with the cached values."""

    nodes: tuple[NodeRun, ...] = ()
    calls: tuple[CallRun, ...] = ()
    kept: KeptRun | None = None


def node_runs(
    stages: Stages,
    recipe: Recipe,
    inputs: Sequence[torch.Tensor],
    progress: Progress,
    *,
    repeats: int = REPEATS,
    keep: int = KEEP,
) -> NodeRuns:
    """Make instrumented runs, and return the results for each FX node and each binding.

    For a source without torch, for the calls only. Unavailable results are explained in a node's
    record.

    Parameters
    ----------
    repeats
        Most instrumented runs that are timed; torch's nodes are timed unless it is 1.
    keep
        Bytes of the run's values that are cached.

    Raises
    ------
    Cancelled
        If the user has cancelled it.
    """
    lowered, traced = stages.lowered, stages.traced
    run = WatchedRun(stages, inputs, keep)
    if lowered is None or traced is None:
        return _without_nodes(stages, run, repeats, progress)
    progress.report("Comparing node by node")
    owners = Owners(stages, lowered, run.calls)
    parts = NodeParts(lowered, traced, owners)
    alone = NodesAlone(run.calls, parts, run.arguments, run.functions, owners.nodes_of, progress)
    comparison = NodeComparison(parts, alone, traced, inputs, recipe.seed, recipe.tolerances)

    def take(index: int, tensors: Sequence[torch.Tensor], why_not: str) -> None:
        progress.check()
        comparison.take(index, tensors, why_not)

    try:
        seen = run.run(alone.note, take, progress)
        progress.report("Timing node by node")
        times = run.times(seen, repeats, progress)
        torch_ms = torch_times(traced, inputs, recipe.seed, progress) if repeats > 1 else {}
    except LowerscopeError as error:
        nothing = fields_of(Found("not comparable", error.problem.what), None)
        return NodeRuns(tuple(NodeRun(id=each, **nothing) for each in owners.all))
    medians = _medians(times)
    calls = call_runs(
        stages, run.calls.calls, seen.places, medians, owners.bindings_of, owners.nodes_of
    )
    kept = KeptRun(
        key=stages.run_key,
        values=run.values,
        owners=owners,
        parts=parts,
        alone=alone,
        in_run=comparison.in_run,
        traced=traced,
        inputs=tuple(inputs),
        seed=recipe.seed,
    )
    return NodeRuns(tuple(_records(owners, parts, comparison, run, medians, torch_ms)), calls, kept)


def _without_nodes(stages: Stages, run: WatchedRun, repeats: int, progress: Progress) -> NodeRuns:
    """Return the calls of a source without torch; empty if they are unknown."""
    progress.report("Timing call by call")
    try:
        seen = run.run(lambda *_: None, lambda *_: progress.check(), progress)
        times = run.times(seen, repeats, progress)
    except LowerscopeError:
        return NodeRuns()
    origins = inverse(stages.transformed.bindings_in_main)
    calls = run.calls.calls
    bindings_of = [origins.get(call.binding, ()) for call in calls]
    records = call_runs(stages, calls, seen.places, _medians(times), bindings_of, [()] * len(calls))
    return NodeRuns(calls=records, kept=KeptRun(key=stages.run_key, values=run.values))


def _medians(times: Sequence[Sequence[float]]) -> list[float]:
    """Return the median time of each call in milliseconds."""
    return [statistics.median(each) * 1000 for each in zip(*times, strict=True)]


def _records(
    owners: Owners,
    parts: NodeParts,
    comparison: NodeComparison,
    run: WatchedRun,
    medians: Sequence[float],
    torch_ms: Mapping[str, float],
) -> Iterator[NodeRun]:
    """Yield the records, nodes first. A binding has the error of the node whose value it is."""
    values = _nodes_by_binding(owners, parts, comparison)
    for entity in owners.all:
        is_node = entity.startswith("fx:")
        name = entity.removeprefix("fx:") if is_node else values.get(entity, "")
        calls = owners.calls_for(entity)
        others = dict.fromkeys(each for index in calls for each in owners.nodes_of[index])
        fields: Mapping[str, Any] = {"reason": "it is not the value of a node"}
        if name:
            fields = fields_of(comparison.in_run.get(name), comparison.alone.get(name))
        record = NodeRun(
            id=entity,
            milliseconds=sum(medians[index] for index in calls) if calls else None,
            calls=calls,
            torch_ms=torch_ms.get(name) if is_node else None,
            shared_with=tuple(each for each in others if is_node and each != entity),
            **fields,
        )
        stale = any(run.values.calls[index].is_stale for index in calls)
        if stale and record.status == "differs":
            reason = f"{_OVERWRITTEN}; {record.reason}"
            record = msgspec.structs.replace(record, reason=reason)
        yield record


def _nodes_by_binding(
    owners: Owners, parts: NodeParts, comparison: NodeComparison
) -> Mapping[str, str]:
    """Return the node whose whole value each binding is."""
    found: dict[str, str] = {}
    for name, node in owners.nodes.items():
        binding = owners.binding_of(node.value)
        if binding is not None and name in parts.of and name in comparison.in_run:
            found.setdefault(binding, name)
    return found

"""What a run has shown, node by node, with each node alone and torch's time for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import torch

from lowerscope.core.execution.walking import Walk
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import NodeReport, NodeRun, RunRecord
from lowerscope.core.stages import Stages

BUDGET = 1.0
"""Seconds that the measurements of torch's nodes should take together."""

REPEATS = 20
"""Measurements of a node, at most."""


def per_node(stages: Stages, recipe: Recipe, record: RunRecord) -> tuple[NodeReport, ...]:
    """Return a report of each FX node, in the order of the graph; none for a source without torch.

    Parameters
    ----------
    record
        Of the run of this recipe.
    """
    lowered, traced = stages.lowered, stages.traced
    if lowered is None or traced is None:
        return ()
    runs = {each.id: each for each in record.nodes}
    torch_ms = torch_times(stages, recipe)
    reports = []
    for name, node in lowered.nodes.items():
        run = runs.get(f"fx:{name}", NodeRun(id=f"fx:{name}"))
        called = dict.fromkeys(record.calls[index].function for index in run.calls)
        reports.append(
            NodeReport(
                fx=run.id,
                bindings=tuple(f"relax:main/{each}" for each in node.bindings),
                functions=tuple(called),
                strategy=node.strategy,
                max_abs_error=run.max_abs_error,
                max_rel_error=run.max_rel_error,
                own_abs_error=run.own_abs_error,
                status=run.status,
                own_status=run.own_status,
                reason=run.reason,
                own_reason=run.own_reason,
                own_with=run.own_with,
                tvm_ms=run.milliseconds,
                torch_ms=torch_ms.get(run.id),
                hand_overs=tuple(
                    found
                    for index in run.calls
                    if (found := record.calls[index].hand_over) is not None
                ),
            )
        )
    return tuple(reports)


def torch_times(stages: Stages, recipe: Recipe) -> dict[str, float]:
    """Return torch's time of each FX node that calls something, in milliseconds, by id."""
    if stages.traced is None:
        return {}
    names = [node.name for node in stages.traced.graph_module.graph.nodes]
    # Nodes are compared at the sizes that the model is traced at.
    inputs = tuple(each.value for each in stages.loaded.inputs)
    with stages.running():
        found = dict(_torch_ms(stages, inputs, recipe.seed, names))
    return {f"fx:{name}": milliseconds for name, milliseconds in found.items()}


def with_torch_times(record: RunRecord, torch_ms: Mapping[str, float]) -> RunRecord:
    """Return a record whose nodes have torch's times beside their own."""
    nodes = tuple(
        msgspec.structs.replace(each, torch_ms=torch_ms.get(each.id, each.torch_ms))
        for each in record.nodes
    )
    return msgspec.structs.replace(record, nodes=nodes)


def _torch_ms(
    stages: Stages, inputs: Sequence[torch.Tensor], seed: int, names: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield the nodes that call something, with torch's median time on what the run gives them."""
    assert stages.traced is not None
    walk = Walk(stages.traced.graph_module, inputs, seed, ())
    share = BUDGET / max(1, len(names))
    for name in names:
        for call in walk.calls([name]):
            with torch.inference_mode():
                times: list[float] = []
                while not times or (len(times) < REPEATS and sum(times) < share):
                    start = time.perf_counter()
                    call()
                    times.append(time.perf_counter() - start)
            yield name, statistics.median(times) * 1000

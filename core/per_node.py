"""What a run has shown, node by node, with each node alone and torch's time for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.walking import Walk
from lowerscope.core.nodes_alone import Alone, nodes_alone
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.run_records import NodeReport, NodeRun, RunRecord
from lowerscope.core.stages import Stages

BUDGET = 1.0
"""Seconds that the measurements of torch's nodes should take together."""

REPEATS = 20
"""Measurements of a node, at most."""

_STATUS = {True: "matches", False: "differs", None: "not compared"}


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
    # Nodes are compared at the sizes that the model is traced at.
    inputs = tuple(each.value for each in stages.loaded.inputs)
    names = list(lowered.nodes)
    runs = {each.id: each for each in record.nodes}
    with stages.running():
        alone = _alone(stages, recipe, inputs, names)
        torch_ms = dict(_torch_ms(stages, inputs, recipe.seed, names))
    reports = []
    for name, node in lowered.nodes.items():
        run, own = runs.get(f"fx:{name}", NodeRun(id=f"fx:{name}")), alone[name]
        called = dict.fromkeys(record.calls[index].function for index in run.calls)
        reports.append(
            NodeReport(
                fx=run.id,
                bindings=tuple(f"relax:main/{each}" for each in node.bindings),
                functions=tuple(called),
                strategy=node.strategy,
                max_abs_error=run.max_abs_error,
                max_rel_error=run.max_rel_error,
                own_abs_error=own.max_abs_error,
                status=_STATUS[run.matches],
                own_status=_STATUS[own.matches],
                reason=run.reason,
                own_reason=own.reason,
                own_with=tuple(f"fx:{each}" for each in own.together),
                tvm_ms=run.milliseconds,
                torch_ms=torch_ms.get(name),
                hand_overs=tuple(
                    found
                    for index in run.calls
                    if (found := record.calls[index].hand_over) is not None
                ),
            )
        )
    return tuple(reports)


def _alone(
    stages: Stages, recipe: Recipe, inputs: Sequence[torch.Tensor], names: Sequence[str]
) -> Mapping[str, Alone]:
    try:
        return nodes_alone(stages, recipe, inputs, Silent())
    except LowerscopeError as error:
        # A run with branches, whose calls have no bindings; the run itself has succeeded.
        return dict.fromkeys(names, Alone(reason=error.problem.what))


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

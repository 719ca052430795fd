"""Torch's time for each node of a graph, on its arguments in a run of the model."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence

import torch

from lowerscope.core.execution.walking import TORCH_ERRORS, Walk
from lowerscope.core.progress import Progress
from lowerscope.core.tracing.tracing import TracedModel

BUDGET = 0.5
"""Total time of the measurements of all nodes, in seconds."""

REPEATS = 20
"""Most measurements of a node; at least one is made."""


def torch_times(
    traced: TracedModel, inputs: Sequence[torch.Tensor], seed: int, progress: Progress
) -> dict[str, float]:
    """Return the median time of each node that calls something, in milliseconds, by name.

    For a graph that torch cannot run node by node, up to the failing node.

    Raises
    ------
    Cancelled
        Between two nodes.
    """
    names = [node.name for node in traced.graph_module.graph.nodes]
    walk = Walk(traced.graph_module, inputs, seed, ())
    share = BUDGET / max(1, len(names))
    found: dict[str, float] = {}
    for name in names:
        progress.check()
        try:
            for call in walk.calls([name]):
                found[name] = statistics.median(_seconds(call, share)) * 1000
        except TORCH_ERRORS:
            # The comparison reports it for each node concerned.
            return found
    return found


def _seconds(call: Callable[[], object], share: float) -> list[float]:
    """Return the times of some calls, until they have used their share."""
    times: list[float] = []
    with torch.inference_mode(), warnings.catch_warnings():
        # torch's warnings of the model's calls were shown when it was traced.
        warnings.simplefilter("ignore")
        while not times or (len(times) < REPEATS and sum(times) < share):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return times

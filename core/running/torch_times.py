"""How long torch takes for each node of a graph, on what a run of the model gives it."""

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
"""Seconds that the measurements of all nodes should take together."""

REPEATS = 20
"""Measurements of a node, at most; one at least."""


def torch_times(
    traced: TracedModel, inputs: Sequence[torch.Tensor], seed: int, progress: Progress
) -> dict[str, float]:
    """Return the median time of each node that calls something, in milliseconds, by name.

    Of a graph that torch cannot run node by node, those as far as it could.

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
            # The comparison says so, of each node that it concerns.
            return found
    return found


def _seconds(call: Callable[[], object], share: float) -> list[float]:
    """Return the times of some calls, until they have taken their share."""
    times: list[float] = []
    with torch.inference_mode(), warnings.catch_warnings():
        # What torch has to say of the model's calls, it said when the model was traced.
        warnings.simplefilter("ignore")
        while not times or (len(times) < REPEATS and sum(times) < share):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return times

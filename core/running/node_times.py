"""Torch's time for the FX nodes that a TensorIR function computes."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from lowerscope.core.execution.walking import TORCH_ERRORS, Walk
from lowerscope.core.progress import Progress
from lowerscope.core.relax_bindings import calls_of
from lowerscope.core.scheduling.measuring import quarters, repeated
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.tracing import TracedModel


@dataclass(frozen=True)
class Nodes:
    """The FX nodes that a function computes, completely or in part.

    Attributes
    ----------
    does_more
        Whether torch does more for them than the function: other functions compute a part.
    """

    names: tuple[str, ...] = ()
    does_more: bool = False


def nodes_of(stages: Stages, function: str) -> Nodes:
    """Return the nodes of the first call of a function that can be scheduled.

    There are none for a source without torch, or for a function that no binding of ``main`` calls.
    """
    lowered, unscheduled = stages.lowered, stages.unscheduled
    calls = calls_of(unscheduled.module)
    own = calls.get(f"tir:{function}", ())
    if lowered is None or not own:
        return Nodes()
    calling = {each for bindings in calls.values() for each in bindings}
    became = unscheduled.bindings_in_main
    names: list[str] = []
    does_more = False
    for node in lowered.nodes.values():
        after = {
            each
            for name in node.bindings
            for each in became.get(f"relax:main/{name}", ())
            if each in calling
        }
        if own[0] in after:
            names.append(node.node)
            does_more = does_more or len(after) > 1
    return Nodes(tuple(names), does_more)


def torch_ms(stages: Stages, names: Sequence[str], seed: int, progress: Progress) -> float | None:
    """Return the median time of torch for nodes, in sequence, on the example inputs.

    Each is called by itself with its arguments in a run of the model.

    Returns
    -------
    float or None
        ``None`` if the nodes call nothing.
    """
    traced = stages.traced
    if traced is None or not names:
        return None
    progress.report("Measuring torch")
    values = [each.value for each in stages.loaded.inputs]
    with stages.running():
        calls = Walk(traced.graph_module, values, seed, ()).calls(names)
        if not calls:
            return None

        def measure(number: int) -> float:
            start = time.perf_counter()
            for _ in range(number):
                for call in calls:
                    call()
            return (time.perf_counter() - start) / number

        with torch.inference_mode():
            return quarters(repeated(measure, progress.check))[1] * 1000


BUDGET = 0.5
"""Total time of the measurements of all nodes, in seconds."""

REPEATS = 20
"""Most measurements of a node; at least one is made."""


def torch_times(
    traced: TracedModel, inputs: Sequence[torch.Tensor], seed: int, progress: Progress
) -> dict[str, float]:
    """Return the median time of each node that calls something, in milliseconds, by name.

    For a graph that torch cannot run node by node, up to the failing node.
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

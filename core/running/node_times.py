"""Torch's time for the FX nodes that a TensorIR function computes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lowerscope.core.execution.walking import Walk
from lowerscope.core.progress import Progress
from lowerscope.core.relax_bindings import calls_of
from lowerscope.core.scheduling.measuring import quarters, repeated
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class Nodes:
    """The FX nodes that a function computes, completely or in part.

    Attributes
    ----------
    names
        In graph order.
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

    Raises
    ------
    Cancelled
        Between two calls.
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

"""The translation of an FX graph into Relax operators, against TVM's own ``from_fx``.

Both sides translate the same graph with the same parameters, in a warm process. ``from_fx`` is
silently wrong for batch norms; it is the time that is compared here.
"""

from __future__ import annotations

import copy
import warnings

from torch import fx
from tvm.relax.frontend.torch import from_fx

from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.benchmarks.figures import Figure, alternately, milliseconds

GOAL = 1.2
PAIRS = 15
SAMPLES = ("matmul_relu", "fashion_mlp", "conv_net", "transformer_block", "resnet18")


def _figure(name: str) -> Figure:
    stages = Pipeline().stages(Recipe(source=Source(spec=f"sample:{name}"), tracer="fx"))
    loaded, traced = stages.loaded, stages.traced
    assert traced is not None
    assert loaded.model is not None
    inputs = [
        (each.name, tuple(each.value.shape), str(each.value.dtype).removeprefix("torch."))
        for each in loaded.inputs
    ]
    graph = fx.symbolic_trace(copy.deepcopy(loaded.model))
    shapes = [(shape, dtype) for _, shape, dtype in inputs]

    def ours() -> float:
        return milliseconds(lambda: lower(traced, inputs, "high-level"))

    def theirs() -> float:
        return milliseconds(lambda: from_fx(graph, shapes))

    for warm in (ours, theirs):
        warm()
    return Figure(f"lower {name}", *alternately(ours, theirs, PAIRS), "from_fx", GOAL)


def measure() -> list[Figure]:
    """Measure the translation of the samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_figure(name) for name in SAMPLES]

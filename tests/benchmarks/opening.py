"""From the loaded model to its records, against the sum of the raw calls that this takes.

Both sides start from the same model and inputs in memory, in a warm process.
"""

from __future__ import annotations

import warnings

import torch
from torch import fx
from torch.fx.passes.shape_prop import ShapeProp
from tvm import relax
from tvm.relax.frontend.torch import from_fx

from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.stages import Pipeline
from tests.benchmarks.figures import Figure, alternately, milliseconds

GOAL = 1.3
PAIRS = 9
SAMPLES = ("fashion_mlp", "resnet18", "transformer_block")


def _ours(recipe: Recipe) -> float:
    pipeline = Pipeline()
    assert pipeline.stages(recipe).loaded
    return milliseconds(lambda: pipeline.answer(SnapshotQuery(recipe, DEFAULT)))


def _raw(loaded: LoadedModel) -> float:
    values = tuple(each.value for each in loaded.inputs)
    shapes = [(tuple(value.shape), str(value.dtype).removeprefix("torch.")) for value in values]

    def calls() -> None:
        assert loaded.model is not None
        graph = fx.symbolic_trace(loaded.model)
        with torch.no_grad():
            ShapeProp(graph).propagate(*values)
        relax.transform.LegalizeOps()(from_fx(graph, shapes)).script()

    return milliseconds(calls)


def _figure(name: str) -> Figure:
    recipe = Recipe(source=Source(spec=f"sample:{name}"))
    loaded = Pipeline().stages(recipe).loaded
    for warm in (lambda: _ours(recipe), lambda: _raw(loaded)):
        warm()
    ours, theirs = alternately(lambda: _ours(recipe), lambda: _raw(loaded), PAIRS)
    return Figure(f"open {name}", ours, theirs, "the sum of the raw calls", GOAL)


def measure() -> list[Figure]:
    """Measure the opening of the samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_figure(name) for name in SAMPLES]

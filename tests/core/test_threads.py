"""Stages of several requests at once: their threads do not mix anything up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from lowerscope.core.files.in_memory import pack
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline


class Deep(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        layers = (nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(30))
        self.layers, self.number = nn.ModuleList(layers), number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.number


def test_models_are_traced_lowered_and_transformed_in_several_threads() -> None:
    inputs = torch.ones(2, 8)
    # They are known as long as they are kept.
    parcels = [pack(Deep(number), inputs, f"Deep{number}") for number in range(6)]
    recipes = [
        Recipe(
            source=Source(spec=parcel.spec),
            lowering=("te", "high-level", "library")[number % 3],
            steps=find_pipeline("fuse" if number % 2 else "none").steps,
        )
        for number, parcel in enumerate(parcels)
    ]

    def script(pipeline: Pipeline, recipe: Recipe) -> str:
        return str(pipeline.stages(recipe).completed.script())

    together = Pipeline()
    with ThreadPoolExecutor(len(recipes)) as threads:
        found = list(threads.map(lambda recipe: script(together, recipe), recipes))
    assert found == [script(Pipeline(), recipe) for recipe in recipes]

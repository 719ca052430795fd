"""Widths around named sizes."""

from __future__ import annotations

from pathlib import Path

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source
from lowerscope.core.stages import Pipeline

NET = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 8, 5, padding=2, padding_mode="circular")

    def forward(self, x):
        return self.conv(F.pad(x, (0, 0, 4, 0)).transpose(1, 2))

model = Net()
example_inputs = (torch.randn(5, 9, 8),)
"""


def test_those_of_two_paddings_are_one_sum(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET)
    recipe = Recipe(
        source=Source(spec=str(path)),
        inputs=(InputSpec(shape=("n", "l", 8)),),
        dimensions=(Dimension(name="n", high=17), Dimension(name="l", high=17)),
        steps=find_pipeline("optimise-cpu").steps,
        target="native",
    )
    assert Pipeline().answer(RunQuery(recipe, quick=True)).verdict == "match"

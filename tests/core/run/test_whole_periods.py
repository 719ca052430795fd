"""Loops that read the remainder of a place compute the same on every target."""

from __future__ import annotations

from pathlib import Path

import pytest
import tvm
from tvm import te, tirx

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.ir.whole_periods import with_whole_periods
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

ROTARY = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(16.0), torch.linspace(1, 0.3, {half}))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        heads = x.view(2, 5, 4, 2 * {half}).permute(0, 2, 1, 3)
        cos, sin = self.cos[:5], self.sin[:5]
        first, second = heads[..., :{half}], heads[..., {half}:]
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
        return turned.permute(0, 2, 1, 3).reshape(2, 5, -1)

model = Own()
example_inputs = (torch.randn(2, 5, 8 * {half}),)
"""


@pytest.mark.parametrize("half", [1, 2, 4, 8, 16, 3])
def test_a_rotary_embedding_of_small_heads(half: int, tmp_path: Path) -> None:
    path = tmp_path / "rotary.py"
    path.write_text(ROTARY.format(half=half))
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec=str(path)), steps=steps, target="native")
    assert Pipeline().answer(RunQuery(recipe, quick=True)).verdict == "match"


def test_loops_without_whole_periods_are_left_alone() -> None:
    x = te.placeholder((10,), name="x")
    for count, period in ((10, 4), (12, 6), (8, 8)):
        made = te.compute((count,), lambda i: x[tirx.floormod(i, period)])  # noqa: B023
        module = tvm.IRModule({"main": te.create_prim_func([x, made])})
        assert with_whole_periods(module) is module

"""What a step changed is counted, marked and shown as the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.model.recipe import Recipe, Source, Strategy, with_params_as_inputs
from lowerscope.core.stages import Pipeline
from tests.soak.step_changes import compare_steps, recipe_of, with_rules_as_schedules

OUTPUTS = """
import torch

class InPlace(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        y.mul_(2)
        return y

class Several(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(2, 3))
        self.register_buffer("other", torch.zeros(2, 3))

    def forward(self, x, unused):
        low, high = torch.split(x, 1)
        return self.one, {"both": (low, high.sum())}, x * self.other, self.one

class Nothing(torch.nn.Module):
    def forward(self, x):
        return ()

class Same(torch.nn.Module):
    def forward(self, x):
        return x

in_place, several, nothing, same = InPlace(), Several(), Nothing(), Same()
example_inputs = (torch.ones(2, 3),)
several.example_inputs = (torch.ones(2, 3), torch.ones(4))
"""


@pytest.mark.parametrize(
    ("sample", "preset", "lowering"),
    [
        ("fashion_mlp", "none", "high-level"),
        ("fashion_mlp", "optimise-cpu", "te"),
        ("fashion_mlp", "fuse", "library"),
        ("matmul_relu", "cpu", "high-level"),
        ("mlp_tvmscript", "default-build", "high-level"),
    ],
)
def test_count_marks_and_difference_of_each_step_agree(
    sample: str, preset: str, lowering: Strategy
) -> None:
    compared = compare_steps(Pipeline(), recipe_of(sample, preset, lowering))
    assert compared.found == []
    assert compared.changing
    assert compared.marked


def test_primitives_mark_lines_where_the_difference_shows_the_function() -> None:
    pipeline = Pipeline()
    recipe = with_rules_as_schedules(pipeline, recipe_of("fashion_mlp", "fuse"))
    assert recipe.schedules
    assert compare_steps(pipeline, recipe).found == []


@pytest.mark.diagonal
@pytest.mark.parametrize("inputs", [False, True], ids=["constants", "params-as-inputs"])
@pytest.mark.parametrize("entry", ["in_place", "several", "same"])
def test_nodes_and_outputs_of_all_kinds_agree(tmp_path: Path, entry: str, inputs: bool) -> None:
    path = tmp_path / "outputs.py"
    path.write_text(OUTPUTS)
    recipe = with_params_as_inputs(Recipe(source=Source(spec=str(path), entry=entry)), inputs)
    assert compare_steps(Pipeline(), recipe).found == []

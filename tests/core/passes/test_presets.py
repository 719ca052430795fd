"""Presets run on the samples, and modules built after them match torch."""

from __future__ import annotations

import pytest
import torch

from lowerscope.core.files.pipelines_and_schedules import PRESETS, with_pipeline
from lowerscope.core.files.samples import samples
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import InputSpec, Recipe, Source, Strategy, with_bound_params
from lowerscope.core.model.snapshot import Preset
from lowerscope.core.run.execution import Execution
from lowerscope.core.stages import Pipeline
from tests.core.large_samples import LARGE
from tests.diagonal import at_length

pytestmark = pytest.mark.usefixtures("shared_results")

SMALL = [each.name for each in samples() if each.name not in LARGE]


@pytest.mark.diagonal
@pytest.mark.parametrize("preset", PRESETS, ids=[each.name for each in PRESETS])
@pytest.mark.parametrize("name", [*SMALL, *at_length(*LARGE)])
def test_every_preset_matches_torch(pipeline: Pipeline, name: str, preset: Preset) -> None:
    recipe = Recipe(source=Source(spec=f"sample:{name}"), steps=preset.steps)
    stages = pipeline.stages(recipe)
    loaded = stages.loaded
    if loaded.model is None:
        assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match", preset.name
        return
    inputs = tuple(each.value for each in loaded.inputs)
    with stages.running(), torch.no_grad():
        execution = Execution(stages.built.executable, "main", stages.arguments(inputs))
        (actual,) = execution.outputs()
        expected = loaded.model.eval()(*inputs)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4, msg=preset.name)


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", ["te", "library"])
@pytest.mark.parametrize("preset", ["fuse", "cpu", "optimise-cpu"])
def test_presets_match_torch_for_other_lowerings(lowering: Strategy, preset: str) -> None:
    steps = next(each.steps for each in PRESETS if each.name == preset)
    recipe = Recipe(source=Source(spec="sample:conv_net"), lowering=lowering, steps=steps)
    assert Pipeline().answer(RunQuery(recipe, quick=True)).verdict == "match"


@pytest.mark.parametrize("preset", ["default-build", "cpu", "optimise-cpu"])
def test_a_lowered_module_of_any_size_builds_again(preset: str) -> None:
    steps = next(each.steps for each in PRESETS if each.name == preset)
    recipe = Recipe(
        source=Source(spec="sample:fashion_mlp"),
        inputs=(InputSpec(name="x", shape=("n", 784)),),
        steps=steps,
    )
    record = Pipeline().answer(RunQuery(recipe, quick=True))
    assert [each.verdict for each in record.sizes] == ["match"] * len(record.sizes)
    assert len(record.sizes) > 1


def test_a_pipeline_keeps_the_step_that_binds_parameters() -> None:
    recipe = with_bound_params(Recipe(source=Source(spec="sample:fashion_mlp")), True)
    fuse = next(each for each in PRESETS if each.name == "fuse")
    changed = with_pipeline(recipe, fuse.steps)
    assert [step.name for step in changed.steps] == [
        "BindParams",
        *(step.name for step in fuse.steps),
    ]

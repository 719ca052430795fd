"""The longer samples in every preset and lowering, with their code and their builder programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.recipe import Strategy
from lowerscope.core.model.snapshot import Preset
from lowerscope.core.stages import Pipeline
from tests.core.cli.test_cli import LOWERINGS, check_run
from tests.core.large_samples import LARGE
from tests.core.passes.test_presets import check_preset
from tests.core.run.test_native_texts import check_code, sample
from tests.core.views.test_builder_text import check_large
from tests.core.views.test_sample_programs import KINDS, check_built, folder

__all__ = ["folder"]


@pytest.mark.parametrize("preset", PRESETS, ids=[each.name for each in PRESETS])
@pytest.mark.parametrize("name", LARGE)
def test_every_preset_matches_torch(pipeline: Pipeline, name: str, preset: Preset) -> None:
    check_preset(pipeline, name, preset)


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("name", LARGE)
def test_it_runs_and_matches(name: str, lowering: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_run(name, lowering, capsys)


@pytest.mark.parametrize("name", LARGE)
def test_each_function_has_its_own_code_and_no_other(pipeline: Pipeline, name: str) -> None:
    check_code(pipeline, sample(name))


@pytest.mark.parametrize("strategy", ["high-level", "te"])
@pytest.mark.parametrize("name", LARGE)
def test_it_is_rebuilt(pipeline: Pipeline, tmp_path: Path, name: str, strategy: Strategy) -> None:
    check_large(pipeline, tmp_path, name, strategy)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["conv_net", "transformer_block", "resnet18"])
def test_its_builder_program_makes_what_was_lowered(
    pipeline: Pipeline, folder: Path, tmp_path: Path, name: str, kind: str
) -> None:
    check_built(pipeline, folder, tmp_path, name, kind)

"""Every export of every sample, in two lowerings, is used: parsed back, run, opened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lowerscope.core.files.sources import SAMPLES
from lowerscope.core.stages import Pipeline
from tests.core.export.using import use_all

SETTINGS = {
    "fused, by rule": ["--pipeline", "fuse", "--schedule", "rules"],
    "library": ["--lowering", "library"],
}


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_all_exports_of_a_sample_are_used(
    sample: str, setting: str, qapp: object, pipeline: Pipeline, tmp_path: Path
) -> None:
    began = time.monotonic()
    left_out = use_all(pipeline, [f"sample:{sample}", *SETTINGS[setting]], tmp_path)
    print(f"{sample}, {setting}: {time.monotonic() - began:.1f} s, left out: {left_out}")

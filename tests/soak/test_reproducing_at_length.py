"""``reproduce.py`` of every sample, in every lowering, by every pipeline that computes something.

Each is a process of its own, in which there is no Lowerscope: the program builds the model, makes
the module, applies passes and schedules, builds and runs it, and holds it against torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lowerscope.core.export.folder import export
from lowerscope.core.files.sources import SAMPLES
from lowerscope.core.model.artifacts import Wanted
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import recipe_of

SETTINGS = {
    "legalise": [],
    "fused, by rule": ["--pipeline", "fuse", "--schedule", "rules", "--target", "native"],
    "optimised": ["--pipeline", "optimise-cpu", "--target", "native"],
}


@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_reproduced(
    sample: str, setting: str, lowering: str, pipeline: Pipeline, tmp_path: Path
) -> None:
    recipe = recipe_of(f"sample:{sample}", "--lowering", lowering, *SETTINGS[setting])
    wanted = (Wanted(name="reproduce"),)
    written = export(pipeline, recipe, tmp_path / "out", force=False, wanted=wanted)
    assert written.left_out == ()
    hidden = tmp_path / "hidden" / "lowerscope"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('there is none')\n")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(tmp_path / "out" / "reproduce.py")],
        env={**os.environ, "PYTHONPATH": str(hidden.parent)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    print(f"{sample}, {lowering}, {setting}: {seconds:.1f} s, {done.stdout.strip()}")
    assert done.returncode == 0, done.stderr
    assert f"{sample} matches" in done.stdout

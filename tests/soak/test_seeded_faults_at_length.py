"""Every fault in every sample in both lowerings; ``LOWERSCOPE_SOAK=1`` runs it."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from lowerscope.core.cli import recipe_of_command
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Silent
from tests.seeding import FAULTS, FEW, LOWERINGS, SAMPLES_OF_TORCH

pytestmark = pytest.mark.skipif("LOWERSCOPE_SOAK" not in os.environ, reason="takes minutes")


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline()


@pytest.mark.parametrize(
    ("name", "fault", "lowering"), [*product(SAMPLES_OF_TORCH, FAULTS, LOWERINGS)]
)
def test_the_node_where_a_fault_starts_is_named(
    pipeline: Pipeline, tmp_path: Path, name: str, fault: str, lowering: str
) -> None:
    options, node = FAULTS[fault](name, tmp_path, lowering)
    record = pipeline.run(recipe_of_command(("run", *options, *FEW)), Silent())
    assert record.verdict == "differ", record.reason
    assert record.first_difference == f"fx:{node}"

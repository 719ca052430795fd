"""Faults that are put in on purpose: the node that they start at is named, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.stages import Pipeline
from tests.core.large_samples import LARGE
from tests.core.seeding import FAULTS, FEW, LOWERINGS, SAMPLES_OF_TORCH
from tests.diagonal import at_length

SMALL = [each for each in SAMPLES_OF_TORCH if each not in LARGE]


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", [*SMALL, *at_length("resnet18")])
def test_the_node_where_a_fault_starts_is_named(
    pipeline: Pipeline, tmp_path: Path, name: str, fault: str, lowering: str
) -> None:
    options, node = FAULTS[fault](name, tmp_path, lowering)
    record = pipeline.answer(RunQuery(recipe_of_command(("run", *options, *FEW))))
    assert record.verdict == "differ", record.reason
    assert record.first_difference == f"fx:{node}"

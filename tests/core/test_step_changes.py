"""What a pass changed is counted, marked and shown as the same."""

from __future__ import annotations

import pytest

from lowerscope.core.pipeline import Pipeline
from tests.step_changes import contradictions


@pytest.mark.parametrize(
    ("sample", "preset"),
    [("fashion_mlp", "none"), ("fashion_mlp", "optimise-cpu"), ("matmul_relu", "cpu")],
)
def test_count_marks_and_difference_of_each_pass_agree(sample: str, preset: str) -> None:
    assert list(contradictions(Pipeline(), sample, preset)) == []

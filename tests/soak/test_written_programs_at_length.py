"""Programs with hostile names, many of them: ``LOWERSCOPE_SOAK_NAMES=500`` says how many."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lowerscope.core.stages import Pipeline
from tests.security.hostile_names import recipes
from tests.security.written_programs import check

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_NAMES", "0"))


@pytest.mark.skipif(not COUNT, reason="LOWERSCOPE_SOAK_NAMES is not set")
@settings(
    max_examples=COUNT or 1,
    deadline=None,
    phases=(Phase.generate,),  # each takes seconds, and to shrink one takes dozens
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_many_programs_with_hostile_names(
    data: st.DataObject, pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("model")
    check(pipeline, data.draw(recipes(folder)), folder / "out")

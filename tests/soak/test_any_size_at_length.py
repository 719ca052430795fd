"""The operator table with a named dimension: ``python -m pytest tests/soak``, by hand only."""

from __future__ import annotations

import os

import pytest

from lowerscope.core.model.recipe import TracerName
from tests.core.lowering.operator_table.any_size import PIPELINES, Findings, examine
from tests.core.lowering.operator_table.table import ENTRIES

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_SIZES", str(len(ENTRIES))))
"""Entries, from the first of the table."""


@pytest.mark.parametrize("tracer", ["auto", "export"])
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", list(ENTRIES)[:COUNT])
def test_operator_of_any_size_gives_what_torch_does_at_length(
    name: str, pipeline: str, tracer: TracerName
) -> None:
    findings = Findings()
    examine(ENTRIES[name], pipeline, tracer, findings)
    print(findings.text())
    assert findings.faults == []

"""The operator table with many examples: ``python -m pytest tests/soak``, by hand only."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.core.lowering.conftest import Bench
from tests.core.lowering.operator_table.checking import Case, batches, check_entry
from tests.core.lowering.operator_table.table import ENTRIES

EXAMPLES = int(os.environ.get("LOWERSCOPE_SOAK", "60"))
AT_ONCE = 6
PRESET_EXAMPLES = int(os.environ.get("LOWERSCOPE_SOAK_PRESET", "3"))


@pytest.fixture(scope="session")
def bench() -> Any:
    return Bench()


@pytest.mark.parametrize("name", ENTRIES)
def test_operator_gives_what_torch_does_under_the_preset(name: str) -> None:
    entry = ENTRIES[name]
    (examples,) = batches(entry, PRESET_EXAMPLES, PRESET_EXAMPLES)
    cases = [Case(examples, tracer, ("high-level", "te")) for tracer in entry.tracers]
    check_entry(Bench("optimise-cpu"), entry, cases)


@pytest.mark.parametrize("name", ENTRIES)
def test_operator_gives_what_torch_does_at_length(bench: Any, name: str) -> None:
    entry = ENTRIES[name]
    for examples in batches(entry, EXAMPLES, AT_ONCE):
        check_entry(bench, entry, [Case(examples, tracer) for tracer in entry.tracers])

"""Every operator in every strategy that it has, against torch: the table of `operator_table`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.lowering.conftest import Bench
from tests.core.lowering.operator_table.checking import Case, batches, check_entry
from tests.core.lowering.operator_table.table import ENTRIES
from tests.operator_page import PAGE, page

EXAMPLES = 2
"""Of each entry, in one model; `tests/soak` runs many more."""

UNDER_PRESET = (*tuple(ENTRIES)[::25], "sinh", "searchsorted")
"""Entries that run by the preset for the CPU too; all of them: `tests/soak`."""


@pytest.mark.parametrize("name", ENTRIES)
def test_operator_gives_what_torch_does(bench: Any, name: str) -> None:
    entry = ENTRIES[name]
    (examples,) = batches(entry, EXAMPLES, EXAMPLES)
    cases = []
    if "fx" in entry.tracers:
        cases.append(Case(examples, "fx"))
    if "export" in entry.tracers:
        cases.append(Case(examples[-1:], "export", ("te",)))
    check_entry(bench, entry, cases)


@pytest.mark.parametrize("name", UNDER_PRESET)
def test_operator_gives_what_torch_does_under_the_preset(name: str) -> None:
    entry = ENTRIES[name]
    (examples,) = batches(entry, 1, 1)
    case = Case(examples, sorted(entry.tracers)[-1], ("high-level",))
    check_entry(Bench("optimise-cpu"), entry, [case])


def test_the_table_is_large() -> None:
    assert len(ENTRIES) >= 150


def test_the_page_shows_the_table() -> None:
    told = "out of date: run python -m tests.operator_page"
    assert PAGE.read_text() == page(), told

"""Every form of every operator once, against torch: the table of `operator_table`.

Strategies, tracers and dtypes are spread over the forms. `tests/soak` has the full product.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.core.lowering.conftest import Bench
from tests.core.lowering.operator_table.checking import (
    STRATEGIES,
    Case,
    batches,
    check_entry,
    check_forms_once,
    spread,
)
from tests.core.lowering.operator_table.entries import is_tensor
from tests.core.lowering.operator_table.table import ENTRIES
from tests.operator_page import PAGE, page

EXAMPLES = 2
"""Of each entry; `tests/soak` runs many more."""

UNDER_PRESET = (*tuple(ENTRIES)[::25], "sinh", "searchsorted")
"""Entries that run by the preset for the CPU too; all of them: `tests/soak`."""


@pytest.mark.parametrize(("offset", "name"), list(enumerate(ENTRIES)), ids=list(ENTRIES))
def test_operator_gives_what_torch_does(bench: Any, offset: int, name: str) -> None:
    entry = ENTRIES[name]
    (examples,) = batches(entry, EXAMPLES, EXAMPLES)
    check_forms_once(bench, entry, examples, offset)


def test_every_strategy_and_tracer_is_met_about_as_often() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for offset, entry in enumerate(ENTRIES.values()):
        _, tracer, strategies = spread(entry, [{}], offset)
        counts.update((tracer, strategy) for strategy in strategies)
    assert len(counts) == 2 * len(STRATEGIES)
    assert min(counts.values()) > 200, counts


def test_every_dtype_is_met() -> None:
    missing = {dtype for entry in ENTRIES.values() for dtype in entry.dtypes()}
    for offset, entry in enumerate(ENTRIES.values()):
        if missing:
            (examples,) = batches(entry, EXAMPLES, EXAMPLES)
            example, _, _ = spread(entry, examples, offset)
            missing -= {str(each.dtype)[6:] for each in example.values() if is_tensor(each)}
    assert not missing


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

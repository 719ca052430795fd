"""Every form of every operator once, against torch: the table of `operator_table`.

Strategies, tracers and dtypes are spread over the forms. ``LOWERSCOPE_SOAK=N`` runs the full
product on N examples.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from tests.core.lowering.conftest import Bench
from tests.core.lowering.operator_table.any_size import PIPELINES, Findings, examine
from tests.core.lowering.operator_table.checking import (
    STRATEGIES,
    Case,
    Once,
    batches,
    check_entry,
    check_forms_once,
    is_plain,
    spread,
)
from tests.core.lowering.operator_table.table import ENTRIES
from tests.diagonal import SOAK, at_length, rows_at_length
from tests.operator_page import PAGE, page

EXAMPLES = 2

OFFSETS = {name: offset for offset, name in enumerate(ENTRIES)}

UNDER_PRESET = (*tuple(ENTRIES)[::150], "sinh", "searchsorted")
"""Entries that run by the preset for the CPU too."""


TOGETHER = 6
"""Entries of which one model is made: each is traced and compiled in less time than alone."""


def groups() -> list[tuple[str, ...]]:
    """Return entries with one tracer that can be in one model, and each of the others alone."""
    found: list[tuple[str, ...]] = []
    plain: dict[str, list[str]] = {}
    for name, entry in ENTRIES.items():
        if SOAK or not is_plain(entry):
            found.append((name,))
        else:
            plain.setdefault(spread(entry, [{}], OFFSETS[name])[1], []).append(name)
    for names in plain.values():
        found += [tuple(names[i : i + TOGETHER]) for i in range(0, len(names), TOGETHER)]
    return found


@pytest.mark.parametrize("names", groups(), ids=", ".join)
def test_operators_give_what_torch_does(bench: Any, names: tuple[str, ...]) -> None:
    if SOAK:
        for entry in map(ENTRIES.__getitem__, names):
            for examples in batches(entry, SOAK, 6):
                check_entry(bench, entry, [Case(examples, tracer) for tracer in entry.tracers])
        return
    together = []
    for name in names:
        entry = ENTRIES[name]
        (examples,) = batches(entry, EXAMPLES, EXAMPLES)
        together.append(Once(entry, *spread(entry, examples, OFFSETS[name])))
    check_forms_once(bench, together)


def test_every_strategy_and_tracer_is_met_about_as_often() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for name, entry in ENTRIES.items():
        _, tracer, strategies = spread(entry, [{}], OFFSETS[name])
        counts.update((tracer, strategy) for strategy in strategies)
    assert len(counts) == 2 * len(STRATEGIES)
    assert min(counts.values()) > 200, counts


@pytest.mark.parametrize(
    "name", [*UNDER_PRESET, *at_length(*(each for each in ENTRIES if each not in UNDER_PRESET))]
)
def test_operator_gives_what_torch_does_under_the_preset(name: str) -> None:
    entry = ENTRIES[name]
    (examples,) = batches(entry, 1, 1)
    case = Case(examples, sorted(entry.tracers)[-1], ("high-level",))
    check_entry(Bench("optimise-cpu"), entry, [case])


def test_the_page_shows_the_table() -> None:
    told = "out of date: run python -m tests.operator_page"
    assert PAGE.read_text() == page(), told


# Forms of the operator table with a named dimension


SOME = (
    ("chunk", "default-build"),
    # No block, and bfloat16, which failed in the steps that only this pipeline has.
    ("sort", "optimise-cpu"),
)
REST = [each for each in product(ENTRIES, PIPELINES) if each not in SOME]


@pytest.mark.parametrize(("name", "pipeline"), [*SOME, *rows_at_length(*REST)])
def test_operator_of_any_size_gives_what_torch_does(name: str, pipeline: str) -> None:
    findings = Findings()
    examine(ENTRIES[name], pipeline, "auto", findings)
    assert findings.faults == []
    assert findings.passed


@pytest.mark.parametrize(
    "name",
    [
        # Views of contiguous tensors.
        "reshape",
        # Functions that torch computes on sizes as numbers.
        "kron",
        "RNN",
        *at_length(
            "shape",
            "take_along_dim",
            "chain_matmul",
            "LSTM",
            "GRU",
            # One that has a fast path of its own on tensors without memory.
            "MultiheadAttention",
        ),
    ],
)
def test_no_form_that_takes_any_size_is_refused(name: str) -> None:
    findings = Findings()
    examine(ENTRIES[name], "cpu", "auto", findings)
    assert findings.refused == findings.faults == []
    assert findings.passed

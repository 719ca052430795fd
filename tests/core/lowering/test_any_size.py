"""Forms of the operator table with a named dimension; `tests/soak` has all of them."""

from __future__ import annotations

import pytest

from lowerscope.core.lowering.built_in import reason_of
from tests.core.lowering.operator_table.any_size import Findings, examine
from tests.core.lowering.operator_table.table import ENTRIES

SOME = (
    ("median", "cpu"),
    ("select_scatter", "default-build"),
    ("chunk", "default-build"),
    # No block, and bfloat16, which failed in the steps that only this pipeline has.
    ("sort", "optimise-cpu"),
    ("celu", "optimise-cpu"),
)


@pytest.mark.parametrize(("name", "pipeline"), SOME)
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
        "shape",
        # Functions that torch computes on sizes as numbers.
        "take_along_dim",
        "kron",
        "chain_matmul",
        "LSTM",
        "GRU",
        "RNN",
        # One that has a fast path of its own on tensors without memory.
        "MultiheadAttention",
    ],
)
def test_no_form_that_takes_any_size_is_refused(name: str) -> None:
    findings = Findings()
    examine(ENTRIES[name], "cpu", "auto", findings)
    assert findings.refused == findings.faults == []
    assert findings.passed


@pytest.mark.parametrize("text", ["range", "zeros", "divide", "list"])
def test_a_size_that_is_no_number_is_said_in_words(text: str) -> None:
    from tvm import tirx

    size = tirx.Var("n", "int64")
    uses = {
        "range": lambda: range(size + 1),
        "zeros": lambda: [0] * size,
        "divide": lambda: size / 2,
        "list": lambda: [1, 2][size],
    }
    with pytest.raises((TypeError, RuntimeError)) as error:
        uses[text]()
    assert reason_of(error.value) == "it needs a number where a dimension has any size"

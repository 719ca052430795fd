"""The list of functions, and who calls them."""

from __future__ import annotations

import tvm

from lowerscope.core.ir.relax import calls_of
from lowerscope.core.model.snapshot import FunctionRecord
from lowerscope.core.views.functions import function_records


def test_functions_of_an_mlp_in_the_order_of_their_calls(
    relax_modules: dict[str, tvm.IRModule],
) -> None:
    module = relax_modules["mlp legalised"]
    records = function_records(module, calls_of(module))
    assert [record.name for record in records] == [
        "main",
        "transpose",
        "matmul",
        "add",
        "relu",
        "transpose1",
        "matmul1",
        "add1",
    ]
    assert records[0].kind == "relax"
    assert records[2] == FunctionRecord(
        id="tir:matmul",
        name="matmul",
        kind="tensorir",
        calls=("relax:main/lv1",),
        blocks=1,
        loops=3,
        runs=128 * 784,
    )

"""How much a statement costs, in arithmetic operations."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from lowerscope.core.rendering.programs.expression_text import operator_name

CHEAP = 12
"""So many operations are computed again rather than stored and read."""

_COSTLY = 20
"""A call, such as that of an exponential function, costs as much as so many operations."""


def operations(body: Any) -> int:
    """Return how many operations a statement takes, about."""
    count = 0

    def visit(value: Any) -> None:
        nonlocal count
        if isinstance(value, tvm.ir.Call):
            count += 1 if operator_name(value) in _FREE else _COSTLY
        elif isinstance(value, tirx.Div):
            count += 4
        else:
            count += 1

    tvm_ffi.structural_walk(body, (_ARITHMETIC, visit))
    return count


_FREE = ("if_then_else", "reinterpret", "likely")

_ARITHMETIC = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast),
    tvm.ir.Call,
)

"""How much a statement costs, in arithmetic operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.rendering.programs.expression_text import operator_name
from lowerscope.core.scheduling.block_guards import negated_in
from lowerscope.core.scheduling.references import Place

MAX_INLINED = 1000
"""Nodes of an expression that may become of what is computed where it is read: a chain of values
that are each read twice would double it with each of them."""

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


def can_be_inlined(found: Sequence[Place], name: str) -> bool:
    """Return whether the readers of a block may have its value in place of each load.

    They are to stay short with it, and `block_guards.compute_inline` is to let it pass.

    Parameters
    ----------
    found
        The loops and blocks of the function.
    name
        Of the block.
    """
    block = next(each.stmt for each in found if each.is_block and each.name == name)
    if not block.writes or negated_in(found, block):
        return False
    written, size = block.writes[0].source, _nodes(block.body)
    readers = (
        each.stmt
        for each in found
        if each.is_block and any(region.source.same_as(written) for region in each.stmt.reads)
    )
    return all(
        _nodes(each.body) + _loads(each.body, written) * size <= MAX_INLINED for each in readers
    )


def _nodes(body: Any) -> int:
    count = 0

    def visit(value: Any) -> None:
        nonlocal count
        count += 1

    tvm_ffi.structural_walk(body, (tvm.ir.Expr, visit))
    return count


def _loads(body: Any, buffer: Any) -> int:
    count = 0

    def visit(value: Any) -> None:
        nonlocal count
        count += bool(value.source.same_as(buffer))

    tvm_ffi.structural_walk(body, (TensorLoad, visit))
    return count


_FREE = ("if_then_else", "reinterpret", "likely")

_ARITHMETIC = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast),
    tvm.ir.Call,
)

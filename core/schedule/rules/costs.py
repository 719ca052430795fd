"""Estimated cost of a statement, in arithmetic operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.schedule.blocks import negated_in
from lowerscope.core.schedule.parameters import collected
from lowerscope.core.schedule.references import Place
from lowerscope.core.views.programs.expression_text import operator_name

MAX_INLINED = 1000
"""Limit on the nodes of an expression after inlining: a chain of values that are each read twice
would double it with each of them."""

CHEAP = 12
"""Operations up to which a value is recomputed rather than stored and read."""

_COSTLY = 20
"""Cost of a call, such as that of an exponential function, in operations."""


def operations(body: Any) -> int:
    """Return the estimated number of operations of a statement."""
    return sum(map(_cost, collected(body, _ARITHMETIC)))


def _cost(value: Any) -> int:
    if isinstance(value, tvm.ir.Call):
        return 1 if operator_name(value) in _FREE else _COSTLY
    return 4 if isinstance(value, tirx.Div) else 1


def can_be_inlined(found: Sequence[Place], name: str) -> bool:
    """Return whether a block can be inlined into its readers.

    They must stay short with it, and the guard of ``compute_inline`` must accept it.
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
    return len(collected(body, tvm.ir.Expr))


def _loads(body: Any, buffer: Any) -> int:
    return sum(bool(each.source.same_as(buffer)) for each in collected(body, TensorLoad))


_FREE = ("if_then_else", "reinterpret", "likely")

_ARITHMETIC = (
    *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Max, tirx.Min, tirx.Select, tirx.Cast),
    tvm.ir.Call,
)

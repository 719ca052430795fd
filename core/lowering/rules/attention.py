"""Scaled dot product attention in elementary operators."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.activation import softmax
from lowerscope.core.lowering.rules.arithmetic import add, mul
from lowerscope.core.lowering.rules.linear import matmul
from lowerscope.core.lowering.rules.shape import transpose
from lowerscope.core.lowering.values import Value, dtype_of, is_size, rank_of, scalar, shape_of

aten = torch.ops.aten


@rule(F.scaled_dot_product_attention, aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    b: NodeBuilder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        raise Refused("it drops out")
    if enable_gqa:
        groups = shape_of(query)[-3] // shape_of(key)[-3]
        axis = rank_of(key) - 3
        key, value = (b.emit(op.repeat(each, groups, axis)) for each in (key, value))
    factor = 1 / math.sqrt(shape_of(query)[-1]) if scale is None else scale
    scores = mul(b, matmul(b, query, transpose(b, key, -2, -1)), factor)
    if is_causal:
        rows, columns = shape_of(scores)[-2:]
        attn_mask = _causal_mask(b, rows, columns)
    kept: Value = None
    if attn_mask is not None and dtype_of(attn_mask) == "bool":
        kept = attn_mask
        scores = b.emit(op.where(kept, scores, scalar(-math.inf, dtype_of(scores))))
    elif attn_mask is not None:
        scores = add(b, scores, attn_mask)
        lowest = scalar(-math.inf, dtype_of(scores))
        kept = b.emit(op.logical_not(b.emit(op.equal(scores, lowest))))
    weights = softmax(b, scores, -1)
    if kept is not None:
        # A fully masked row is 0 in torch, where softmax alone gives NaN.
        weights = b.emit(op.where(kept, weights, scalar(0, dtype_of(weights))))
    return matmul(b, weights, value)


def _causal_mask(b: NodeBuilder, rows: Any, columns: Any) -> Value:
    """Return the causal mask: each row attends to the columns up to its own."""
    if not is_size(rows) and not is_size(columns):
        return b.constant(torch.ones(rows, columns, dtype=torch.bool).tril())
    row = b.emit(op.expand_dims(b.emit(op.arange(0, rows, 1, "int64")), 1))
    column = b.emit(op.expand_dims(b.emit(op.arange(0, columns, 1, "int64")), 0))
    return b.emit(op.greater_equal(row, column))

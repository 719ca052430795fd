"""Rules for tensors that become one: cat, stack and the like."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.promotion import cast, common_dtype, to_common_dtype
from lowerscope.core.lowering.relax_values import (
    Value,
    axis_of,
    rank_of,
    shape_of,
)
from lowerscope.core.lowering.rule_table import exact
from lowerscope.core.lowering.rules.shape import reshape_to, unsqueeze

aten = torch.ops.aten


@exact(torch.cat, torch.concat, torch.concatenate, aten.cat.default)
def cat(b: NodeBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    # torch ignores legacy empty tensors, of shape (0,), except for their dtype.
    dtype = common_dtype(*tensors)
    kept = [value for value in tensors if shape_of(value) != (0,)] or list(tensors[:1])
    values = [cast(b, value, dtype) for value in kept]
    if len(values) == 1:
        return values[0]
    return b.emit(op.concat(list(values), axis_of(dim, rank_of(values[0]))))


@exact(torch.stack, aten.stack.default)
def stack(b: NodeBuilder, tensors: Sequence[Value], dim: int = 0) -> Value:
    values = to_common_dtype(b, *tensors)
    return b.emit(op.stack(list(values), axis_of(dim, rank_of(values[0]) + 1)))


@exact(torch.hstack)
def hstack(b: NodeBuilder, tensors: Sequence[Value]) -> Value:
    return cat(b, tensors, 0 if rank_of(tensors[0]) < 2 else 1)


@exact(torch.vstack)
def vstack(b: NodeBuilder, tensors: Sequence[Value]) -> Value:
    rows = [unsqueeze(b, value, 0) if rank_of(value) == 1 else value for value in tensors]
    return cat(b, rows, 0)


@exact(torch.dstack)
def dstack(b: NodeBuilder, tensors: Sequence[Value]) -> Value:
    return cat(b, [_with_rank(b, value, 3) for value in tensors], 2)


def _with_rank(b: NodeBuilder, value: Value, rank: int) -> Value:
    """Return `value` with axes of 1 added as by ``torch.atleast_3d`` and the like."""
    shape = shape_of(value)
    if len(shape) >= rank:
        return value
    if rank == 3 and len(shape) == 2:
        return reshape_to(b, value, [*shape, 1])
    return reshape_to(b, value, [1, *shape, 1] if rank == 3 and shape else [1] * rank)


@exact(torch.column_stack)
def column_stack(b: NodeBuilder, tensors: Sequence[Value]) -> Value:
    columns = [unsqueeze(b, value, 1) if rank_of(value) == 1 else value for value in tensors]
    return cat(b, columns, 1)

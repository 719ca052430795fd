"""Writing into a part of a tensor, as a new value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from tvm import relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import Value, axis_of, dtype_of, rank_of, shape_of
from lowerscope.core.lowering.rule_table import Refused, rule
from lowerscope.core.lowering.rules.arithmetic import cast
from lowerscope.core.lowering.rules.indexing import aten_slice, counted_from_front
from lowerscope.core.lowering.rules.shape import broadcast_to, cat, unsqueeze

aten = torch.ops.aten


@rule("copy_", aten.copy.default, aten.copy_.default, name="copy")
def copy(b: NodeBuilder, input: Value, src: Value, non_blocking: bool = False) -> Value:
    return broadcast_to(b, cast(b, src, dtype_of(input)), shape_of(input))


@rule("fill_", aten.fill.Scalar, aten.fill_.Scalar, aten.fill.Tensor, name="fill")
def fill(b: NodeBuilder, input: Value, value: Any) -> Value:
    return broadcast_to(b, cast(b, value, dtype_of(input)), shape_of(input))


@rule("zero_")
def zero(b: NodeBuilder, input: Value) -> Value:
    return fill(b, input, 0)


@rule(torch.slice_scatter, aten.slice_scatter.default)
def slice_scatter(
    b: NodeBuilder,
    input: Value,
    src: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    axis = axis_of(dim, rank_of(input))
    extent = shape_of(input)[axis]
    first, last, stride = slice(start, end, step).indices(extent)
    if stride == 1:
        before = aten_slice(b, input, axis, 0, first)
        after = aten_slice(b, input, axis, max(first, last), extent)
        parts = (before, cast(b, src, dtype_of(input)), after)
        return cat(b, [part for part in parts if shape_of(part)[axis]], axis)
    bounds = [relax.prim_value(each) for each in (first, max(first, last), stride)]
    return b.emit(op.slice_scatter(input, cast(b, src, dtype_of(input)), *bounds, axis=axis))


@rule(torch.select_scatter, aten.select_scatter.default)
def select_scatter(b: NodeBuilder, input: Value, src: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, rank_of(input))
    place = index + shape_of(input)[axis] if index < 0 else index
    return slice_scatter(b, input, unsqueeze(b, src, axis), axis, place, place + 1)


@rule(torch.scatter, "scatter", aten.scatter.src, aten.scatter.value)
def scatter(
    b: NodeBuilder, input: Value, dim: int, index: Value, src: Value = None, value: Any = None
) -> Value:
    source = value if src is None else src
    updates = cast(b, source, dtype_of(input))
    if rank_of(updates) == 0:
        updates = broadcast_to(b, updates, shape_of(index))
    if shape_of(updates) != shape_of(index):
        raise Refused("its source is larger than its index")
    return b.emit(op.scatter_elements(input, index, updates, axis_of(dim, rank_of(input))))


@rule(torch.scatter_add, "scatter_add", aten.scatter_add.default)
def scatter_add(b: NodeBuilder, input: Value, dim: int, index: Value, src: Value) -> Value:
    if shape_of(src) != shape_of(index):
        raise Refused("its source is larger than its index")
    axis = axis_of(dim, rank_of(input))
    return b.emit(op.scatter_elements(input, index, src, axis, reduction="add"))


@rule(aten.index_put.default)
def index_put(
    b: NodeBuilder,
    input: Value,
    indices: Sequence[Value],
    values: Value,
    accumulate: bool = False,
) -> Value:
    if any(each is None or dtype_of(each) == "bool" for each in indices):
        raise Refused("its indices are not integer tensors for the first axes")
    update = cast(b, values, dtype_of(input))
    places = [
        counted_from_front(b, index, extent)
        for index, extent in zip(indices, shape_of(input), strict=False)
    ]
    return b.emit(op.index_put(input, relax.Tuple(places), update, accumulate))

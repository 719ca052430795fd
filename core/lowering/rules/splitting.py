"""Operators that split one tensor into several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, common_dtype, to_common_dtype
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.rules.shape import broadcast_to, permute_to, reshape_to, unsqueeze
from lowerscope.core.lowering.values import Value, axis_of, is_tensor, rank_of, shape_of

aten = torch.ops.aten
_functions: Any = torch._VF


def cut(b: NodeBuilder, value: Value, axis: int, first: int, last: int) -> Value:
    """Return the elements of `axis` from `first` to `last`, as Python's slices count them."""
    start, stop, _ = slice(first, last).indices(shape_of(value)[axis])
    return b.emit(op.strided_slice(value, [axis], [start], [max(start, stop)]))


def split_into(b: NodeBuilder, value: Value, sizes: Sequence[int], axis: int) -> Value:
    """Cut `value` along `axis` into parts of the given sizes; the result is a tuple."""
    if len(sizes) == 1:
        return (value,)
    return b.emit(op.split(value, list(accumulate(sizes))[:-1], axis))


@exact(
    torch.split,
    "split",
    aten.split.Tensor,
    aten.split_with_sizes.default,
    torch.split_with_sizes,
    "split_with_sizes",
)
def split(b: NodeBuilder, input: Value, split_size_or_sections: Any, dim: int = 0) -> Value:
    axis = axis_of(dim, rank_of(input))
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_into(b, input, [int(size) for size in split_size_or_sections], axis)
    return split_into(b, input, _pieces(shape_of(input)[axis], split_size_or_sections), axis)


@exact(torch.chunk, "chunk", aten.chunk.default)
def chunk(b: NodeBuilder, input: Value, chunks: int, dim: int = 0) -> Value:
    axis = axis_of(dim, rank_of(input))
    extent = shape_of(input)[axis]
    return split_into(b, input, _pieces(extent, -(-extent // chunks)), axis)


@exact(torch.tensor_split, "tensor_split")
def tensor_split(b: NodeBuilder, input: Value, indices_or_sections: Any, dim: int = 0) -> Value:
    axis = axis_of(dim, rank_of(input))
    if is_tensor(indices_or_sections):
        raise Refused("it is split at indices that are a tensor")
    if not isinstance(indices_or_sections, int):
        places = [0, *indices_or_sections, shape_of(input)[axis]]
        return tuple(cut(b, input, axis, first, last) for first, last in pairwise(places))
    size, rest = divmod(shape_of(input)[axis], indices_or_sections)
    sizes = [size + (index < rest) for index in range(indices_or_sections)]
    return split_into(b, input, sizes, axis)


@exact(torch.unbind, "unbind", aten.unbind.int)
def unbind(b: NodeBuilder, input: Value, dim: int = 0) -> Value:
    axis = axis_of(dim, rank_of(input))
    extent = shape_of(input)[axis]
    parts = split_into(b, input, [1] * extent, axis)
    return tuple(b.emit(op.squeeze(_member(b, parts, index), [axis])) for index in range(extent))


@exact("unfold", aten.unfold.default)
def unfold(b: NodeBuilder, input: Value, dimension: int, size: int, step: int) -> Value:
    rank = rank_of(input)
    if not rank:
        raise Refused("a number has no axis to unfold")
    axis = axis_of(dimension, rank)
    count = (shape_of(input)[axis] - size) // step + 1
    places = torch.arange(count)[:, None] * step + torch.arange(size)
    windows = b.emit(op.take(input, b.constant(places), axis, mode="clip"))
    order = [each for each in range(rank + 1) if each != axis + 1]
    return permute_to(b, windows, [*order, axis + 1])


@exact(torch.meshgrid, _functions.meshgrid, aten.meshgrid.indexing)
def meshgrid(b: NodeBuilder, *tensors: Any, indexing: str | None = None) -> Value:
    lists = tensors[0] if isinstance(tensors[0], (tuple, list)) else tensors
    order = list(range(len(lists)))
    if indexing == "xy":
        order[:2] = order[1::-1]
    extents = [math.prod(shape_of(lists[place])) for place in order]
    grids: list[Value] = []
    for place, value in enumerate(lists):
        along = [1] * len(lists)
        along[order.index(place)] = -1
        grids.append(broadcast_to(b, reshape_to(b, value, along), extents))
    return tuple(grids)


def _member(b: NodeBuilder, parts: Value, index: int) -> Value:
    return parts[index] if isinstance(parts, tuple) else b.emit(parts[index])


def _pieces(extent: int, size: int) -> list[int]:
    return [min(size, extent - start) for start in range(0, extent, size)] or [0]


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

"""Splitting and joining of tensors, and functional writes into a part of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import ir, relax, te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, common_dtype, to_common_dtype
from lowerscope.core.lowering.rule_table import Missing, Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, div, maximum, mul
from lowerscope.core.lowering.rules.indexing import aten_slice, counted_from_front
from lowerscope.core.lowering.rules.shape import broadcast_to, permute_to, reshape_to, unsqueeze
from lowerscope.core.lowering.selection_loops import te_bags
from lowerscope.core.lowering.values import (
    HALF,
    Value,
    axis_of,
    dtype_of,
    is_empty,
    is_float,
    is_tensor,
    rank_of,
    same_sizes,
    scalar,
    shape_of,
    simplified,
    torch_dtype,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten
_functions: Any = torch._VF


def cut(b: NodeBuilder, value: Value, axis: int, first: int, last: int) -> Value:
    """Return the elements of `axis` from `first` to `last`, as Python's slices count them."""
    start, stop, _other = slice(first, last).indices(shape_of(value)[axis])
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
        raise Refused(_("it is split at indices that are a tensor"))
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
        raise Refused(_("a number has no axis to unfold"))
    axis = axis_of(dimension, rank)
    return b.emit_te(te_unfold, input, axis, size, step, primfunc_name_hint="unfold")


def te_unfold(A: te.Tensor, axis: int, size: int, step: int) -> te.Tensor:
    """Return the windows of `size` elements along `axis`, each `step` after the one before."""
    count = (A.shape[axis] - size) // step + 1

    def element(*at: Any) -> Any:
        return A[(*at[:axis], at[axis] * step + at[-1], *at[axis + 1 : -1])]

    shape = [*A.shape[:axis], count, *A.shape[axis + 1 :], size]
    return te.compute(shape, element, name="unfold")


@exact(torch.diagonal, "diagonal", aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(b: NodeBuilder, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    places = _of_diagonal(b, input, offset, dim1, dim2)
    return b.emit_te(te_diagonal, input, *places, primfunc_name_hint="diagonal")


def te_diagonal(A: te.Tensor, rows: int, columns: int, offset: int, count: Any) -> te.Tensor:
    """Return the `count` elements of a diagonal of two axes, as the last axis."""
    shape = [extent for axis, extent in enumerate(A.shape) if axis not in (rows, columns)]

    def element(*at: Any) -> Any:
        others = iter(at[:-1])
        own = {rows: at[-1] + max(-offset, 0), columns: at[-1] + max(offset, 0)}
        return A[tuple(own[axis] if axis in own else next(others) for axis in range(len(A.shape)))]

    return te.compute([*shape, count], element, name="diagonal")


@exact(torch.diagonal_scatter, "diagonal_scatter", aten.diagonal_scatter.default)
def diagonal_scatter(
    b: NodeBuilder, input: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    places = _of_diagonal(b, input, offset, dim1, dim2)[:3]
    updates = cast(b, src, dtype_of(input))
    hint = "diagonal_scatter"
    return b.emit_te(te_diagonal_scatter, input, updates, *places, primfunc_name_hint=hint)


def te_diagonal_scatter(
    A: te.Tensor, B: te.Tensor, rows: int, columns: int, offset: int
) -> te.Tensor:
    """Return `A` with the elements of a diagonal of two axes from `B`, where it is the last."""

    def element(*at: Any) -> Any:
        others = [each for axis, each in enumerate(at) if axis not in (rows, columns)]
        place = at[rows] - max(-offset, 0)
        is_there = at[columns] - at[rows] == offset
        return tirx.if_then_else(is_there, B[(*others, place)], A[at])

    return te.compute(A.shape, element, name="diagonal_scatter")


def _of_diagonal(
    b: NodeBuilder, input: Value, offset: int, dim1: int, dim2: int
) -> tuple[int, int, int, Any]:
    """Return the axes of rows and columns, the offset and the length of a diagonal."""
    rows, columns = (axis_of(each, rank_of(input)) for each in (dim1, dim2))
    shape = shape_of(input)
    height, width = shape[rows], shape[columns]
    if same_sizes([height], [width]) and not offset:
        return rows, columns, offset, height
    if not isinstance(height, int) or not isinstance(width, int):
        raise Refused(_("it needs a number, and the dimension is symbolic"))
    return rows, columns, offset, max(0, min(height - max(-offset, 0), width - max(offset, 0)))


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


@exact("copy_", aten.copy.default, aten.copy_.default, name="copy")
def copy(b: NodeBuilder, input: Value, src: Value, non_blocking: bool = False) -> Value:
    return broadcast_to(b, cast(b, src, dtype_of(input)), shape_of(input))


@exact("fill_", aten.fill.Scalar, aten.fill_.Scalar, aten.fill.Tensor, name="fill")
def fill(b: NodeBuilder, input: Value, value: Any) -> Value:
    return broadcast_to(b, cast(b, value, dtype_of(input)), shape_of(input))


@exact("zero_")
def zero(b: NodeBuilder, input: Value) -> Value:
    return fill(b, input, 0)


@exact(torch.slice_scatter, "slice_scatter", aten.slice_scatter.default)
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
    if step == 1:
        before = aten_slice(b, input, axis, 0, start or 0)
        last = simplified(shape_of(before)[axis] + shape_of(src)[axis])
        after = aten_slice(b, input, axis, last)
        parts = (before, cast(b, src, dtype_of(input)), after)
        return cat(b, [part for part in parts if not is_empty([shape_of(part)[axis]])], axis)
    first, last, stride = slice(start, end, step).indices(shape_of(input)[axis])
    bounds = [relax.prim_value(each) for each in (first, max(first, last), stride)]
    return b.emit(op.slice_scatter(input, cast(b, src, dtype_of(input)), *bounds, axis=axis))


@exact(torch.select_scatter, "select_scatter", aten.select_scatter.default)
def select_scatter(b: NodeBuilder, input: Value, src: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, rank_of(input))
    parts = [
        aten_slice(b, input, axis, 0, index),
        cast(b, unsqueeze(b, src, axis), dtype_of(input)),
    ]
    if index != -1:
        parts.append(aten_slice(b, input, axis, index + 1))
    return cat(b, [part for part in parts if not is_empty([shape_of(part)[axis]])], axis)


@exact(torch.scatter, "scatter", aten.scatter.src, aten.scatter.value)
def scatter(
    b: NodeBuilder, input: Value, dim: int, index: Value, src: Value = None, value: Any = None
) -> Value:
    source = value if src is None else src
    updates = cast(b, source, dtype_of(input))
    if rank_of(updates) == 0:
        updates = broadcast_to(b, updates, shape_of(index))
    updates = as_large_as(b, updates, index)
    return _scatter_values(b, input, axis_of(dim, rank_of(input)), index, updates, "update")


@exact(torch.scatter_add, "scatter_add", "scatter_add_", aten.scatter_add.default)
def scatter_add(b: NodeBuilder, input: Value, dim: int, index: Value, src: Value) -> Value:
    return scatter_reduce(b, input, dim, index, src, "sum")


_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}

_BROADCAST = ir.Op.get("relax.broadcast_to")


@exact(torch.scatter_reduce, "scatter_reduce", "scatter_reduce_", aten.scatter_reduce.two)
def scatter_reduce(
    b: NodeBuilder,
    input: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    axis = axis_of(dim, rank_of(input))
    updates = as_large_as(b, src, index)
    if reduce == "mean":
        return _mean_of_written(b, input, axis, index, updates, include_self=include_self)
    if not include_self:
        # Replace the existing elements by the neutral element.
        least = broadcast_to(b, _neutral(reduce, dtype_of(input)), shape_of(index))
        input = _scatter_values(b, input, axis, index, least, "update")
    return _scatter_values(b, input, axis, index, updates, _REDUCTIONS[reduce])


def _scatter_values(
    b: NodeBuilder, input: Value, axis: int, index: Value, updates: Value, reduction: str
) -> Value:
    """Write each element at its place, or whole rows where the index repeats one for each."""
    rows = _index_of_rows(b, input, axis, index)
    if rows is not None:
        return b.emit(op.scatter_nd(input, rows, updates, reduction=reduction))
    return b.emit(op.scatter_elements(input, index, updates, axis, reduction=reduction))


def _index_of_rows(b: NodeBuilder, input: Value, axis: int, index: Value) -> Value | None:
    """Return the places of whole rows, in a column, that an index repeats along them."""
    if axis or not same_sizes(shape_of(index)[1:], shape_of(input)[1:]):
        return None
    made = b.lookup_binding(index) if isinstance(index, relax.Var) else index
    if getattr(made, "op", None) != _BROADCAST or rank_of(index) < 2:
        return None
    column = made.args[0]
    if rank_of(column) != rank_of(index) or shape_of(column)[0] != shape_of(index)[0]:
        return None
    if any(each != 1 for each in shape_of(column)[1:]):
        return None
    return reshape_to(b, column, [-1, 1])


def _neutral(reduce: str, dtype: str) -> Value:
    """Return the neutral element of a reduction."""
    if reduce in ("sum", "prod"):
        return scalar(int(reduce == "prod"), dtype)
    if is_float(dtype):
        return scalar(-math.inf if reduce == "amax" else math.inf, dtype)
    bounds = torch.iinfo(torch_dtype(dtype))
    return scalar(bounds.min if reduce == "amax" else bounds.max, dtype)


def _mean_of_written(
    b: NodeBuilder, input: Value, axis: int, index: Value, updates: Value, *, include_self: bool
) -> Value:
    dtype = dtype_of(input)
    if not is_float(dtype) or dtype in HALF:
        raise Refused(_("it is a mean of integers or of halves, which torch rounds in between"))

    def added(start: Value, values: Value) -> Value:
        return _scatter_values(b, start, axis, index, values, "add")

    def full(extents: Sequence[int], value: int) -> Value:
        return broadcast_to(b, scalar(value, dtype), extents)

    own, rows = int(include_self), _index_of_rows(b, input, axis, index)
    if rows is None:
        counts = added(full(shape_of(input), own), full(shape_of(index), 1))
    else:
        # All elements of a row have the same count.
        row = [1] * (rank_of(input) - 1)
        start, ones = (full([shape_of(input)[0], *row], own), full([shape_of(index)[0], *row], 1))
        counts = b.emit(op.scatter_nd(start, rows, ones, reduction="add"))
    start = input if include_self else full(shape_of(input), 0)
    # Unwritten elements have the count of the existing ones.
    means = div(b, added(start, updates), maximum(b, counts, 1))
    if include_self:
        return means
    written = b.emit(op.greater(counts, scalar(0, dtype)))
    return b.emit(op.where(written, means, input))


@exact(torch.index_add, "index_add", "index_add_", aten.index_add.default)
def index_add(
    b: NodeBuilder, input: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1
) -> Value:
    axis = axis_of(dim, rank_of(input))
    updates = source if alpha == 1 else mul(b, source, alpha)
    return scatter_reduce(b, input, axis, _along(b, index, axis, source), updates, "sum")


@exact(torch.index_reduce, "index_reduce", "index_reduce_", aten.index_reduce.default)
def index_reduce(
    b: NodeBuilder,
    input: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    axis = axis_of(dim, rank_of(input))
    places = _along(b, index, axis, source)
    return scatter_reduce(b, input, axis, places, source, reduce, include_self=include_self)


@exact(torch.index_copy, "index_copy", "index_copy_", aten.index_copy.default)
def index_copy(b: NodeBuilder, input: Value, dim: int, index: Value, source: Value) -> Value:
    axis = axis_of(dim, rank_of(input))
    return scatter(b, input, axis, _along(b, index, axis, source), source)


@exact(torch.index_fill, "index_fill", "index_fill_", aten.index_fill.int_Scalar)
def index_fill(b: NodeBuilder, input: Value, dim: int, index: Value, value: Any) -> Value:
    axis = axis_of(dim, rank_of(input))
    extents = list(shape_of(input))
    extents[axis] = shape_of(index)[0]
    updates = broadcast_to(b, cast(b, value, dtype_of(input)), extents)
    return scatter(b, input, axis, _along(b, index, axis, updates), updates)


def as_large_as(b: NodeBuilder, source: Value, index: Value) -> Value:
    """Return the part of `source` that an index of another size reads."""
    for axis, (own, wanted) in enumerate(zip(shape_of(source), shape_of(index), strict=True)):
        if own != wanted:
            source = aten_slice(b, source, axis, 0, wanted)
    return source


def _along(b: NodeBuilder, index: Value, axis: int, source: Value) -> Value:
    """Return a vector of positions along an axis as an index of the shape of `source`."""
    extents = [1] * rank_of(source)
    extents[axis] = -1
    return broadcast_to(b, reshape_to(b, index, extents), shape_of(source))


def _put_along(
    b: NodeBuilder, input: Value, axis: int, index: Value, values: Value, accumulate: bool
) -> Value:
    """Write the elements at positions of one axis, given as a vector."""
    if dtype_of(index) == "bool":
        raise Refused(_("its index is a mask"))
    extents = list(shape_of(input))
    place = counted_from_front(b, index, extents[axis])
    extents[axis] = shape_of(index)[0]
    update = broadcast_to(b, cast(b, values, dtype_of(input)), extents)
    places = _along(b, place, axis, update)
    if accumulate:
        return scatter_reduce(b, input, axis, places, update, "sum")
    return scatter(b, input, axis, places, update)


def _slices_put(
    b: NodeBuilder, input: Value, indices: Sequence[Value], values: Value, accumulate: bool
) -> Value:
    """Write slices at places of some axes, whose indices broadcast; the others have ``None``."""
    axes = [axis for axis, each in enumerate(indices) if each is not None]
    rest = [axis for axis in range(rank_of(input)) if axis not in axes]
    extents = shape_of(input)
    # One index into the flattened axes, which come first.
    place: Value = None
    for axis in axes:
        counted = counted_from_front(b, indices[axis], extents[axis])
        place = counted if place is None else add(b, mul(b, place, extents[axis]), counted)
    inner = [extents[axis] for axis in rest]
    moved = permute_to(b, input, [*axes, *rest])
    rows = reshape_to(b, moved, [math.prod(extents[axis] for axis in axes), *inner])
    # Adjacent indices have their axes at the position of the first.
    before = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    after = before + rank_of(place)
    whole = [*inner[:before], *shape_of(place), *inner[before:]]
    update = broadcast_to(b, values, whole)
    order = [*range(before, after), *range(before), *range(after, len(whole))]
    update = reshape_to(b, permute_to(b, update, order), [math.prod(shape_of(place)), *inner])
    index = _along(b, reshape_to(b, place, [-1]), 0, update)
    written = (
        scatter_reduce(b, rows, 0, index, update, "sum")
        if accumulate
        else scatter(b, rows, 0, index, update)
    )
    back = reshape_to(b, written, shape_of(moved))
    return permute_to(b, back, sorted(range(len(extents)), key=[*axes, *rest].__getitem__))


def _put_where(b: NodeBuilder, input: Value, axis: int, mask: Value, values: Value) -> Value:
    """Write where a mask of some axes is true: one slice or number, or a slice at each place."""
    rest = rank_of(input) - axis - rank_of(mask)
    if rank_of(values) > rest and shape_of(values)[0] != 1:
        if axis:
            raise Refused(_("its mask is of inner axes, and selects as many values as it has"))
        return _put_in_order(b, input, mask, values)
    if rank_of(values) > rest:
        values = reshape_to(b, values, shape_of(values)[1:])
    shown = reshape_to(b, mask, [*shape_of(mask), *[1] * rest])
    update = broadcast_to(b, cast(b, values, dtype_of(input)), shape_of(input))
    return b.emit(op.where(shown, update, input))


def _put_in_order(b: NodeBuilder, input: Value, mask: Value, values: Value) -> Value:
    """Write slices one after the other where a mask of the first axes is true."""
    if is_empty(shape_of(values)):
        return input
    rest = shape_of(input)[rank_of(mask) :]
    rows = broadcast_to(b, cast(b, values, dtype_of(input)), [shape_of(values)[0], *rest])
    # The n-th place takes the n-th slice. A slice before the first is one to read if there is none.
    before = broadcast_to(b, scalar(0, dtype_of(input)), [1, *rest])
    count = b.emit(op.cumsum(cast(b, reshape_to(b, mask, [-1]), "int64"), 0))
    all_rows = b.emit(op.concat([before, rows], 0))
    update = b.emit(op.take(all_rows, count, 0, mode="clip"))
    shown = reshape_to(b, mask, [*shape_of(mask), *[1] * len(rest)])
    return b.emit(op.where(shown, reshape_to(b, update, shape_of(input)), input))


@exact(torch.masked_scatter, "masked_scatter", "masked_scatter_", aten.masked_scatter.default)
def masked_scatter(b: NodeBuilder, input: Value, mask: Value, source: Value) -> Value:
    shown = broadcast_to(b, cast(b, mask, "bool"), shape_of(input))
    return _put_in_order(b, input, shown, reshape_to(b, source, [-1]))


@exact(torch.index_put, "index_put", "index_put_", aten.index_put.default)
def index_put(
    b: NodeBuilder, input: Value, indices: Sequence[Value], values: Value, accumulate: bool = False
) -> Value:
    masks = [place for place, each in enumerate(indices) if each is not None]
    if len(masks) == 1 and dtype_of(indices[masks[0]]) == "bool" and not accumulate:
        return _put_where(b, input, masks[0], indices[masks[0]], values)
    *leading, last = indices
    if last is not None and all(each is None for each in leading) and rank_of(last) == 1:
        return _put_along(b, input, len(leading), last, values, accumulate)
    if any(each is not None and dtype_of(each) == "bool" for each in indices):
        raise Refused(_("it has a mask beside other indices"))
    update = cast(b, values, dtype_of(input))
    if len(indices) < rank_of(input) or None in indices:
        return _slices_put(b, input, indices, update, accumulate)
    places = [
        counted_from_front(b, index, extent)
        for index, extent in zip(indices, shape_of(input), strict=False)
    ]
    return b.emit(op.index_put(input, relax.Tuple(places), update, accumulate))


@rule(F.embedding_bag, nn.EmbeddingBag)
def embedding_bag(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    offsets: Value = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Value = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Value:
    if max_norm is not None:
        raise Refused(_("it has a max_norm, which changes the weight"))
    in_rows = rank_of(input) == 2
    count = shape_of(input)[0] if in_rows else shape_of(offsets)[0]
    unread = None if padding_idx is None else axis_of(padding_idx, shape_of(weight)[0])
    return b.emit_te(
        te_bags,
        weight,
        input,
        [each for each in (None if in_rows else offsets, per_sample_weights) if each is not None],
        mode,
        count - 1 if include_last_offset and not in_rows else count,
        unread,
        primfunc_name_hint="embedding_bag",
    )


@exact(aten.embedding_bag.padding_idx, name="embedding_bag")
def aten_embedding_bag(
    b: NodeBuilder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Value,
    include_last_offset: bool,
    padding_idx: int | None,
) -> Value:
    made = embedding_bag(
        b,
        indices,
        weight,
        offsets,
        mode=("sum", "mean", "max")[mode],
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )
    return made, *[Missing(_("it belongs to training"))] * 3

"""Reading a part of a tensor: ``x[...]``, ``select``, ``gather`` and the like."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import Missing, Refused, exact
from lowerscope.core.lowering.rules.arithmetic import add, mul
from lowerscope.core.lowering.rules.shape import permute_to, reshape_to
from lowerscope.core.lowering.values import (
    Value,
    axis_of,
    dtype_of,
    is_size,
    is_tensor,
    rank_of,
    same_sizes,
    scalar,
    shape_of,
    simplified,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@exact(operator.getitem, "__getitem__")
def getitem(b: NodeBuilder, input: Any, index: Any) -> Any:
    if isinstance(input, ir.Expr) and isinstance(input.ty, relax.TupleType):
        count = len(input.ty.fields)
        if isinstance(index, slice):
            return tuple(b.emit(input[each]) for each in range(count)[index])
        return b.emit(input[range(count)[index]])
    if not is_tensor(input):
        member = input[index]
        if isinstance(member, Missing):
            raise Refused(member.reason)
        return member
    return _index(b, input, index if isinstance(index, tuple) else (index,))


@exact(torch.select, "select", aten.select.int)
def select(b: NodeBuilder, input: Value, dim: int, index: int) -> Value:
    axis = axis_of(dim, rank_of(input))
    return take_one(b, input, axis, index)


@exact(aten.slice.Tensor, name="slice")
def aten_slice(
    b: NodeBuilder,
    input: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    axis = axis_of(dim, rank_of(input))
    return _slice(b, input, {axis: slice(start, end, step)})


@exact(torch.narrow, "narrow", aten.narrow.default)
def narrow(b: NodeBuilder, input: Value, dim: int, start: int, length: int) -> Value:
    axis = axis_of(dim, rank_of(input))
    extent = shape_of(input)[axis]
    first = extent + start if isinstance(start, int) and start < 0 else start
    return _slice(b, input, {axis: slice(first, simplified(first + length))})


@exact(torch.index_select, "index_select", aten.index_select.default)
def index_select(b: NodeBuilder, input: Value, dim: int, index: Value) -> Value:
    return b.emit(op.take(input, index, axis_of(dim, rank_of(input)), mode="clip"))


@exact(torch.take, "take", aten.take.default)
def take(b: NodeBuilder, input: Value, index: Value) -> Value:
    return b.emit(op.take(reshape_to(b, input, [-1]), index, 0, mode="wrap"))


@exact(torch.gather, "gather", aten.gather.default)
def gather(
    b: NodeBuilder, input: Value, dim: int, index: Value, *, sparse_grad: bool = False
) -> Value:
    axis = axis_of(dim, rank_of(input))
    for each, (extent, wanted) in enumerate(zip(shape_of(input), shape_of(index), strict=True)):
        if each != axis and extent != wanted:
            input = _slice(b, input, {each: slice(0, wanted)})
    return b.emit(op.gather_elements(input, index, axis))


@exact(torch.take_along_dim, "take_along_dim")
def take_along_dim(b: NodeBuilder, input: Value, indices: Value, dim: int | None = None) -> Value:
    if dim is None:
        return take_along_dim(b, reshape_to(b, input, [-1]), reshape_to(b, indices, [-1]), 0)
    axis = axis_of(dim, rank_of(input))
    if any(
        own != wanted
        for each, (own, wanted) in enumerate(zip(shape_of(input), shape_of(indices), strict=True))
        if each != axis
    ):
        raise Refused(_("its input and its indices broadcast"))
    return gather(b, input, dim, counted_from_front(b, indices, shape_of(input)[axis]))


@exact(aten.index.Tensor, name="getitem")
def aten_index(b: NodeBuilder, input: Value, indices: Sequence[Value]) -> Value:
    index = [slice(None) if each is None else each for each in indices]
    return _index(b, input, tuple(index))


@exact(torch.embedding, aten.embedding.default, name="embedding")
def aten_embedding(
    b: NodeBuilder,
    weight: Value,
    indices: Value,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    return embedding(b, indices, weight)


@exact(F.embedding, nn.Embedding)
def embedding(
    b: NodeBuilder,
    input: Value,
    weight: Value,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    if max_norm is not None:
        raise Refused(_("it has a max_norm, which changes the weight"))
    return b.emit(op.take(weight, input, 0, mode="clip"))


@exact(F.one_hot, aten.one_hot.default)
def one_hot(b: NodeBuilder, input: Value, num_classes: int = -1) -> Value:
    if num_classes < 1:
        raise Refused(_("without num_classes its shape depends on the data"))
    on, off = relax.prim_value(1), relax.prim_value(0)
    value = b.emit(op.one_hot(input, on, off, num_classes))
    return value if dtype_of(value) == "int64" else b.emit(op.astype(value, "int64"))


def take_one(b: NodeBuilder, input: Value, axis: int, index: int) -> Value:
    """Return the elements at one position of `axis`, which is dropped."""
    extents = shape_of(input)
    place = _place(index, extents[axis])
    cut = _slice(b, input, {axis: slice(place, place + 1)})
    return reshape_to(b, cut, [*extents[:axis], *extents[axis + 1 :]])


def counted_from_front(b: NodeBuilder, index: Value, extent: int) -> Value:
    """Return integer indices with negative ones, counted from the end, replaced."""
    return b.emit(op.floor_mod(index, scalar(extent, dtype_of(index))))


def _index(b: NodeBuilder, input: Value, index: tuple[Any, ...]) -> Value:
    """Index as torch does: numbers, slices and new axes first, then tensors."""
    entries = _with_whole_axes(index, rank_of(input))

    # Step 1. Cut: a number is a slice of one.
    slices: dict[int, slice] = {}
    axis = 0
    for each in entries:
        if isinstance(each, slice):
            slices[axis] = each
        elif isinstance(each, int) or is_size(each):
            place = _place(each, shape_of(input)[axis])
            slices[axis] = slice(place, place + 1)
        axis += each is not None
    value = _slice(b, input, slices)

    # Step 2. Drop the axes of the numbers, and add the new ones.
    extents: list[int] = []
    tensors: dict[int, Value] = {}
    axis = 0
    for each in entries:
        if each is None:
            extents.append(1)
            continue
        if is_tensor(each) or isinstance(each, list):
            tensors[len(extents)] = each if is_tensor(each) else b.constant(torch.tensor(each))
        if not isinstance(each, int) and not is_size(each):
            extents.append(shape_of(value)[axis])
        axis += 1
    value = reshape_to(b, value, extents)
    return _take_tensors(b, value, tensors) if tensors else value


def _with_whole_axes(index: tuple[Any, ...], rank: int) -> list[Any]:
    """Replace ``...``, and missing axes at the end, by whole axes."""
    used = sum(each is not None and each is not Ellipsis for each in index)
    whole = [slice(None)] * (rank - used)
    place = next((i for i, each in enumerate(index) if each is Ellipsis), len(index))
    entries = [*index[:place], *whole, *index[place + 1 :]]
    for each in entries:
        if isinstance(each, bool) or (is_tensor(each) and dtype_of(each) == "bool"):
            raise Refused(_("it is indexed by a mask, so its shape depends on the data"))
    return entries


def _slice(b: NodeBuilder, input: Value, slices: dict[int, slice]) -> Value:
    """Slice each axis in `slices`; bounds that are negative or too large are as in torch."""
    axes, begin, end, strides = [], [], [], []
    for axis, bounds in slices.items():
        extent = shape_of(input)[axis]
        start, stop, step = _bounds(b, bounds, extent)
        if not same_sizes((start, stop, step), (0, extent, 1)):
            axes.append(axis)
            begin.append(start)
            end.append(stop)
            strides.append(step)
    if not axes:
        return input
    sizes = (*begin, *end, *(shape_of(input)[axis] for axis in axes))
    inside = {} if all(map(_is_number, sizes)) else {"assume_inbound": True}
    return b.emit(op.strided_slice(input, axes, begin, end, strides, **inside))


def _bounds(b: NodeBuilder, bounds: slice, extent: Any) -> tuple[Any, Any, int]:
    """Return the first and the last position of a slice, clamped, and its step."""
    given = (bounds.start, bounds.stop, bounds.step)
    if _is_number(extent) and not any(map(is_size, given)):
        start, stop, step = bounds.indices(extent)
        return start, max(start, stop), step
    if not isinstance(bounds.step, int | None) or (bounds.step or 1) < 1:
        raise Refused(_("its step is not a number above 0"))
    start = _inside(b, 0 if bounds.start is None else bounds.start, extent)
    stop = _inside(b, extent if bounds.stop is None else bounds.stop, extent)
    ahead = b.dimensions.compute(max, (start, stop))
    return start, ahead, bounds.step or 1


def _inside(b: NodeBuilder, place: Any, extent: Any) -> Any:
    """Return `place` counted from the front, clamped to 0 and `extent`, as torch does."""
    if same_sizes([place], [extent]):
        return extent
    place = b.dimensions.compute(max, (_place(place, extent), 0))
    return b.dimensions.compute(min, (place, extent))


def _place(index: Any, extent: Any) -> Any:
    """Return `index` counted from the front."""
    negative = isinstance(index, int) and index < 0
    return simplified(extent + index) if negative else index


def _is_number(size: Any) -> bool:
    return isinstance(size, int)


def _take_tensors(b: NodeBuilder, value: Value, tensors: dict[int, Value]) -> Value:
    """Index the axes in `tensors` by integer tensors, which broadcast together."""
    axes = list(tensors)
    if len(axes) == 1:
        return b.emit(op.take(value, tensors[axes[0]], axes[0], mode="wrap"))
    rest = [axis for axis in range(rank_of(value)) if axis not in axes]
    moved = permute_to(b, value, [*axes, *rest])
    # One index into the flattened indexed axes: R.index_tensor reads out of bounds.
    extents = [shape_of(value)[axis] for axis in axes]
    place: Value = None
    for index, extent in zip(tensors.values(), extents, strict=True):
        counted = counted_from_front(b, index, extent)
        place = counted if place is None else add(b, mul(b, place, extent), counted)
    flat = reshape_to(b, moved, [math.prod(extents), *shape_of(moved)[len(axes) :]])
    taken = b.emit(op.take(flat, place, 0, mode="clip"))
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return taken
    # Adjacent indices leave their axes at the position of the first.
    count = rank_of(taken) - len(rest)
    before = [count + index for index in range(axes[0])]
    after = [count + index for index in range(axes[0], len(rest))]
    return permute_to(b, taken, [*before, *range(count), *after])

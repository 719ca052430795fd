"""Operators that change a tensor's shape but not its elements."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm import relax, te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.rule_table import RULES, Refused, exact
from lowerscope.core.lowering.values import (
    BYTES,
    EncodedTensor,
    Value,
    axis_of,
    dtype_of,
    is_empty,
    is_tensor,
    rank_of,
    same_sizes,
    shape_of,
    simplified,
    size_of,
    torch_dtype,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


_RESULTS = ("values", "indices")
"""Names of the two members of the results of ``max``, ``topk``, ``sort`` and ``median``."""


def flat(sizes: Sequence[Any]) -> list[Any]:
    """Return sizes given one by one or as one sequence, as a list."""
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return [size_of(size) for size in sizes[0]]
    return [size_of(size) for size in sizes]


def reshape_to(b: NodeBuilder, value: Value, sizes: Sequence[Any]) -> Value:
    """Return `value` with the extents `sizes`, one of which may be -1."""
    target = list(sizes)
    if -1 in target:
        known = [size for size in target if size != -1]
        target[target.index(-1)] = _quotient(shape_of(value), known)
    if same_sizes(target, shape_of(value)):
        return value
    return b.emit(op.reshape(value, target))


def _quotient(extents: Sequence[Any], known: Sequence[Any]) -> Any:
    """Return the product of `extents` divided by that of `known`; 0 for a division by 0."""
    left, divisors = list(extents), []
    for size in known:
        # Common factors cancel, and need not be proved to divide.
        places = (place for place, each in enumerate(left) if same_sizes([each], [size]))
        place = next(places, None)
        if place is None:
            divisors.append(size)
        else:
            del left[place]
    divisor = math.prod(divisors)
    if isinstance(divisor, int) and divisor == 0:
        return 0
    return simplified(math.prod(left) // divisor)


@exact("view", "reshape", "unsafe_view", aten.view.default, aten.reshape.default)
def reshape(
    b: NodeBuilder, input: Value, *sizes: Any, shape: Any = None, size: Any = None
) -> Value:
    shape = size if shape is None else shape
    if sizes and isinstance(sizes[0], torch.dtype):
        return as_bits(b, input, sizes[0])
    return reshape_to(b, input, flat(sizes) if shape is None else flat([shape]))


@exact(aten.view.dtype, name="reshape")
def as_bits(b: NodeBuilder, input: Value, dtype: torch.dtype) -> Value:
    """Return the bits of `input` read as another dtype of the same width."""
    name = str(dtype).removeprefix("torch.")
    if isinstance(input, EncodedTensor):
        if input.dtype in BYTES and name == "uint8":
            return input.value
        raise Refused(_("it reads the bits as another dtype"))
    own = dtype_of(input)
    if own == "uint8" and name in BYTES:
        return EncodedTensor(input, name)
    if own == name:
        return input
    if not {own, name} <= _OF_BITS or torch_dtype(own).itemsize != dtype.itemsize:
        raise Refused(_("it reads the bits as another dtype"))

    def te_bits(A: te.Tensor) -> te.Tensor:
        return te.compute(A.shape, lambda *i: tirx.reinterpret(name, A(*i)), name="bits")

    return b.emit_te(te_bits, input, primfunc_name_hint="bits")


_OF_BITS = {
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
}


@exact(aten._unsafe_view.default, torch.reshape, name="reshape")
def reshape_function(b: NodeBuilder, input: Value, shape: Sequence[int]) -> Value:
    return reshape_to(b, input, flat([shape]))


@exact("view_as", "reshape_as")
def reshape_as(b: NodeBuilder, input: Value, other: Value) -> Value:
    return reshape_to(b, input, shape_of(other))


@exact(torch.flatten, "flatten", aten.flatten.using_ints, nn.Flatten)
def flatten(b: NodeBuilder, input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    shape = shape_of(input) or (1,)
    start, end = axis_of(start_dim, len(shape)), axis_of(end_dim, len(shape))
    merged = math.prod(shape[start : end + 1])
    return reshape_to(b, input, [*shape[:start], merged, *shape[end + 1 :]])


@exact("ravel", torch.ravel)
def ravel(b: NodeBuilder, input: Value) -> Value:
    return flatten(b, input)


@exact(torch.unflatten, "unflatten", aten.unflatten.int)
def unflatten(b: NodeBuilder, input: Value, dim: int, sizes: Sequence[int]) -> Value:
    shape = shape_of(input)
    axis = axis_of(dim, len(shape))
    inner = list(sizes)
    if -1 in inner:
        known = [size for size in inner if size != -1]
        inner[inner.index(-1)] = _quotient([shape[axis]], known)
    return reshape_to(b, input, [*shape[:axis], *inner, *shape[axis + 1 :]])


@exact(nn.Unflatten)
def unflatten_module(b: NodeBuilder, module: nn.Unflatten, input: Value) -> Value:
    if not isinstance(module.dim, int):
        raise Refused(_("it names its axes"))
    return unflatten(b, input, module.dim, list(module.unflattened_size))


@exact(torch.squeeze, "squeeze", aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims)
def squeeze(b: NodeBuilder, input: Value, dim: int | Sequence[int] | None = None) -> Value:
    shape = shape_of(input)
    wanted = range(len(shape)) if dim is None else _axes(dim, len(shape))
    axes = [axis for axis in wanted if shape and shape[axis] == 1]
    return b.emit(op.squeeze(input, axes)) if axes else input


@exact(torch.unsqueeze, "unsqueeze", aten.unsqueeze.default)
def unsqueeze(b: NodeBuilder, input: Value, dim: int) -> Value:
    return b.emit(op.expand_dims(input, axis_of(dim, rank_of(input) + 1)))


@exact(
    *(torch.transpose, torch.swapaxes, torch.swapdims, "transpose", "swapaxes"),
    *("swapdims", aten.transpose.int),
)
def transpose(b: NodeBuilder, input: Value, dim0: int, dim1: int) -> Value:
    order = list(range(rank_of(input)))
    first, second = axis_of(dim0, len(order)), axis_of(dim1, len(order))
    order[first], order[second] = order[second], order[first]
    return permute_to(b, input, order)


@exact(torch.t, "t", aten.t.default)
def t(b: NodeBuilder, input: Value) -> Value:
    return transpose(b, input, 0, 1) if rank_of(input) == 2 else input


@exact(torch.permute, "permute", aten.permute.default)
def permute(b: NodeBuilder, input: Value, *dims: Any) -> Value:
    return permute_to(b, input, [axis_of(axis, rank_of(input)) for axis in flat(dims)])


@exact(torch.movedim, torch.moveaxis, "movedim", "moveaxis")
def movedim(b: NodeBuilder, input: Value, source: Any, destination: Any) -> Value:
    rank = rank_of(input)
    sources, targets = _axes(source, rank), _axes(destination, rank)
    order = [axis for axis in range(rank) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permute_to(b, input, order)


def permute_to(b: NodeBuilder, value: Value, order: Sequence[int]) -> Value:
    """Return `value` with its axes in `order`."""
    if list(order) == list(range(rank_of(value))):
        return value
    return b.emit(op.permute_dims(value, list(order)))


@exact("expand", torch.broadcast_to, "broadcast_to", aten.expand.default)
def expand(b: NodeBuilder, input: Value, *sizes: Any, implicit: bool = False) -> Value:
    target = flat(sizes)
    shape = (1,) * (len(target) - rank_of(input)) + shape_of(input)
    extents = [own if size == -1 else size for own, size in zip(shape, target, strict=True)]
    return broadcast_to(b, input, extents)


@exact("expand_as", aten.expand_as.default)
def expand_as(b: NodeBuilder, input: Value, other: Value) -> Value:
    return broadcast_to(b, input, shape_of(other))


def broadcast_to(b: NodeBuilder, value: Value, sizes: Sequence[Any]) -> Value:
    """Return `value` repeated along the axes where its extent is 1."""
    if same_sizes(sizes, shape_of(value)):
        return value
    if is_empty(sizes):
        return b.emit(op.zeros(list(sizes), dtype_of(value)))
    own = shape_of(value)
    wanted = list(sizes)[len(sizes) - len(own) :]
    known = [1 if same_sizes([each], [1]) else size for size, each in zip(own, wanted, strict=True)]
    if not same_sizes(known, own):
        # An extent of data, which has to be 1.
        value = b.match_cast(value, relax.TensorType(known, dtype_of(value)))
    return b.emit(op.broadcast_to(value, list(sizes)))


@exact("repeat", aten.repeat.default)
def repeat(b: NodeBuilder, input: Value, *repeats: Any) -> Value:
    return b.emit(op.tile(input, flat(repeats)))


@exact(torch.tile, "tile", aten.tile.default)
def tile(b: NodeBuilder, input: Value, *dims: Any) -> Value:
    return b.emit(op.tile(input, flat(dims)))


@exact(torch.repeat_interleave, "repeat_interleave", aten.repeat_interleave.self_int)
def repeat_interleave(
    b: NodeBuilder, input: Value, repeats: Any, dim: int | None = None, output_size: Any = None
) -> Value:
    if is_tensor(repeats):
        raise Refused(_("its repeats are a tensor"))
    value = flatten(b, input) if dim is None else input
    return b.emit(op.repeat(value, repeats, axis_of(dim or 0, rank_of(value))))


@exact(torch.fliplr, "fliplr")
def fliplr(b: NodeBuilder, input: Value) -> Value:
    return flip(b, input, 1)


@exact(torch.flipud, "flipud")
def flipud(b: NodeBuilder, input: Value) -> Value:
    return flip(b, input, 0)


@exact(torch.rot90, "rot90", aten.rot90.default)
def rot90(b: NodeBuilder, input: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    first, second = dims
    match k % 4:
        case 1:
            return transpose(b, flip(b, input, second), first, second)
        case 2:
            return flip(b, input, first, second)
        case 3:
            return flip(b, transpose(b, input, first, second), second)
        case _:
            return input


@exact(torch.flip, "flip", aten.flip.default)
def flip(b: NodeBuilder, input: Value, *dims: Any) -> Value:
    value = input
    for axis in flat(dims):
        value = b.emit(op.flip(value, axis_of(axis, rank_of(input))))
    return value


@exact(torch.roll, "roll", aten.roll.default)
def roll(b: NodeBuilder, input: Value, shifts: Any, dims: Any = ()) -> Value:
    steps, axes = _sequence(shifts), _sequence(dims if dims is not None else ())
    if not axes:
        rolled = roll(b, flatten(b, input), steps, [0])
        return reshape_to(b, rolled, shape_of(input))
    value = input
    for step, dim in zip(steps, axes, strict=True):
        axis = axis_of(dim, rank_of(input))
        size = shape_of(input)[axis]
        if step % size:
            parts = b.emit(op.split(value, [size - step % size], axis))
            value = b.emit(op.concat([b.emit(parts[1]), b.emit(parts[0])], axis))
    return value


@exact(torch.tril, "tril", aten.tril.default)
def tril(b: NodeBuilder, input: Value, diagonal: int = 0) -> Value:
    return b.emit(op.tril(input, diagonal))


@exact(torch.triu, "triu", aten.triu.default)
def triu(b: NodeBuilder, input: Value, diagonal: int = 0) -> Value:
    return b.emit(op.triu(input, diagonal))


@exact("size", aten.sym_size.int)
def size(b: NodeBuilder, input: Value, dim: int | None = None) -> Any:
    return shape_of(input) if dim is None else shape_of(input)[dim]


@exact("dim", "ndimension")
def dim(b: NodeBuilder, input: Value) -> int:
    return rank_of(input)


@exact("numel", "nelement", torch.numel, aten.sym_numel.default)
def numel(b: NodeBuilder, input: Value) -> int:
    return math.prod(shape_of(input))


@exact(getattr, name="attribute")
def attribute(b: NodeBuilder, input: Any, name: str) -> Any:
    if not is_tensor(input):
        if name in _RESULTS:
            return RULES[operator.getitem].lower(b, input, _RESULTS.index(name))
        return getattr(input, name)
    match name:
        case "shape":
            return shape_of(input)
        case "ndim":
            return rank_of(input)
        case "dtype":
            return getattr(torch, dtype_of(input))
        case "device":
            return torch.device("cpu")
        case "T" | "mT":
            if name == "mT" or rank_of(input) == 2:
                return transpose(b, input, -2, -1)
            return permute_to(b, input, list(range(rank_of(input)))[::-1])
        case "data" | "real":
            return input
        case _:
            raise Refused(_("the tensor attribute {name} is not supported", name=name))


@exact(
    *("contiguous", "clone", "detach", "detach_", "cpu", "requires_grad_", torch.clone),
    *(torch.detach, torch.positive, "positive", torch.ops.prims.copy_strided.default),
    *(torch.Tensor.contiguous, aten.clone.default, aten.detach.default, aten.alias.default),
    *(aten.contiguous.default, aten.lift_fresh_copy.default, aten.lift_fresh.default, nn.Identity),
    name="identity",
)
def identity(b: NodeBuilder, input: Value, *args: Any) -> Value:
    return input


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _axes(dim: Any, rank: int) -> list[int]:
    return [axis_of(each, rank) for each in _sequence(dim)]


@exact(F.pixel_shuffle, torch.pixel_shuffle, aten.pixel_shuffle.default, nn.PixelShuffle)
def pixel_shuffle(b: NodeBuilder, input: Value, upscale_factor: int) -> Value:
    # Relax has this operator, but its legalisation calls a function missing from topi.
    r = upscale_factor
    *batch, channels, height, width = shape_of(input)
    n = len(batch)
    split = reshape_to(b, input, [*batch, channels // (r * r), r, r, height, width])
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    interleaved = permute_to(b, split, order)
    return reshape_to(b, interleaved, [*batch, channels // (r * r), height * r, width * r])


@exact(F.pixel_unshuffle, torch.pixel_unshuffle, aten.pixel_unshuffle.default, nn.PixelUnshuffle)
def pixel_unshuffle(b: NodeBuilder, input: Value, downscale_factor: int) -> Value:
    r = downscale_factor
    *batch, channels, height, width = shape_of(input)
    n = len(batch)
    split = reshape_to(b, input, [*batch, channels, height // r, r, width // r, r])
    gathered = permute_to(b, split, [*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return reshape_to(b, gathered, [*batch, channels * r * r, height // r, width // r])


@exact(F.channel_shuffle, torch.channel_shuffle, nn.ChannelShuffle)
def channel_shuffle(b: NodeBuilder, input: Value, groups: int) -> Value:
    batch, channels, *spatial = shape_of(input)
    split = reshape_to(b, input, [batch, groups, channels // groups, *spatial])
    swapped = transpose(b, split, 1, 2)
    return reshape_to(b, swapped, shape_of(input))

"""Creation of tensors from numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tvm import te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast
from lowerscope.core.lowering.rule_table import Refused, exact
from lowerscope.core.lowering.rules.elementwise import truth
from lowerscope.core.lowering.rules.shape import broadcast_to, flat
from lowerscope.core.lowering.values import (
    BYTES,
    EncodedTensor,
    Value,
    dtype_name,
    dtype_of,
    is_float,
    is_size,
    is_tensor,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@exact(torch.zeros, torch.empty, aten.zeros.default, aten.empty.memory_format)
def zeros(b: NodeBuilder, *size: Any, dtype: Any = None) -> Value:
    return _filled(b, flat(size), 0, _named(dtype or torch.get_default_dtype()))


@exact(torch.ones, aten.ones.default)
def ones(b: NodeBuilder, *size: Any, dtype: Any = None) -> Value:
    return _filled(b, flat(size), 1, _named(dtype or torch.get_default_dtype()))


@exact(torch.full, aten.full.default)
def full(b: NodeBuilder, size: Sequence[int], fill_value: Any, *, dtype: Any = None) -> Value:
    inferred = torch.full((), fill_value).dtype if not is_tensor(fill_value) else None
    name = _named(dtype or inferred) if dtype or inferred else dtype_of(fill_value)
    return _filled(b, flat([size]), fill_value, name)


@exact(torch.zeros_like, torch.empty_like, aten.zeros_like.default, aten.empty_like.default)
def zeros_like(b: NodeBuilder, input: Value, *, dtype: Any = None) -> Value:
    return _filled(b, shape_of(input), 0, _named(dtype) if dtype else dtype_of(input))


@exact(torch.ones_like, aten.ones_like.default)
def ones_like(b: NodeBuilder, input: Value, *, dtype: Any = None) -> Value:
    return _filled(b, shape_of(input), 1, _named(dtype) if dtype else dtype_of(input))


@exact(torch.tril_indices, aten.tril_indices.default)
def tril_indices(
    b: NodeBuilder, row: int, col: int, offset: int = 0, *, dtype: Any = torch.int64
) -> Value:
    return b.constant(torch.tril_indices(row, col, offset, dtype=dtype or torch.int64))


@exact(torch.triu_indices, aten.triu_indices.default)
def triu_indices(
    b: NodeBuilder, row: int, col: int, offset: int = 0, *, dtype: Any = torch.int64
) -> Value:
    return b.constant(torch.triu_indices(row, col, offset, dtype=dtype or torch.int64))


@exact(torch.full_like, aten.full_like.default)
def full_like(b: NodeBuilder, input: Value, fill_value: Any, *, dtype: Any = None) -> Value:
    return _filled(b, shape_of(input), fill_value, _named(dtype) if dtype else dtype_of(input))


@exact("new_zeros", "new_empty", aten.new_zeros.default, aten.new_empty.default)
def new_zeros(b: NodeBuilder, input: Value, *size: Any, dtype: Any = None) -> Value:
    return _filled(b, flat(size), 0, _named(dtype) if dtype else dtype_of(input))


@exact(aten.new_empty_strided.default)
def new_empty_strided(
    b: NodeBuilder, input: Value, size: Any, stride: Any, *, dtype: Any = None
) -> Value:
    return new_zeros(b, input, size, dtype=dtype)


@exact("new_ones", aten.new_ones.default)
def new_ones(b: NodeBuilder, input: Value, *size: Any, dtype: Any = None) -> Value:
    return _filled(b, flat(size), 1, _named(dtype) if dtype else dtype_of(input))


@exact("new_full", aten.new_full.default)
def new_full(
    b: NodeBuilder, input: Value, size: Any, fill_value: Any, *, dtype: Any = None
) -> Value:
    return _filled(b, flat([size]), fill_value, _named(dtype) if dtype else dtype_of(input))


@exact(torch.arange, aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(
    b: NodeBuilder,
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
) -> Value:
    named = {"start": start, "end": end}
    first, last, stride = _bounds(bounds, named, step)
    if any(map(is_size, (first, last, stride))):
        if any(isinstance(each, float) for each in (first, last, stride)):
            raise Refused(
                _("it has a fractional start, end or step, and another that is a dynamic size")
            )
        return cast(
            b, b.emit(op.arange(first, last, stride, "int64")), _named(dtype or torch.int64)
        )
    numbers = torch.arange(first, last, stride, dtype=dtype)
    if numbers.dtype.is_floating_point or stride < 0:
        # The k-th number is start + k·step in torch; TVM accumulates, and may stop one off. It
        # miscounts the numbers of a negative step.
        return b.constant(numbers)
    return b.emit(op.arange(first, last, stride, dtype_name(numbers.dtype)))


def _of_numbers(function: Callable[..., torch.Tensor]) -> Callable[..., Value]:
    def constant(b: NodeBuilder, *args: Any, **kwargs: Any) -> Value:
        if any(is_tensor(each) for each in (*args, *kwargs.values())):
            raise Refused(_("an argument is a tensor"))
        return b.constant(function(*args, **kwargs))

    return constant


for _function in (
    *(torch.tensor, torch.linspace, torch.eye, torch.scalar_tensor, torch.hann_window),
    *(torch.hamming_window, aten.linspace.default, aten.eye.default),
    *(aten.eye.m, aten.scalar_tensor.default),
):
    exact(_function, name="constant")(_of_numbers(_function))


def _bounds(positional: Sequence[Any], named: dict[str, Any], step: Any) -> tuple[Any, Any, Any]:
    values = list(positional)
    if len(values) >= 2:
        return values[0], values[1], values[2] if len(values) > 2 else step
    if len(values) == 1 and named["end"] is None:
        return named["start"] or 0, values[0], step
    start = values[0] if values else named["start"]
    return start or 0, named["end"], step


def _named(dtype: Any) -> str:
    return dtype_name(dtype)


def _filled(b: NodeBuilder, shape: Sequence[int], value: Any, dtype: str) -> Value:
    if is_tensor(value):
        return broadcast_to(b, cast(b, value, dtype), shape)
    if isinstance(value, float) and not math.isfinite(value):
        # The legalised `full` fails to write such a number.
        return broadcast_to(b, scalar(value, dtype), shape)
    return b.emit(op.full(list(shape), scalar(value, dtype), dtype))


def convert(b: NodeBuilder, value: Value, dtype: torch.dtype) -> Value:
    """Return `value` converted as in torch: to bool, nonzero is true."""
    if isinstance(value, EncodedTensor) and value.dtype in BYTES:
        if str(dtype).removeprefix("torch.") == value.dtype:
            return value
        value = _decoded(b, value)
    return truth(b, value) if dtype is torch.bool else in_dtype(b, value, dtype_name(dtype))


def in_dtype(b: NodeBuilder, value: Value, dtype: str) -> Value:
    """Return `value` in a dtype, rounded to bfloat16 by arithmetic.

    TVM computes in float32 in place of bfloat16, and leaves the casts in fused functions out.
    """
    if dtype == "bfloat16" and is_tensor(value) and dtype_of(value) in ("float32", "float64"):
        value = b.emit_te(te_rounded, cast(b, value, "float32"), primfunc_name_hint="round")
    return cast(b, value, dtype)


def _decoded(b: NodeBuilder, value: EncodedTensor) -> Value:
    """Return the numbers of 8 bits in float32, which has all of them."""
    all_of_them = torch.arange(256, dtype=torch.uint8).view(getattr(torch, value.dtype))
    places = b.emit(op.astype(value.value, "int32"))
    return b.emit(op.take(b.constant(all_of_them.float()), places, 0))


def te_rounded(A: te.Tensor) -> te.Tensor:
    """Return the nearest bfloat16 of each element, of two the even one, as float32."""

    def nearest(*i: Any) -> Any:
        bits = tirx.reinterpret("uint32", A(*i))
        odd = (bits >> tirx.const(16, "uint32")) & tirx.const(1, "uint32")
        up = bits + odd + tirx.const(0x7FFF, "uint32")
        number = tirx.reinterpret("float32", up & tirx.const(0xFFFF0000, "uint32"))
        is_nan = (bits & tirx.const(0x7FFFFFFF, "uint32")) > tirx.const(0x7F800000, "uint32")
        # The upper half of another NaN may be that of an infinity.
        quiet = tirx.reinterpret("float32", bits | tirx.const(0x00400000, "uint32"))
        return tirx.Select(is_nan, quiet, number)

    return te.compute(A.shape, nearest, name="round")


@exact(
    "to",
    aten._to_copy.default,
    aten.to.device,
    aten.to.dtype,
    aten.to.dtype_layout,
    aten.to.other,
    name="to",
)
def to(
    b: NodeBuilder,
    input: Value,
    *args: Any,
    dtype: Any = None,
    other: Value = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Value:
    for argument in (*args, other, dtype):
        if isinstance(argument, torch.dtype):
            return convert(b, input, argument)
        if is_tensor(argument):
            return in_dtype(b, input, dtype_of(argument))
    return input


@exact("type")
def type_(b: NodeBuilder, input: Value, dtype: Any = None, non_blocking: bool = False) -> Value:
    if not isinstance(dtype, torch.dtype):
        raise Refused(_("its argument is not a torch.dtype"))
    return convert(b, input, dtype)


@exact("type_as", aten.type_as.default)
def type_as(b: NodeBuilder, input: Value, other: Value) -> Value:
    return in_dtype(b, input, dtype_of(other))


@exact(torch.is_floating_point, "is_floating_point")
def is_floating_point(b: NodeBuilder, input: Value) -> bool:
    return is_float(dtype_of(input))


def _enter(name: str, dtype: torch.dtype) -> None:
    def lower(b: NodeBuilder, input: Value) -> Value:
        return convert(b, input, dtype)

    exact(name, name=name)(lower)


_METHODS = {
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "byte": torch.uint8,
    "char": torch.int8,
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "int": torch.int32,
    "long": torch.int64,
    "short": torch.int16,
}

for _name, _dtype in _METHODS.items():
    _enter(_name, _dtype)

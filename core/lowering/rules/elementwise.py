"""Unary elementwise functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, differs, is_nan, to_float
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, div, maximum, minimum, mul, sub
from lowerscope.core.lowering.values import (
    Value,
    dtype_of,
    is_float,
    is_tensor,
    rank_of,
    scalar,
    torch_dtype,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten

_ON_FLOATS: dict[str, Callable[..., Value]] = {
    "acos": op.acos,
    "acosh": op.acosh,
    "asin": op.asin,
    "asinh": op.asinh,
    "atan": op.atan,
    "atanh": op.atanh,
    "cos": op.cos,
    "cosh": op.cosh,
    "erf": op.erf,
    "exp": op.exp,
    "log": op.log,
    "rsqrt": op.rsqrt,
    "sigmoid": op.sigmoid,
    "sin": op.sin,
    "sinh": op.sinh,
    "sqrt": op.sqrt,
    "tan": op.tan,
    "tanh": op.tanh,
}
"""Functions that torch computes in floating point, even for integers."""


def _is_unsigned(value: Value) -> bool:
    return dtype_of(value).startswith("uint")


def _negative(value: Value) -> Value:
    # TVM multiplies by -1, which no unsigned integer is.
    if _is_unsigned(value):
        return op.subtract(scalar(0, dtype_of(value)), value)
    return op.negative(value)


def _sign(value: Value) -> Value:
    return op.minimum(value, scalar(1, dtype_of(value))) if _is_unsigned(value) else op.sign(value)


_ON_ALL: dict[str, Callable[..., Value]] = {
    "abs": op.abs,
    "neg": _negative,
    "sign": _sign,
    "square": op.square,
}
"""Functions that keep the dtype, even for integers."""

_ROUNDING: dict[str, Callable[..., Value]] = {"ceil": op.ceil, "floor": op.floor, "trunc": op.trunc}
"""Functions that leave integers unchanged."""

_TESTS: dict[str, Callable[..., Value]] = {
    "isfinite": op.isfinite,
    "isinf": op.isinf,
    "isnan": op.isnan,
}

_OTHER_NAMES: dict[str, tuple[Any, ...]] = {
    "abs": (operator.abs, torch.absolute, "__abs__", "absolute"),
    "neg": (operator.neg, torch.negative, "__neg__", "negative"),
    "sign": (torch.sgn, "sgn", aten.sgn.default),
    "sigmoid": (torch.nn.functional.sigmoid, torch.special.expit, torch.nn.Sigmoid),
    "tanh": (torch.nn.functional.tanh, torch.nn.Tanh),
    "trunc": (torch.fix, "fix"),
}


def _enter_all() -> None:
    for name, relax_operator in (_ON_FLOATS | _TESTS).items():
        _enter(name, _on_floats(relax_operator))
    for name, relax_operator in _ON_ALL.items():
        _enter(name, _on_all(relax_operator))
    for name, relax_operator in _ROUNDING.items():
        _enter(name, _rounding(relax_operator))


def _enter(name: str, lower: Callable[..., Value]) -> None:
    keys: list[Any] = [getattr(torch, name), name]
    if hasattr(torch, f"{name}_"):
        keys += [getattr(torch, f"{name}_"), f"{name}_"]
    packet = getattr(aten, name, None)
    if packet is not None:
        keys.append(packet.default)
    for other in _OTHER_NAMES.get(name, ()):
        if other not in keys:
            keys.append(other)
    rule(*keys, name=name)(lower)


def _on_floats(relax_operator: Callable[..., Value]) -> Callable[..., Value]:
    def lower(b: NodeBuilder, input: Value) -> Value:
        return b.emit(relax_operator(to_float(b, input)))

    return lower


def _on_all(relax_operator: Callable[..., Value]) -> Callable[..., Value]:
    def lower(b: NodeBuilder, input: Value) -> Value:
        if dtype_of(input) == "bool":
            raise Refused(_("its operand is bool"))
        return b.emit(relax_operator(input))

    return lower


def _rounding(relax_operator: Callable[..., Value]) -> Callable[..., Value]:
    def lower(b: NodeBuilder, input: Value) -> Value:
        return b.emit(relax_operator(input)) if is_float(dtype_of(input)) else input

    return lower


_enter_all()


@rule(torch.round, "round", "round_", aten.round.default, aten.round.decimals)
def round(b: NodeBuilder, input: Value, *, decimals: int = 0) -> Value:
    if not is_float(dtype_of(input)):
        return input
    if decimals:
        raise Refused(_("it rounds to decimals"))
    return b.emit(op.round(input))


@rule(torch.log2, "log2", aten.log2.default)
def log2(b: NodeBuilder, input: Value) -> Value:
    return div(b, b.emit(op.log(to_float(b, input))), math.log(2))


@rule(torch.log10, "log10", aten.log10.default)
def log10(b: NodeBuilder, input: Value) -> Value:
    return div(b, b.emit(op.log(to_float(b, input))), math.log(10))


@rule(torch.exp2, "exp2", aten.exp2.default)
def exp2(b: NodeBuilder, input: Value) -> Value:
    value = to_float(b, input)
    return b.emit(op.exp(b.emit(op.multiply(value, scalar(math.log(2), dtype_of(value))))))


@rule(torch.erfc, "erfc", aten.erfc.default)
def erfc(b: NodeBuilder, input: Value) -> Value:
    return sub(b, 1, b.emit(op.erf(to_float(b, input))))


@rule(torch.reciprocal, "reciprocal", "reciprocal_", aten.reciprocal.default)
def reciprocal(b: NodeBuilder, input: Value) -> Value:
    return div(b, 1, input)


@rule(torch.logit, torch.special.logit, "logit", aten.logit.default)
def logit(b: NodeBuilder, input: Value, eps: float | None = None) -> Value:
    value = to_float(b, input)
    if eps is not None:
        value = clamp(b, value, eps, 1 - eps)
    return b.emit(op.log(div(b, value, sub(b, 1, value))))


@rule(*(torch.clamp, torch.clip, "clamp", "clamp_", "clip", aten.clamp.default, aten.clamp.Tensor))
def clamp(b: NodeBuilder, input: Value, min: Value = None, max: Value = None) -> Value:
    value = input
    if min is not None:
        value = maximum(b, value, min)
    if max is not None:
        value = minimum(b, value, max)
    return value


@rule(torch.clamp_min, "clamp_min", "clamp_min_", aten.clamp_min.default)
def clamp_min(b: NodeBuilder, input: Value, min: Value) -> Value:
    return clamp(b, input, min=min)


@rule(torch.clamp_max, "clamp_max", "clamp_max_", aten.clamp_max.default)
def clamp_max(b: NodeBuilder, input: Value, max: Value) -> Value:
    return clamp(b, input, max=max)


@rule(torch.frac, "frac", aten.frac.default)
def frac(b: NodeBuilder, input: Value) -> Value:
    return sub(b, input, b.emit(op.trunc(input)))


@rule(torch.deg2rad, "deg2rad", aten.deg2rad.default)
def deg2rad(b: NodeBuilder, input: Value) -> Value:
    return mul(b, to_float(b, input), math.pi / 180)


@rule(torch.rad2deg, "rad2deg", aten.rad2deg.default)
def rad2deg(b: NodeBuilder, input: Value) -> Value:
    return mul(b, to_float(b, input), 180 / math.pi)


@rule(torch.isposinf, "isposinf", aten.isposinf.default)
def isposinf(b: NodeBuilder, input: Value) -> Value:
    value = to_float(b, input)
    return b.emit(op.equal(value, scalar(math.inf, dtype_of(value))))


@rule(torch.isneginf, "isneginf", aten.isneginf.default)
def isneginf(b: NodeBuilder, input: Value) -> Value:
    value = to_float(b, input)
    return b.emit(op.equal(value, scalar(-math.inf, dtype_of(value))))


@exact(torch.nan_to_num, "nan_to_num", "nan_to_num_", aten.nan_to_num.default)
def nan_to_num(
    b: NodeBuilder,
    input: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    dtype = dtype_of(input)
    if not is_float(dtype):
        return input
    limits = torch.finfo(torch_dtype(dtype))
    highest = limits.max if posinf is None else posinf
    lowest = limits.min if neginf is None else neginf
    value = b.emit(op.where(is_nan(b, input), scalar(nan or 0.0, dtype), input))
    for limit, instead in ((math.inf, highest), (-math.inf, lowest)):
        infinite = b.emit(op.equal(value, scalar(limit, dtype)))
        value = b.emit(op.where(infinite, scalar(instead, dtype), value))
    return value


@rule(torch.logical_not, "logical_not", aten.logical_not.default)
def logical_not(b: NodeBuilder, input: Value) -> Value:
    return b.emit(op.logical_not(truth(b, input)))


@rule(torch.bitwise_not, operator.invert, "bitwise_not", "__invert__", aten.bitwise_not.default)
def bitwise_not(b: NodeBuilder, input: Value) -> Value:
    if dtype_of(input) == "bool":
        return b.emit(op.logical_not(input))
    return b.emit(op.bitwise_not(input))


@rule(
    *(torch.fake_quantize_per_tensor_affine, aten.fake_quantize_per_tensor_affine.default),
    aten.fake_quantize_per_tensor_affine.tensor_qparams,
    name="fake_quantize",
)
def fake_quantize(
    b: NodeBuilder, input: Value, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Value:
    return _fake_quantized(b, input, scale, zero_point, quant_min, quant_max, math.inf)


def _fake_quantized(
    b: NodeBuilder,
    input: Value,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    largest: float,
) -> Value:
    """Return the quantised values; steps beyond `largest` become the smallest."""
    number = dtype_of(input)
    zero = cast(b, zero_point, number)
    # As in torch, times the inverse.
    steps = b.emit(op.round(mul(b, input, div(b, 1, cast(b, scale, number)))))
    level = clamp(b, add(b, steps, zero), quant_min, quant_max)
    # torch makes an integer of it first: of NaN, the smallest.
    level = b.emit(op.where(is_nan(b, steps), scalar(quant_min, number), level))
    if largest < math.inf:
        beyond = b.emit(op.greater_equal(b.emit(op.abs(steps)), scalar(largest, number)))
        level = b.emit(op.where(beyond, scalar(quant_min, number), level))
    return mul(b, sub(b, level, zero), cast(b, scale, number))


@rule(
    *(torch.fake_quantize_per_channel_affine, aten.fake_quantize_per_channel_affine.default),
    name="fake_quantize",
)
def fake_quantize_channels(
    b: NodeBuilder,
    input: Value,
    scale: Value,
    zero_point: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Value:
    extents = [1] * rank_of(input)
    extents[axis] = -1
    scales, zeros = (b.emit(op.reshape(value, extents)) for value in (scale, zero_point))
    # torch makes an int64 of it before it clamps.
    return _fake_quantized(b, input, scales, zeros, quant_min, quant_max, 2.0**63)


def truth(b: NodeBuilder, value: Value) -> Value:
    """Return whether each element is nonzero."""
    if not is_tensor(value):
        return scalar(bool(value), "bool")
    if dtype_of(value) == "bool":
        return value
    return differs(b, value, scalar(0, dtype_of(value)))

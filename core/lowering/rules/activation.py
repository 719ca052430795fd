"""Activation functions."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, cast, te_relu
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.rules.arithmetic import add, div, mul, sub
from lowerscope.core.lowering.rules.elementwise import clamp
from lowerscope.core.lowering.values import (
    Value,
    axis_of,
    dtype_name,
    dtype_of,
    rank_of,
    scalar,
    shape_of,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


@exact(F.relu, F.relu_, torch.relu, torch.relu_, "relu", "relu_", aten.relu.default, nn.ReLU)
def relu(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return b.emit_te(te_relu, input) if b.te else b.emit(op.nn.relu(input))


@rule(F.leaky_relu, F.leaky_relu_, aten.leaky_relu.default, nn.LeakyReLU)
def leaky_relu(
    b: NodeBuilder, input: Value, negative_slope: float = 0.01, inplace: bool = False
) -> Value:
    if not negative_slope:
        # TVM multiplies by the slope, and simplifies the product as if 0 * x were 0.
        return b.emit(
            op.where(
                b.emit(op.greater(input, scalar(0, dtype_of(input)))),
                input,
                mul(b, input, negative_slope),
            )
        )
    return b.emit(op.nn.leakyrelu(input, negative_slope))


@rule(F.elu, F.elu_, nn.ELU)
def elu(b: NodeBuilder, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    # exp(x) - 1 of the positive elements is discarded, and must not overflow.
    below = b.emit(op.minimum(input, scalar(0, dtype_of(input))))
    curve = mul(b, sub(b, b.emit(op.exp(below)), 1), alpha)
    return _below_zero(b, input, curve)


@rule(aten.elu.default, name="elu")
def aten_elu(
    b: NodeBuilder, input: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1
) -> Value:
    if input_scale != 1:
        raise Refused(_("it has an input_scale"))
    value = elu(b, input, alpha)
    return value if scale == 1 else mul(b, value, scale)


@rule(F.celu, F.celu_, torch.celu, aten.celu.default, nn.CELU)
def celu(b: NodeBuilder, input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    below = b.emit(op.minimum(input, scalar(0, dtype_of(input))))
    curve = mul(b, sub(b, b.emit(op.exp(div(b, below, alpha))), 1), alpha)
    return _below_zero(b, input, curve)


@rule(F.selu, F.selu_, torch.selu, aten.selu.default, nn.SELU)
def selu(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return aten_elu(b, input, 1.6732632423543772, 1.0507009873554805)


@rule(F.gelu, aten.gelu.default, nn.GELU)
def gelu(b: NodeBuilder, input: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return b.emit(op.nn.gelu_tanh(input))
    return b.emit(op.nn.gelu(input))


@rule(F.silu, aten.silu.default, nn.SiLU)
def silu(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return b.emit(op.nn.silu(input))


@rule(F.mish, aten.mish.default, nn.Mish)
def mish(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return mul(b, input, b.emit(op.tanh(softplus(b, input))))


@rule(F.softplus, aten.softplus.default, nn.Softplus)
def softplus(b: NodeBuilder, input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    scaled = mul(b, input, beta)
    # Above the threshold torch returns the input; exp must not overflow there.
    bounded = b.emit(op.minimum(scaled, scalar(threshold, dtype_of(input))))
    curve = div(b, b.emit(op.log(add(b, b.emit(op.exp(bounded)), 1))), beta)
    within = b.emit(op.less_equal(scaled, scalar(threshold, dtype_of(input))))
    return b.emit(op.where(within, curve, input))


@rule(F.softsign, nn.Softsign)
def softsign(b: NodeBuilder, input: Value) -> Value:
    return div(b, input, add(b, b.emit(op.abs(input)), 1))


@rule(F.logsigmoid, aten.log_sigmoid.default, nn.LogSigmoid)
def logsigmoid(b: NodeBuilder, input: Value) -> Value:
    # min(x, 0) - log(1 + exp(-|x|)) overflows for no x.
    decay = b.emit(op.exp(b.emit(op.negative(b.emit(op.abs(input))))))
    below = b.emit(op.minimum(input, scalar(0, dtype_of(input))))
    return sub(b, below, b.emit(op.log(add(b, decay, 1))))


@rule(F.hardtanh, F.hardtanh_, aten.hardtanh.default, nn.Hardtanh)
def hardtanh(
    b: NodeBuilder, input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Value:
    return clamp(b, input, min_val, max_val)


@rule(F.rrelu, torch.rrelu, nn.RReLU, aten.rrelu.default)
def rrelu(
    b: NodeBuilder,
    input: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Value:
    if training:
        raise Refused(_("it is in training mode"))
    return leaky_relu(b, input, (lower + upper) / 2)


@rule(F.relu6, aten.relu6.default, nn.ReLU6)
def relu6(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return clamp(b, input, 0.0, 6.0)


@rule(F.hardsigmoid, aten.hardsigmoid.default, nn.Hardsigmoid)
def hardsigmoid(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return div(b, clamp(b, add(b, input, 3), 0.0, 6.0), 6)


@rule(F.hardswish, aten.hardswish.default, nn.Hardswish)
def hardswish(b: NodeBuilder, input: Value, inplace: bool = False) -> Value:
    return div(b, mul(b, input, clamp(b, add(b, input, 3), 0.0, 6.0)), 6)


@rule(F.hardshrink, torch.hardshrink, "hardshrink", aten.hardshrink.default, nn.Hardshrink)
def hardshrink(b: NodeBuilder, input: Value, lambd: float = 0.5) -> Value:
    dtype = dtype_of(input)
    inside = b.emit(op.less_equal(b.emit(op.abs(input)), scalar(lambd, dtype)))
    return b.emit(op.where(inside, scalar(0, dtype), input))


@rule(F.softshrink, aten.softshrink.default, nn.Softshrink)
def softshrink(b: NodeBuilder, input: Value, lambd: float = 0.5) -> Value:
    return sub(b, input, clamp(b, input, -lambd, lambd))


@rule(F.tanhshrink, nn.Tanhshrink)
def tanhshrink(b: NodeBuilder, input: Value) -> Value:
    return sub(b, input, b.emit(op.tanh(input)))


@rule(F.threshold, torch.threshold_, aten.threshold.default, nn.Threshold)
def threshold(
    b: NodeBuilder, input: Value, threshold: float, value: float, inplace: bool = False
) -> Value:
    dtype = dtype_of(input)
    below = b.emit(op.less_equal(input, scalar(threshold, dtype)))
    return b.emit(op.where(below, scalar(value, dtype), input))


@rule(F.prelu, torch.prelu, "prelu", aten.prelu.default, aten._prelu_kernel.default, nn.PReLU)
def prelu(b: NodeBuilder, input: Value, weight: Value) -> Value:
    count = math.prod(shape_of(weight))
    if count > 1 and rank_of(weight) == 1 and rank_of(input) > 1:
        extents = [1] * rank_of(input)
        extents[1] = count
        weight = b.emit(op.reshape(weight, extents))
    return _below_zero(b, input, mul(b, input, weight))


@rule(F.glu, aten.glu.default, nn.GLU)
def glu(b: NodeBuilder, input: Value, dim: int = -1) -> Value:
    halves = b.emit(op.split(input, 2, axis_of(dim, rank_of(input))))
    return mul(b, b.emit(halves[0]), b.emit(op.sigmoid(b.emit(halves[1]))))


@rule(torch.softmax, "softmax", aten.softmax.int)
def softmax(b: NodeBuilder, input: Value, dim: int, dtype: Any = None) -> Value:
    value = input if dtype is None else cast(b, input, dtype_name(dtype))
    return b.emit(op.nn.softmax(value, axis_of(dim, rank_of(value))))


@rule(torch.log_softmax, "log_softmax", aten.log_softmax.int)
def log_softmax(b: NodeBuilder, input: Value, dim: int, dtype: Any = None) -> Value:
    value = input if dtype is None else cast(b, input, dtype_name(dtype))
    return b.emit(op.nn.log_softmax(value, axis_of(dim, rank_of(value))))


@rule(F.softmax, nn.Softmax, name="softmax")
def functional_softmax(
    b: NodeBuilder, input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Value:
    return softmax(b, input, _axis(input, dim), dtype)


@rule(F.log_softmax, nn.LogSoftmax, name="log_softmax")
def functional_log_softmax(
    b: NodeBuilder, input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Value:
    return log_softmax(b, input, _axis(input, dim), dtype)


@rule(F.softmin, nn.Softmin)
def softmin(
    b: NodeBuilder, input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Value:
    return softmax(b, b.emit(op.negative(input)), _axis(input, dim), dtype)


@rule(aten._softmax.default, name="softmax")
def aten_softmax(b: NodeBuilder, input: Value, dim: int, half_to_float: bool) -> Value:
    return softmax(b, cast(b, input, "float32") if half_to_float else input, dim)


@rule(aten._log_softmax.default, name="log_softmax")
def aten_log_softmax(b: NodeBuilder, input: Value, dim: int, half_to_float: bool) -> Value:
    return log_softmax(b, cast(b, input, "float32") if half_to_float else input, dim)


def _axis(value: Value, dim: int | None) -> int:
    if dim is None:
        # torch's legacy default: the first axis of 0-, 1- and 3-dimensional tensors.
        dim = 0 if rank_of(value) in (0, 1, 3) else 1
    return axis_of(dim, rank_of(value))


def _below_zero(b: NodeBuilder, input: Value, value: Value) -> Value:
    """Return `value` where `input` is negative, and `input` elsewhere, including NaN."""
    negative = b.emit(op.less(input, scalar(0, dtype_of(input))))
    return b.emit(op.where(negative, value, input))


@rule(nn.Softmax2d, name="softmax")
def softmax2d_module(b: NodeBuilder, module: nn.Softmax2d, input: Value) -> Value:
    return softmax(b, input, -3)

"""Arithmetic between two values, with torch's rules for mixed dtypes."""

from __future__ import annotations

import operator
from typing import Any

import torch
from tvm import topi
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import (
    Value,
    dtype_name,
    dtype_of,
    is_float,
    is_scalar_constant,
    is_tensor,
    rank_of,
    scalar,
    torch_dtype,
)
from lowerscope.core.lowering.rule_table import Refused, rule

aten = torch.ops.aten


def cast(b: NodeBuilder, value: Value, dtype: str) -> Value:
    """Return a tensor or a number as a tensor of `dtype`."""
    if not is_tensor(value):
        return scalar(value, dtype)
    if dtype_of(value) == dtype:
        return value
    if is_scalar_constant(value):
        return scalar(value.value.numpy().item(), dtype)
    return b.emit(op.astype(value, dtype))


def common_dtype(*values: Value) -> str:
    """Return the dtype to which torch promotes tensors and numbers."""
    stand_ins = [_stand_in(value) for value in values]
    result = stand_ins[0]
    for each in stand_ins[1:]:
        result = _stand_in_of(torch.result_type(result, each), result, each)
    dtype = result.dtype if isinstance(result, torch.Tensor) else torch.result_type(result, result)
    return dtype_name(dtype)


def to_common_dtype(b: NodeBuilder, *values: Value) -> tuple[Value, ...]:
    """Return `values` as tensors of their common dtype."""
    dtype = common_dtype(*values)
    return tuple(cast(b, value, dtype) for value in values)


def to_float(b: NodeBuilder, value: Value) -> Value:
    """Return a tensor as it is if it has fractions, otherwise as float32."""
    return value if is_float(dtype_of(value)) else cast(b, value, "float32")


@rule(
    torch.add,
    operator.add,
    operator.iadd,
    "add",
    "add_",
    "__add__",
    "__radd__",
    "__iadd__",
    aten.add.Tensor,
    aten.add.Scalar,
)
def add(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    first, second = to_common_dtype(b, input, other)
    if alpha != 1:
        second = b.emit(op.multiply(second, scalar(alpha, dtype_of(second))))
    if dtype_of(first) == "bool":
        return b.emit(op.logical_or(first, second))
    if b.te and not is_scalar_constant(first) and not is_scalar_constant(second):
        return b.emit_te(topi.add, first, second)
    return b.emit(op.add(first, second))


@rule(
    torch.sub,
    torch.subtract,
    operator.sub,
    operator.isub,
    "sub",
    "sub_",
    "subtract",
    "__sub__",
    "__isub__",
    aten.sub.Tensor,
    aten.sub.Scalar,
)
def sub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    first, second = to_common_dtype(b, input, other)
    if alpha != 1:
        second = b.emit(op.multiply(second, scalar(alpha, dtype_of(second))))
    return b.emit(op.subtract(first, second))


@rule(torch.rsub, "rsub", "__rsub__", aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return sub(b, other, input, alpha)


@rule(
    torch.mul,
    torch.multiply,
    operator.mul,
    operator.imul,
    "mul",
    "mul_",
    "multiply",
    "__mul__",
    "__rmul__",
    "__imul__",
    aten.mul.Tensor,
    aten.mul.Scalar,
)
def mul(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    if dtype_of(first) == "bool":
        return b.emit(op.logical_and(first, second))
    return b.emit(op.multiply(first, second))


@rule(
    torch.div,
    torch.divide,
    torch.true_divide,
    operator.truediv,
    operator.itruediv,
    "div",
    "div_",
    "divide",
    "true_divide",
    "__truediv__",
    "__itruediv__",
    aten.div.Tensor,
    aten.div.Scalar,
    aten.div.Tensor_mode,
    aten.div.Scalar_mode,
)
def div(b: NodeBuilder, input: Value, other: Value, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return floor_divide(b, input, other)
    dtype = common_dtype(input, other)
    if rounding_mode is None and not is_float(dtype):
        dtype = "float32"
    quotient = b.emit(op.divide(cast(b, input, dtype), cast(b, other, dtype)))
    if rounding_mode is None or not is_float(dtype):
        # Relax divides integers as C does, towards zero.
        return quotient
    return b.emit(op.trunc(quotient))


@rule("__rtruediv__", "__rdiv__")
def reversed_div(b: NodeBuilder, input: Value, other: Value) -> Value:
    return div(b, other, input)


@rule(
    torch.floor_divide,
    operator.floordiv,
    operator.ifloordiv,
    "floor_divide",
    "__floordiv__",
    aten.floor_divide.default,
)
def floor_divide(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.floor_divide(*to_common_dtype(b, input, other)))


@rule(
    torch.remainder,
    operator.mod,
    operator.imod,
    "remainder",
    "__mod__",
    aten.remainder.Tensor,
    aten.remainder.Scalar,
)
def remainder(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.floor_mod(*to_common_dtype(b, input, other)))


@rule(torch.fmod, "fmod", aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.mod(*to_common_dtype(b, input, other)))


@rule(
    torch.pow,
    operator.pow,
    operator.ipow,
    "pow",
    "pow_",
    "__pow__",
    aten.pow.Tensor_Scalar,
    aten.pow.Tensor_Tensor,
    aten.pow.Scalar,
)
def pow(b: NodeBuilder, input: Value, exponent: Value) -> Value:
    dtype = common_dtype(input, exponent)
    if not is_tensor(exponent) and exponent in (1, 2, 3) and is_tensor(input):
        base = cast(b, input, dtype)
        result = base
        for _ in range(int(exponent) - 1):
            result = b.emit(op.multiply(result, base))
        return result
    if not is_float(dtype):
        return _integer_power(b, cast(b, input, dtype), exponent)
    return b.emit(op.power(cast(b, input, dtype), cast(b, exponent, dtype)))


@rule("__rpow__")
def reversed_pow(b: NodeBuilder, input: Value, other: Value) -> Value:
    return pow(b, other, input)


@rule(torch.maximum, "maximum", aten.maximum.default)
def maximum(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.maximum(*to_common_dtype(b, input, other)))


@rule(torch.minimum, "minimum", aten.minimum.default)
def minimum(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.minimum(*to_common_dtype(b, input, other)))


@rule(torch.atan2, "atan2", aten.atan2.default)
def atan2(b: NodeBuilder, input: Value, other: Value) -> Value:
    dtype = common_dtype(input, other)
    dtype = dtype if is_float(dtype) else "float32"
    return b.emit(op.atan2(cast(b, input, dtype), cast(b, other, dtype)))


@rule(torch.logaddexp, "logaddexp", aten.logaddexp.default)
def logaddexp(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.log_add_exp(*to_common_dtype(b, input, other)))


@rule(torch.addcmul, "addcmul", aten.addcmul.default)
def addcmul(
    b: NodeBuilder, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1
) -> Value:
    return add(b, input, mul(b, tensor1, tensor2), value)


@rule(torch.addcdiv, "addcdiv", aten.addcdiv.default)
def addcdiv(
    b: NodeBuilder, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1
) -> Value:
    return add(b, input, div(b, tensor1, tensor2), value)


@rule(torch.lerp, "lerp", aten.lerp.Tensor, aten.lerp.Scalar)
def lerp(b: NodeBuilder, input: Value, end: Value, weight: Value) -> Value:
    return add(b, input, mul(b, sub(b, end, input), weight))


def _integer_power(b: NodeBuilder, base: Value, exponent: Value) -> Value:
    if is_tensor(exponent) or exponent < 0:
        raise Refused("it is a power of integers whose exponent is a tensor or negative")
    if exponent == 0:
        return b.emit(op.ones_like(base))
    result = base
    for _ in range(exponent - 1):
        result = b.emit(op.multiply(result, base))
    return result


def _stand_in(value: Value) -> Any:
    """Return something small that torch promotes as it promotes `value`."""
    if not is_tensor(value):
        return value
    shape = (1,) if rank_of(value) else ()
    return torch.empty(shape, dtype=torch_dtype(dtype_of(value)), device="meta")


def _stand_in_of(dtype: torch.dtype, first: Any, second: Any) -> Any:
    ranks = [value.dim() for value in (first, second) if isinstance(value, torch.Tensor)]
    return torch.empty((1,) if any(ranks) else (), dtype=dtype, device="meta")

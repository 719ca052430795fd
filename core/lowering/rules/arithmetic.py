"""Arithmetic between two values, with torch's rules for mixed dtypes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from tvm import topi
from tvm.relax import op

from lowerscope.core.lowering.builder import (
    NodeBuilder,
    cast,
    common_dtype,
    is_nan,
    to_common_dtype,
)
from lowerscope.core.lowering.rule_table import Refused, exact, rule
from lowerscope.core.lowering.values import (
    HALF,
    Value,
    dtype_of,
    is_float,
    is_scalar_constant,
    is_tensor,
    scalar,
)
from lowerscope.core.model.texts import _

aten = torch.ops.aten


def _keys(name: str, python: str, *overloads: str) -> list[Any]:
    """Return the keys of an operator: torch's function and method, Python's operator, and ATen's
    overloads, by default of a tensor and of a number."""
    packet = getattr(aten, name)
    return [
        *(getattr(torch, name), name, f"__{python}__"),
        *(getattr(operator, python), getattr(operator, f"i{python}")),
        *(getattr(packet, each) for each in overloads or ("Tensor", "Scalar")),
    ]


@exact(*_keys("add", "add"), "__radd__", "__iadd__")
def add(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    if alpha != 1:
        return _scaled_sum(b, input, other, alpha)
    first, second = to_common_dtype(b, input, other)
    if dtype_of(first) == "bool":
        return b.emit(op.logical_or(first, second))
    if b.te and not is_scalar_constant(first) and not is_scalar_constant(second):
        return b.emit_te(topi.add, first, second)
    return b.emit(op.add(first, second))


@exact(*_keys("sub", "sub"), torch.subtract, "subtract", "__isub__")
def sub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    if alpha != 1:
        return _scaled_sum(b, input, other, -alpha)
    return b.emit(op.subtract(*to_common_dtype(b, input, other)))


@exact(torch.rsub, "rsub", "__rsub__", aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(b: NodeBuilder, input: Value, other: Value, alpha: Any = 1) -> Value:
    return sub(b, other, input, alpha)


@exact(*_keys("mul", "mul"), torch.multiply, "multiply", "__rmul__", "__imul__")
def mul(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    if dtype_of(first) == "bool":
        return b.emit(op.logical_and(first, second))
    return b.emit(op.multiply(first, second))


@rule(
    *_keys("div", "truediv", "Tensor", "Scalar", "Tensor_mode", "Scalar_mode"),
    *(torch.divide, torch.true_divide, "divide", "true_divide", "__itruediv__"),
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


@rule(*_keys("floor_divide", "floordiv", "default", "Scalar"), aten.floor_divide_.Tensor)
def floor_divide(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    if not is_float(dtype_of(first)):
        return b.emit(op.floor_divide(first, second))
    # As in torch: the quotient after subtracting fmod is integral but for rounding.
    rest, against = _rest(b, first, second)
    whole = div(b, sub(b, first, rest), second)
    whole = b.emit(op.round(b.emit(op.where(against, sub(b, whole, 1), whole))))
    zero, quotient = scalar(0.0, dtype_of(first)), div(b, first, second)
    # The quotient is between -1 and 1 there.
    nothing = b.emit(op.trunc(mul(b, quotient, 0.5)))
    signed = b.emit(op.where(b.emit(op.equal(whole, zero)), nothing, whole))
    return b.emit(op.where(b.emit(op.equal(second, zero)), quotient, signed))


@rule(*_keys("remainder", "mod", "Tensor", "Scalar", "Scalar_Tensor"))
def remainder(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    if not is_float(dtype_of(first)):
        return b.emit(op.floor_mod(first, second))
    # TVM's remainder multiplies the divisor by a quotient, and is NaN if one is infinite.
    rest, against = _rest(b, first, second)
    return b.emit(op.where(against, add(b, rest, second), rest))


@rule(torch.fmod, "fmod", aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    dtype = dtype_of(first)
    if is_float(dtype):
        return b.emit(op.mod(first, second))
    # TVM's remainder of integers narrower than 32 bits is of another type than its operands.
    wide = dtype if dtype in ("int32", "int64") else "int32"
    return cast(b, b.emit(op.mod(cast(b, first, wide), cast(b, second, wide))), dtype)


@rule(*_keys("pow", "pow", "Tensor_Scalar", "Tensor_Tensor", "Scalar"))
def pow(b: NodeBuilder, input: Value, exponent: Value) -> Value:
    dtype = common_dtype(input, exponent)
    if not is_tensor(exponent) and exponent in (1, 2, 3) and is_tensor(input):
        base = cast(b, input, dtype)
        result = base
        for _turn in range(int(exponent) - 1):
            result = b.emit(op.multiply(result, base))
        return result
    wide = is_float(dtype) and dtype not in HALF
    if wide and not is_tensor(exponent) and exponent in (0.5, -0.5):
        # Torch uses these roots too, but not in half precision; they differ at -inf.
        root = op.sqrt if exponent > 0 else op.rsqrt
        return b.emit(root(cast(b, input, dtype)))
    if not is_float(dtype):
        return _integer_power(b, cast(b, input, dtype), exponent)
    return b.emit(op.power(cast(b, input, dtype), cast(b, exponent, dtype)))


@rule("__rpow__")
def reversed_pow(b: NodeBuilder, input: Value, other: Value) -> Value:
    return pow(b, other, input)


@exact(torch.maximum, "maximum", aten.maximum.default)
def maximum(b: NodeBuilder, input: Value, other: Value) -> Value:
    return _extremum(b, input, other, op.maximum)


@exact(torch.minimum, "minimum", aten.minimum.default)
def minimum(b: NodeBuilder, input: Value, other: Value) -> Value:
    return _extremum(b, input, other, op.minimum)


@rule(torch.atan2, torch.arctan2, "atan2", "arctan2", aten.atan2.default)
def atan2(b: NodeBuilder, input: Value, other: Value) -> Value:
    dtype = common_dtype(input, other)
    dtype = dtype if is_float(dtype) else "float32"
    return b.emit(op.atan2(cast(b, input, dtype), cast(b, other, dtype)))


@exact(torch.fmax, "fmax", aten.fmax.default)
def fmax(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    return _but_for_nan(b, first, second, maximum(b, first, second))


@exact(torch.fmin, "fmin", aten.fmin.default)
def fmin(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    return _but_for_nan(b, first, second, minimum(b, first, second))


@rule(torch.hypot, "hypot", aten.hypot.default)
def hypot(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = (b.emit(op.abs(each)) for each in to_common_dtype(b, input, other))
    dtype = dtype_of(first)
    # Use the ratio, since squares overflow; infinity takes precedence over NaN.
    large, small = maximum(b, first, second), minimum(b, first, second)
    ratio = div(b, small, large)
    value = mul(b, large, b.emit(op.sqrt(add(b, mul(b, ratio, ratio), 1.0))))
    value = b.emit(op.where(b.emit(op.equal(large, scalar(0.0, dtype))), large, value))
    for each in (first, second):
        infinite = b.emit(op.equal(each, scalar(math.inf, dtype)))
        value = b.emit(op.where(infinite, each, value))
    return value


@rule(torch.logaddexp2, "logaddexp2", aten.logaddexp2.default)
def logaddexp2(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    factor = math.log(2)
    return div(b, logaddexp(b, mul(b, first, factor), mul(b, second, factor)), factor)


@rule(torch.float_power, "float_power", aten.float_power.Tensor_Scalar)
def float_power(b: NodeBuilder, input: Value, exponent: Value) -> Value:
    base = cast(b, input, "float64")
    return pow(b, base, cast(b, exponent, "float64") if is_tensor(exponent) else exponent)


@rule(
    *_keys("bitwise_left_shift", "lshift", "Tensor", "Tensor_Scalar"),
    *(aten.__lshift__.Tensor, aten.__lshift__.Scalar),
)
def left_shift(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.left_shift(*to_common_dtype(b, input, other)))


@rule(
    *_keys("bitwise_right_shift", "rshift", "Tensor", "Tensor_Scalar"),
    *(aten.__rshift__.Tensor, aten.__rshift__.Scalar),
)
def right_shift(b: NodeBuilder, input: Value, other: Value) -> Value:
    return b.emit(op.right_shift(*to_common_dtype(b, input, other)))


@rule(torch.logaddexp, "logaddexp", aten.logaddexp.default)
def logaddexp(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, input, other)
    # TVM's own overflows for large operands.
    apart = b.emit(op.negative(b.emit(op.abs(sub(b, first, second)))))
    value = add(b, maximum(b, first, second), b.emit(op.log(add(b, b.emit(op.exp(apart)), 1.0))))
    # Infinities of one sign have no difference.
    infinite = b.emit(op.equal(b.emit(op.abs(first)), scalar(math.inf, dtype_of(first))))
    alike = b.emit(op.logical_and(infinite, b.emit(op.equal(first, second))))
    return b.emit(op.where(alike, first, value))


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
    span = sub(b, end, input)
    near = add(b, input, mul(b, span, weight))
    if is_tensor(weight):
        far = sub(b, end, mul(b, span, sub(b, 1, weight)))
        half = scalar(0.5, dtype_of(weight))
        below = b.emit(op.less(b.emit(op.abs(weight)), half))
        return b.emit(op.where(below, near, far))
    # Computed from the nearer end, as torch does.
    return near if abs(weight) < 0.5 else sub(b, end, mul(b, span, 1 - weight))


def _rest(b: NodeBuilder, first: Value, second: Value) -> tuple[Value, Value]:
    """Return the result of ``fmod``, and where it is nonzero and against the divisor's sign."""
    rest = b.emit(op.mod(first, second))
    zero = scalar(0.0, dtype_of(rest))
    signs = (b.emit(op.less(each, zero)) for each in (rest, second))
    differ = b.emit(op.logical_xor(*signs))
    return rest, b.emit(op.logical_and(b.emit(op.not_equal(rest, zero)), differ))


def _scaled_sum(b: NodeBuilder, input: Value, other: Value, alpha: Any) -> Value:
    """Return ``input + alpha * other``, rounded once."""
    dtype = common_dtype(input, other)
    if dtype == "bool":
        raise Refused(_("it scales bools"))
    wide = "float32" if dtype in HALF else dtype
    product = b.emit(op.multiply(cast(b, other, wide), scalar(alpha, wide)))
    return cast(b, b.emit(op.add(cast(b, input, wide), product)), dtype)


def _extremum(b: NodeBuilder, input: Value, other: Value, find: Callable[..., Value]) -> Value:
    """Return the larger or smaller elements, or NaN where either is NaN, as torch does.

    TVM's extrema of a and b are b if they do not compare, so NaN in the second operand stays.
    """
    first, second = to_common_dtype(b, input, other)
    if is_scalar_constant(second):
        first, second = second, first
    value = b.emit(find(first, second))
    if not is_float(dtype_of(first)) or is_scalar_constant(first):
        return value
    return b.emit(op.where(is_nan(b, first), first, value))


def _but_for_nan(b: NodeBuilder, first: Value, second: Value, value: Value) -> Value:
    """Return `value`, or the other operand where one is NaN."""
    if not is_float(dtype_of(first)):
        return value
    for each, other in ((first, second), (second, first)):
        value = b.emit(op.where(is_nan(b, each), other, value))
    return value


def _integer_power(b: NodeBuilder, base: Value, exponent: Value) -> Value:
    if is_tensor(exponent) or exponent < 0:
        raise Refused(_("it is a power of integers whose exponent is a tensor or negative"))
    if exponent == 0:
        return b.emit(op.ones_like(base))
    result = base
    for _turn in range(exponent - 1):
        result = b.emit(op.multiply(result, base))
    return result

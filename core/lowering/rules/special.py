"""Special functions: of gamma, of the normal distribution, and of the bits of floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from tvm import te, tirx
from tvm.relax import op

from lowerscope.core.lowering.builder import (
    NodeBuilder,
    cast,
    double,
    polynomial,
    to_common_dtype,
    to_float,
)
from lowerscope.core.lowering.rule_table import exact, rule
from lowerscope.core.lowering.values import Value, dtype_of, is_float

aten = torch.ops.aten


def _elementwise(name: str, form: Callable[[Any], Any]) -> Callable[..., Value]:
    """Return the rule that computes `form` of each element."""

    def elements(A: te.Tensor) -> te.Tensor:
        return te.compute(A.shape, lambda *i: form(A(*i)), name=name)

    def lower(b: NodeBuilder, input: Value) -> Value:
        return b.emit_te(elements, to_float(b, input), primfunc_name_hint=name)

    return lower


def _in_double(form: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the form that is computed in float64, and rounded to the dtype of its argument."""
    return lambda x: tirx.Cast(str(x.ty.dtype), form(tirx.Cast("float64", x)))


def _select(*cases: Any) -> Any:
    """Return the first value whose condition holds; the last argument where none does."""
    *pairs, value = cases
    for condition, other in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
        value = tirx.Select(condition, other, value)
    return value


def _turn(x: Any) -> Any:
    """Return pi times the part of `x` beyond the nearest integer."""
    return (x - tirx.nearbyint(x)) * double(math.pi)


# Taylor series, by the square of an angle up to pi/2.
_SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(11)))
_COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in reversed(range(12)))

_SHIFT = 7
"""Number of steps to the argument from which a series for large ones is exact."""

# Of 1/x, from Stirling's series: B(2k) / (2k (2k - 1)), and B(2k) / 2k.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)


def _lgamma(x: Any) -> Any:
    infinite = double(math.inf)
    is_small = x < double(0.5)
    z = tirx.Select(is_small, double(1) - x, x)
    is_near = z < double(_SHIFT)
    product: Any = z
    for step in range(1, _SHIFT):
        product = product * (z + double(step))
    product = tirx.Select(is_near, product, double(1))
    far = tirx.Select(is_near, z + double(_SHIFT), z)
    series = polynomial(double(1) / (far * far), _STIRLING) / far
    value = (far - double(0.5)) * tirx.log(far) - far + double(0.5 * math.log(2 * math.pi))
    value = value + series - tirx.log(product)
    turn = _turn(x)
    sine = turn * polynomial(turn * turn, _SINE)
    reflected = double(math.log(math.pi)) - tirx.log(tirx.abs(sine)) - value
    return _select(tirx.EQ(tirx.abs(x), infinite), infinite, is_small, reflected, value)


def _digamma(x: Any) -> Any:
    is_small = x < double(0)
    z = tirx.Select(is_small, double(1) - x, x)
    steps: Any = double(0)
    for step in range(_SHIFT + 3):
        steps = steps + double(1) / (z + double(step))
    is_near = z < double(_SHIFT + 3)
    far = tirx.Select(is_near, z + double(_SHIFT + 3), z)
    inverse = double(1) / (far * far)
    value = tirx.log(far) - double(0.5) / far - polynomial(inverse, _DIGAMMA) * inverse
    value = tirx.Select(is_near, value - steps, value)
    turn = _turn(x)
    sine = turn * polynomial(turn * turn, _SINE)
    reflected = value - double(math.pi) * polynomial(turn * turn, _COSINE) / sine
    return _select(
        tirx.EQ(x, double(math.inf)),
        x,
        # The side from which 0 is reached decides.
        tirx.EQ(x, double(0)),
        double(-1) / x,
        tirx.all(is_small, tirx.EQ(turn, double(0))),
        double(math.nan),
        is_small,
        reflected,
        value,
    )


# Giles, "Approximating the erfinv function".
_CENTRAL = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_TAIL = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)


def _erfinv(x: Any) -> Any:
    dtype = str(x.ty.dtype)

    def number(value: float) -> Any:
        return tirx.const(value, dtype)

    w = number(0) - tirx.log((number(1) - x) * (number(1) + x))
    central = polynomial(w - number(2.5), _CENTRAL)
    tail = polynomial(tirx.sqrt(w) - number(3), _TAIL)
    value = tirx.Select(w < number(5), central, tail) * x
    for _step in range(2 if dtype == "float64" else 0):
        slope = tirx.exp(number(0) - value * value) * number(2 / math.sqrt(math.pi))
        value = value - (tirx.erf(value) - x) / slope
    return tirx.Select(tirx.EQ(tirx.abs(x), number(1)), x * number(math.inf), value)


def _log1p(x: Any) -> Any:
    """Return the logarithm of 1 + x, whose rounding is undone by a factor."""
    dtype = str(x.ty.dtype)
    one = tirx.const(1, dtype)
    # TVM would take x for (x + 1) - 1.
    total = tirx.reinterpret(dtype, tirx.reinterpret(dtype.replace("float", "int"), x + one))
    rounded = tirx.any(tirx.EQ(total, one), tirx.EQ(x, tirx.const(math.inf, dtype)))
    return tirx.Select(rounded, x, tirx.log(total) * (x / (total - one)))


def _expm1(x: Any) -> Any:
    """Return the exponential less 1, near 0 by its Taylor series."""
    dtype = str(x.ty.dtype)
    count = 16 if dtype == "float64" else 8
    series = x * polynomial(x, [1 / math.factorial(k + 1) for k in reversed(range(count))])
    is_near = tirx.abs(x) < tirx.const(0.5, dtype)
    return tirx.Select(is_near, series, tirx.exp(x) - tirx.const(1, dtype))


rule(
    torch.log1p,
    torch.special.log1p,
    torch.log1p_,
    "log1p",
    "log1p_",
    aten.log1p.default,
    name="log1p",
)(_elementwise("log1p", _log1p))
rule(
    torch.expm1,
    torch.special.expm1,
    torch.expm1_,
    "expm1",
    "expm1_",
    aten.expm1.default,
    name="expm1",
)(_elementwise("expm1", _expm1))
rule(torch.lgamma, torch.special.gammaln, "lgamma", aten.lgamma.default, name="lgamma")(
    _elementwise("lgamma", _in_double(_lgamma))
)
rule(
    *(torch.digamma, torch.special.digamma, torch.special.psi, "digamma", aten.digamma.default),
    name="digamma",
)(_elementwise("digamma", _in_double(_digamma)))
rule(torch.erfinv, torch.special.erfinv, "erfinv", aten.erfinv.default, name="erfinv")(
    _elementwise("erfinv", _erfinv)
)


def _sign_bit(value: Any) -> Any:
    bits = str(value.ty.dtype).replace("bfloat", "int").replace("float", "int")
    return tirx.reinterpret(bits, value) < tirx.const(0, bits)


@exact(torch.signbit, "signbit", aten.signbit.default)
def signbit(b: NodeBuilder, input: Value) -> Value:
    if not is_float(dtype_of(input)):
        value = cast(b, input, "int64")
        return b.emit(op.less(value, cast(b, 0, "int64")))
    # As wide as TVM computes in: the sign stays.
    value = input if dtype_of(input) == "float64" else cast(b, input, "float32")
    return b.emit_te(te_signbit, value, primfunc_name_hint="signbit")


def te_signbit(A: te.Tensor) -> te.Tensor:
    """Return whether each element has the sign bit, as -0.0 has."""
    return te.compute(A.shape, lambda *i: _sign_bit(A(*i)), name="signbit")


@exact(torch.copysign, "copysign", aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(b: NodeBuilder, input: Value, other: Value) -> Value:
    first, second = to_common_dtype(b, to_float(b, input), other)
    size = b.emit(op.abs(first))
    return b.emit(op.where(signbit(b, second), b.emit(op.negative(size)), size))


@rule(torch.ldexp, "ldexp", aten.ldexp.Tensor)
def ldexp(b: NodeBuilder, input: Value, other: Value) -> Value:
    value, exponent = to_common_dtype(b, to_float(b, input), other)
    power = b.emit(op.power(cast(b, 2, dtype_of(exponent)), exponent))
    return b.emit(op.multiply(value, power))

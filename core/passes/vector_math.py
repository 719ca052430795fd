"""Exponential functions, logarithms and the like as arithmetic, which can be vectorized.

LLVM has no vector form of ``exp``, ``log``, ``sin`` or ``tanh``: it calls a function of the C
library for each element. These are within a few units in the last place of float32 of its results;
NaN stays NaN, and infinities have their limits. Results of exponential functions that are smaller
than 2**-125 are 0, and angles beyond 2**50 are reduced to an arbitrary one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlock

from lowerscope.core.lowering.builder import double, polynomial
from lowerscope.core.model.texts import _

_EMULATED = ("float8_", "float6_", "float4_")
"""Prefixes of dtypes that TVM computes in float32 after it has vectorized loops.

Its rewriting skips the value that a ``Let`` binds, and writes a ``Let`` in doubly rounded values.
"""


_FLOATS = ("float32", "float16", "bfloat16")
"""Dtypes whose calls are replaced, those of 16 bits in float32."""


def with_vector_math(
    module: tvm.IRModule, leave_out: Callable[[str, str], None] = lambda function, why: None
) -> tvm.IRModule:
    """Return a module with arithmetic for such calls in its functions of TensorIR.

    `leave_out`: Told which functions keep their calls, and why.
    """
    _let_rounding_be_vectorized()
    result = module.clone()
    for variable, function in module.functions.items():
        if isinstance(function, tirx.PrimFunc):
            changed = vector_math(function)
            if changed.same_as(function):
                continue
            emulated = _emulated(function)
            if emulated:
                leave_out(
                    str(variable.name_hint),
                    _(
                        "TVM cannot rewrite {emulated} arithmetic with bound values in it",
                        emulated=emulated,
                    ),
                )
            else:
                result.update_func(variable, changed)
    return result


def _let_rounding_be_vectorized() -> None:
    """Tell TVM that ``nearbyint`` takes vectors, as LLVM's does.

    It makes scalars of all that is around it otherwise, and fails if a value is bound there.
    """
    name, entry, above_tvm = "tirx.nearbyint", "TVectorizable", 11
    if not tvm.ir.Op.get(name).get_attr(entry):
        tvm.ir.register_op_attr(name, entry, True, above_tvm)


def _emulated(function: tirx.PrimFunc) -> str:
    """Return the first dtype of a function that TVM emulates; empty for none.

    The build computes bfloat16 in float32, but not in a function that takes the bits of one.
    """
    dtypes: dict[str, None] = {}
    taken: dict[str, None] = {}

    def dtype(value: Any) -> str:
        return str(value.ty.dtype) if isinstance(value.ty, tvm.ir.PrimType) else ""

    def visit(value: Any) -> None:
        dtypes[dtype(value)] = None
        if getattr(getattr(value, "op", None), "name", "") == "tirx.reinterpret":
            taken.update(dict.fromkeys(map(dtype, (value, *value.args))))

    tvm_ffi.structural_walk(function.body, (tvm.ir.Expr, visit))
    emulated = (each for each in dtypes if each.startswith(_EMULATED))
    return next(emulated, "bfloat16" if "bfloat16" in taken else "")


def vector_math(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a function with its supported calls replaced by arithmetic.

    Those of float32, float16 and bfloat16, and a few of float64. Tests for NaN too, but not in a
    reduction, which schedules know by its form.
    """
    reduces = _reduces(function)

    def expanded(call: Any) -> Any:
        if str(getattr(call.op, "name", "")) == "tirx.isnan" and not reduces:
            return _is_nan(call)
        name = str(getattr(call.op, "name", ""))
        if name in _FORMS_64 and str(call.ty.dtype) == "float64":
            return _bound("x", call.args[0], _FORMS_64[name])
        form = _FORMS.get(name)
        return call if form is None else in_float32(call, call.args, form)

    def divided(rest: Any) -> Any:
        return in_float32(rest, (rest.a, rest.b), _fmod)

    def in_float32(value: Any, arguments: Sequence[Any], form: Callable[..., Any]) -> Any:
        dtype = str(value.ty.dtype)
        if dtype not in _FLOATS:
            return value
        if dtype == "float32":
            return _with_arguments(arguments, form)
        wide = [tirx.Cast("float32", each) for each in arguments]
        return tirx.Cast(dtype, _with_arguments(wide, form))

    body = tvm_ffi.structural_map(function.body, [(tvm.ir.Call, expanded), (tirx.Mod, divided)])
    return function if body.same_as(function.body) else function.with_body(body)


def _reduces(function: tirx.PrimFunc) -> bool:
    found: list[SBlock] = []
    tvm_ffi.structural_walk(function.body, (SBlock, found.append))
    return any(each.init is not None for each in found)


def _is_nan(call: Any) -> Any:
    """Return a test for NaN by the bits, as TVM has no vectors of its own."""
    value = call.args[0]
    dtype = str(value.ty.dtype)
    if dtype not in ("float32", "float64"):
        return call
    bits = dtype.replace("float", "int")
    infinity = 0x7F800000 if dtype == "float32" else 0x7FF0000000000000
    size = tirx.reinterpret(bits, value) & tirx.max_value(bits)
    return size > tirx.const(infinity, bits)


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


def _bound(name: str, value: Any, then: Callable[[Any], Any]) -> Any:
    """Return an expression of a value that is computed once."""
    var = tirx.Var(name, str(value.ty.dtype))
    return tirx.Let(var, value, then(var))


def _with_arguments(values: Sequence[Any], form: Callable[..., Any], *bound: Any) -> Any:
    """Return a form of values that are computed once."""
    if not values:
        return form(*bound)
    return _bound(
        "xy"[len(bound)], values[0], lambda var: _with_arguments(values[1:], form, *bound, var)
    )


def _within(x: Any, low: float, high: float) -> Any:
    """Clamp `x` to bounds; NaN stays NaN, as the second side of each comparison.

    Selections would take TVM's simplifier seconds where one such form is inside of another.
    """
    least, most = (tirx.const(each, str(x.ty.dtype)) for each in (low, high))
    return tirx.min(most, tirx.max(least, x))


@dataclass(frozen=True)
class _Format:
    """A floating-point format, and its series of Cephes.

    `integer`: dtype of the same width.
    `mantissa`: number of bits of the mantissa.
    `bias`: exponent of the bits of 1/2.
    `least`, `most`: bounds on arguments of the exponential function with other results than 0 and
        infinity.
    `sqrt_half`: bits of sqrt(1/2).
    `exp`: of the remainder of a division by ln(2).
    `log`: of the mantissa less 1, between sqrt(1/2) - 1 and sqrt(2) - 1: the terms from the third
        power on.
    """

    dtype: str
    integer: str
    mantissa: int
    bias: int
    least: float
    most: float
    sqrt_half: int
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]

    def number(self, value: float) -> Any:
        """Return a constant."""
        return tirx.const(value, self.dtype)

    def whole(self, value: int) -> Any:
        """Return a constant of the integers."""
        return tirx.const(value, self.integer)

    @property
    def rounding(self) -> Any:
        """Return what leaves the integer of a number in the lowest bits when it is added."""
        return self.number(1.5 * 2.0**self.mantissa)


# Ln(2) in two parts: small multiples of the first are exact.
_LN_2 = (0.693359375, -2.121944400546905827679e-4)
_LN_2_64 = (6.93145751953125e-1, 1.42860682030941723212e-6)

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)
_LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)

_EXP_64 = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 1.0)
_EXP_BELOW_64 = (
    *(3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0),
)
_LOG_64 = (
    *(1.01875663804580931796e-4, 4.97494994976747001425e-1, 4.70579119878881725854e0),
    *(1.44989225341610930846e1, 1.79368678507819816313e1, 7.70838733755885391666e0),
)
_LOG_BELOW_64 = (
    *(1.0, 1.12873587189167450590e1, 4.52279145837532221105e1, 8.29875266912776603211e1),
    *(7.11544750618563894466e1, 2.31251620126765340583e1),
)


def _exp_series_64(r: Any) -> Any:
    def of(z: Any) -> Any:
        return _bound("p", r * polynomial(z, _EXP_64), lambda p: ratio(z, p))

    def ratio(z: Any, p: Any) -> Any:
        return double(1.0) + double(2.0) * p / (polynomial(z, _EXP_BELOW_64) - p)

    return _bound("square", r * r, of)


_SINGLE = _Format(
    dtype="float32",
    integer="int32",
    mantissa=23,
    bias=126,
    least=-87.5,
    most=89.0,
    sqrt_half=0x3F3504F3,
    exp=lambda r: polynomial(r, _EXP) * r * r + r + _number(1.0),
    log=lambda m: polynomial(m, _LOG) * m * m * m,
)
_DOUBLE = _Format(
    dtype="float64",
    integer="int64",
    mantissa=52,
    bias=1022,
    least=-708.5,
    most=710.0,
    sqrt_half=0x3FE6A09E667F3BCD,
    exp=_exp_series_64,
    log=lambda m: m * m * m * (polynomial(m, _LOG_64) / polynomial(m, _LOG_BELOW_64)),
)


def _format_of(x: Any) -> _Format:
    return _DOUBLE if str(x.ty.dtype) == "float64" else _SINGLE


def _exp(x: Any) -> Any:
    kind = _format_of(x)
    parts = _LN_2_64 if kind is _DOUBLE else _LN_2

    def of(x: Any) -> Any:
        shifted = x * kind.number(math.log2(math.e)) + kind.rounding
        return _bound("shifted", shifted, lambda t: scaled(x, t))

    def scaled(x: Any, t: Any) -> Any:
        whole = t - kind.rounding
        rest = x - whole * kind.number(parts[0]) - whole * kind.number(parts[1])
        bits = tirx.reinterpret(kind.integer, t) + kind.whole(kind.bias)
        power = tirx.reinterpret(kind.dtype, bits << kind.whole(kind.mantissa))
        # Half the power, twice: the largest power of 2 that is needed is no float.
        return _bound("rest", rest, kind.exp) * kind.number(2.0) * power

    return _bound("within", _within(x, kind.least, kind.most), of)


def _log(x: Any) -> Any:
    kind = _format_of(x)
    number, shift = kind.number, kind.whole(kind.mantissa)
    # Subnormal numbers have no exponent of their own.
    scale = kind.mantissa + (2 if kind is _DOUBLE else 0)
    small = x < number(2.0**-kind.bias)

    def of(bits: Any) -> Any:
        exponent = (bits - kind.whole(kind.sqrt_half)) >> shift
        return _bound("exponent", exponent, lambda e: parts(bits, e))

    def parts(bits: Any, exponent: Any) -> Any:
        mantissa = tirx.reinterpret(kind.dtype, bits - (exponent << shift))
        # From int32, which has an instruction of its own for this.
        whole = tirx.Cast(kind.dtype, tirx.Cast("int32", exponent))
        whole = whole - tirx.Select(small, number(scale), number(0.0))
        return _bound("m", mantissa - number(1.0), lambda m: series(m, whole))

    def series(m: Any, whole: Any) -> Any:
        rest = kind.log(m) + whole * number(_LN_2[1])
        value = m + (rest - number(0.5) * m * m) + whole * number(_LN_2[0])
        infinite = number(math.inf)
        value = tirx.Select(x < infinite, value, x)
        value = tirx.Select(x > number(0.0), value, number(math.nan))
        return tirx.Select(tirx.EQ(x, number(0.0)), number(-math.inf), value)

    normal = tirx.Select(small, x * number(2.0**scale), x)
    return _bound("bits", tirx.reinterpret(kind.integer, normal), of)


# Eigen's rational approximations, MathFunctionsImpl.h and SpecialFunctionsImpl.h.
_TANH = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
    *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
)
_TANH_BELOW = (
    1.19825839466702e-06,
    1.18534705686654e-04,
    2.26843463243900e-03,
    4.89352518554385e-03,
)
_ERF = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_ERF_BELOW = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
    *(-7.37332916720468e-03, -1.42647390514189e-02),
)


def _odd(bound: float, above: Sequence[float], below: Sequence[float]) -> Callable[[Any], Any]:
    def ratio(x: Any) -> Any:
        return _bound("square", x * x, lambda y: x * polynomial(y, above) / polynomial(y, below))

    return lambda x: _bound("within", _within(x, -bound, bound), ratio)


def _sigmoid(x: Any) -> Any:
    zero, one = (_format_of(x).number(each) for each in (0.0, 1.0))
    return one / (one + _exp(zero - x))


def _sinh(x: Any) -> Any:
    def far(half: Any) -> Any:
        # In this order, as the square of the exponential function may be too large.
        return _number(0.5) * half * half - _number(0.5) / (half * half)

    def of(size: Any) -> Any:
        large = _bound("half", _exp(size * _number(0.5)), far)
        near = _bound("square", size * size, lambda y: polynomial(y, _SINH) * y * size + size)
        return _signed(x, tirx.Select(size > _number(1.0), large, near))

    return _bound("size", _size(x), of)


def _cosh(x: Any) -> Any:
    return _bound(
        "half",
        _exp(_size(x) * _number(0.5)),
        lambda half: _number(0.5) * half * half + _number(0.5) / (half * half),
    )


def _size(x: Any) -> Any:
    kind = _format_of(x)
    bits = tirx.reinterpret(kind.integer, x) & tirx.max_value(kind.integer)
    return tirx.reinterpret(kind.dtype, bits)


def _signed(x: Any, size: Any) -> Any:
    """Return a number of this size, which is not negative, with the sign of `x`."""
    kind = _format_of(x)
    sign = tirx.reinterpret(kind.integer, x) & tirx.min_value(kind.integer)
    return tirx.reinterpret(kind.dtype, tirx.reinterpret(kind.integer, size) | sign)


# Cephes, sinhf: between -1 and 1.
_SINH = (2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1)

# Cephes, sinf and cosf: between -pi/4 and pi/4.
_SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)

_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""Pi/2 in parts of 33 bits: small multiples of the first two are exact in float64."""


def _of_angle(then: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Any]:
    """Return the form of a function of an angle.

    `then`: called with the sine and the cosine of the angle less its multiple of pi/2, and with
        that multiple modulo 4, as an int32.
    """

    def of(x: Any) -> Any:
        shifted = x * double(0.6366197723675814) + _DOUBLE.rounding
        return _bound("shifted", shifted, lambda t: reduced(x, t))

    def reduced(x: Any, t: Any) -> Any:
        quadrant = tirx.Cast("int32", tirx.reinterpret("int64", t) & tirx.const(3, "int64"))
        rest = _bound("turns", t - _DOUBLE.rounding, lambda turns: less(x, turns))
        return _bound("quadrant", quadrant, lambda q: _bound("r", rest, lambda r: both(r, q)))

    def less(x: Any, turns: Any) -> Any:
        for part in _HALF_PI:
            x = x - turns * double(part)
        return tirx.Cast("float32", x)

    def both(r: Any, quadrant: Any) -> Any:
        r = _within(r, -0.8, 0.8)
        return _bound("angle", r, lambda r: _bound("square", r * r, lambda z: ends(r, z, quadrant)))

    def ends(r: Any, z: Any, quadrant: Any) -> Any:
        sine = polynomial(z, _SIN) * z * r + r
        cosine = polynomial(z, _COS) * z * z - _number(0.5) * z + _number(1.0)
        return _bound("s", sine, lambda s: _bound("c", cosine, lambda c: then(s, c, quadrant)))

    return lambda x: _bound("wide", tirx.Cast("float64", x), of)


def _sine_at(sine: Any, cosine: Any, quadrant: Any) -> Any:
    one, two = tirx.const(1, "int32"), tirx.const(2, "int32")
    value = tirx.Select(tirx.EQ(quadrant & one, one), cosine, sine)
    return tirx.Select(tirx.EQ(quadrant & two, two), _number(0.0) - value, value)


def _cosine_at(sine: Any, cosine: Any, quadrant: Any) -> Any:
    return _sine_at(sine, cosine, quadrant + tirx.const(1, "int32"))


def _tangent_at(sine: Any, cosine: Any, quadrant: Any) -> Any:
    odd = tirx.EQ(quadrant & tirx.const(1, "int32"), tirx.const(1, "int32"))
    above = tirx.Select(odd, _number(0.0) - cosine, sine)
    return above / tirx.Select(odd, sine, cosine)


# Cephes, atanf: between -tan(pi/8) and tan(pi/8).
_ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)


def _atan(x: Any) -> Any:
    def of(size: Any) -> Any:
        far, middle = size > _number(2.414213562373095), size > _number(0.4142135623730950)
        above = tirx.Select(far, _number(-1.0), size - _number(1.0))
        below = tirx.Select(far, size, size + _number(1.0))
        part = tirx.Select(middle, above / below, size)
        start = tirx.Select(far, _number(1.5707963267948966), _number(0.7853981633974483))
        return _bound("part", part, lambda p: series(p, tirx.Select(middle, start, _number(0.0))))

    def series(p: Any, start: Any) -> Any:
        value = _bound("square", p * p, lambda z: polynomial(z, _ATAN) * z * p + p + start)
        return _signed(x, value)

    return _bound("size", _size(x), of)


# SLEEF, atan2f: between 0 and 1.
_ATAN2 = (
    *(0.00282363896258175373077393, -0.0159569028764963150024414, 0.0425049886107444763183594),
    *(-0.0748900920152664184570312, 0.106347933411598205566406, -0.142027363181114196777344),
    *(0.199926957488059997558594, -0.333331018686294555664062),
)


def _atan2(y: Any, x: Any) -> Any:
    def of(width: Any, height: Any) -> Any:
        steep = height > width
        small, large = tirx.Select(steep, width, height), tirx.Select(steep, height, width)
        # Equal infinities and zeros have no ratio.
        equal = tirx.Select(tirx.EQ(large, _number(0.0)), _number(0.0), _number(1.0))
        ratio = tirx.Select(tirx.EQ(width, height), equal, small / large)
        return _bound(
            "ratio", ratio, lambda t: _bound("angle", series(t), lambda a: turned(a, steep))
        )

    def series(t: Any) -> Any:
        return _bound("square", t * t, lambda z: polynomial(z, _ATAN2) * z * t + t)

    def turned(angle: Any, steep: Any) -> Any:
        angle = tirx.Select(steep, _number(math.pi / 2) - angle, angle)
        left = tirx.reinterpret("int32", x) < tirx.const(0, "int32")
        return _signed(y, tirx.Select(left, _number(math.pi) - angle, angle))

    return _with_arguments([_size(x), _size(y)], of)


_EXACT = 2.0**29
"""Bound on the quotients of float32 whose products with the divisor are exact in float64."""


def _fmod(x: Any, y: Any) -> Any:
    """Return the remainder by one division; of a huge quotient, by the C library.

    No two floats of 24 bits have a quotient that float64 rounds to the next integer.
    """

    def of(quotient: Any) -> Any:
        rest = tirx.Cast("float32", _wide(x) - quotient * _wide(y))
        near = tirx.all(tirx.abs(quotient) < double(_EXACT), _size(y) < _number(float("inf")))
        return tirx.if_then_else(
            near, _signed(x, _size(rest)), tirx.call_pure_extern("float32", "fmodf", x, y)
        )

    return _bound("quotient", tirx.trunc(_wide(x) / _wide(y)), of)


def _wide(x: Any) -> Any:
    return tirx.Cast("float64", x)


def _pow(x: Any, y: Any) -> Any:
    """Return a power by the exponential function and logarithm of float64, which are exact enough.

    Of a negative number, only whole powers exist, and odd ones are negative.
    """
    zero, one, infinite = (_number(each) for each in (0.0, 1.0, math.inf))
    logarithm = _bound("base", _wide(_size(x)), _log)
    size = tirx.Cast("float32", _bound("product", _wide(y) * logarithm, _exp))
    half = y * _number(0.5)
    is_whole, is_half = (tirx.EQ(tirx.floor(each), each) for each in (y, half))
    is_negative = tirx.reinterpret("int32", x) < tirx.const(0, "int32")
    is_odd = tirx.all(is_whole, tirx.Not(is_half), is_negative)
    value = size * tirx.Select(is_odd, _number(-1.0), one)
    exists = tirx.any(x >= zero, is_whole, tirx.EQ(_size(x), infinite))
    value = tirx.Select(exists, value, _number(math.nan))
    both = tirx.all(tirx.EQ(_size(x), one), tirx.EQ(_size(y), infinite))
    is_one = tirx.any(tirx.EQ(y, zero), tirx.EQ(x, one), both)
    return tirx.Select(is_one, one, value)


# Cephes, atanhf: below 1/2.
_ATANH = (
    *(1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1),
    *(1.99782164500e-1, 3.33337300303e-1),
)


def _atanh(x: Any) -> Any:
    def of(size: Any) -> Any:
        near = _bound("square", size * size, lambda z: polynomial(z, _ATANH) * z * size + size)
        far = _number(0.5) * _bound("ratio", (_number(1.0) + size) / (_number(1.0) - size), _log)
        return _signed(x, tirx.Select(size < _number(0.5), near, far))

    return _bound("size", _size(x), of)


def _rsqrt(x: Any) -> Any:
    return _number(1.0) / tirx.sqrt(x)


# Cephes, asinf: between 0 and 1/2.
_ASIN = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)


def _arc(then: Callable[[Any, Any, Any], Any]) -> Callable[[Any], Any]:
    """Return the form of arcsine or arccosine.

    `then`: called with the argument, whether its size is above 1/2, and the arcsine of its size, or
        there of ``sqrt((1 - size) / 2)``.
    """

    def of(x: Any) -> Any:
        return _bound("size", _size(x), lambda size: halved(x, size, size > _number(0.5)))

    def halved(x: Any, size: Any, large: Any) -> Any:
        square = tirx.Select(large, _number(0.5) - _number(0.5) * size, size * size)
        return _bound("square", square, lambda z: root(x, size, large, z))

    def root(x: Any, size: Any, large: Any, z: Any) -> Any:
        part = tirx.Select(large, tirx.sqrt(z), size)
        value = _bound("part", part, lambda p: polynomial(z, _ASIN) * z * p + p)
        return _bound("arc", value, lambda arc: then(x, large, arc))

    return of


def _arcsine(x: Any, large: Any, arc: Any) -> Any:
    value = tirx.Select(large, _number(1.5707963267948966) - _number(2.0) * arc, arc)
    return _signed(x, value)


def _arccosine(x: Any, large: Any, arc: Any) -> Any:
    twice = _number(2.0) * arc
    near = tirx.Select(x < _number(0.0), _number(3.141592653589793) - twice, twice)
    return tirx.Select(large, near, _number(1.5707963267948966) - _signed(x, arc))


# Cephes, tanh: between -0.625 and 0.625.
_TANH_64 = (-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3)
_TANH_BELOW_64 = (
    *(1.0, 1.12811678491632931402e2, 2.23548839060100448583e3),
    4.84406305325125486048e3,
)


def _tanh_64(x: Any) -> Any:
    def of(size: Any) -> Any:
        far = double(1.0) - double(2.0) / (_exp(double(2.0) * size) + double(1.0))
        near = size + size * _bound("square", size * size, ratio)
        return _signed(x, tirx.Select(size > double(0.625), far, near))

    def ratio(z: Any) -> Any:
        return z * (polynomial(z, _TANH_64) / polynomial(z, _TANH_BELOW_64))

    return _bound("size", _size(x), of)


# Cephes, erf: between -1 and 1, and what is left to 1 beyond, less the exponential function.
_ERF_64 = (
    *(9.60497373987051638749, 9.00260197203842689217e1, 2.23200534594684319226e3),
    *(7.00332514112805075473e3, 5.55923013010394962768e4),
)
_ERF_BELOW_64 = (
    *(1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3),
    *(2.26290000613890934246e4, 4.92673942608635921086e4),
)
_REST_64 = (
    *(2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687),
    *(4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2),
    *(9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
)
_REST_BELOW_64 = (
    *(1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2),
    *(9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3),
    *(1.65666309194161350182e3, 5.57535340817727675546e2),
)


def _erf_64(x: Any) -> Any:
    def of(size: Any) -> Any:
        rest = polynomial(size, _REST_64) / polynomial(size, _REST_BELOW_64)
        far = double(1.0) - _exp(double(0.0) - size * size) * rest
        near = _bound("square", size * size, ratio)
        return _signed(x, tirx.Select(size > double(1.0), far, size * near))

    def ratio(z: Any) -> Any:
        return polynomial(z, _ERF_64) / polynomial(z, _ERF_BELOW_64)

    # Beyond 6, it is 1.
    return _bound("size", _within(_size(x), 0.0, 6.0), of)


def _round_64(x: Any) -> Any:
    # LLVM rounds the lanes one by one. From 2**52 on, all numbers are whole, and NaN is no smaller.
    most = double(2.0**52)

    def of(size: Any) -> Any:
        whole = _bound("shifted", size + most, lambda shifted: shifted - most)
        return _signed(x, tirx.Select(size < most, whole, size))

    return _bound("size", _size(x), of)


_FORMS_64: dict[str, Callable[[Any], Any]] = {
    "tirx.erf": _erf_64,
    "tirx.exp": _exp,
    "tirx.log": _log,
    "tirx.nearbyint": _round_64,
    "tirx.sigmoid": _sigmoid,
    "tirx.tanh": _tanh_64,
}

_FORMS: dict[str, Callable[..., Any]] = {
    "tirx.acos": _arc(_arccosine),
    "tirx.asin": _arc(_arcsine),
    "tirx.atan": _atan,
    "tirx.atan2": _atan2,
    "tirx.atanh": _atanh,
    "tirx.cos": _of_angle(_cosine_at),
    "tirx.cosh": _cosh,
    "tirx.log": _log,
    "tirx.pow": _pow,
    "tirx.rsqrt": _rsqrt,
    "tirx.sin": _of_angle(_sine_at),
    "tirx.sinh": _sinh,
    "tirx.tan": _of_angle(_tangent_at),
    "tirx.exp": _exp,
    "tirx.tanh": _odd(9.0, _TANH, _TANH_BELOW),
    "tirx.erf": _odd(4.0, _ERF, _ERF_BELOW),
    "tirx.sigmoid": _sigmoid,
}
"""Arithmetic forms, by operator name."""

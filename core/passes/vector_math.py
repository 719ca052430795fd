"""Exponential functions and the like as arithmetic, which can be vectorized.

LLVM has no vector form of ``exp``, ``erf`` and ``tanh``: it calls a function of the C library for
each element. These are within a few units in the last place of float32 of its results; NaN stays
NaN, and infinities have their limits. Results smaller than 2**-125 are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx

from lowerscope.core.model.texts import _

_EMULATED = ("bfloat16", "float8", "float6", "float4")
"""Prefixes of dtypes that TVM computes in float32 after it has vectorized loops.

Its rewriting skips the value that a ``Let`` binds, and writes a ``Let`` in doubly rounded values.
"""


def with_vector_math(
    module: tvm.IRModule, leave_out: Callable[[str, str], None] = lambda function, why: None
) -> tvm.IRModule:
    """Return a module with arithmetic for such calls in its functions of TensorIR.

    `leave_out`: Told which functions keep their calls, and why.
    """
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


def _emulated(function: tirx.PrimFunc) -> str:
    """Return the first dtype of a function that TVM emulates; empty for none."""
    found: dict[str, None] = {}

    def visit(value: Any) -> None:
        if isinstance(value.ty, tvm.ir.PrimType):
            found[str(value.ty.dtype)] = None

    tvm_ffi.structural_walk(function.body, (tvm.ir.Expr, visit))
    return next((each for each in found if each.startswith(_EMULATED)), "")


def vector_math(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a function with its supported float32 and float16 calls replaced by arithmetic."""

    def expanded(call: Any) -> Any:
        form = _FORMS.get(str(getattr(call.op, "name", "")))
        dtype = str(call.ty.dtype) if form is not None else ""
        if form is None or dtype not in ("float32", "float16"):
            return call
        value = call.args[0]
        if dtype == "float32":
            return _bound("x", value, form)
        return tirx.Cast(dtype, _bound("x", tirx.Cast("float32", value), form))

    body = tvm_ffi.structural_map(function.body, (tvm.ir.Call, expanded))
    return function if body.same_as(function.body) else function.with_body(body)


def _number(value: float) -> Any:
    return tirx.const(value, "float32")


def _bound(name: str, value: Any, then: Callable[[Any], Any]) -> Any:
    """Return an expression of a value that is computed once."""
    var = tirx.Var(name, "float32")
    return tirx.Let(var, value, then(var))


def _within(x: Any, low: float, high: float) -> Any:
    """Clamp `x` to bounds; NaN stays NaN, which ``max`` would lose."""
    above = tirx.Select(x < _number(low), _number(low), x)
    return tirx.Select(x > _number(high), _number(high), above)


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    value = _number(coefficients[0])
    for each in coefficients[1:]:
        value = value * x + _number(each)
    return value


_ROUNDING = 12582912.0
"""1.5 * 2**23: added to a float32, it leaves its integer in the lowest bits."""

# Cephes, expf: for the remainder of a division by ln(2), which is subtracted in two parts.
_LN_2 = (0.693359375, -2.12194440e-4)
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)


def _exp(x: Any) -> Any:
    def of(x: Any) -> Any:
        shifted = x * _number(1.44269504) + _number(_ROUNDING)
        return _bound("shifted", shifted, lambda t: scaled(x, t))

    def scaled(x: Any, t: Any) -> Any:
        whole = t - _number(_ROUNDING)
        rest = x - whole * _number(_LN_2[0]) - whole * _number(_LN_2[1])
        bits = tirx.reinterpret("int32", t) + tirx.const(126, "int32")
        power = tirx.reinterpret("float32", bits << tirx.const(23, "int32"))
        # Half the power, twice: 2**128 is no float32.
        return _bound("rest", rest, series) * _number(2.0) * power

    def series(r: Any) -> Any:
        return _polynomial(r, _EXP) * r * r + r + _number(1.0)

    return _bound("within", _within(x, -87.5, 89.0), of)


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
        return _bound("square", x * x, lambda y: x * _polynomial(y, above) / _polynomial(y, below))

    return lambda x: _bound("within", _within(x, -bound, bound), ratio)


def _sigmoid(x: Any) -> Any:
    return _number(1.0) / (_number(1.0) + _exp(_number(0.0) - x))


_FORMS: dict[str, Callable[[Any], Any]] = {
    "tirx.exp": _exp,
    "tirx.tanh": _odd(9.0, _TANH, _TANH_BELOW),
    "tirx.erf": _odd(4.0, _ERF, _ERF_BELOW),
    "tirx.sigmoid": _sigmoid,
}
"""Arithmetic forms, by operator name."""

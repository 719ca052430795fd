"""Expressions of TensorIR as NumPy computes them: the same values, of the same types.

Indices are integers of Python; elements of arrays and literals of a float type are scalars of
NumPy, whose arithmetic keeps their type. Conditions are lazy: of ``a if c else b`` one side is
computed, as ``T.if_then_else`` promises. ``T.max(a, b)`` is ``a if a > b else b``, also where one
is not a number, and that is ``max(b, a)`` in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from tvm import ir, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.rendering.programs.expression_text import (
    AND,
    ATOM,
    IF,
    NOT,
    OR,
    PRODUCT,
    UNARY,
    ExpressionText,
    Written,
    dtype_of,
    operator_name,
)

HELPERS = {
    "truncdiv": (
        "def truncdiv(a, b):",
        '    """Divide integers and round towards zero."""',
        "    quotient = abs(a) // abs(b)",
        "    return quotient if (a < 0) == (b < 0) else -quotient",
    ),
    "truncmod": (
        "def truncmod(a, b):",
        '    """Return what is left of a division that is rounded towards zero."""',
        "    rest = abs(a) % abs(b)",
        "    return -rest if a < 0 else rest",
    ),
    "round_away": (
        "def round_away(x):",
        '    """Round to the nearest integer, and halves away from zero."""',
        "    whole = np.trunc(x)",
        "    return whole + np.copysign(type(x)(1), x) if abs(x - whole) >= 0.5 else whole",
    ),
}
"""Functions that a program defines where it needs them."""

_UFUNCS = {
    **{
        name: name
        for name in (
            *("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "tanh", "sinh", "cosh"),
            *("sin", "cos", "tan", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
            *("fmod", "hypot", "copysign", "nextafter", "ldexp"),
        )
    },
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "nearbyint": "rint",
    "fabs": "abs",
    "pow": "power",
}
"""NumPy functions that compute the same as operators of TensorIR."""


class NumpyExpressions(ExpressionText):
    """Formatter of the expressions of one function.

    Attributes
    ----------
    imports
        Modules that the text needs.
    helpers
        Keys of `HELPERS` that it needs.

    Parameters
    ----------
    name_of
        Returns the name of a variable or a buffer.
    take
        Returns a name for a variable that the expression binds itself.
    where
        Id of the function, for errors.
    """

    def __init__(
        self, name_of: Callable[[Any], str], take: Callable[[Any], str], where: str
    ) -> None:
        super().__init__(name_of)
        self._take = take
        self.imports: set[str] = {"numpy as np"}
        self.helpers: set[str] = set()
        self._where = where

    def element(self, buffer: Any, indices: Any) -> str:
        """Return an element of an array, to read or to write."""
        return f"{self._name_of(buffer)}[{self.arguments(indices) or '()'}]"

    def dtype(self, dtype: str) -> str:
        """Return the type of NumPy that has a dtype."""
        if dtype == "bool":
            return "np.bool_"
        if hasattr(np, dtype):
            return f"np.{dtype}"
        if hasattr(ml_dtypes, dtype):
            self.imports.add("ml_dtypes")
            return f"ml_dtypes.{dtype}"
        raise self.refusal(f"the dtype {dtype}")

    def stored(self, value: Any) -> str:
        """Return a value to store: an array gives a literal its type."""
        if isinstance(value, tirx.FloatImm) and np.isfinite(value.value):
            return self._digits(value)
        return self.text(value)

    def refusal(self, what: str) -> LowerscopeError:
        """Return the error for an expression that has no form."""
        return LowerscopeError(
            f"loops of NumPy have no form for {what}",
            where=self._where,
            todo="Look at the script instead",
        )

    def other(self, expression: Any) -> Written:
        """Return an expression that is not an operator of Python, or has another meaning there."""
        kind = type(expression)
        if kind in _WRITERS:
            return _WRITERS[kind](self, expression)
        name = operator_name(expression)
        if name in _UFUNCS:
            return f"np.{_UFUNCS[name]}({self.arguments(expression.args)})", ATOM
        if name in _CALLS:
            return _CALLS[name](self, expression)
        raise self.refusal(name or kind.__name__)

    # Literals and conversions

    def _float(self, expression: Any) -> Written:
        value, made = float(expression.value), self.dtype(dtype_of(expression))
        if not np.isfinite(value):
            return f'{made}("{value}")', ATOM
        return f"{made}({self._digits(expression)})", ATOM

    def _digits(self, expression: Any) -> str:
        """Return the shortest literal that the dtype rounds to the value."""
        value, dtype = float(expression.value), dtype_of(expression)
        if dtype == "float64" or not hasattr(np, dtype):
            return repr(value)
        return repr(float(str(getattr(np, dtype)(value))))

    def _cast(self, expression: Any) -> Written:
        return f"{self.dtype(dtype_of(expression))}({self.text(expression.value)})", ATOM

    def _reinterpret(self, expression: Any) -> Written:
        (value,) = expression.args
        return f"{self.text(value, ATOM)}.view({self.dtype(dtype_of(expression))})", ATOM

    def _large_integer(self, expression: Any) -> Written:
        low, high = (int(each.value) for each in expression.args)
        return f"{self.dtype(dtype_of(expression))}({(high << 32) + low})", ATOM

    def _infinity(self, expression: Any) -> Written:
        return f'{self.dtype(dtype_of(expression))}("inf")', ATOM

    # Elements and names

    def _load(self, expression: Any) -> Written:
        return self.element(expression.source, expression.indices), ATOM

    def _let(self, expression: Any) -> Written:
        value = self.text(expression.value)
        name = self._take(expression.var)
        return f"(lambda {name}: {self.text(expression.body)})({value})", ATOM

    # Conditions

    def _and(self, expression: Any) -> Written:
        return self.infix("and", AND, expression.a, expression.b)

    def _or(self, expression: Any) -> Written:
        return self.infix("or", OR, expression.a, expression.b)

    def _not(self, expression: Any) -> Written:
        return f"not {self.text(expression.a, NOT)}", NOT

    def _select(self, expression: Any) -> Written:
        return self._choice(expression.condition, expression.true_value, expression.false_value)

    def _if_then_else(self, expression: Any) -> Written:
        return self._choice(*expression.args)

    def _choice(self, condition: Any, first: Any, second: Any) -> Written:
        yes, no = self.text(first, OR), self.text(second, IF)
        return f"{yes} if {self.text(condition, OR)} else {no}", IF

    # Arithmetic

    def _max(self, expression: Any) -> Written:
        return self._greater_or_less("max", expression)

    def _min(self, expression: Any) -> Written:
        return self._greater_or_less("min", expression)

    def _greater_or_less(self, name: str, expression: Any) -> Written:
        parts = (expression.a, expression.b)
        if "float" in dtype_of(expression):
            parts = (expression.b, expression.a)
        return f"{name}({self.arguments(parts)})", ATOM

    def _divide(self, expression: Any) -> Written:
        if "float" in dtype_of(expression):
            return self.infix("/", PRODUCT, expression.a, expression.b)
        return self._helper("truncdiv", expression.a, expression.b)

    def _modulo(self, expression: Any) -> Written:
        return self._helper("truncmod", expression.a, expression.b)

    def _invert(self, expression: Any) -> Written:
        if dtype_of(expression) == "bool":
            return self._not(expression)
        return f"~{self.text(expression.a, UNARY)}", UNARY

    def _helper(self, name: str, *arguments: Any) -> Written:
        self.helpers.add(name)
        return f"{name}({self.arguments(arguments)})", ATOM

    def _round(self, expression: Any) -> Written:
        return self._helper("round_away", *expression.args)

    def _rsqrt(self, expression: Any) -> Written:
        one = f"{self.dtype(dtype_of(expression))}(1)"
        return f"{one} / np.sqrt({self.arguments(expression.args)})", PRODUCT

    def _sigmoid(self, expression: Any) -> Written:
        one = f"{self.dtype(dtype_of(expression))}(1)"
        return f"{one} / ({one} + np.exp(-{self.text(expression.args[0], UNARY)}))", PRODUCT

    def _erf(self, expression: Any) -> Written:
        self.imports.add("math")
        made = self.dtype(dtype_of(expression))
        return f"{made}(math.erf({self.arguments(expression.args)}))", ATOM

    def _abs(self, expression: Any) -> Written:
        return f"abs({self.arguments(expression.args)})", ATOM

    def _popcount(self, expression: Any) -> Written:
        return f"np.bitwise_count({self.arguments(expression.args)})", ATOM

    def _likely(self, expression: Any) -> Written:
        return self.written(expression.args[0])


_WRITERS: dict[type, Callable[[NumpyExpressions, Any], Written]] = {
    tirx.FloatImm: NumpyExpressions._float,
    tirx.Cast: NumpyExpressions._cast,
    ir.TensorLoad: NumpyExpressions._load,
    tirx.Let: NumpyExpressions._let,
    tirx.And: NumpyExpressions._and,
    tirx.Or: NumpyExpressions._or,
    tirx.Not: NumpyExpressions._not,
    tirx.Select: NumpyExpressions._select,
    tirx.Max: NumpyExpressions._max,
    tirx.Min: NumpyExpressions._min,
    tirx.Div: NumpyExpressions._divide,
    tirx.Mod: NumpyExpressions._modulo,
    tirx.BitwiseNot: NumpyExpressions._invert,
}

_CALLS: dict[str, Callable[[NumpyExpressions, Any], Written]] = {
    "if_then_else": NumpyExpressions._if_then_else,
    "reinterpret": NumpyExpressions._reinterpret,
    "large_uint_imm": NumpyExpressions._large_integer,
    "infinity": NumpyExpressions._infinity,
    "round": NumpyExpressions._round,
    "rsqrt": NumpyExpressions._rsqrt,
    "sigmoid": NumpyExpressions._sigmoid,
    "erf": NumpyExpressions._erf,
    "abs": NumpyExpressions._abs,
    "popcount": NumpyExpressions._popcount,
    "likely": NumpyExpressions._likely,
}

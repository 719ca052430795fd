"""Expressions of TensorIR as tensor expressions: operators of Python on elements of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.rendering.programs.expression_text import (
    ATOM,
    IF,
    PRODUCT,
    UNARY,
    ExpressionText,
    Written,
    dtype_of,
    operator_name,
)

_NAMES = {"fabs": "abs", "pow": "power"}
"""Names of operators in `tvm.tirx` that differ from TensorIR's."""

_FUNCTIONS: dict[type, str] = {
    tirx.Max: "te.max",
    tirx.Min: "te.min",
    tirx.Mod: "tirx.truncmod",
    tirx.EQ: "tirx.EQ",
    tirx.NE: "tirx.NE",
}

_PLAIN = ("float32", "int32", "int64")
"""Dtypes that a Python number takes on beside an expression of them; others it would widen."""

_CHAINS: dict[type, str] = {tirx.And: "tirx.all", tirx.Or: "tirx.any"}

_MIRRORED: dict[type, str] = {tirx.LT: ">", tirx.LE: ">=", tirx.GT: "<", tirx.GE: "<="}


class TensorExpressions(ExpressionText):
    """Formatter of the expressions of one function.

    Parameters
    ----------
    name_of
        Returns the name of a variable or a buffer.
    where
        Id of the function, for errors.
    """

    def __init__(self, name_of: Callable[[Any], str], where: str) -> None:
        super().__init__(name_of)
        self._where = where

    def refusal(self, what: str) -> LowerscopeError:
        """Return the error for an expression that no tensor expression makes."""
        return LowerscopeError(
            f"there is no tensor expression for this function: {what}",
            where=self._where,
            todo="Look at the script instead",
        )

    def written(self, expression: Any) -> Written:
        """Return `expression` as text, and how tightly it binds."""
        kind = type(expression)
        if kind in _FUNCTIONS:
            return f"{_FUNCTIONS[kind]}({self._pair(expression.a, expression.b)})", ATOM
        if kind in _CHAINS:
            return f"{_CHAINS[kind]}({self.arguments(_chain(expression))})", ATOM
        if kind in _MIRRORED and _is_literal(expression.a):
            # TVM's simplification swaps the sides of a comparison that begins with a number.
            mirrored = _MIRRORED[kind]
            _, binds = super().written(expression)
            return self.infix(mirrored, binds, expression.b, expression.a)
        return super().written(expression)

    def infix(self, symbol: str, binds: int, left: Any, right: Any) -> Written:
        """Return ``left symbol right``, where a number beside an element is a plain one."""
        before = self._operand(left, right, binds)
        return f"{before} {symbol} {self._operand(right, left, binds + 1)}", binds

    def other(self, expression: Any) -> Written:
        """Return an expression that is not an operator of Python, or has another meaning there."""
        kind = type(expression)
        if isinstance(expression, tirx.FloatImm):
            return f'tirx.const({_digits(expression)}, "{dtype_of(expression)}")', ATOM
        if kind is tirx.Cast:
            return f'{self.text(expression.value, ATOM)}.astype("{dtype_of(expression)}")', ATOM
        if kind is tirx.Not:
            return f"tirx.Not({self.text(expression.a)})", ATOM
        if kind is tirx.BitwiseNot:
            return f"~{self.text(expression.a, UNARY)}", UNARY
        if kind is tirx.Div:
            if "float" in dtype_of(expression):
                return self.infix("/", PRODUCT, expression.a, expression.b)
            return f"tirx.truncdiv({self._pair(expression.a, expression.b)})", ATOM
        if kind is tirx.Select:
            pair = self._pair(expression.true_value, expression.false_value)
            return f"tirx.Select({self.text(expression.condition)}, {pair})", ATOM
        if isinstance(expression, ir.TensorLoad):
            name, indices = self._name_of(expression.source), list(expression.indices)
            parts = [_digits(each) if _is_literal(each) else self.text(each) for each in indices]
            return f"{name}[{', '.join(parts)}]" if parts else f"{name}()", ATOM
        name = operator_name(expression)
        if name == "if_then_else":
            condition, *sides = expression.args
            return f"tirx.if_then_else({self.text(condition)}, {self._pair(*sides)})", ATOM
        name = _NAMES.get(name, name)
        if name and callable(getattr(tirx, name, None)):
            return f"tirx.{name}({self.arguments(expression.args)})", ATOM
        raise self.refusal(f"it has {name or kind.__name__}")

    def integer(self, expression: Any) -> Written:
        """Return a number of an integer type that stands alone."""
        text, _ = super().integer(expression)
        return f'tirx.const({text}, "{dtype_of(expression)}")', ATOM

    def _pair(self, left: Any, right: Any) -> str:
        return f"{self._operand(left, right, IF)}, {self._operand(right, left, IF)}"

    def _operand(self, operand: Any, other: Any, context: int) -> str:
        plain = dtype_of(operand) in _PLAIN and not _is_literal(other)
        if _is_literal(operand) and plain:
            digits = _digits(operand)
            return f"({digits})" if digits.startswith("-") and context > UNARY else digits
        return self.text(operand, context)


def _chain(expression: Any) -> list[Any]:
    """Return the parts of a conjunction, as TVM nests several of them: from the left."""
    parts: list[Any] = []
    kind = type(expression)
    while type(expression) is kind:
        parts.append(expression.b)
        expression = expression.a
    return [expression, *reversed(parts)]


def _is_literal(expression: Any) -> bool:
    return isinstance(expression, tirx.IntImm | tirx.FloatImm) and dtype_of(expression) != "bool"


def _digits(expression: Any) -> str:
    value = expression.value
    if isinstance(expression, tirx.FloatImm):
        value = float(value)
        return repr(value) if value - value == 0 else f'float("{value}")'
    return str(int(value))

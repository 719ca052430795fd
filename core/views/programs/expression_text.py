"""Expressions of TensorIR as Python text: the operators, with as few parentheses as Python needs.

The meaning of operands differs from program to program (arrays of NumPy, tensors of TE), so each
has a class of its own over this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx

IF = 0
OR = 1
AND = 2
NOT = 3
COMPARE = 4
BIT_OR = 5
BIT_XOR = 6
BIT_AND = 7
SHIFT = 8
SUM = 9
PRODUCT = 10
UNARY = 11
ATOM = 12
"""Precedences of Python, from the conditional expression to names and calls."""

Written = tuple[str, int]
"""A text, and the precedence of its outermost operator."""

_OPERATORS: dict[type, tuple[str, int]] = {
    tirx.Add: ("+", SUM),
    tirx.Sub: ("-", SUM),
    tirx.Mul: ("*", PRODUCT),
    tirx.FloorDiv: ("//", PRODUCT),
    tirx.FloorMod: ("%", PRODUCT),
    tirx.BitwiseAnd: ("&", BIT_AND),
    tirx.BitwiseOr: ("|", BIT_OR),
    tirx.BitwiseXor: ("^", BIT_XOR),
    tirx.LShift: ("<<", SHIFT),
    tirx.RShift: (">>", SHIFT),
    tirx.EQ: ("==", COMPARE),
    tirx.NE: ("!=", COMPARE),
    tirx.LT: ("<", COMPARE),
    tirx.LE: ("<=", COMPARE),
    tirx.GT: (">", COMPARE),
    tirx.GE: (">=", COMPARE),
}


class ExpressionText:
    """Formatter of expressions; subclasses write those that are not operators of Python."""

    def __init__(self, name_of: Callable[[Any], str]) -> None:
        self._name_of = name_of

    def text(self, expression: Any, context: int = IF) -> str:
        """Return `expression` as text, in parentheses where its precedence is below `context`."""
        text, binds = self.written(expression)
        return text if binds >= context else f"({text})"

    def arguments(self, expressions: Any) -> str:
        """Return expressions with commas between them."""
        return ", ".join(self.text(each) for each in expressions)

    def written(self, expression: Any) -> Written:
        """Return `expression` as text, with its precedence."""
        if isinstance(expression, tirx.Var):
            return self._name_of(expression), ATOM
        if isinstance(expression, tirx.IntImm):
            return self.integer(expression)
        operator = _OPERATORS.get(type(expression))
        if operator is not None:
            return self.infix(*operator, expression.a, expression.b)
        return self.other(expression)

    def infix(self, symbol: str, binds: int, left: Any, right: Any) -> Written:
        """Return ``left symbol right``; comparisons do not chain, the others group to the left."""
        before = self.text(left, binds + 1 if binds == COMPARE else binds)
        return f"{before} {symbol} {self.text(right, binds + 1)}", binds

    def integer(self, expression: Any) -> Written:
        """Return a literal of an integer type, or of bool."""
        value = int(expression.value)
        if dtype_of(expression) == "bool":
            return str(bool(value)), ATOM
        return str(value), ATOM if value >= 0 else UNARY

    def other(self, expression: Any) -> Written:
        """Return an expression that is written differently from program to program."""
        raise NotImplementedError


def dtype_of(expression: Any) -> str:
    """Return the dtype of a TensorIR expression, as ``"float32"``."""
    return str(expression.ty.dtype)


def operator_name(expression: Any) -> str:
    """Return the name of the operator that is called, as ``"exp"``; empty if none is."""
    if not isinstance(expression, ir.Call):
        return ""
    return str(getattr(expression.op, "name", "")).rpartition(".")[2]

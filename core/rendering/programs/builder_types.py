"""Types and symbolic extents of Relax as Python code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import ir, relax, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.rendering.programs.builder_scope import BuilderScope
from lowerscope.core.rendering.programs.expression_text import (
    ATOM,
    ExpressionText,
    Written,
    dtype_of,
    operator_name,
)


class SymbolText(ExpressionText):
    """Formatter of symbolic extents, with the operators of `tvm.tirx` expressions."""

    def other(self, expression: Any) -> Written:
        """Return a call of a function of `tvm.tirx`."""
        kind = type(expression)
        if isinstance(expression, tirx.FloatImm):
            return f'tirx.const({float(expression.value)!r}, "{dtype_of(expression)}")', ATOM
        if isinstance(expression, tirx.Cast):
            return f'{self.text(expression.value, ATOM)}.astype("{dtype_of(expression)}")', ATOM
        functions = {tirx.Max: "max", tirx.Min: "min", tirx.Div: "truncdiv", tirx.Mod: "truncmod"}
        if kind in functions:
            parts = self.arguments((expression.a, expression.b))
            return f"tirx.{functions[kind]}({parts})", ATOM
        if operator_name(expression) == "if_then_else":
            return f"tirx.if_then_else({self.arguments(expression.args)})", ATOM
        raise LowerscopeError(
            f"the builder program has no form for the extent {expression}",
            todo="Look at the script instead",
        )


class TypeText:
    """Formatter of the types of one scope."""

    def __init__(self, scope: BuilderScope) -> None:
        self._scope = scope
        self._symbols = SymbolText(scope.name_of)

    def type(self, meant: Any) -> str:
        """Return code that makes the type.

        Raises
        ------
        LowerscopeError
            If there is none.
        """
        text = self._type(meant)
        if text is None:
            raise LowerscopeError(
                f"the builder program has no form for the type {meant}",
                todo="Look at the script instead",
            )
        return text

    def extent(self, meant: Any) -> str:
        """Return code that makes an extent, or an integer where a number is enough."""
        return self._symbols.text(meant)

    def extents(self, meant: Iterable[Any]) -> str:
        """Return a tuple of extents."""
        return tuple_text([self.extent(each) for each in meant])

    def _type(self, meant: Any) -> str | None:
        if isinstance(meant, relax.TensorType):
            return self._tensor(meant)
        if isinstance(meant, relax.ShapeType):
            if meant.values is None:
                return f"relax.ShapeType(ndim={meant.ndim})"
            return f"relax.ShapeType([{', '.join(self.extent(each) for each in meant.values)}])"
        if isinstance(meant, ir.TupleType):
            return f"relax.TupleType([{', '.join(self.type(each) for each in meant.fields)}])"
        if isinstance(meant, ir.PrimType):
            return f'tvm.ir.PrimType("{meant.dtype}")'
        if isinstance(meant, relax.AnyType):
            return "relax.AnyType()"
        return None

    def _tensor(self, meant: Any) -> str | None:
        if meant.vdevice is not None:
            return None
        dtype = "None" if meant.dtype is None else f'"{dtype_text(meant.dtype)}"'
        if meant.shape is None:
            rank = f", ndim={meant.ndim}" if meant.ndim >= 0 else ""
            return f"relax.TensorType(dtype={dtype}{rank})"
        if isinstance(meant.shape, relax.ShapeExpr):
            return f"relax.TensorType({self.extents(meant.shape.values)}, {dtype})"
        if isinstance(meant.shape, relax.Var):
            return f"relax.TensorType({self._scope.name_of(meant.shape)}, {dtype})"
        return None


def tuple_text(parts: list[str]) -> str:
    """Return a tuple of Python: with a comma after a single part."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def dtype_text(dtype: Any) -> str:
    """Return the name of a dtype, whether it is given as such or as a type of scalars."""
    return str(getattr(dtype, "dtype", dtype))

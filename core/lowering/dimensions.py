"""Named dimensions of a module: one TVM variable for each name, and its bounds."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from tvm import ir, relax, sym, tirx

from lowerscope.core.lowering.relax_values import Value, extents_of, is_size, numbers_of

Extent = Any
"""An int, or a TVM expression over the variables of the names."""


class Dimensions:
    """The variables of the named dimensions of one module.

    Parameters
    ----------
    ranges
        Smallest and largest size of each name.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        self._variables = {name: tirx.Var(name, "int64") for name in ranges}
        self._analyzer = sym.Analyzer()
        for name, (low, high) in ranges.items():
            span = ir.Range.from_min_extent(low, high - low + 1)
            self._analyzer.bind(self._variables[name], span)

    def extent(self, extent: int | str) -> Extent | None:
        """Return an extent for a number, or for an expression over names as Python writes it.

        ``None`` if it has another name: it is known only at run time.
        """
        if isinstance(extent, int):
            return extent
        try:
            value = _evaluated(ast.parse(extent, mode="eval").body, self._variables)
        except (KeyError, SyntaxError):
            return None
        return value if isinstance(value, int) else self.simplified(value)

    def shape(self, shape: Sequence[int | str]) -> tuple[Extent, ...] | None:
        """Return extents as `extent` does; ``None`` if one of them is unknown."""
        extents = tuple(self.extent(each) for each in shape)
        return None if any(each is None for each in extents) else extents

    def simplified(self, extent: Extent) -> Extent:
        """Return `extent` simplified; an int if it has only one value."""
        if isinstance(extent, int):
            return extent
        short = self._analyzer.simplify(extent)
        return int(short) if isinstance(short, tirx.IntImm) else short

    def are_known(self, value: Value) -> bool:
        """Return whether every extent of a tensor is a number, or made of named dimensions."""
        shape = value.ty.shape
        if numbers_of(shape) is not None:
            return True
        if not isinstance(shape, relax.ShapeExpr):
            return False
        return all(
            any(each.same_as(one) for one in self._variables.values())
            for extent in [each for each in extents_of(shape) if not isinstance(each, int)]
            for each in tirx.analysis.undefined_vars(tirx.Evaluate(extent), [])
        )

    def same(self, first: Extent, second: Extent) -> bool:
        """Return whether two extents are equal for all sizes, as far as that can be proved."""
        if isinstance(first, int) and isinstance(second, int):
            return first == second
        return bool(self._analyzer.can_prove_equal(_expression(first), _expression(second)))

    def never_same(self, first: Extent, second: Extent) -> bool:
        """Return whether two extents differ for all sizes, as far as that can be proved."""
        if isinstance(first, int) and isinstance(second, int):
            return first != second
        return bool(self._analyzer.can_prove(tirx.NE(_expression(first), _expression(second))))

    def compute(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """Return a Python function's result on sizes.

        Raises
        ------
        NotImplementedError
            If it is no integer for all sizes, or depends on an undecidable comparison.
        """
        make = _COMPUTED.get(function)
        if make is None:
            name = getattr(function, "__name__", str(function))
            raise NotImplementedError(f"{name} of a size is not an integer expression")
        value = make(*args)
        if function not in _COMPARISONS:
            return self.simplified(value)
        if self._analyzer.can_prove(value):
            return True
        if self._analyzer.can_prove(tirx.Not(value)):
            return False
        raise NotImplementedError("it compares sizes, and the outcome is not that for all sizes")


def _expression(extent: Extent) -> Any:
    return tirx.IntImm("int64", extent) if isinstance(extent, int) else extent


def _two(make: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda first, second: make(_expression(first), _expression(second))


_COMPARISONS: Mapping[Any, Callable[..., Any]] = {
    operator.eq: _two(tirx.EQ),
    operator.ne: _two(tirx.NE),
    operator.lt: _two(tirx.LT),
    operator.le: _two(tirx.LE),
    operator.gt: _two(tirx.GT),
    operator.ge: _two(tirx.GE),
}

_COMPUTED: Mapping[Any, Callable[..., Any]] = {
    **_COMPARISONS,
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.floordiv: operator.floordiv,
    operator.mod: operator.mod,
    operator.neg: operator.neg,
    operator.pos: lambda value: value,
    operator.index: lambda value: value,
    int: lambda value: value,
    max: _two(tirx.max),
    min: _two(tirx.min),
    torch.sym_max: _two(tirx.max),
    torch.sym_min: _two(tirx.min),
    torch.sym_int: lambda value: value,
    torch.sym_sum: sum,
}

SIZE_FUNCTIONS = frozenset(_COMPUTED)
"""Functions that can be computed on sizes."""

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _evaluated(node: ast.expr, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression over names.

    Raises
    ------
    KeyError
        If a name or an operation is unknown.
    """
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return variables[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand, variables)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if power > 0:
            base = _evaluated(left, variables)
            value = base
            for _ in range(power - 1):
                value = value * base
            return value
        case ast.BinOp(left=left, op=sign, right=right):
            make = _OPERATORS[type(sign)]
            return make(_evaluated(left, variables), _evaluated(right, variables))
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=args):
            values = [_expression(_evaluated(each, variables)) for each in args]
            value = values[0]
            for each in values[1:]:
                value = (tirx.max if name == "max" else tirx.min)(value, each)
            return value
    raise KeyError(ast.dump(node))


def holds_size(value: Any) -> bool:
    """Return whether a nest contains a size that has several values."""
    if isinstance(value, (tuple, list)):
        return any(holds_size(each) for each in value)
    if isinstance(value, dict):
        return any(holds_size(each) for each in value.values())
    return is_size(value)

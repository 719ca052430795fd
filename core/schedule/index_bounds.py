"""Upper bound on the integer inputs of a function that are used as indices."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

from tvm import ir, s_tir, tirx

from lowerscope.core.schedule.parameters import expressions_in, loads_in, nodes_in, statements_in
from lowerscope.core.views.programs.expression_text import dtype_of, operator_name

Interval = tuple[float, float]
"""The smallest and the largest value, both included."""

_ANY: Interval = (-math.inf, math.inf)
_TRUTH: Interval = (0, 1)
_MOST = 1 << 20


def largest_index(function: Any) -> int | None:
    """Return the largest value of integer inputs, from 0, that keeps all indices in bounds.

    ``None`` where no element of a buffer is an index. 0 where nothing larger can be shown to be
    safe.
    """
    if not _fits(function, None):
        return None
    # The first that does not fit, less one; 0 is not tried.
    sizes = range(1, _MOST + 1)
    return bisect.bisect_left(sizes, True, key=lambda high: not _fits(function, high))


def divides_by_inputs(function: Any) -> bool:
    """Return whether an integer is divided by a value that is known at run time alone."""

    def divides(expression: Any) -> bool:
        return (
            type(expression) in _DIVISIONS
            and "int" in dtype_of(expression)
            and any(True for _ in loads_in(expression.b))
        )

    def walk(statement: Any) -> bool:
        nodes = (node for each in expressions_in(statement) for node in nodes_in(each))
        return any(map(divides, nodes)) or any(map(walk, statements_in(statement)))

    return walk(function.body)


_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def _fits(function: Any, high: int | None) -> bool:
    """Return whether indices that are read from buffers are in bounds, up to `high` in the inputs.

    Without `high`, whether there are any such indices.
    """
    walk = _Walk(high)
    walk.statement(function.body)
    return walk.any if high is None else walk.inside


class _Walk:
    """Range analysis of the integers of a function, in the order of its text."""

    def __init__(self, high: int | None) -> None:
        self.any = False
        self.inside = True
        self._given: Interval = (0, high or 0)
        self._ranges: dict[Any, Interval] = {}
        self._stored: dict[Any, Interval] = {}

    def statement(self, statement: Any) -> None:
        kind = type(statement)
        if kind is tirx.For:
            self._ranges[statement.loop_var] = self._range(statement.min, statement.extent)
        elif kind is s_tir.SBlock:
            for axis in statement.iter_vars:
                self._ranges[axis.var] = self._range(axis.dom.min, axis.dom.extent)
        elif kind is tirx.Bind:
            self._ranges[statement.var] = self.of(statement.value)
        for expression in expressions_in(statement):
            for load in loads_in(expression):
                self._check(load.source, load.indices)
        if kind is tirx.BufferStore:
            self._check(statement.buffer, statement.indices)
            if "int" in dtype_of(statement.value):
                low, high = self.of(statement.value)
                old = self._stored.get(statement.buffer, (low, high))
                self._stored[statement.buffer] = (min(old[0], low), max(old[1], high))
        for inner in statements_in(statement):
            self.statement(inner)

    def _check(self, buffer: Any, indices: Any) -> None:
        for index, extent in zip(indices, buffer.ty.shape, strict=True):
            if not any(True for _ in loads_in(index)):
                continue
            self.any = True
            low, high = self.of(index)
            if not (low >= 0 and isinstance(extent, tirx.IntImm) and high < int(extent.value)):
                self.inside = False

    def _range(self, begin: Any, extent: Any) -> Interval:
        low, count = self.of(begin), self.of(extent)
        return low[0], low[1] + count[1] - 1

    def of(self, expression: Any) -> Interval:
        """Return the range of an integer, or of a condition."""
        kind = type(expression)
        if kind is tirx.IntImm:
            return int(expression.value), int(expression.value)
        if isinstance(expression, tirx.Var):
            return self._ranges.get(expression, _ANY)
        if isinstance(expression, ir.TensorLoad):
            return self._loaded(expression)
        if kind is tirx.Cast:
            return self.of(expression.value) if "int" in dtype_of(expression.value) else _ANY
        if kind is tirx.Select:
            branches = expression.true_value, expression.false_value
            return self._either(expression.condition, *branches)
        if operator_name(expression) == "if_then_else":
            return self._either(*expression.args)
        if kind in _ARITHMETIC:
            return _ARITHMETIC[kind](self.of(expression.a), self.of(expression.b))
        return _TRUTH if dtype_of(expression) == "bool" else _ANY

    def _loaded(self, load: Any) -> Interval:
        dtype = dtype_of(load)
        if dtype == "bool":
            return _TRUTH
        return self._stored.get(load.source, self._given) if "int" in dtype else _ANY

    def _either(self, condition: Any, yes: Any, no: Any) -> Interval:
        low, high = self.of(condition)
        if low == high:
            return self.of(yes if low else no)
        (a, b), (c, d) = self.of(yes), self.of(no)
        return min(a, c), max(b, d)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] != b[1] or b[0] <= 0 or math.inf in (a[1], -a[0]):
        return _ANY
    return a[0] // b[0], a[1] // b[0]


def _rest(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        return _ANY
    return a if a[0] >= 0 and a[1] < b[0] else (0, b[1] - 1)


def _less(a: Interval, b: Interval) -> Interval:
    return (1, 1) if a[1] < b[0] else (0, 0) if a[0] >= b[1] else _TRUTH


def _less_or_equal(a: Interval, b: Interval) -> Interval:
    return (1, 1) if a[1] <= b[0] else (0, 0) if a[0] > b[1] else _TRUTH


_ARITHMETIC: dict[type, Callable[[Interval, Interval], Interval]] = {
    tirx.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    tirx.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    tirx.Mul: _product,
    tirx.FloorDiv: _quotient,
    tirx.FloorMod: _rest,
    tirx.Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    tirx.Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    tirx.LT: _less,
    tirx.LE: _less_or_equal,
    tirx.GT: lambda a, b: _less(b, a),
    tirx.GE: lambda a, b: _less_or_equal(b, a),
    tirx.And: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    tirx.Or: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}

"""Parameters of a TensorIR function, and traversal of its statements and expressions."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

import tvm_ffi
from tvm import DataType, ir, s_tir, tirx
from tvm.tirx.analysis import undefined_vars
from tvm.tirx.buffer import is_buffer_var


def known(value: Any) -> int | None:
    """Return an extent as a number; ``None`` for one that is symbolic."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, tirx.IntImm) else None


def mentions(value: Any, var: Any) -> bool:
    """Return whether a variable occurs in an expression."""
    return any(var.same_as(each) for each in undefined_vars(value))


ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod,
}
"""Operations on indices, of numbers and arrays."""

_OPERANDS = ("a", "b", "value", "condition", "true_value", "false_value", "body", "base")

Role = Literal["input", "output", "both"]


@dataclass(frozen=True)
class Parameter:
    """A buffer that a function is called with.

    `shape`: extents; ``None`` where one is symbolic. `role`: ``"both"`` is read before it is
    written. `loads` and `stores`: number of reads and writes of its elements in one call; infinite
    where an extent is symbolic, 0 where that cannot be determined.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    role: Role
    buffer: Any
    loads: float = 0
    stores: float = 0

    @property
    def size(self) -> int | None:
        """Size in bytes; ``None`` where the shape is symbolic."""
        return None if self.shape is None else self._bytes(math.prod(self.shape))

    @property
    def read(self) -> int | None:
        """Upper bound on the bytes that are read: of a table, the rows that are looked up."""
        return 0 if self.role == "output" else self._touched(self.loads)

    @property
    def written(self) -> int | None:
        """Upper bound on the bytes that are written."""
        return 0 if self.role == "input" else self._touched(self.stores)

    def _touched(self, times: float) -> int | None:
        if self.size is None or not 0 < times < math.inf:
            return self.size
        return min(self.size, self._bytes(int(times)))

    def _bytes(self, elements: int) -> int:
        kind = DataType(self.dtype)
        return (elements * int(kind.bits) * int(kind.lanes) + 7) // 8


def parameters_of(function: Any) -> tuple[Parameter, ...] | None:
    """Return the buffers of a function in order; ``None`` if it has other parameters as well."""
    if not all(is_buffer_var(each) for each in function.params):
        return None
    accesses = _Accesses()
    accesses.statement(function.body, 1)
    return tuple(_parameter(each, accesses) for each in function.params)


def _parameter(variable: Any, accesses: _Accesses) -> Parameter:
    extents = tuple(variable.ty.shape)
    static = all(isinstance(each, tirx.IntImm) for each in extents)
    role: Role = "input"
    if variable in accesses.written:
        role = "both" if variable in accesses.read_first else "output"
    return Parameter(
        name=str(variable.name),
        dtype=str(variable.ty.dtype.dtype),
        shape=tuple(int(each.value) for each in extents) if static else None,
        role=role,
        buffer=variable,
        loads=accesses.loads.get(variable, 0),
        stores=accesses.stores.get(variable, 0),
    )


class _Accesses:
    """Accesses of buffers: those that are written, and those that are read before, in text order.

    ``loads`` and ``stores`` count how often, for each.
    """

    def __init__(self) -> None:
        self.read_first: set[Any] = set()
        self.loads: dict[Any, float] = defaultdict(float)
        self.stores: dict[Any, float] = defaultdict(float)
        self._whole: dict[Any, Any] = {}

    @property
    def written(self) -> Set[Any]:
        return self.stores.keys()

    def statement(self, statement: Any, times: float) -> None:
        kind = type(statement)
        if kind is s_tir.SBlockRealize:
            for match in statement.block.match_buffers:
                source = match.source.source
                self._whole[match.buffer] = self._whole.get(source, source)
            # Where a reduction begins, its block writes the element that it then reads.
            if statement.block.init is not None:
                self.statement(statement.block.init, times)
            self.statement(statement.block.body, times)
            return
        for expression in expressions_in(statement):
            for load in loads_in(expression):
                source = self._whole.get(load.source, load.source)
                self.loads[source] += times
                if source not in self.written:
                    self.read_first.add(source)
        if kind is tirx.BufferStore:
            self.stores[self._whole.get(statement.buffer, statement.buffer)] += times
        if kind is tirx.For:
            extent = statement.extent
            times *= int(extent.value) if isinstance(extent, tirx.IntImm) else math.inf
        for inner in statements_in(statement):
            self.statement(inner, times)


def statements_in(statement: Any) -> Iterator[Any]:
    """Yield the direct child statements of a statement, in the order of the text."""
    if type(statement) is tirx.SeqStmt:
        yield from statement.seq
        return
    for field in ("block", "init", "body", "then_case", "else_case"):
        inner = getattr(statement, field, None)
        if isinstance(inner, tirx.Stmt):
            yield inner


def expressions_in(statement: Any) -> Iterator[Any]:
    """Yield the expressions of a statement itself."""
    yield from getattr(statement, "indices", ())
    for field in ("value", "condition", "predicate", "extent"):
        expression = getattr(statement, field, None)
        if isinstance(expression, ir.Expr):
            yield expression


def inner_expressions(expression: Any) -> Iterator[Any]:
    """Yield the direct operands of an expression."""
    for field in _OPERANDS:
        operand = getattr(expression, field, None)
        if isinstance(operand, ir.Expr):
            yield operand
    if isinstance(expression, ir.Call):
        yield from (each for each in expression.args if isinstance(each, ir.Expr))
    if isinstance(expression, ir.TensorLoad):
        yield from expression.indices


def loads_in(expression: Any) -> Iterator[Any]:
    """Return the elements of buffers that an expression reads."""
    return (each for each in nodes_in(expression) if isinstance(each, ir.TensorLoad))


def collected(body: Any, kinds: Any) -> list[Any]:
    """Return the nodes of some types in a statement or an expression."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (kinds, found.append))
    return found


def nodes_in(expression: Any) -> Iterator[Any]:
    """Yield an expression and its subexpressions."""
    yield expression
    if not isinstance(expression, tirx.Var):
        for inner in inner_expressions(expression):
            yield from nodes_in(inner)

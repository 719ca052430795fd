"""What the parameters of a TensorIR function are to it: what it reads, what it writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tvm import DataType, ir, s_tir, tirx
from tvm.tirx.buffer import is_buffer_var

_OPERANDS = ("a", "b", "value", "condition", "true_value", "false_value", "body", "base")

Role = Literal["input", "output", "both"]


@dataclass(frozen=True)
class Parameter:
    """A buffer that a function is called with.

    Attributes
    ----------
    name, dtype
        As in the script.
    shape
        Extents; ``None`` where one is symbolic.
    role
        ``"both"`` is read before it is written.
    buffer
        The variable.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    role: Role
    buffer: Any

    @property
    def size(self) -> int | None:
        """Bytes; ``None`` where the shape is symbolic."""
        if self.shape is None:
            return None
        elements = 1
        for extent in self.shape:
            elements *= extent
        kind = DataType(self.dtype)
        return (elements * int(kind.bits) * int(kind.lanes) + 7) // 8


def parameters_of(function: Any) -> tuple[Parameter, ...] | None:
    """Return the buffers of a function in order; ``None`` if it takes something else besides."""
    if not all(is_buffer_var(each) for each in function.params):
        return None
    accesses = _Accesses()
    accesses.statement(function.body)
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
    )


class _Accesses:
    """The buffers that are written, and those that are read before that, in the order of text."""

    def __init__(self) -> None:
        self.read_first: set[Any] = set()
        self.written: set[Any] = set()
        self._whole: dict[Any, Any] = {}

    def statement(self, statement: Any) -> None:
        kind = type(statement)
        if kind is s_tir.SBlockRealize:
            for match in statement.block.match_buffers:
                source = match.source.source
                self._whole[match.buffer] = self._whole.get(source, source)
            # Where a reduction begins, its block writes what it then reads.
            if statement.block.init is not None:
                self.statement(statement.block.init)
            self.statement(statement.block.body)
            return
        for expression in expressions_in(statement):
            for load in loads_in(expression):
                source = self._whole.get(load.source, load.source)
                if source not in self.written:
                    self.read_first.add(source)
        if kind is tirx.BufferStore:
            self.written.add(self._whole.get(statement.buffer, statement.buffer))
        for inner in statements_in(statement):
            self.statement(inner)


def statements_in(statement: Any) -> Iterator[Any]:
    """Yield the statements that a statement consists of, in the order of the text."""
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
    """Yield the expressions that an expression is made of directly."""
    for field in _OPERANDS:
        operand = getattr(expression, field, None)
        if isinstance(operand, ir.Expr):
            yield operand
    if isinstance(expression, ir.Call):
        yield from (each for each in expression.args if isinstance(each, ir.Expr))
    if isinstance(expression, ir.TensorLoad):
        yield from expression.indices


def loads_in(expression: Any) -> Iterator[Any]:
    """Yield the elements of buffers that an expression reads."""
    if isinstance(expression, ir.TensorLoad):
        yield expression
    if not isinstance(expression, tirx.Var):
        for inner in inner_expressions(expression):
            yield from loads_in(inner)

"""The tensor expressions that make a TensorIR function, as the course writes them.

They are derived from the function itself: each of its blocks is what ``te.create_prim_func`` makes
of one ``te.compute``. The program is run before it is returned, and must make the very function.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import ir, s_tir, tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.files.python_text import identifier, quoted
from lowerscope.core.ir.tensorir import dtype_of, operator_name, parts_of
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _
from lowerscope.core.views.programs.builder_text import literal, tuple_text
from lowerscope.core.views.programs.program_lines import (
    ATOM,
    IF,
    PRODUCT,
    UNARY,
    ExpressionText,
    Identifiers,
    ProgramLines,
    Written,
    without_form,
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
    """Formatter of the expressions of one function."""

    def __init__(self, name_of: Callable[[Any], str], where: str) -> None:
        super().__init__(name_of)
        self._where = where

    def refusal(self, what: str) -> LowerscopeError:
        """Return the error for an expression that no tensor expression makes."""
        return without_form(
            _("there is no tensor expression for this function: {what}", what=what), self._where
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
            _other, binds = super().written(expression)
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
        raise self.refusal(_("it has {name}", name=name or kind.__name__))

    def integer(self, expression: Any) -> Written:
        """Return a number of an integer type that stands alone."""
        text, _other = super().integer(expression)
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


_RESERVED = ("te", "tirx")

_REDUCERS: dict[type, str] = {
    tirx.Add: "te.sum",
    tirx.Max: "te.max",
    tirx.Min: "te.min",
    tirx.Mul: "product",
}

_DEFINED: dict[str, tuple[str, ...]] = {
    "product": (
        "product = te.comm_reducer(",
        '    lambda x, y: x * y, lambda dtype: tirx.const(1, dtype), name="product"',
        ")",
    ),
    "largest": (
        "largest = te.comm_reducer(",
        "    lambda x, y: tirx.Select(y <= tirx.infinity(str(y.ty.dtype)), tirx.max(y, x), y + y),",
        "    lambda dtype: -tirx.infinity(dtype),",
        '    name="max",',
        ")",
    ),
    "smallest": (
        "smallest = te.comm_reducer(",
        "    lambda x, y: tirx.Select(y <= tirx.infinity(str(y.ty.dtype)), tirx.min(y, x), y + y),",
        "    lambda dtype: tirx.infinity(dtype),",
        '    name="min",',
        ")",
    ),
}
"""Reducers that ``te`` does not have; the last two propagate NaN."""

_IMPLIED = {"s_tir": True, "tirx.noalias": True}
"""Attributes that ``te.create_prim_func`` gives, besides the name."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """One block with the loops around it, outermost first."""

    loops: tuple[Any, ...]
    block: Any
    store: Any


def te_text(function: Any, name: str) -> TextRecord:
    """Return the program that makes a PrimFunc of tensor expressions.

    It has a function ``te_NAME``, which computes the outputs from the inputs, and ends with the
    ``te.create_prim_func`` that makes the function of it. Spans are those of the function's
    script: ``tir:NAME``, ``tir:NAME/BLOCK``, ``tir:NAME/BLOCK/VARIABLE``; loops of one
    ``te.compute`` share its line, and a reduced axis has one of its own.

    Raises `LowerscopeError` if no tensor expression makes exactly this function, with the reason.
    """
    program = _Program(function, name)
    record, title = program.text()
    names: dict[str, Any] = {}
    try:
        # The text is our own, made of identifiers and literals.
        exec(record.text, names)
    except TVM_ERRORS as error:
        raise program.expressions.refusal(
            _("TVM says: {last_line}", last_line=last_line(error))
        ) from error
    if not tvm_ffi.structural_equal(names[title], function):
        raise program.expressions.refusal(_("TVM rebuilds another function from its blocks"))
    return record


class _Program:
    def __init__(self, function: Any, name: str) -> None:
        self._function = function
        self._name = name
        self._entity = f"tir:{name}"
        self._names: dict[Any, str] = {}
        self._identifiers = Identifiers((*_RESERVED, *_DEFINED))
        self.expressions = TensorExpressions(self._name_of, self._entity)
        self._ids = {part.statement: part.id for part in parts_of(name, function)}
        self._lines = ProgramLines()
        self._defined: dict[str, None] = {}
        self._stages = self._found()

    def text(self) -> tuple[TextRecord, str]:
        """Return the program, and its name for the function."""
        written = {stage.store.buffer for stage in self._stages}
        parameters = list(self._function.params)
        for parameter in parameters:
            if not is_buffer_var(parameter) and not isinstance(parameter.ty, ir.PrimType):
                raise self.expressions.refusal(_("it has a pointer argument"))
        inputs = [each for each in parameters if each not in written]
        outputs = [each for each in parameters if each in written]
        if parameters != [*inputs, *outputs] or not outputs:
            raise self.expressions.refusal(_("its outputs are not its last arguments"))
        title = self._identifiers.take(identifier(self._name))
        function = self._identifiers.take(f"te_{identifier(self._name)}")
        lines = self._lines
        with lines.span(self._entity):
            self._definition(function, inputs, outputs)
        lines.add("", "")
        names = [self._names[each] for each in inputs]
        lines.add(*self._placeholders(inputs))
        called = f"{function}({', '.join(names)})"
        arguments = ", ".join([*names, f"*{called}" if len(outputs) > 1 else called])
        index = ', "int64"' if self._has_long_indices() else ""
        lines.add(f"{title} = te.create_prim_func([{arguments}]{index}){self._attributes()}")
        head = ["from tvm import te, tirx" if lines.uses("tirx") else "from tvm import te", ""]
        if self._defined:
            head = ["from tvm import te, tirx", ""]
            head += [line for each in self._defined for line in (*_DEFINED[each], "")]
        return lines.record("python", [*head, ""]), title

    # The blocks

    def _found(self) -> list[_Stage]:
        body = self._function.body
        if not isinstance(body, s_tir.SBlockRealize):
            raise self.expressions.refusal(_("it has no blocks"))
        if body.block not in self._ids:
            body = body.block.body
        nests = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
        return [self._stage(nest) for nest in nests]

    def _stage(self, nest: Any) -> _Stage:
        refusal, loops = self.expressions.refusal, list[Any]()
        while isinstance(nest, tirx.For):
            loops.append(nest)
            nest = nest.body
        if not isinstance(nest, s_tir.SBlockRealize):
            raise refusal(_("its loops hold more than one block"))
        block = nest.block
        variables = [loop.loop_var for loop in loops]
        plain = all(loop.kind == tirx.ForKind.SERIAL for loop in loops)
        values = [value for value in nest.iter_values if not isinstance(value, tirx.IntImm)]
        if not plain or values != variables or len(values) != len(nest.iter_values):
            raise refusal(_("the block {name_hint} is scheduled", name_hint=block.name_hint))
        store = block.body
        if not isinstance(store, tirx.BufferStore):
            raise refusal(
                _("the block {name_hint} is not a single assignment", name_hint=block.name_hint)
            )
        spatial = [axis.var for axis in block.iter_vars if axis.iter_type == tirx.IterVar.DataPar]
        if list(store.indices) != spatial:
            raise refusal(
                _("the block {name_hint} writes outside of its own axes", name_hint=block.name_hint)
            )
        return _Stage(tuple(loops), block, store)

    # The function

    def _definition(self, function: str, inputs: list[Any], outputs: list[Any]) -> None:
        parameters: list[str] = []
        for each in inputs:
            kind = "te.Tensor" if is_buffer_var(each) else "tirx.Var"
            parameters.append(f"{self._take(each, each.name)}: {kind}")
        returned = "te.Tensor" if len(outputs) == 1 else "tuple[te.Tensor, ...]"
        lines = self._lines
        lines.add(f"def {function}({', '.join(parameters)}) -> {returned}:")
        with lines.indented():
            self._symbols(inputs)
            last = self._stages[-1].store.buffer
            for stage in self._stages:
                self._compute(stage, returned=outputs == [last] and stage is self._stages[-1])
            if outputs != [last]:
                lines.add(f"return {', '.join(self._names[each] for each in outputs)}")

    def _symbols(self, inputs: list[Any]) -> None:
        """Define symbolic extents from the shapes of the tensors."""
        for each in inputs:
            if not is_buffer_var(each):
                continue
            for axis, extent in enumerate(each.ty.shape):
                if isinstance(extent, tirx.Var) and extent not in self._names:
                    name = self._take(extent, extent.name)
                    self._lines.add(f"{name} = {self._names[each]}.shape[{axis}]")

    def _compute(self, stage: _Stage, *, returned: bool) -> None:
        block, lines = stage.block, self._lines
        pairs = list(zip(stage.loops, block.iter_vars, strict=True))
        spatial = [each for each in pairs if each[1].iter_type == tirx.IterVar.DataPar]
        reduced = [each for each in pairs if each[1].iter_type == tirx.IterVar.CommReduce]
        with lines.span(self._ids[block]):
            for loop, axis in reduced:
                with lines.span(self._ids[loop]):
                    name = self._take(axis.var, loop.loop_var.name)
                    extent = self._extent(axis.dom.extent)
                    lines.add(f'{name} = te.reduce_axis((0, {extent}), name="{name}")')
            outer, self._identifiers = self._identifiers, self._identifiers.inner()
            axes = [self._take(axis.var, loop.loop_var.name) for loop, axis in spatial]
            value = self._value(stage, [self._names[axis.var] for _other, axis in reduced])
            self._identifiers = outer
            shape = tuple_text([self._extent(each) for each in stage.store.buffer.ty.shape])
            if not axes:
                shape = "()"
            arguments = f"lambda {', '.join(axes)}: {value}" if axes else f"lambda: {value}"
            named = f"name={quoted(block.name_hint)}"
            attrs = f", attrs={literal(block.annotations)}" if len(block.annotations) else ""
            made = f"te.compute({shape}, {arguments}, {named}{attrs})"
            with ExitStack() as spans:
                for loop, _other in spatial:
                    spans.enter_context(self._lines.span(self._ids[loop]))
                if returned:
                    lines.add(f"return {made}")
                else:
                    buffer = stage.store.buffer
                    lines.add(f"{self._take(buffer, buffer.name)} = {made}")

    def _value(self, stage: _Stage, reduced: list[str]) -> str:
        value, buffer, name = stage.store.value, stage.store.buffer, stage.block.name_hint
        if not reduced:
            return self.expressions.text(value)
        reducer, so_far, added = _reduction(value)
        if stage.block.init is None or not reducer:
            raise self.expressions.refusal(
                _("the block {name_hint} is not a sum, product, maximum or minimum", name_hint=name)
            )
        if not isinstance(so_far, ir.TensorLoad) or not so_far.source.same_as(buffer):
            raise self.expressions.refusal(
                _("the block {name_hint} does not reduce its output", name_hint=name)
            )
        if reducer in _DEFINED:
            self._defined[reducer] = None
        axes = reduced[0] if len(reduced) == 1 else f"[{', '.join(reduced)}]"
        return f"{reducer}({self.expressions.text(added)}, axis={axes})"

    # What is around the function

    def _placeholders(self, inputs: list[Any]) -> list[str]:
        symbols: dict[Any, str] = {}
        # A size that is an argument may be read by the extents of an earlier one.
        sizes: list[str] = []
        lines: list[str] = []
        for each in inputs:
            name = self._names[each]
            if not is_buffer_var(each):
                sizes.append(f'{name} = tirx.Var({quoted(each.name)}, "{each.ty.dtype}")')
                continue
            for extent in each.ty.shape:
                for symbol in tirx.analysis.undefined_vars(extent):
                    if symbol not in symbols and symbol not in inputs:
                        symbols[symbol] = self._name_of(symbol)
            shape = tuple_text([self._extent(extent) for extent in each.ty.shape])
            if not len(each.ty.shape):
                shape = "()"
            dtype = each.ty.dtype.dtype
            lines.append(f'{name} = te.placeholder({shape}, "{dtype}", name={quoted(each.name)})')
        return [
            *(
                f'{name} = tirx.Var({quoted(each.name)}, "{each.ty.dtype}")'
                for each, name in symbols.items()
            ),
            *sizes,
            *lines,
        ]

    def _has_long_indices(self) -> bool:
        extents = [each for stage in self._stages for each in stage.store.buffer.ty.shape]
        extents += [loop.extent for stage in self._stages for loop in stage.loops]
        return any(str(each.ty.dtype) == "int64" for each in extents)

    def _attributes(self) -> str:
        """Return the calls that set the attributes which ``te.create_prim_func`` does not."""
        attrs = dict(self._function.attrs.items())
        symbol = attrs.pop("global_symbol", None)
        added = {key: value for key, value in attrs.items() if key not in _IMPLIED}
        if symbol is not None and symbol != "main":
            added["global_symbol"] = symbol
        calls = [f".with_attr({literal(key)}, {literal(value)})" for key, value in added.items()]
        missing = [key for key in _IMPLIED if key not in attrs]
        if symbol is None:
            missing.append("global_symbol")
        calls += [f".without_attr({literal(key)})" for key in missing]
        return "".join(calls)

    # Names

    def _take(self, variable: Any, name: str) -> str:
        self._names[variable] = self._identifiers.take(name)
        return self._names[variable]

    def _name_of(self, variable: Any) -> str:
        if variable not in self._names:
            raise self.expressions.refusal(
                _("{name} is neither an argument nor an extent of one", name=variable.name)
            )
        return self._names[variable]

    def _extent(self, extent: Any) -> str:
        if isinstance(extent, tirx.IntImm):
            return str(int(extent.value))
        return self.expressions.text(extent)


def _reduction(value: Any) -> tuple[str, Any, Any]:
    """Return the reducer of an assignment, its accumulator, and its operand.

    The reducer is empty for others. An assignment that only looks like one that propagates NaN
    makes another function, and is rejected at the end.
    """
    if isinstance(value, tirx.Select):
        other = value.true_value
        name = {tirx.Max: "largest", tirx.Min: "smallest"}.get(type(other), "")
        return (name, other.b, other.a) if name else ("", None, None)
    reducer = _REDUCERS.get(type(value), "")
    return (reducer, value.a, value.b) if reducer else ("", None, None)

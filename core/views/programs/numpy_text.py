"""The low-level NumPy of a TensorIR function, as the course writes it: loops over elements.

The program is real: called with arrays, the output among them, it computes what the function does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
from tvm import IRModule, ir, relax, s_tir, tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.files.python_text import comment, identifier
from lowerscope.core.ir.relax import Bound, bound_in, operator_of, own_function
from lowerscope.core.ir.tensorir import allocated_ids, dtype_of, operator_name, parts_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _
from lowerscope.core.views.programs.program_lines import (
    AND,
    ATOM,
    IF,
    NOT,
    OR,
    PRODUCT,
    UNARY,
    ExpressionText,
    Identifiers,
    ProgramLines,
    Written,
    without_form,
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

    Indices are integers of Python; elements of arrays and literals of a float type are scalars of
    NumPy, whose arithmetic keeps their type. Conditions are lazy: of ``a if c else b`` one side is
    computed, as ``T.if_then_else`` promises. ``T.max(a, b)`` is ``a if a > b else b``, also where
    one is not a number, and that is ``max(b, a)`` in Python.

    `helpers`: keys of `HELPERS` that it needs.

    `take`: returns a name for a variable that the expression binds itself.
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
        raise self.refusal(_("the dtype {dtype}", dtype=dtype))

    def stored(self, value: Any) -> str:
        """Return a value to store: an array gives a literal its type."""
        if isinstance(value, tirx.FloatImm) and np.isfinite(value.value):
            return self._digits(value)
        return self.text(value)

    def refusal(self, what: str) -> LowerscopeError:
        """Return the error for an expression that has no form."""
        return without_form(_("NumPy loops cannot express {what}", what=what), self._where)

    def other(self, expression: Any) -> Written:
        """Return an expression that is not an operator of Python, or has another meaning there."""
        kind = type(expression)
        if kind in _EXPRESSION_WRITERS:
            return _EXPRESSION_WRITERS[kind](self, expression)
        name = operator_name(expression)
        if name in _UFUNCS:
            return f"np.{_UFUNCS[name]}({self.arguments(expression.args)})", ATOM
        if name in _CALLS:
            return _CALLS[name](self, expression)
        if name in _FORMULAS:
            return self._formula(*_FORMULAS[name], expression)
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

    def _large_integer(self, expression: Any) -> Written:
        low, high = (int(each.value) for each in expression.args)
        return f"{self.dtype(dtype_of(expression))}({(high << 32) + low})", ATOM

    # Elements and names

    def _let(self, expression: Any) -> Written:
        value = self.text(expression.value)
        name = self._take(expression.var)
        return f"(lambda {name}: {self.text(expression.body)})({value})", ATOM

    # Conditions

    def _not(self, expression: Any) -> Written:
        return f"not {self.text(expression.a, NOT)}", NOT

    def _choice(self, condition: Any, first: Any, second: Any) -> Written:
        yes, no = self.text(first, OR), self.text(second, IF)
        return f"{yes} if {self.text(condition, OR)} else {no}", IF

    # Arithmetic

    def _greater_or_less(self, name: str, expression: Any) -> Written:
        parts = (expression.a, expression.b)
        if "float" in dtype_of(expression):
            parts = (expression.b, expression.a)
        return f"{name}({self.arguments(parts)})", ATOM

    def _divide(self, expression: Any) -> Written:
        if "float" in dtype_of(expression):
            return self.infix("/", PRODUCT, expression.a, expression.b)
        return self._helper("truncdiv", expression.a, expression.b)

    def _invert(self, expression: Any) -> Written:
        if dtype_of(expression) == "bool":
            return self._not(expression)
        return f"~{self.text(expression.a, UNARY)}", UNARY

    def _helper(self, name: str, *arguments: Any) -> Written:
        self.helpers.add(name)
        return f"{name}({self.arguments(arguments)})", ATOM

    def _formula(self, template: str, binds: int, expression: Any) -> Written:
        """Return a template of `_FORMULAS` with the dtype, the arguments and the first operand."""
        if "math." in template:
            self.imports.add("math")
        operand = self.text(expression.args[0], ATOM) if expression.args else ""
        arguments = self.arguments(expression.args)
        made = self.dtype(dtype_of(expression)) if "{dtype}" in template else ""
        return template.format(dtype=made, arguments=arguments, operand=operand), binds


_EXPRESSION_WRITERS: dict[type, Callable[[NumpyExpressions, Any], Written]] = {
    tirx.FloatImm: NumpyExpressions._float,
    tirx.Cast: lambda self, e: (f"{self.dtype(dtype_of(e))}({self.text(e.value)})", ATOM),
    ir.TensorLoad: lambda self, e: (self.element(e.source, e.indices), ATOM),
    tirx.Let: NumpyExpressions._let,
    tirx.And: lambda self, e: self.infix("and", AND, e.a, e.b),
    tirx.Or: lambda self, e: self.infix("or", OR, e.a, e.b),
    tirx.Not: NumpyExpressions._not,
    tirx.Select: lambda self, e: self._choice(e.condition, e.true_value, e.false_value),
    tirx.Max: lambda self, e: self._greater_or_less("max", e),
    tirx.Min: lambda self, e: self._greater_or_less("min", e),
    tirx.Div: NumpyExpressions._divide,
    tirx.Mod: lambda self, e: self._helper("truncmod", e.a, e.b),
    tirx.BitwiseNot: NumpyExpressions._invert,
}

_CALLS: dict[str, Callable[[NumpyExpressions, Any], Written]] = {
    "if_then_else": lambda self, e: self._choice(*e.args),
    "large_uint_imm": NumpyExpressions._large_integer,
    "round": lambda self, e: self._helper("round_away", *e.args),
    "likely": lambda self, e: self.written(e.args[0]),
}

_FORMULAS: dict[str, tuple[str, int]] = {
    "reinterpret": ("{operand}.view({dtype})", ATOM),
    "infinity": ('{dtype}("inf")', ATOM),
    "rsqrt": ("{dtype}(1) / np.sqrt({arguments})", PRODUCT),
    "sigmoid": ("{dtype}(1) / ({dtype}(1) + np.exp(-{operand}))", PRODUCT),
    "erf": ("{dtype}(math.erf({arguments}))", ATOM),
    "abs": ("abs({arguments})", ATOM),
    "popcount": ("np.bitwise_count({arguments})", ATOM),
}
"""Calls as templates, and how tightly they bind."""


_RESERVED = (*("np", "math", "ml_dtypes", "range", "max", "min", "abs", "type", "int"), *HELPERS)

_REDUCED = tirx.IterVar.CommReduce

_REMARKS = {
    tirx.ForKind.PARALLEL: "  # parallel",
    tirx.ForKind.VECTORIZED: "  # vectorized",
    tirx.ForKind.UNROLLED: "  # unrolled",
}


def numpy_text(function: Any, name: str) -> TextRecord:
    """Return a PrimFunc as a function ``lnumpy_NAME`` of Python, which takes arrays.

    Loops that the schedule runs in parallel, vectorised or unrolled are plain loops with a remark.
    Spans are those of the function's script: ``tir:NAME``, ``tir:NAME//BUFFER``,
    ``tir:NAME/BLOCK`` and ``tir:NAME/BLOCK/VARIABLE``.

    Raises `LowerscopeError` if the function has a part without a form in NumPy loops, such as the
    threads of a GPU or a call of an external function; it is named.
    """
    return _Loops(function, name).text()


class _NumpyProgram:
    """A function of Python in the making: its lines, and the names in it."""

    _unbound = "{name}"

    def __init__(self, name: str, entity: str, reserved: Sequence[str]) -> None:
        self._name, self._entity = name, entity
        self._title = identifier(f"lnumpy_{name}")
        self._lines = ProgramLines()
        self._names: dict[Any, str] = {}
        self._scope = Identifiers((*reserved, self._title))
        self._expressions = NumpyExpressions(self._name_of, self._take, entity)

    def _name_of(self, variable: Any) -> str:
        if variable not in self._names:
            name = getattr(variable, "name", variable)
            raise self._expressions.refusal(self._unbound.format(name=name))
        return self._names[variable]

    def _take(self, variable: Any) -> str:
        self._names[variable] = self._scope.take(str(variable.name))
        return self._names[variable]

    def _symbols(self, variable: Any, shape: Iterable[Any]) -> None:
        """Define symbolic extents from the shape of an array, where they are new."""
        for axis, extent in enumerate(shape):
            if isinstance(extent, tirx.Var) and extent not in self._names:
                name = self._take(extent)
                self._lines.add(f"{name} = {self._names[variable]}.shape[{axis}]")

    def _empty(self, shape: Iterable[Any], dtype: str) -> str:
        """Return the call that allocates an array."""
        extents = list(shape)
        text = self._expressions.arguments(extents) + ("," if len(extents) == 1 else "")
        written = self._expressions.dtype(dtype)
        if written.startswith("np."):
            written = f'"{dtype}"'
        return f"np.empty(({text}), dtype={written})"


class _Loops(_NumpyProgram):
    _unbound = _("{name}, which is neither an extent of an argument nor a loop")

    def __init__(self, function: Any, name: str) -> None:
        super().__init__(name, f"tir:{name}", _RESERVED)
        self._function = function
        self._ids = {part.statement: part.id for part in parts_of(name, function)}

    def text(self) -> TextRecord:
        with self._lines.span(self._entity):
            parameters = ", ".join(map(self._parameter, self._function.params))
            self._lines.add(f"def {self._title}({parameters}):")
            with self._lines.indented():
                for parameter in self._function.params:
                    if is_buffer_var(parameter):
                        self._symbols(parameter, parameter.ty.shape)
                self._statement(self._function.body)
        expressions = self._expressions
        head = [
            f"import {each}"
            for each in sorted(expressions.imports, key=lambda each: (each != "math", each))
        ]
        for helper in sorted(expressions.helpers):
            head += ["", "", *HELPERS[helper]]
        return self._lines.record("python", [*head, "", ""])

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """Release the names that are taken inside afterwards."""
        outer, self._scope = self._scope, self._scope.inner()
        yield
        self._scope = outer

    def _parameter(self, parameter: Any) -> str:
        name = self._take(parameter)
        if is_buffer_var(parameter):
            return f"{name}: np.ndarray"
        if isinstance(parameter.ty, ir.PrimType) and "handle" not in str(parameter.ty.dtype):
            return f"{name}: int" if "int" in str(parameter.ty.dtype) else f"{name}: float"
        raise self._expressions.refusal(_("the argument {name}, a pointer", name=name))

    # Statements

    def _statement(self, statement: Any) -> None:
        writer = _STATEMENT_WRITERS.get(type(statement))
        if writer is None:
            raise self._expressions.refusal(
                _("the statement {name}", name=type(statement).__name__)
            )
        writer(self, statement)

    def _sequence(self, sequence: Any) -> None:
        for statement in sequence.seq:
            self._statement(statement)

    def _loop(self, loop: Any) -> None:
        if loop.kind == tirx.ForKind.THREAD_BINDING:
            axis = loop.thread_binding.thread_tag
            raise self._expressions.refusal(
                _("the loop {name}, bound to {axis}", name=loop.loop_var.name, axis=axis)
            )
        with self._lines.span(self._ids.get(loop, "")), self._inner():
            bounds = self._range(loop)
            name = self._take(loop.loop_var)
            remark = _REMARKS.get(tirx.ForKind(loop.kind), "")
            self._lines.add(f"for {name} in range({bounds}):{remark}")
            self._body(loop.body)

    def _range(self, loop: Any) -> str:
        text = self._expressions.text
        begin, extent = loop.min, loop.extent
        step = "" if loop.step is None else f", {text(loop.step)}"
        if isinstance(begin, tirx.IntImm) and begin.value == 0 and not step:
            return text(extent)
        return f"{text(begin)}, {text(begin + extent)}{step}"

    def _body(self, statement: Any) -> None:
        with self._lines.indented():
            self._statement(statement)

    def _while(self, loop: Any) -> None:
        self._lines.add(f"while {self._expressions.text(loop.condition)}:")
        with self._inner():
            self._body(loop.body)

    def _realize(self, realize: Any) -> None:
        block = realize.block
        if block not in self._ids:
            # The root block is no part of the function.
            for entity, buffer in allocated_ids(self._name, self._function):
                with self._lines.span(entity):
                    self._add_empty(buffer)
            self._statement(block.body)
            return
        with self._lines.span(self._ids[block]), self._inner():
            if isinstance(realize.predicate, tirx.IntImm) and realize.predicate.value:
                self._block(block, realize.iter_values)
                return
            self._lines.add(f"if {self._expressions.text(realize.predicate)}:")
            with self._lines.indented():
                self._block(block, realize.iter_values)

    def _block(self, block: Any, values: Any) -> None:
        self._lines.add(f"# block {block.name_hint}")
        bound = self._expressions.arguments(values)
        names = ", ".join(self._take(axis.var) for axis in block.iter_vars)
        if names:
            self._lines.add(f"{names} = {bound}")
        for buffer in block.alloc_buffers:
            self._add_empty(buffer)
        for match in block.match_buffers:
            self._view(match)
        if block.init is not None:
            self._init(block)
        self._statement(block.body)

    def _add_empty(self, buffer: Any) -> None:
        made = self._empty(buffer.ty.shape, str(buffer.ty.dtype.dtype))
        self._lines.add(f"{self._take(buffer)} = {made}")

    def _view(self, match: Any) -> None:
        """Name a part of a buffer; leading extents of 1 that the part does not have are indices."""
        region = list(match.source.region)
        left_out = len(region) - len(match.buffer.ty.shape)
        text = self._expressions.text
        parts = [text(each.min) for each in region[:left_out]]
        parts += [f"{text(each.min)}:{text(each.min + each.extent)}" for each in region[left_out:]]
        whole = self._name_of(match.source.source)
        self._lines.add(f"{self._take(match.buffer)} = {whole}[{', '.join(parts)}]")

    def _init(self, block: Any) -> None:
        """Write the initialisation, which TVM runs where every reduced axis is at its beginning."""
        starts = [
            f"{self._names[axis.var]} == {self._expressions.text(axis.dom.min)}"
            for axis in block.iter_vars
            if axis.iter_type == _REDUCED
        ]
        if not starts:
            self._statement(block.init)
            return
        self._lines.add(f"if {' and '.join(starts)}:")
        with self._inner():
            self._body(block.init)

    def _store(self, store: Any) -> None:
        target = self._expressions.element(store.buffer, store.indices)
        self._lines.add(f"{target} = {self._expressions.stored(store.value)}")

    def _if(self, choice: Any) -> None:
        self._lines.add(f"if {self._expressions.text(choice.condition)}:")
        with self._inner():
            self._body(choice.then_case)
        if choice.else_case is not None:
            self._lines.add("else:")
            with self._inner():
                self._body(choice.else_case)

    def _bind(self, bind: Any) -> None:
        value = self._expressions.text(bind.value)
        self._lines.add(f"{self._take(bind.var)} = {value}")

    def _evaluate(self, evaluate: Any) -> None:
        if not isinstance(evaluate.value, tirx.IntImm):
            raise self._expressions.refusal(str(evaluate.value).splitlines()[0])
        self._lines.add("pass")

    def _attribute(self, attribute: Any) -> None:
        if not attribute.attr_key.startswith("pragma_"):
            raise self._expressions.refusal(
                _("the attribute {attr_key}", attr_key=attribute.attr_key)
            )
        self._statement(attribute.body)

    def _assert(self, check: Any) -> None:
        message = "".join(part.value for part in check.message_parts)
        self._lines.add(f"assert {self._expressions.text(check.condition)}, {message!r}")


_STATEMENT_WRITERS: dict[type, Callable[[_Loops, Any], None]] = {
    tirx.SeqStmt: _Loops._sequence,
    tirx.For: _Loops._loop,
    tirx.While: _Loops._while,
    s_tir.SBlockRealize: _Loops._realize,
    tirx.BufferStore: _Loops._store,
    tirx.IfThenElse: _Loops._if,
    tirx.Bind: _Loops._bind,
    tirx.AllocBuffer: lambda self, s: self._add_empty(s.buffer),
    tirx.Evaluate: _Loops._evaluate,
    tirx.AttrStmt: _Loops._attribute,
    tirx.AssertStmt: _Loops._assert,
    tirx.Break: lambda self, _unused: self._lines.add("break"),
    tirx.Continue: lambda self, _unused: self._lines.add("continue"),
}


_DESTINATION = ("relax.call_tir", "relax.call_dps_packed")


def numpy_graph_text(
    module: IRModule, name: str, name_of_constant: Callable[[Any], str]
) -> TextRecord:
    """Return a Relax function as a function ``lnumpy_NAME`` of Python, which takes arrays.

    A call by ``call_tir`` or ``call_dps_packed`` is ``np.empty`` and a call that is passed the new
    array last: destination passing.

    Spans are those of the function's script: ``relax:NAME`` and ``relax:NAME/BINDING``.

    Raises `LowerscopeError` if it calls operators that are not legalised, branches, or has another
    part without a form.
    """
    return _Graph(module, name, name_of_constant).text()


class _Graph(_NumpyProgram):
    _unbound = _("{name}, which nothing has bound")

    def __init__(self, module: IRModule, name: str, name_of_constant: Callable[[Any], str]) -> None:
        super().__init__(name, f"relax:{name}", ("np", "ml_dtypes"))
        self._module, self._function = module, module[name]
        self._name_of_constant = name_of_constant
        self._constants: dict[Any, str] = {}

    def text(self) -> TextRecord:
        function = self._function
        for variable in self._module.get_global_vars():
            self._names[variable] = self._scope.take(f"lnumpy_{variable.name_hint}")
        with self._lines.span(self._entity):
            parameters = ", ".join(f"{self._take(each)}: np.ndarray" for each in function.params)
            self._lines.add(f"def {self._title}({parameters}):")
            with self._lines.indented():
                for parameter in function.params:
                    self._symbols(parameter, _extents(parameter))
                for bound in bound_in(self._name, function):
                    with self._lines.span(bound.id):
                        self._binding(bound)
                self._lines.add(f"return {self._value(function.body.body)}")
        head = [f"import {each}" for each in sorted(self._expressions.imports, reverse=True)]
        return self._lines.record("python", [*head, "", ""])

    # Bindings and values

    def _binding(self, bound: Bound) -> None:
        binding = bound.binding
        value = binding.value
        operator = operator_of(value)
        if operator in _DESTINATION:
            self._call(binding.var, value)
            return
        text = self._value(value)
        self._lines.add(f"{self._take(binding.var)} = {text}")
        if isinstance(binding, relax.MatchCast):
            self._symbols(binding.var, _extents(binding.var))

    def _call(self, variable: Any, call: Any) -> None:
        """Allocate the output of a call, and pass it to the call as the last argument."""
        given = call.args[1]
        inputs = [self._value(each) for each in given.fields] if isinstance(given, ir.Tuple) else []
        if not isinstance(given, ir.Tuple):
            inputs = [f"*{self._value(given)}"]
        # Symbols that are passed to the callee follow the arrays that it writes.
        more = [self._expressions.text(each) for part in call.args[2:] for each in part.values]
        callee, remark = self._callee(call.args[0])
        types = list(call.ty_args)
        several = len(types) == 1 and isinstance(types[0], ir.TupleType)
        empty = [self._output(each) for each in (types[0].fields if several else types)]
        name = self._take(variable)
        self._lines.add(f"{name} = ({', '.join(empty)})" if several else f"{name} = {empty[0]}")
        outputs = [f"*{name}" if several else name]
        self._lines.add(f"{callee}({', '.join([*inputs, *outputs, *more])}){remark}")

    def _callee(self, callee: Any) -> tuple[str, str]:
        if isinstance(callee, relax.ExternFunc):
            symbol = str(callee.global_symbol)
            own = own_function(self._module, symbol)
            if own is None:
                return identifier(symbol), f"  {comment(symbol)}, of a library"
            callee = own
        return self._name_of(callee), ""

    def _output(self, type_: Any) -> str:
        shape = getattr(type_, "shape", None)
        if not isinstance(shape, relax.ShapeExpr):
            raise self._expressions.refusal(_("an output of unknown shape"))
        return self._empty(shape.values, str(type_.dtype))

    def _value(self, value: Any) -> str:
        if isinstance(value, ir.GenericConst):
            return self._constant(value)
        if isinstance(value, ir.Var):
            return self._name_of(value)
        if isinstance(value, ir.Tuple):
            inside = ", ".join(self._value(each) for each in value.fields)
            return f"({inside}{',' if len(value.fields) == 1 else ''})"
        if isinstance(value, ir.TupleGetItem):
            return f"{self._value(value.tuple_value)}[{value.index}]"
        if isinstance(value, relax.ShapeExpr):
            return f"({self._expressions.arguments(value.values)},)"
        if isinstance(value, ir.Call) and isinstance(value.op, ir.GlobalVar):
            inside = ", ".join(self._value(each) for each in value.args)
            return f"{self._name_of(value.op)}({inside})"
        operator = operator_of(value)
        if operator:
            raise LowerscopeError(
                _("NumPy loops cannot express {operator}, an operator of Relax", operator=operator),
                where=self._entity,
                todo=_("Legalise it, or lower it with TE; or see the script instead"),
            )
        raise self._expressions.refusal(type(value).__name__)

    def _constant(self, constant: Any) -> str:
        data = constant.value
        if not data.shape:
            return f"np.{data.dtype}({data.numpy().item()!r})"
        if constant not in self._constants:
            wanted = identifier(self._name_of_constant(constant) or "constant")
            self._constants[constant] = self._scope.take(wanted)
        return self._constants[constant]


def _extents(variable: Any) -> Sequence[Any]:
    return getattr(getattr(variable.ty, "shape", None), "values", ())

"""The low-level NumPy of a Relax function, as the course writes it: allocations and calls.

A call by ``call_tir`` or ``call_dps_packed`` is ``np.empty`` and a call that is passed the new
array last: destination passing. With the programs of the TensorIR functions, and the library's
functions and the parameters under the names that they have in it, the program is real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import IRModule, ir, relax, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.python_text import comment, identifier
from lowerscope.core.records.snapshot import TextRecord
from lowerscope.core.relax_bindings import Bound, bound_in, own_function
from lowerscope.core.rendering.programs.numpy_text import NumpyExpressions
from lowerscope.core.rendering.programs.program_lines import Identifiers, ProgramLines

_DESTINATION = ("relax.call_tir", "relax.call_dps_packed")


def numpy_graph_text(
    module: IRModule, name: str, name_of_constant: Callable[[Any], str]
) -> TextRecord:
    """Return a Relax function as a function ``lnumpy_NAME`` of Python, which takes arrays.

    Spans are those of the function's script: ``relax:NAME`` and ``relax:NAME/BINDING``.

    Raises `LowerscopeError` if it calls operators that are not legalised, branches, or has another
    part without a form.
    """
    return _Graph(module, name, name_of_constant).text()


class _Graph:
    def __init__(self, module: IRModule, name: str, name_of_constant: Callable[[Any], str]) -> None:
        self._module, self._name = module, name
        self._function = module[name]
        self._title = identifier(f"lnumpy_{name}")
        self._name_of_constant = name_of_constant
        self._lines = ProgramLines()
        self._names: dict[Any, str] = {}
        self._constants: dict[Any, str] = {}
        self._scope = Identifiers(("np", "ml_dtypes", self._title))
        self._expressions = NumpyExpressions(self._name_of, self._take, f"relax:{name}")

    def text(self) -> TextRecord:
        function = self._function
        for variable in self._module.get_global_vars():
            self._names[variable] = self._scope.take(f"lnumpy_{variable.name_hint}")
        with self._lines.span(f"relax:{self._name}"):
            parameters = ", ".join(f"{self._take(each)}: np.ndarray" for each in function.params)
            self._lines.add(f"def {self._title}({parameters}):")
            with self._lines.indented():
                for parameter in function.params:
                    self._symbols(parameter)
                for bound in bound_in(self._name, function):
                    with self._lines.span(bound.id):
                        self._binding(bound)
                self._lines.add(f"return {self._value(function.body.body)}")
        head = [f"import {each}" for each in sorted(self._expressions.imports, reverse=True)]
        return self._lines.record("python", [*head, "", ""])

    # Names

    def _name_of(self, variable: Any) -> str:
        if variable not in self._names:
            raise self._refusal(f"{variable}, which nothing has bound")
        return self._names[variable]

    def _take(self, variable: Any) -> str:
        self._names[variable] = self._scope.take(str(variable.name))
        return self._names[variable]

    def _symbols(self, variable: Any) -> None:
        """Define symbolic extents from the shape of an array, where they are new."""
        shape = getattr(variable.ty, "shape", None)
        for axis, extent in enumerate(getattr(shape, "values", ())):
            if isinstance(extent, tirx.Var) and extent not in self._names:
                name = self._take(extent)
                self._lines.add(f"{name} = {self._names[variable]}.shape[{axis}]")

    # Bindings and values

    def _binding(self, bound: Bound) -> None:
        binding = bound.binding
        value = binding.value
        operator = _operator(value)
        if operator in _DESTINATION:
            self._call(binding.var, value)
            return
        text = self._value(value)
        self._lines.add(f"{self._take(binding.var)} = {text}")
        if isinstance(binding, relax.MatchCast):
            self._symbols(binding.var)

    def _call(self, variable: Any, call: Any) -> None:
        """Allocate the output of a call, and pass it to the call as the last argument."""
        given = call.args[1]
        inputs = [self._value(each) for each in given.fields] if _is_tuple(given) else []
        if not _is_tuple(given):
            inputs = [f"*{self._value(given)}"]
        # Symbols that are passed to the callee follow the arrays that it writes.
        more = [self._expressions.text(each) for part in call.args[2:] for each in part.values]
        callee, remark = self._callee(call.args[0])
        types = list(call.ty_args)
        several = len(types) == 1 and isinstance(types[0], ir.TupleType)
        empty = [self._empty(each) for each in (types[0].fields if several else types)]
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

    def _empty(self, type_: Any) -> str:
        shape = getattr(type_, "shape", None)
        if not isinstance(shape, relax.ShapeExpr):
            raise self._refusal("an output whose shape is not known")
        extents = list(shape.values)
        text = self._expressions.arguments(extents) + ("," if len(extents) == 1 else "")
        dtype = str(type_.dtype)
        written = self._expressions.dtype(dtype)
        if written.startswith("np."):
            written = f'"{dtype}"'
        return f"np.empty(({text}), dtype={written})"

    def _value(self, value: Any) -> str:
        if isinstance(value, ir.GenericConst):
            return self._constant(value)
        if isinstance(value, ir.Var):
            return self._name_of(value)
        if _is_tuple(value):
            inside = ", ".join(self._value(each) for each in value.fields)
            return f"({inside}{',' if len(value.fields) == 1 else ''})"
        if isinstance(value, ir.TupleGetItem):
            return f"{self._value(value.tuple_value)}[{value.index}]"
        if isinstance(value, relax.ShapeExpr):
            return f"({self._expressions.arguments(value.values)},)"
        if isinstance(value, ir.Call) and isinstance(value.op, ir.GlobalVar):
            inside = ", ".join(self._value(each) for each in value.args)
            return f"{self._name_of(value.op)}({inside})"
        operator = _operator(value)
        if operator:
            raise LowerscopeError(
                f"loops of NumPy have no form for {operator}, an operator of Relax",
                where=f"relax:{self._name}",
                todo="Legalise it, or lower by TE; or look at the script instead",
            )
        raise self._refusal(type(value).__name__)

    def _constant(self, constant: Any) -> str:
        data = constant.value
        if not data.shape:
            return f"np.{data.dtype}({data.numpy().item()!r})"
        if constant not in self._constants:
            wanted = identifier(self._name_of_constant(constant) or "constant")
            self._constants[constant] = self._scope.take(wanted)
        return self._constants[constant]

    def _refusal(self, what: str) -> LowerscopeError:
        return self._expressions.refusal(what)


def _is_tuple(value: Any) -> bool:
    return isinstance(value, ir.Tuple)


def _operator(value: Any) -> str:
    is_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return str(value.op.name) if is_call else ""

"""The BlockBuilder program that makes a module, as the course builds modules with one.

The program is real: run with its constants, it makes a module that is structurally equal. Arrays
stand in a file beside it, and small constants in place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import IRModule, ir, relax, tirx

from lowerscope.core.files.python_text import identifier, keywords, quoted, with_characters
from lowerscope.core.ir.relax import Elements, bound_in, elements_of, operator_of
from lowerscope.core.ir.tensorir import dtype_of, operator_name
from lowerscope.core.lowering.partial_module import constants_of
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _
from lowerscope.core.views.programs.program_lines import (
    ATOM,
    ExpressionText,
    Identifiers,
    ProgramLines,
    Written,
    without_form,
)

RESERVED = ("Path", "T", "bb", "build", "constants", "module", "np", "relax", "tirx", "tvm")
"""Names that every builder program uses itself."""


class BuilderScope:
    """The variables of a builder program in one scope, by their names.

    `around`: the scope around this one, whose names stay visible, and taken.
    `reserved`: of the outermost: names that are taken, besides `RESERVED`.
    """

    def __init__(self, around: BuilderScope | None = None, reserved: Collection[str] = ()) -> None:
        self.identifiers: Identifiers = (
            around.identifiers.inner() if around else Identifiers((*RESERVED, *reserved))
        )
        self._names: dict[Any, str] = dict(around._names) if around else {}
        self._values: dict[str, Any] = (
            dict(around._values) if around else {"relax": relax, "tirx": tirx, "tvm": tvm}
        )
        self.symbols: list[Any] = []
        # Infers the same types as the builder of the program.
        self._inferring = relax.BlockBuilder()

    def bind(self, value: Any, name: str) -> str:
        """Give `value`, a variable or a constant, a name like `name`, and return it."""
        taken = self.identifiers.take(name)
        self._names[value] = taken
        self._values[taken] = value
        return taken

    def name_of(self, variable: Any) -> str:
        """Return the name of a variable; one of TensorIR, a symbolic extent, gets one now."""
        if variable not in self._names:
            assert isinstance(variable.ty, ir.PrimType), f"{variable} is used before it is bound"
            self.symbols.append(variable)
            self.bind(variable, variable.name)
        return self._names[variable]

    def take_symbols(self) -> list[str]:
        """Return the lines that define the extents named since the last call."""
        lines = [
            f'{self._names[symbol]} = tirx.Var({quoted(symbol.name)}, "{symbol.ty.dtype}")'
            for symbol in self.symbols
        ]
        self.symbols.clear()
        return lines

    def make(self, text: str) -> Any:
        """Return the object that `text` makes, with its type, run with the names of this scope.

        The text is our own, made of identifiers and literals.
        """
        made = eval(text, {}, self._values)
        return self._inferring.normalize(made) if isinstance(made, ir.Expr) else made

    def says(self, text: str, meant: Any) -> bool:
        """Return whether `text`, run with the names of this scope, makes the intended object."""
        try:
            made = self.make(text)
        except TVM_ERRORS:
            return False
        return bool(tvm_ffi.structural_equal(made, meant))


_OWN_DTYPES = frozenset("?bBhHiIlLqQefd")
"""Characters of NumPy's own dtypes, which its files preserve."""

_OF_SAVEZ = ("file", "allow_pickle")
"""Names of parameters of ``np.savez``, which no array may have."""


class ConstantText:
    """The constants of one module, each tensor once.

    `arrays`: the arrays that the program reads, by name. Dtypes that are not NumPy's own, such as
        bfloat16, are kept as unsigned integers of the same bits.
    """

    def __init__(self, scope: BuilderScope, wanted_name: Callable[[Any], str]) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.lines: list[str] = []
        self._scope = scope
        self._wanted_name = wanted_name
        self._texts: dict[Any, str] = {}
        self._named: dict[Elements, str] = {}

    def text(self, constant: Any) -> str:
        """Return the code for a constant that has been added."""
        return self._texts[constant]

    def add(self, constant: Any) -> None:
        """Write `constant` in place, if it is a number, or name it and keep its array."""
        if constant in self._texts:
            return
        array = constant.value.numpy()
        self._texts[constant] = self._number(constant, array) or self._name(constant, array)

    def _number(self, constant: Any, array: np.ndarray) -> str:
        """Return a scalar as a literal; nothing where that is not exact to the bit."""
        if array.ndim or array.dtype.char not in _OWN_DTYPES:
            return ""
        value = array.item()
        if isinstance(value, float) and not np.isfinite(value):
            return ""
        text = f'relax.const({value!r}, "{array.dtype.name}")'
        return text if self._scope.says(text, constant) else ""

    def _name(self, constant: Any, array: np.ndarray) -> str:
        # Constants of one tensor are one constant, also where passes have wrapped it anew.
        key = elements_of(constant.value)
        if array.size and key in self._named:
            return self._named[key]
        wanted = self._wanted_name(constant) or f"constant{len(self.arrays)}"
        name = self._scope.bind(constant, f"{wanted}_" if wanted in _OF_SAVEZ else wanted)
        key_in_file = name if wanted in self.arrays or wanted in _OF_SAVEZ else wanted
        dtype, view = str(constant.value.dtype), ""
        if array.dtype.char not in _OWN_DTYPES:
            array = array.view(f"u{array.dtype.itemsize}")
            view = f'.view("{dtype}")'
        self.arrays[key_in_file] = array
        self.lines.append(
            f'{name} = relax.const(constants[{quoted(key_in_file)}]{view}, "{dtype}")'
        )
        self._named[key] = name
        return name


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
        raise without_form(
            _("the builder program cannot express the extent {expression}", expression=expression)
        )


class TypeText:
    """Formatter of the types of one scope."""

    def __init__(self, scope: BuilderScope) -> None:
        self._scope = scope
        self._symbols = SymbolText(scope.name_of)

    def type(self, meant: Any) -> str:
        """Return code that makes the type.

        Raises `LowerscopeError` if there is none.
        """
        text = self._type(meant)
        if text is None:
            raise without_form(
                _("the builder program cannot express the type {meant}", meant=meant)
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


class CallText:
    """Formatter of the values of bindings of one scope."""

    def __init__(self, scope: BuilderScope, constants: ConstantText) -> None:
        self._scope = scope
        self._constants = constants
        self._types = TypeText(scope)

    def value(self, meant: Any) -> str:
        """Return code that makes a value.

        Raises `LowerscopeError` if there is none.
        """
        if isinstance(meant, ir.Call):
            return self._proved(meant, self._call_forms(meant))
        if isinstance(meant, ir.TupleGetItem):
            whole = self.value(meant.tuple_value)
            forms = (f"{whole}[{meant.index}]", f"relax.TupleGetItem({whole}, {meant.index})")
            return self._proved(meant, iter(forms))
        return self._leaf(meant)

    def _leaf(self, meant: Any) -> str:
        if isinstance(meant, ir.GenericConst):
            if isinstance(meant.value, tvm.DataType):
                return f'tvm.ir.GenericConst(tvm.DataType("{meant.value}"), relax.AnyType())'
            return self._constants.text(meant)
        if isinstance(meant, ir.GlobalVar) or (
            isinstance(meant, ir.Var) and not isinstance(meant.ty, ir.PrimType)
        ):
            return self._scope.name_of(meant)
        if isinstance(meant, ir.Tuple):
            return f"relax.Tuple({self._list(meant.fields)})"
        if isinstance(meant, relax.ShapeExpr):
            return f"relax.ShapeExpr({self._types.extents(meant.values)})"
        if isinstance(meant, ir.StringImm):
            return f"tvm.ir.StringImm({meant.value!r})"
        if isinstance(meant, relax.ExternFunc):
            return f"relax.ExternFunc({quoted(meant.global_symbol)})"
        if isinstance(meant, tirx.IntImm | tirx.FloatImm):
            return f'tirx.const({literal(meant.value)}, "{meant.ty.dtype}")'
        if isinstance(meant, ir.Expr) and isinstance(meant.ty, ir.PrimType):
            return self._types.extent(meant)
        raise _unwritten(meant)

    def _list(self, expressions: Sequence[Any]) -> str:
        return f"[{', '.join(self.value(each) for each in expressions)}]"

    def _proved(self, meant: Any, forms: Iterator[str]) -> str:
        for form in forms:
            if self._scope.says(form, meant):
                return form
        raise _unwritten(meant)

    # Calls

    def _call_forms(self, call: Any) -> Iterator[str]:
        name = operator_of(call)
        if name in _CALLERS:
            yield self._function_call(call, name)
        elif name:
            yield from self._operator_forms(call, name)
        else:
            yield f"{self.value(call.op)}({', '.join(self.value(each) for each in call.args)})"
        plain = self._plain_call(call, name)
        yield f"relax.Call({plain})"
        yield f"relax.Call({plain}, ret_ty={self._types.type(call.ty)})"

    def _operator_forms(self, call: Any, name: str) -> Iterator[str]:
        function = _function_of(name)
        if function is None:
            return
        parameters = list(inspect.signature(function).parameters)
        attrs = {
            field: text
            for field, text in _fields(call.attrs).items()
            if field in parameters[len(call.args) :]
        }
        title = f"relax.op.{name.removeprefix('relax.')}"
        for argument in (self._short_argument, self.value):
            args = [argument(each) for each in call.args]
            if not self._scope.says(_call(title, args, attrs), call):
                continue
            for field in list(attrs):
                fewer = {other: text for other, text in attrs.items() if other != field}
                if self._scope.says(_call(title, args, fewer), call):
                    attrs = fewer
            yield _call(title, args, attrs)
            return

    def _short_argument(self, meant: Any) -> str:
        """Return an argument in the short form that the functions of `relax.op` accept."""
        if isinstance(meant, relax.ShapeExpr):
            return self._types.extents(meant.values)
        if isinstance(meant, ir.Tuple):
            return f"[{', '.join(self._short_argument(each) for each in meant.fields)}]"
        if isinstance(meant, tirx.IntImm | tirx.FloatImm):
            return literal(meant.value)
        return self.value(meant)

    def _plain_call(self, call: Any, name: str) -> str:
        """Return the arguments of the constructor of calls that make exactly the call."""
        callee = f"tvm.ir.Op.get({quoted(name)})" if name else self.value(call.op)
        parts = [callee, self._list(call.args)]
        if call.attrs is not None:
            fields = "".join(f", {each}" for each in keywords(_fields(call.attrs).items()))
            kind = type(call.attrs).__tvm_ffi_type_info__.type_key
            parts.append(f"attrs=tvm.ir.make_node({quoted(kind)}{fields})")
        if call.ty_args:
            parts.append(f"ty_args=[{', '.join(self._types.type(each) for each in call.ty_args)}]")
        return ", ".join(parts)

    def _function_call(self, call: Any, name: str) -> str:
        """Return the call of one of `_CALLERS`, which have forms of their own."""
        callee, *given = call.args
        is_external = isinstance(callee, relax.ExternFunc)
        parts = [quoted(callee.global_symbol) if is_external else self.value(callee)]
        if name == "relax.call_pure_packed":
            parts += [*(self.value(each) for each in given), f"ty_args={self._ty_args(call)}"]
        else:
            inputs = given[0]
            is_tuple = isinstance(inputs, ir.Tuple)
            parts.append(self._list(inputs.fields) if is_tuple else self.value(inputs))
            if name == "relax.call_tir_inplace":
                parts.append(literal(call.attrs.inplace_indices))
            parts.append(f"out_ty={self._ty_args(call)}")
        return f"{_CALLERS[name]}({', '.join(parts)})"

    def _ty_args(self, call: Any) -> str:
        types = list(call.ty_args)
        if len(types) == 1 and isinstance(types[0], ir.TupleType):
            types = list(types[0].fields)
            return f"[{', '.join(self._types.type(each) for each in types)}]"
        texts = [self._types.type(each) for each in types]
        return texts[0] if len(texts) == 1 else tuple_text(texts)


_CALLERS: Mapping[str, str] = {
    "relax.call_tir": "relax.call_tir",
    "relax.call_tir_inplace": "relax.op.call_tir_inplace",
    "relax.call_dps_packed": "relax.call_dps_packed",
    "relax.call_pure_packed": "relax.call_pure_packed",
}
"""Operators that call a function, with a form of their own."""


def literal(value: Any) -> str:
    """Return a value of an attribute as a literal of Python.

    Raises `LowerscopeError` if it is of another kind than numbers, strings, dtypes, and lists and
    dicts of them.
    """
    if isinstance(value, tirx.IntImm | tirx.FloatImm | ir.StringImm):
        value = value.value
    if isinstance(value, float) and value - value != 0:
        return f'float("{value}")'
    if isinstance(value, tvm_ffi.dtype | ir.PrimType):
        return f'"{dtype_text(value)}"'
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Sequence):
        return f"[{', '.join(literal(each) for each in value)}]"
    raise without_form(_("the builder program cannot express the attribute {value}", value=value))


def _function_of(name: str) -> Callable[..., Any] | None:
    """Return the function of `relax.op` that makes calls of an operator, by its name."""
    found: Any = relax.op
    for part in name.removeprefix("relax.").split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def _fields(attrs: Any) -> dict[str, str]:
    """Return the attributes of a call as literals."""
    if attrs is None:
        return {}
    if isinstance(attrs, ir.DictAttrs):
        return {str(key): literal(value) for key, value in attrs.items()}
    names = [field.name for field in type(attrs).__tvm_ffi_type_info__.fields]
    return {name: literal(getattr(attrs, name)) for name in names}


def _call(title: str, args: Sequence[str], attrs: Mapping[str, str]) -> str:
    return f"{title}({', '.join([*args, *keywords(attrs.items())])})"


def _unwritten(meant: Any) -> LowerscopeError:
    kind = type(meant).__name__
    if isinstance(meant, ir.Call):
        kind = _("a call of {name}", name=getattr(meant.op, "name", meant.op))
    line = str(meant).splitlines()[0]
    return without_form(
        _("the builder program cannot express {kind}: {splitline}", kind=kind, splitline=line)
    )


class FreshNames:
    """The names of variables of a block builder, as it numbers them.

    `taken`: names of functions that it has so far.
    `coming`: names of functions that it gets later, which no variable may take away.
    """

    def __init__(self, taken: Iterable[str], coming: set[str]) -> None:
        self._next = dict.fromkeys(taken, 1)
        self._coming = coming

    def hint(self, default: str, wanted: str) -> str:
        """Return the name hint that gives a variable the wanted name."""
        if self._peek(default) == wanted or wanted in self._next or wanted in self._coming:
            self._take(default)
            return ""
        self._take(wanted)
        return wanted

    def _peek(self, name: str) -> str:
        if name not in self._next:
            return name
        numbered = (f"{name}{number}" for number in count(self._next[name]))
        return next(each for each in numbered if each not in self._next)

    def _take(self, name: str) -> None:
        found = self._peek(name)
        if found != name:
            self._next[name] = int(found.removeprefix(name)) + 1
        self._next[found] = 1


class FunctionText:
    """Writer of one function."""

    def __init__(
        self, scope: BuilderScope, constants: ConstantText, fresh: FreshNames, lines: ProgramLines
    ) -> None:
        self._program = scope
        self._scope = BuilderScope(scope)
        self._types = TypeText(self._scope)
        self._calls = CallText(self._scope, constants)
        self._fresh = fresh
        self._lines = lines
        self._ids: dict[Any, str] = {}

    def write(self, name: str, function: Any, variable: Any | None) -> None:
        """Add the lines that make `function`; `variable` is what others call it by, if they do."""
        self._ids = {bound.binding: bound.id for bound in bound_in(name, function)}
        lines = self._lines
        with lines.span(f"relax:{name}"):
            self._parameters(function)
            lines.add(f"with bb.function({self._signature(name, function)}):")
            with lines.indented():
                for block in function.body.blocks:
                    self._block(block)
                output = f"bb.emit_func_output({self._calls.value(function.body.body)})"
                widened = self._widened(function)
                if variable is not None or widened:
                    title = f"{name}_gv"
                    taken = (
                        self._program.identifiers.take(title)
                        if variable is None
                        else self._program.bind(variable, title)
                    )
                    output = f"{taken} = {output}"
                lines.add(output)
            if widened:
                self._widen(taken, function)

    def _parameters(self, function: Any) -> None:
        definitions: list[str] = []
        for parameter in function.params:
            meant = self._types.type(parameter.ty)
            taken = self._scope.bind(parameter, parameter.name)
            definitions.append(f"{taken} = relax.Var({quoted(parameter.name)}, {meant})")
        self._lines.add(*self._scope.take_symbols(), *definitions)

    def _signature(self, name: str, function: Any) -> str:
        attrs = {} if function.attrs is None else dict(function.attrs.items())
        public = attrs.get("global_symbol") == name
        if public:
            attrs.pop("global_symbol")
        parameters = ", ".join(self._scope.name_of(each) for each in function.params)
        parts = [quoted(name), f"params=[{parameters}]"]
        if attrs:
            parts.append(f"attrs={literal(attrs)}")
        if not function.is_pure:
            parts.append("pure=False")
        if not public:
            parts.append("private=True")
        return ", ".join(parts)

    def _widened(self, function: Any) -> bool:
        """Return whether the return type of the function is weaker than the inferred one."""
        inferred = relax.Function(
            function.params, function.body, None, function.is_pure, function.attrs
        )
        return not tvm_ffi.structural_equal(inferred, function)

    def _widen(self, variable: str, function: Any) -> None:
        returns = self._types.type(function.ret_ty)
        made = f"bb.get()[{variable}]"
        parts = f"{made}.params, {made}.body, {returns}, {made}.is_pure, {made}.attrs"
        self._lines.add(f"bb.update_func({variable}, relax.Function({parts}))")

    # Blocks

    def _block(self, block: Any) -> None:
        if not isinstance(block, relax.DataflowBlock):
            self._bindings(block, "gv")
            return
        self._lines.add("with bb.dataflow():")
        with self._lines.indented():
            self._bindings(block, "lv")

    def _bindings(self, block: Any, default: str) -> None:
        for binding in block.bindings:
            output = default == "lv" and not isinstance(binding.var, relax.DataflowVar)
            with self._lines.span(self._ids[binding]):
                self._binding(binding, "gv" if output else default, output=output)

    def _binding(self, binding: Any, default: str, *, output: bool) -> None:
        if isinstance(binding, relax.MatchCast):
            value, meant = self._calls.value(binding.value), self._types.type(binding.ty)
            plain = not output and tvm_ffi.structural_equal(binding.ty, binding.var.ty)
            emit, args = "match_cast", f"{value}, {meant}"
            made = f"relax.MatchCast({{}}, {args})"
        else:
            args = self._value(binding)
            plain = self._infers(args, binding)
            emit = "emit_output" if output else "emit"
            made = f"relax.VarBinding({{}}, bb.normalize({args}))"
        self._lines.add(*self._scope.take_symbols())
        if plain:
            hint = self._fresh.hint(default, binding.var.name)
            asked = f", name_hint={quoted(hint)}" if hint else ""
            taken = self._scope.bind(binding.var, binding.var.name)
            self._lines.add(f"{taken} = bb.{emit}({args}{asked})")
            return
        kind = type(binding.var).__name__
        meant = self._types.type(binding.var.ty)
        taken = self._scope.bind(binding.var, binding.var.name)
        self._lines.add(
            *self._scope.take_symbols(),
            f"{taken} = relax.{kind}({quoted(binding.var.name)}, {meant})",
            f"bb.emit_normalized({made.format(taken)})",
        )

    def _value(self, binding: Any) -> str:
        value = binding.value
        if isinstance(value, relax.Function):
            raise LowerscopeError(
                _(
                    "the builder program cannot express {name}, a function in a function",
                    name=binding.var.name,
                ),
                where=self._ids[binding],
                todo=_("Apply LambdaLift first, or see the script"),
            )
        if not isinstance(value, relax.If):
            return self._calls.value(value)
        condition = self._calls.value(value.cond)
        branches = [
            self._branch(f"{name}_branch", body)
            for name, body in (("true", value.true_branch), ("false", value.false_branch))
        ]
        return f"relax.If({condition}, {', '.join(branches)})"

    def _branch(self, name: str, body: Any) -> str:
        """Add the lines that make one branch of an ``If``, and return its name."""
        lines = self._lines
        taken = self._scope.identifiers.take(name)
        blocks: list[str] = []
        lines.add("bb.begin_scope()")
        for block in body.blocks:
            dataflow = isinstance(block, relax.DataflowBlock)
            lines.add(f"bb._begin_{'dataflow' if dataflow else 'binding'}_block()")
            self._bindings(block, "lv" if dataflow else "gv")
            blocks.append(self._scope.identifiers.take(f"{taken}_block"))
            lines.add(f"{blocks[-1]} = bb._end_block()")
        result = self._calls.value(body.body)
        lines.add(f"{taken} = relax.SeqExpr([{', '.join(blocks)}], {result})", "bb.end_scope()")
        return taken

    def _infers(self, text: str, binding: Any) -> bool:
        """Return whether the builder gives the variable the type that it has."""
        value = binding.value
        if isinstance(value, relax.If):
            made = relax.If(value.cond, value.true_branch, value.false_branch)
            made = relax.BlockBuilder().normalize(made)
        else:
            made = self._scope.make(text)
        return bool(tvm_ffi.structural_equal(made.ty, binding.var.ty))


def called_first(functions: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of Relax functions, each after those that it calls, and ``main`` late.

    Raises `LowerscopeError` if a function calls itself, by others or directly.
    """
    import networkx

    calls = networkx.DiGraph()
    calls.add_nodes_from(functions)
    calls.add_edges_from(
        (name, callee)
        for name, function in functions.items()
        for callee in called_by(function)
        if callee in functions
    )
    if not networkx.is_directed_acyclic_graph(calls):
        name = networkx.find_cycle(calls)[0][0]
        raise without_form(
            _("the builder program cannot express {name}, which calls itself", name=name),
            f"relax:{name}",
        )
    return list(networkx.dfs_postorder_nodes(calls))


def called_by(function: Any) -> Sequence[str]:
    """Return the names of the functions of the module that a Relax function calls, each once."""
    names: dict[str, None] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GlobalVar):
            names[expression.name_hint] = None

    relax.analysis.post_order_visit(function, visit)
    return tuple(names)


_SYMBOL = re.compile(r"(\w+) = TypeVar\(")


class PrimFuncs:
    """The definitions of a module's TensorIR functions.

    `definitions`: from these names to those of the definitions.
    `standard_imports`, `tvm_imports`: lines that the definitions need at the top of the program.
    """

    def __init__(self, functions: Mapping[str, Any], identifiers: Identifiers) -> None:
        scripts = {
            name: _script(name, function, identifier(name)) for name, function in functions.items()
        }
        symbols = {
            match[1]
            for script in scripts.values()
            for line in script
            if (match := _SYMBOL.match(line))
        }
        for symbol in sorted(symbols):
            # Symbols are defined beside the functions; no function may be called like one.
            identifiers.take(symbol)
        self.names = tuple(functions)
        self.definitions = {name: identifiers.take(name) for name in functions}
        self._scripts = scripts
        imports = [
            line.removeprefix("# ")
            for script in scripts.values()
            for line in script
            if line.startswith("# from ")
        ]
        imports = [line for line in dict.fromkeys(imports) if self._needs(line)]
        self.standard_imports = [line for line in imports if "tvm" not in line]
        self.tvm_imports = sorted(line for line in imports if "tvm" in line)
        _refuse_twins(functions)

    def write(self, lines: ProgramLines) -> None:
        """Add the definitions, each with two empty lines after it."""
        for name, script in self._scripts.items():
            body = [line for line in script if not line.startswith("#")]
            while not body[0]:
                body.pop(0)
            plain, taken = identifier(name), self.definitions[name]
            body = [
                line.replace(f"def {plain}(", f"def {taken}(", 1)
                if line.startswith(f"def {plain}(")
                else line
                for line in body
            ]
            with lines.span(f"tir:{name}"):
                lines.add(*body)
            lines.add("", "")

    def _needs(self, line: str) -> bool:
        name = line.rpartition(" import ")[2].rpartition(" ")[2]
        use = re.compile(rf"\b{name}\b")
        return any(
            use.search(each)
            for script in self._scripts.values()
            for each in script
            if not each.startswith("# from ")
        )


def _script(name: str, function: Any, title: str) -> list[str]:
    lines = with_characters(str(function.script(name=title))).rstrip("\n").split("\n")
    if any(line.startswith("# Metadata") for line in lines):
        raise without_form(
            _("the builder program cannot express the constants inside {name}", name=name),
            f"tir:{name}",
        )
    return lines


def _refuse_twins(functions: Mapping[str, Any]) -> None:
    """Reject equal functions of two names: a block builder makes one of them."""
    seen: dict[int, str] = {}
    for name, function in functions.items():
        key = tvm_ffi.structural_hash(function)
        if key in seen and tvm_ffi.structural_equal(function, functions[seen[key]]):
            text = _(
                "{seen} and {name} are equal, and a block builder keeps one of the two",
                seen=seen[key],
                name=name,
            )
            raise without_form(text, f"tir:{name}")
        seen[key] = name


CONSTANTS_FILE = "constants.npz"
"""The file beside the program, which it reads when it is run as a script."""


@dataclass(frozen=True)
class BuilderText:
    """A builder program.

    `record`: the program. Spans are ``tir:NAME`` for the definition of a TensorIR function,
        ``relax:FUNCTION`` and, in it, ``relax:FUNCTION/VARIABLE`` for what makes each binding.
    `constants`: the arguments of its function ``build(constants)``, by name: the arrays to save in
        `CONSTANTS_FILE` beside it, with ``np.savez``.
    `imports`, `definitions`: its parts, for a program of more than that: the lines that it imports
        what it needs by, and the TensorIR functions with ``build``.
    """

    record: TextRecord
    constants: Mapping[str, np.ndarray]
    imports: tuple[str, ...] = ()
    definitions: str = ""


def builder_text(
    module: IRModule,
    constant_name: Callable[[Any], str] = lambda constant: "",
    reserved: Collection[str] = (),
) -> BuilderText:
    """Return the program that makes `module` with ``relax.BlockBuilder``.

    TensorIR functions stand in it as TVMScript; arrays of constants stay outside.

    `constant_name`: returns the name that a Relax constant should have in the program and in the
        file of constants, such as a parameter's; an empty string for none.
    `reserved`: More names that nothing in the program may have.

    Raises `LowerscopeError` if the module has something that a builder program cannot make; it is
    named.
    """
    return _Program(module, constant_name, reserved).text()


class _Program:
    def __init__(
        self, module: IRModule, constant_name: Callable[[Any], str], reserved: Collection[str]
    ) -> None:
        self._module = module
        self._scope = BuilderScope(reserved=reserved)
        self._constants = ConstantText(self._scope, constant_name)
        self._lines = ProgramLines()
        functions = {variable.name_hint: each for variable, each in module.functions_items()}
        self._variables = {each.name_hint: each for each in module.get_global_vars()}
        self._relax = {
            name: each for name, each in functions.items() if isinstance(each, relax.Function)
        }
        self._called = {name for each in self._relax.values() for name in called_by(each)}
        self._tensorir = PrimFuncs(
            {name: each for name, each in functions.items() if isinstance(each, tirx.PrimFunc)},
            self._scope.identifiers,
        )
        _refuse_others(module, functions)

    def text(self) -> BuilderText:
        order = called_first(self._relax)
        self._tensorir.write(self._lines)
        lines = self._lines
        lines.add("def build(constants: dict[str, np.ndarray]) -> tvm.IRModule:")
        with lines.indented():
            lines.add(f'"""Make the module; `constants` are the arrays of {CONSTANTS_FILE}."""')
            self._add_tensorir()
            for function in self._relax.values():
                for constant in constants_of(function):
                    self._constants.add(constant)
            if self._constants.lines:
                lines.add(*self._constants.lines, "")
            fresh = FreshNames(self._tensorir.names, set(self._relax))
            for name in order:
                variable = self._variables[name] if name in self._called else None
                FunctionText(self._scope, self._constants, fresh, lines).write(
                    name, self._relax[name], variable
                )
                lines.add("")
            self._return()
        imports = self._imports()
        definitions = lines.record("python").text
        self._tail()
        head = [
            '"""A module, made with a block builder."""',
            "",
            "from __future__ import annotations",
            "",
            *imports,
            "",
            "",
        ]
        return BuilderText(
            record=lines.record("python", head),
            constants=self._constants.arrays,
            imports=tuple(imports),
            definitions=definitions,
        )

    def _imports(self) -> list[str]:
        names = "relax, tirx" if self._lines.uses("tirx") else "relax"
        return [
            "from pathlib import Path",
            *self._tensorir.standard_imports,
            "",
            "import numpy as np",
            "import tvm",
            f"from tvm import {names}",
            *(["import tvm.relax.op.vm"] if self._lines.uses("relax.op.vm") else []),
            *self._tensorir.tvm_imports,
        ]

    def _add_tensorir(self) -> None:
        self._lines.add("bb = relax.BlockBuilder()")
        for name, definition in self._tensorir.definitions.items():
            call = f"bb.add_func({definition}, {quoted(name)})"
            if name in self._called:
                call = f"{self._scope.bind(self._variables[name], f'{name}_gv')} = {call}"
            self._lines.add(call)
        self._lines.add("")

    def _return(self) -> None:
        attrs = self._module.attrs
        if attrs is None or not len(attrs.keys()):
            self._lines.add("return bb.get()")
            return
        pairs = ", ".join(f"{literal(str(key))}: {literal(value)}" for key, value in attrs.items())
        self._lines.add(f"return bb.get().with_attrs({{{pairs}}})")

    def _tail(self) -> None:
        lines = self._lines
        lines.add("", "", 'if __name__ == "__main__":')
        with lines.indented():
            lines.add(
                f'module = build(dict(np.load(Path(__file__).with_name("{CONSTANTS_FILE}"))))',
                "module.show()",
            )


def _refuse_others(module: IRModule, functions: Mapping[str, Any]) -> None:
    for name, function in functions.items():
        if not isinstance(function, relax.Function | tirx.PrimFunc):
            kind = type(function).__name__
            raise without_form(
                _("the builder program cannot express {name}, a {name2}", name=name, name2=kind)
            )
    if len(module.global_infos):
        infos = _(", ").join(module.global_infos)
        raise without_form(
            _("the builder program cannot express {global_infos} of the module", global_infos=infos)
        )

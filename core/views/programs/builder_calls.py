"""The constants that a builder program reads: arrays for a file beside it, small ones in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from lowerscope.core.files.python_text import keywords, quoted
from lowerscope.core.ir.relax import Elements, elements_of
from lowerscope.core.ir.tensorir import operator_name
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError
from lowerscope.core.views.programs.program_lines import (
    ATOM,
    ExpressionText,
    Identifiers,
    Written,
    dtype_of,
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


def constants_in(function: Any) -> Iterator[Any]:
    """Yield the tensors that are constants of a Relax function, in the order of their use."""
    found: list[Any] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GenericConst):
            assert isinstance(expression.value, tvm_ffi.Tensor), f"{expression} is no tensor"
            found.append(expression)

    relax.analysis.post_order_visit(function, visit)
    return iter(found)


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

        Raises `LowerscopeError` if there is none.
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
        raise _without_form(meant)

    def _list(self, expressions: Sequence[Any]) -> str:
        return f"[{', '.join(self.value(each) for each in expressions)}]"

    def _proved(self, meant: Any, forms: Iterator[str]) -> str:
        for form in forms:
            if self._scope.says(form, meant):
                return form
        raise _without_form(meant)

    # Calls

    def _call_forms(self, call: Any) -> Iterator[str]:
        name = getattr(call.op, "name", "") if isinstance(call.op, ir.Op) else ""
        if name in _CALLERS:
            yield _CALLERS[name](self, call)
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

    def _call_tir(self, call: Any) -> str:
        return f"relax.call_tir({self._destination_call(call)})"

    def _call_tir_inplace(self, call: Any) -> str:
        indices = literal(call.attrs.inplace_indices)
        callee, args, out = self._destination_parts(call)
        return f"relax.op.call_tir_inplace({callee}, {args}, {indices}, {out})"

    def _call_dps_packed(self, call: Any) -> str:
        return f"relax.call_dps_packed({self._destination_call(call)})"

    def _call_pure_packed(self, call: Any) -> str:
        args = [self._callee(call.args[0]), *(self.value(each) for each in call.args[1:])]
        return f"relax.call_pure_packed({', '.join(args)}, ty_args={self._ty_args(call)})"

    def _destination_call(self, call: Any) -> str:
        return ", ".join(self._destination_parts(call))

    def _destination_parts(self, call: Any) -> tuple[str, str, str]:
        args = call.args[1]
        inputs = self._list(args.fields) if isinstance(args, ir.Tuple) else self.value(args)
        return self._callee(call.args[0]), inputs, f"out_ty={self._ty_args(call)}"

    def _ty_args(self, call: Any) -> str:
        types = list(call.ty_args)
        if len(types) == 1 and isinstance(types[0], ir.TupleType):
            types = list(types[0].fields)
            return f"[{', '.join(self._types.type(each) for each in types)}]"
        texts = [self._types.type(each) for each in types]
        return texts[0] if len(texts) == 1 else tuple_text(texts)

    def _callee(self, callee: Any) -> str:
        if isinstance(callee, relax.ExternFunc):
            return quoted(callee.global_symbol)
        return self.value(callee)


_CALLERS: Mapping[str, Callable[[CallText, Any], str]] = {
    "relax.call_tir": CallText._call_tir,
    "relax.call_tir_inplace": CallText._call_tir_inplace,
    "relax.call_dps_packed": CallText._call_dps_packed,
    "relax.call_pure_packed": CallText._call_pure_packed,
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
    raise LowerscopeError(
        f"the builder program has no form for the attribute {value}",
        todo="Look at the script instead",
    )


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


def _without_form(meant: Any) -> LowerscopeError:
    kind = type(meant).__name__
    if isinstance(meant, ir.Call):
        kind = f"a call of {getattr(meant.op, 'name', meant.op)}"
    return LowerscopeError(
        f"the builder program has no form for {kind}: {str(meant).splitlines()[0]}",
        todo="Look at the script instead",
    )

"""Accessors of Relax values: shape, dtype, and constants."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import torch
from tvm import ir, relax, sym, tirx

from lowerscope.core.model.texts import _

Value = Any
"""A value during translation: a Relax expression, a Python value, or a nest of both."""

_TORCH_DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8),
        *(torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16),
        *(torch.float32, torch.float64),
    )
}


HALF = ("float16", "bfloat16")
"""Half-precision dtypes."""

COMPLEX = {"complex64": "float32", "complex128": "float64"}
"""Dtypes of complex numbers, with those of their parts, for which there are rules."""

_HELD_AS_PARTS = {"complex32": "float16", **COMPLEX}
BYTES = frozenset(
    str(getattr(torch, name)).removeprefix("torch.")
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
)
"""Dtypes of numbers that are encoded as their bytes."""


@dataclass(frozen=True)
class EncodedTensor:
    """A tensor of a dtype that TVM lacks, encoded in another one.

    `value`: a Relax tensor: real and imaginary parts along a last axis of 2, or the bytes.
    `dtype`: Torch's dtype, as ``"complex64"``.
    `parts`: the real and the imaginary part of complex numbers, as real tensors, if they are known.
    """

    value: Value
    dtype: str
    parts: tuple[Value, Value] | None = None


def held_type(shape: tuple[Any, ...], dtype: str) -> tuple[tuple[Any, ...], str] | None:
    """Return shape and dtype of the encoding of a tensor; ``None`` if there is none."""
    if dtype in _TORCH_DTYPES:
        return shape, dtype
    if dtype in _HELD_AS_PARTS:
        return (*shape, 2), _HELD_AS_PARTS[dtype]
    return (shape, "uint8") if dtype in BYTES else None


def held_as(tensor: torch.Tensor, dtype: str) -> torch.Tensor:
    """Return the encoding of `tensor`, a view of it."""
    if dtype in _HELD_AS_PARTS:
        return torch.view_as_complex(tensor)
    return tensor.view(getattr(torch, dtype))


def held_from(tensor: torch.Tensor) -> torch.Tensor:
    """Return `tensor`, or its encoding if TVM lacks its dtype."""
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout != torch.strided:
        with torch.inference_mode(tensor.is_inference()):
            tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    if name in _HELD_AS_PARTS:
        return torch.view_as_real(tensor)
    return tensor.view(torch.uint8) if name in BYTES else tensor


def is_size(value: Value) -> bool:
    """Return whether `value` is a symbolic size: an extent of a named dimension."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, ir.PrimType)


def is_tensor(value: Value) -> bool:
    """Return whether `value` is a Relax expression for one tensor."""
    return isinstance(value, ir.Expr) and isinstance(value.ty, relax.TensorType)


def is_scalar_constant(value: Value) -> bool:
    """Return whether `value` is a constant tensor of rank 0."""
    return isinstance(value, ir.GenericConst) and is_tensor(value) and rank_of(value) == 0


def shape_of(value: Value) -> tuple[Any, ...]:
    """Return the extents of a tensor: ints, and expressions over the named dimensions.

    If an expression is compared or converted to a number, TVM raises ``ValueError`` or
    ``TypeError``, which rejects the node; only ``==`` works, as identity.
    """
    return extents_of(value.ty.shape)


@lru_cache(maxsize=1024)
def extents_of(shape: Any) -> tuple[Any, ...]:
    """Return the extents of a Relax shape, as `shape_of` does for a tensor.

    They are cached: rules query them often, and iterating over a shape is slow.
    """
    return tuple(size_of(extent) for extent in shape)


@lru_cache(maxsize=1024)
def numbers_of(shape: Any) -> tuple[int, ...] | None:
    """Return the extents of a Relax shape if all are numbers; ``None`` otherwise."""
    if not isinstance(shape, relax.ShapeExpr):
        return None
    extents = extents_of(shape)
    return extents if all(isinstance(each, int) for each in extents) else None


def size_of(extent: Any) -> Any:
    """Return an extent as an int, or as an expression if it is dynamic."""
    if isinstance(extent, tirx.IntImm):
        return int(extent)
    if is_scalar_constant(extent):
        return int(extent.value.numpy())
    return extent if isinstance(extent, ir.Expr) else int(extent)


def simplified(extent: Any) -> Any:
    """Return a size simplified."""
    return size_of(sym.Analyzer().simplify(extent)) if isinstance(extent, ir.Expr) else extent


def is_empty(sizes: Sequence[Any]) -> bool:
    """Return whether a tensor of a shape has no elements."""
    return any(isinstance(each, int) and not each for each in sizes)


def same_sizes(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether two shapes are equal for all sizes, as far as that can be proved."""
    return len(first) == len(second) and all(
        a == b if isinstance(a, int) and isinstance(b, int) else _proved_equal(a, b)
        for a, b in zip(first, second, strict=True)
    )


def _proved_equal(first: Any, second: Any) -> bool:
    numbers = (
        tirx.IntImm("int64", each) if isinstance(each, int) else each for each in (first, second)
    )
    return bool(sym.Analyzer().can_prove_equal(*numbers))


def rank_of(value: Value) -> int:
    """Return the number of dimensions of a tensor."""
    return int(value.ty.ndim)


def dtype_of(value: Value) -> str:
    """Return the dtype of a tensor, as ``"float32"``."""
    return str(value.ty.dtype.dtype)


def is_dtype(dtype: str) -> bool:
    """Return whether TVM has a dtype of this name."""
    return dtype in _TORCH_DTYPES


def is_float(dtype: str) -> bool:
    """Return whether `dtype` is a floating-point type."""
    return dtype.startswith(("float", "bfloat"))


def torch_dtype(dtype: str) -> torch.dtype:
    """Return torch's dtype for TVM's name of it."""
    return _TORCH_DTYPES[dtype]


class UnknownDtype(KeyError):
    """TVM has no such dtype, given by its name."""


def dtype_name(dtype: torch.dtype) -> str:
    """Return TVM's name for torch's dtype.

    Raises `UnknownDtype` if TVM has no such dtype.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _TORCH_DTYPES:
        raise UnknownDtype(name)
    return name


def axis_of(axis: int, rank: int) -> int:
    """Return `axis` counted from the front."""
    return axis + max(rank, 1) if axis < 0 else axis


def scalar(value: float, dtype: str) -> Value:
    """Return a constant of rank 0."""
    return relax.const(value, dtype)


Extent = Any
"""An int, or a TVM expression over the variables of the names."""


LARGEST_OF_DATA = 1 << 40
"""Bound of an extent that depends on data."""


class Dimensions:
    """The variables of the named dimensions of one module.

    `ranges`: smallest and largest size of each name.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        self._variables = {name: tirx.Var(name, "int64") for name in ranges}
        self._ranges = dict(ranges)
        self._of_data: list[tirx.Var] = []
        self._symbols: dict[str, tirx.Var] = {}
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
            value = size_from(extent, {**self._symbols, **self._variables})
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

    def of_data(self, name: str, symbol: str = "") -> Extent:
        """Return the variable of a new extent that is known when the model runs.

        `symbol`: torch.export's name of it, which other extents may have.
        """
        variable = tirx.Var(name, "int64")
        self._of_data.append(variable)
        self.name_extent(variable, name)
        self.name_extent(variable, symbol)
        self._analyzer.bind(variable, ir.Range.from_min_extent(0, LARGEST_OF_DATA))
        return variable

    def name_extent(self, variable: Extent, symbol: str) -> None:
        """Note that torch.export calls an extent by a name."""
        if symbol.isidentifier():
            self._symbols[symbol] = variable

    def ranges_in(self, extents: Iterable[Extent]) -> dict[str, tuple[int, int]]:
        """Return the range of each variable in extents, by name."""
        return {
            each.name: self._ranges.get(each.name, (0, LARGEST_OF_DATA))
            for extent in extents
            for each in _variables_in(extent)
        }

    def are_known(self, value: Value) -> bool:
        """Return whether every extent of a tensor is a number, or made of variables."""
        return self.is_known(value.ty.shape)

    def is_known(self, shape: Any) -> bool:
        """Return whether every extent of a shape is a number, or made of variables."""
        return self._consists_of(shape, (*self._variables.values(), *self._of_data))

    def depend_on_data(self, value: Value) -> bool:
        """Return whether an extent of a tensor is known only when the model runs."""
        return not self._consists_of(value.ty.shape, tuple(self._variables.values()))

    def data_in(self, value: Value) -> list[Any]:
        """Return the variables in a tensor's shape that are known only when the model runs."""
        shape = value.ty.shape
        extents = extents_of(shape) if isinstance(shape, relax.ShapeExpr) else ()
        used = [each for extent in extents for each in _variables_in(extent)]
        return [one for one in self._of_data if any(one.same_as(each) for each in used)]

    def is_of_data(self, size: Extent) -> bool:
        """Return whether a size is known only when the model runs."""
        used = _variables_in(size)
        return any(each.same_as(one) for one in self._of_data for each in used)

    def _consists_of(self, shape: Any, variables: Sequence[Any]) -> bool:
        if numbers_of(shape) is not None:
            return True
        if not isinstance(shape, relax.ShapeExpr):
            return False
        return all(
            any(each.same_as(one) for one in variables)
            for extent in extents_of(shape)
            for each in _variables_in(extent)
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

        Raises `NotImplementedError` if it is no integer for all sizes, or depends on an undecidable
        comparison.
        """
        make = _COMPUTED.get(function)
        if make is None:
            name = getattr(function, "__name__", str(function))
            raise NotImplementedError(_("{name} of a size is not an integer expression", name=name))
        value = make(*args)
        if function not in _COMPARISONS:
            return self.simplified(value)
        if self._analyzer.can_prove(value):
            return True
        if self._analyzer.can_prove(tirx.Not(value)):
            return False
        raise NotImplementedError(
            _("it compares sizes, and the outcome is not the same for all sizes")
        )


def _variables_in(extent: Extent) -> Sequence[Any]:
    if isinstance(extent, int):
        return ()
    found: Sequence[Any] = tirx.analysis.undefined_vars(tirx.Evaluate(extent), [])
    return found


def variables_in_sums(extents: Iterable[Extent]) -> list[Any]:
    """Return the variables of extents that are none of these extents by themselves."""
    found: list[Any] = []
    known = [each for each in extents if not isinstance(each, int)]
    plain = [each for each in known if isinstance(each, tirx.Var)]
    for each in (variable for extent in known for variable in _variables_in(extent)):
        if not any(each.same_as(one) for one in (*plain, *found)):
            found.append(each)
    return found


def size_text(size: Extent) -> str:
    """Return a size as an expression of names, as Python writes it.

    Raises `KeyError` for an expression that `size_from` cannot read.
    """
    if isinstance(size, int | tirx.IntImm):
        return str(int(size))
    if isinstance(size, tirx.Var):
        return str(size.name)
    sign = _SIGNS[type(size)]
    first, second = size_text(size.a), size_text(size.b)
    return f"{sign}({first}, {second})" if sign.isalpha() else f"({first} {sign} {second})"


_SIGNS: Mapping[type[Any], str] = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.FloorDiv: "//",
    tirx.FloorMod: "%",
    tirx.Max: "max",
    tirx.Min: "min",
}


def size_from(text: str, sizes: Mapping[str, Any]) -> Any:
    """Return the value of an expression of names, with TVM's or torch's sizes for these.

    Raises `KeyError` or `SyntaxError` if it has another name or form.
    """
    return _evaluated(ast.parse(text, mode="eval").body, sizes)


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
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.ifloordiv: operator.floordiv,
    operator.imod: operator.mod,
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

    Raises `KeyError` if a name or an operation is unknown.
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
            values = [_evaluated(each, variables) for each in args]
            of_torch = any(isinstance(each, torch.SymInt) for each in values)
            symbolic: Any = torch.sym_max if name == "max" else torch.sym_min
            return reduce(symbolic if of_torch else _COMPUTED[symbolic], values)
    raise KeyError(ast.dump(node))


def leaves(value: Any, *, slices: bool = False) -> Iterator[Any]:
    """Yield the leaves of a nest of tuples, lists and dicts, in order; `slices` are nests too."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each, slices=slices)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()), slices=slices)
    elif slices and isinstance(value, slice):
        yield from leaves([value.start, value.stop, value.step], slices=True)
    else:
        yield value

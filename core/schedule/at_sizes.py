"""Specialisation of a TensorIR function to one size, to be counted, called and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import ir, relax, tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.ir.relax import bound_in, callee_of, relax_functions
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.schedule.parameters import ARITHMETIC, known

Given = tuple[tuple[int, ...] | int, ...]
"""Arguments of a function: the shape of each buffer, and numbers as they are."""

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {**ARITHMETIC, tirx.Max: max, tirx.Min: min}


def sizes_at_calls(
    module: tvm.IRModule, shapes: Sequence[tuple[int, ...] | None]
) -> dict[str, Given]:
    """Return the arguments of each TensorIR function at its first call with known shapes.

    Shapes that depend on values, and are computed at run time, are not known.

    `shapes`: of the arguments of ``main``; ``None`` for what has none.
    """
    calls = _Calls(module)
    calls.go_into("main", shapes)
    return calls.found


class _Calls:
    def __init__(self, module: tvm.IRModule) -> None:
        self._module = module
        self._functions = dict(relax_functions(module))
        self._been: set[str] = set()
        self.found: dict[str, Given] = {}

    def go_into(self, name: str, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Visit the calls of a Relax function with arguments of these shapes."""
        function = self._functions.get(name)
        if function is None or name in self._been:
            return
        self._been.add(name)
        sizes = _Sizes()
        for parameter, shape in zip(function.params, shapes, strict=False):
            sizes.take(parameter.ty, shape)
        for bound in bound_in(name, function):
            value: Any = getattr(bound.binding, "value", None)
            if isinstance(bound.binding, relax.MatchCast):
                sizes.take(bound.binding.ty, sizes.of(value.ty))
            callee = callee_of(value)
            if isinstance(callee, ir.GlobalVar):
                self._go_over(str(callee.name_hint), self._module[callee], value, sizes)

    def _go_over(self, name: str, called: Any, call: Any, sizes: _Sizes) -> None:
        if isinstance(called, relax.Function):
            self.go_into(name, [sizes.of(each.ty) for each in call.args])
        elif isinstance(called, tirx.PrimFunc):
            given = [each for each in _given(call, sizes) if each is not None]
            if len(given) == len(called.params):
                self.found.setdefault(name, tuple(given))


def _given(call: Any, sizes: _Sizes) -> Iterator[tuple[int, ...] | int | None]:
    """Yield the arguments of the function of a ``call_tir``: inputs, outputs, and numbers."""
    if len(call.args) < 2:
        return
    arguments = call.args[1]
    if isinstance(arguments, relax.Tuple):
        yield from (
            sizes.number(each) if isinstance(each.ty, ir.PrimType) else sizes.of(each.ty)
            for each in arguments.fields
        )
    else:
        yield from (sizes.of(each) for each in _members(arguments.ty))
    yield from (sizes.of(each) for each in _members(call.ty))
    if len(call.args) > 2:
        yield from (sizes.number(each) for each in call.args[2].values)


def _members(kind: Any) -> tuple[Any, ...]:
    fields = getattr(kind, "fields", None)
    return (kind,) if fields is None else tuple(fields)


class _Sizes:
    """Values of the variables of a Relax function."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, int]] = []

    def take(self, kind: Any, shape: tuple[int, ...] | None) -> None:
        """Infer variables from the shape of a type and a shape in numbers."""
        extents = _extents(kind)
        if extents is None or shape is None or len(extents) != len(shape):
            return
        for extent, size in zip(extents, shape, strict=True):
            if isinstance(extent, tirx.Var) and self.number(extent) is None:
                self._known.append((extent, size))

    def of(self, kind: Any) -> tuple[int, ...] | None:
        """Return the shape of a type in numbers; ``None`` where one is not known."""
        extents = _extents(kind)
        if extents is None:
            return None
        numbers = tuple(self.number(each) for each in extents)
        return None if None in numbers else numbers  # type: ignore[return-value]

    def number(self, extent: Any) -> int | None:
        """Return an extent as a number; ``None`` where it is not known."""
        size = known(extent)
        if size is not None:
            return size
        if isinstance(extent, tirx.Var):
            return next((size for var, size in self._known if var.same_as(extent)), None)
        if isinstance(extent, tirx.Cast):
            return self.number(extent.value)
        operator = _OPERATORS.get(type(extent))
        if operator is None:
            return None
        left, right = self.number(extent.a), self.number(extent.b)
        return None if left is None or right is None else operator(left, right)


def _extents(kind: Any) -> tuple[Any, ...] | None:
    shape = getattr(kind, "shape", None)
    values = getattr(shape, "values", None)
    return None if values is None else tuple(values)


@dataclass(frozen=True)
class AtSizes:
    """A function at one size.

    `function`: it, for any size, as the model calls it; numbers that it takes are constants in it.
    `static`: it, with all extents as numbers. `text`: the size, such as ``"batch = 5"``; empty
    where there is but one.
    """

    function: tirx.PrimFunc
    static: tirx.PrimFunc
    text: str = ""


def at_sizes(function: tirx.PrimFunc, given: Given | None) -> AtSizes:
    """Return a function at the size at which it is called.

    `given`: the arguments of its call; ``None`` where they are not known. Raises `LowerscopeError`
    if they are needed and not known, or are not what the function takes.
    """
    if not is_symbolic(function):
        return AtSizes(function, function)
    if given is None:
        raise LowerscopeError(
            "its size is computed at run time, or nothing in main calls it, so it cannot be run"
            " alone",
            where="schedule",
            todo="Run the model with it and compare that with torch",
        )
    numbers = {
        parameter: tirx.IntImm(str(parameter.ty.dtype), each)
        for parameter, each in zip(function.params, given, strict=True)
        if isinstance(each, int)
    }
    sizes = {str(parameter.name): int(each.value) for parameter, each in numbers.items()}
    try:
        bound = function.specialize(numbers) if numbers else function
        shapes = [each for each in given if not isinstance(each, int)]
        buffers = _buffers(bound, shapes, sizes)
        static = bound.specialize(buffers) if buffers else bound
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"it cannot be had at one size: {last_line(error)}", where="schedule"
        ) from error
    text = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return AtSizes(bound, static, text)


def _buffers(
    function: tirx.PrimFunc, shapes: list[tuple[int, ...]], sizes: dict[str, int]
) -> dict[Any, Any]:
    """Return buffers of one size in place of those of any; add the names in them to `sizes`.

    An extent is set where its variable occurs for the first time; others follow from it.
    """
    buffers = {}
    for parameter, shape in zip(function.params, shapes, strict=True):
        before = len(sizes)
        extents = []
        for extent, size in zip(parameter.ty.shape, shape, strict=True):
            if isinstance(extent, tirx.Var) and str(extent.name) not in sizes:
                sizes[str(extent.name)] = size
                extents.append(tirx.IntImm(str(extent.ty.dtype), size))
            else:
                extents.append(extent)
        if len(sizes) > before:
            dtype = str(parameter.ty.dtype.dtype)
            buffers[parameter] = tirx.decl_buffer(extents, dtype, name=str(parameter.name))
    return buffers


def is_symbolic(function: tirx.PrimFunc) -> bool:
    """Return whether a parameter of the function has a symbolic shape, or is a number."""
    return any(
        not is_buffer_var(each) or any(known(extent) is None for extent in each.ty.shape)
        for each in function.params
    )

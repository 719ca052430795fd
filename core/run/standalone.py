"""A function compiled, drawn values for and called by itself, at chosen sizes."""

from __future__ import annotations

import bisect
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import tvm
import tvm_ffi
from tvm import ir, relax, s_tir, sym, tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.build.build import compile_function
from lowerscope.core.ir.relax import bound_in, callee_of, relax_functions
from lowerscope.core.ir.tensorir import (
    ARITHMETIC,
    Parameter,
    divides_by_data,
    dtype_of,
    expressions_in,
    known,
    loads_in,
    parameters_of,
    statements_in,
)
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.schedule_records import Measured
from lowerscope.core.model.texts import _
from lowerscope.core.run.execution import to_tvm

Interval = tuple[int, int]
"""The smallest and the largest value, both included."""

_ANY: Interval = (-(2**63), 2**63 - 1)
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
        self._stored: dict[Any, Interval] = {}
        self._analyzer = sym.Analyzer()

    def statement(self, statement: Any) -> None:
        kind = type(statement)
        if kind is tirx.For:
            self._bind(statement.loop_var, self._range(statement.min, statement.extent))
        elif kind is s_tir.SBlock:
            for axis in statement.iter_vars:
                self._bind(axis.var, self._range(axis.dom.min, axis.dom.extent))
        elif kind is tirx.Bind and "int" in dtype_of(statement.var):
            self._bind(statement.var, self.of(statement.value))
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
            if not loads_in(index):
                continue
            self.any = True
            low, high = self.of(index)
            if not (low >= 0 and isinstance(extent, tirx.IntImm) and high < int(extent.value)):
                self.inside = False

    def _bind(self, variable: Any, values: Interval) -> None:
        self._analyzer.update(variable, sym.ConstIntBound(*values), override=True)

    def _range(self, begin: Any, extent: Any) -> Interval:
        low, count = self.of(begin), self.of(extent)
        return low[0], low[1] + max(count[1], 1) - 1

    def of(self, expression: Any) -> Interval:
        """Return the range of an integer, or of a condition."""

        def unknown(load: Any) -> Any:
            value = tirx.Var("value", dtype_of(load))
            if "int" in dtype_of(load):
                self._bind(value, self._stored.get(load.source, self._given))
            return value

        plain = tvm_ffi.structural_map(expression, (ir.TensorLoad, unknown))
        try:
            found = self._analyzer.const_int_bound(self._analyzer.simplify(plain))
        except TVM_ERRORS:
            # It divides by what can only be zero.
            return _ANY
        return int(found.min_value), int(found.max_value)


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
            value: Any = bound.value
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
            _(
                "its size is computed at run time, or nothing in main calls it, so it cannot be run"
                " alone"
            ),
            where="schedule",
            todo=_("Run the model with it and compare that with torch"),
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
            _("it cannot be built for one size: {last_line}", last_line=last_line(error)),
            where="schedule",
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


_ENTRY = "alone"
_GUARD = 4096
"""Bytes on either side of a guarded buffer."""
_MARK = 0xA5


@dataclass(frozen=True)
class Compiled:
    """A compiled function, with the time of its compilation in milliseconds."""

    module: Any
    milliseconds: float

    def call(self, arguments: Sequence[Any]) -> None:
        """Call it once.

        Raises `LowerscopeError` if it fails.
        """
        try:
            self.module[_ENTRY](*arguments)
        except TVM_ERRORS as error:
            raise LowerscopeError(
                _("the function failed: {last_line}", last_line=last_line(error)),
                where="schedule",
                details=str(error),
            ) from error

    def seconds(self, arguments: Sequence[Any], number: int) -> float:
        """Return the mean time of `number` calls one after the other; of several, after one more.

        Raises `LowerscopeError` if a single one fails.
        """
        if number == 1:
            start = time.perf_counter()
            self.call(arguments)
            return time.perf_counter() - start
        evaluator = self.module.time_evaluator(_ENTRY, tvm.cpu(), number=number, repeat=1)
        return float(evaluator(*arguments).mean)


def compile_alone(function: tirx.PrimFunc, target: tvm.target.Target) -> Compiled:
    """Compile a function by itself.

    Raises `LowerscopeError` if TVM fails.
    """
    start = time.perf_counter()
    try:
        built = compile_function(_ENTRY, function, target).jit()
    except TVM_ERRORS as error:
        raise LowerscopeError(
            _("TVM could not compile the function: {last_line}", last_line=last_line(error)),
            where="schedule",
            todo=_("Undo the last step; the log has TVM's whole message"),
            details=str(error),
        ) from error
    return Compiled(built, (time.perf_counter() - start) * 1000)


class Guarded:
    """A tensor with marked bytes on both sides, which show out-of-bounds writes.

    `argument`: the same memory for TVM.
    """

    def __init__(self, value: torch.Tensor) -> None:
        size = value.numel() * value.element_size()
        self._memory = torch.full((size + 2 * _GUARD + 64,), _MARK, dtype=torch.uint8)
        # TVM needs aligned tensors, and torch does not guarantee alignment.
        self._begin = _GUARD + -self._memory.data_ptr() % 64
        self._end = self._begin + size
        self.tensor = self._memory[self._begin : self._end].view(value.dtype).view(value.shape)
        self.tensor.copy_(value)
        self.argument = tvm.runtime.from_dlpack(self.tensor)

    @property
    def intact(self) -> bool:
        """Return whether nothing was written beside the tensor."""
        beside = (self._memory[: self._begin], self._memory[self._end :])
        return all(bool((each == _MARK).all()) for each in beside)


_SMALL = 8
"""Maximum of integers that are not indices: products of them are exact."""


def static_parameters(function: Any) -> tuple[Parameter, ...]:
    """Return the buffers of a function, all of which have static shapes.

    Raises `LowerscopeError` if the function has other parameters, or an extent is symbolic: see
    `at_sizes`.
    """
    parameters = parameters_of(function)
    if parameters is None:
        raise LowerscopeError(
            _("the function takes more than buffers, so it cannot be run alone"), where="schedule"
        )
    symbolic = [each.name for each in parameters if each.shape is None]
    if symbolic:
        raise LowerscopeError(
            _(
                "{symbolic} has a symbolic shape, so the function cannot be run alone",
                symbolic=_(", ").join(symbolic),
            ),
            where="schedule",
            todo=_("Give the input a fixed shape"),
        )
    return parameters


def draw(
    function: Any, parameters: Sequence[Parameter], seed: int, positive: bool = False
) -> tuple[torch.Tensor | None, ...]:
    """Return values for the buffers that a function reads, ``None`` for those that it only writes.

    Floating-point numbers are normally distributed, integers small and booleans uniform. Where
    integers are indices, they are drawn from 0 to the largest value with all indices in bounds;
    where it divides by them, they are positive.

    `positive`: draw floating-point numbers from 0.5 to 1.5 instead, for roots and logarithms.
    Raises `LowerscopeError` if torch has no such dtype.
    """
    generator = torch.Generator().manual_seed(seed)
    index = largest_index(function)
    low, high = (0, index) if index is not None else (-_SMALL, _SMALL)
    if index is None and divides_by_data(function):
        low = 1
    return tuple(
        None if each.role == "output" else _draw_one(each, generator, (low, high), positive)
        for each in parameters
    )


def draw_arguments(function: Any, parameters: Sequence[Parameter], seed: int) -> list[Any]:
    """Return tensors for TVM to call a function with: see `draw`; zeros where it only writes."""
    return [
        to_tvm(
            torch.zeros(each.shape or (), dtype=dtype_of_torch(each.dtype))
            if value is None
            else value
        )
        for each, value in zip(parameters, draw(function, parameters, seed), strict=True)
    ]


def dtype_of_torch(name: str) -> torch.dtype:
    """Return torch's dtype for TVM's name.

    Raises `LowerscopeError` if it has none.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise LowerscopeError(
            _("torch has no values of the dtype {name}", name=name), where="schedule"
        )
    return dtype


def _draw_one(
    parameter: Parameter, generator: torch.Generator, integers: tuple[int, int], positive: bool
) -> torch.Tensor:
    dtype, shape = dtype_of_torch(parameter.dtype), parameter.shape or ()
    if dtype.is_floating_point:
        if positive:
            values = torch.rand(shape, generator=generator) + 0.5
        else:
            values = torch.randn(shape, generator=generator)
        return values.to(dtype)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    low, high = integers
    if not dtype.is_signed:
        low = max(low, 0)
    limit = torch.iinfo(dtype).max
    return torch.randint(low, min(high, limit) + 1, shape, generator=generator).to(dtype)


BUDGET = 0.6
"""Seconds that the repeats of a measurement should take together."""

REPEATS = 40
"""Maximum number of measurements."""

BATCH = 2e-3
"""Minimum duration of one measurement, in seconds: several calls of a shorter function are one."""


def time_alone(
    sized: AtSizes, target: tvm.target.Target, seed: int, progress: Progress
) -> Measured:
    """Compile a function alone and time it on random inputs, which stay in the caches.

    It is called once unmeasured, and then as often as `BUDGET` allows; of a function that takes
    longer than that, the first call is all there is.

    Raises `LowerscopeError` if it cannot be compiled or run. Raises `Cancelled` between two calls.
    """
    parameters = static_parameters(sized.static)
    progress.report(_("Compiling the function"))
    compiled = compile_alone(sized.function, target)
    progress.report(_("Measuring"))
    arguments = draw_arguments(sized.static, parameters, seed)
    times = repeated(partial(compiled.seconds, arguments), progress.check)
    low, middle, high = quarters([each * 1000 for each in times])
    return Measured(
        milliseconds=middle,
        low=low,
        high=high,
        repeats=len(times),
        build_ms=compiled.milliseconds,
        at=sized.text,
    )


def repeated(measure: Callable[[int], float], check: Callable[[], None]) -> list[float]:
    """Return the times of a call in seconds, as many as `BUDGET` allows.

    `measure`: returns the mean time of a number of consecutive calls. `check`: called between
    measurements; may raise to cancel.
    """
    first = measure(1)
    check()
    if first > BUDGET:
        return [first]
    once = max(measure(1), 1e-7)
    number = max(1, int(BATCH / once))
    # Of several calls, one more comes before, unmeasured.
    once = max(measure(number), 1e-7)
    batch = once * (number + (number > 1))
    times = []
    for _turn in range(max(3, min(REPEATS, int(BUDGET / batch)))):
        check()
        times.append(measure(number))
    return times


def quarters(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile of `values`."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high

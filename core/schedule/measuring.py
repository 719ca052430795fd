"""A single TensorIR function: compiled, called on random values, and timed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import tvm
from tvm import tirx

from lowerscope.core.build.build import compile_function
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.schedule_records import Measured
from lowerscope.core.run.execution import to_tvm
from lowerscope.core.schedule.at_sizes import AtSizes
from lowerscope.core.schedule.index_bounds import divides_by_inputs, largest_index
from lowerscope.core.schedule.parameters import Parameter, parameters_of

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
                f"the function failed: {last_line(error)}", where="schedule", details=str(error)
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
            f"TVM could not compile the function: {last_line(error)}",
            where="schedule",
            todo="Take back the last step; the log has TVM's whole message",
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
            "the function takes more than buffers, so it cannot be run alone", where="schedule"
        )
    symbolic = [each.name for each in parameters if each.shape is None]
    if symbolic:
        raise LowerscopeError(
            f"{', '.join(symbolic)} has a symbolic shape, so the function cannot be run alone",
            where="schedule",
            todo="Give the input a fixed shape",
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
    if index is None and divides_by_inputs(function):
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
        raise LowerscopeError(f"torch has no values of the dtype {name}", where="schedule")
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
    progress.report("Compiling the function")
    compiled = compile_alone(sized.function, target)
    progress.report("Measuring")
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
    for _ in range(max(3, min(REPEATS, int(BUDGET / batch)))):
        check()
        times.append(measure(number))
    return times


def quarters(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile of `values`."""
    if len(values) == 1:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high

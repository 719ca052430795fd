"""Measurement of the time of a single TensorIR function."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import tvm

from lowerscope.core.execution.running import to_tvm
from lowerscope.core.progress import Progress
from lowerscope.core.scheduling.alone import compile_alone
from lowerscope.core.scheduling.at_sizes import AtSizes
from lowerscope.core.scheduling.random_inputs import draw, dtype_of_torch, static_parameters

BUDGET = 0.6
"""Seconds that the repeats of a measurement should take together."""

REPEATS = 40
"""Maximum number of measurements."""

BATCH = 2e-3
"""Minimum duration of one measurement, in seconds: several calls of a shorter function are one."""


@dataclass(frozen=True)
class Timing:
    """Median and quartiles of the time of a call, in milliseconds, of ``repeats`` measurements."""

    milliseconds: float
    low: float
    high: float
    repeats: int
    build_ms: float


def time_alone(sized: AtSizes, target: tvm.target.Target, seed: int, progress: Progress) -> Timing:
    """Compile a function alone and time it on random inputs, which stay in the caches.

    It is called once unmeasured, and then as often as `BUDGET` allows; of a function that takes
    longer than that, the first call is all there is.

    Raises
    ------
    LowerscopeError
        If it cannot be compiled or run.
    Cancelled
        Between two calls.
    """
    parameters = static_parameters(sized.static)
    progress.report("Compiling the function")
    compiled = compile_alone(sized.function, target)
    progress.report("Measuring")
    arguments = [
        to_tvm(
            torch.zeros(each.shape or (), dtype=dtype_of_torch(each.dtype))
            if value is None
            else value
        )
        for each, value in zip(parameters, draw(sized.static, parameters, seed), strict=True)
    ]

    def measure(number: int) -> float:
        if number > 1:
            return compiled.seconds(arguments, number)
        start = time.perf_counter()
        compiled.call(arguments)
        return time.perf_counter() - start

    times = repeated(measure, progress.check)
    low, middle, high = quarters([each * 1000 for each in times])
    return Timing(middle, low, high, len(times), compiled.milliseconds)


def repeated(measure: Callable[[int], float], check: Callable[[], None]) -> list[float]:
    """Return the times of a call in seconds, as many as `BUDGET` allows.

    Parameters
    ----------
    measure
        Returns the mean time of a number of consecutive calls.
    check
        Called between measurements; may raise to cancel.
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

"""Interleaved timing of several implementations, so that system noise affects all of them."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lowerscope.core.execution.processor_use import ProcessorUse
from lowerscope.core.measuring import BUDGET, LEAST, REPEATS, Measuring
from lowerscope.core.records.times import RunTimes, side_times

TURN = 10
"""Most measured calls in a turn."""

TURN_SECONDS = 0.02
"""Time limit of the calls of one turn in total, in seconds; at least one call is made."""

SETTLE = 0.003
"""Pause before each turn, in seconds.

The threads of the other implementation spin for a while before they sleep, and block processors
meanwhile.
"""

LONG = 0.05
"""Time of a long call, in seconds; for a shorter one, each turn starts with a warm-up call.

The first call finds the caches as the other implementation has left them, and its threads asleep:
torch took twice as long for a small model.
"""


@dataclass(frozen=True)
class Side:
    """An implementation to be timed.

    Attributes
    ----------
    name
        As in `SideTimes`.
    call
        The timed function.
    threads
        How many it may use; ``None`` if unknown.
    before
        Called before each call, and not timed.
    within
        Context of the calls of a turn.
    """

    name: str
    call: Callable[[], Any]
    threads: int | None
    before: Callable[[], None] = lambda: None
    within: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext


def measure(
    sides: Sequence[Side],
    measuring: Measuring,
    check: Callable[[], None],
    most: int = REPEATS,
    budget: float = BUDGET,
) -> RunTimes:
    """Time the implementations by turns.

    Unless it is given, the number of repeats follows from the last warm-up call, and is at least
    `LEAST`.

    Parameters
    ----------
    check
        Called between calls; may raise to cancel.
    most
        Repeats at most, if they are `LEAST` or more: few for a function with side effects.
    budget
        Seconds that all measurements together should take.
    """
    once = [max(_calls(side, measuring.warm_up, check)[-1], 1e-6) for side in sides]
    turn = max(1, min(TURN, int(TURN_SECONDS / max(once))))
    ahead = [int(each < LONG and most >= LEAST) for each in once]
    costs = sum(each * (1 + more / turn) for each, more in zip(once, ahead, strict=True))
    repeats = measuring.repeats or max(LEAST, min(most, int(budget / costs)))
    seconds: list[list[float]] = [[] for _ in sides]
    collects = gc.isenabled()
    gc.disable()
    use = ProcessorUse()
    try:
        while (left := repeats - len(seconds[0])) > 0:
            for side, more, found in zip(sides, ahead, seconds, strict=True):
                time.sleep(SETTLE)
                found += _calls(side, more + min(turn, left), check)[more:]
    finally:
        if collects:
            gc.enable()
    return RunTimes(
        sides=tuple(
            side_times(side.name, found, side.threads)
            for side, found in zip(sides, seconds, strict=True)
        ),
        warm_up=measuring.warm_up,
        processors=use.processors,
        others=use.by_others(),
    )


def _calls(side: Side, count: int, check: Callable[[], None]) -> list[float]:
    """Call an implementation `count` times, and return the time of each call in seconds."""
    taken = []
    for _ in range(count):
        with side.within():
            side.before()
            start = time.perf_counter()
            side.call()
            taken.append(time.perf_counter() - start)
        check()
    return taken

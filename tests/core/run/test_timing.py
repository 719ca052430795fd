"""Times: their spread, what may be claimed of them, and the turns that they are taken in."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from lowerscope.core.build.targets import ProcessorUse
from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.run_records import (
    Measuring,
    SideTimes,
    side_times,
    told_apart,
)
from lowerscope.core.run.implementations import TURN, Implementation, measure


@pytest.fixture
def _collecting() -> Iterator[None]:
    """Have cycles collected, which a process that has shown a window does from its event loop."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


def sample(middle: float, spread: float, count: int = 200, threads: int = 2) -> SideTimes:
    """Return times in ms around a middle, half of which are within the spread."""
    quantiles = np.linspace(0, 1, count)
    milliseconds = middle + spread * 2 * (quantiles - 0.5)
    return side_times("side", list(milliseconds / 1000), threads)


def test_median_and_quarters_are_numpys() -> None:
    seconds = np.random.default_rng(0).lognormal(-7, 0.3, 101)
    found = side_times("TVM", list(seconds), 2)
    expected = np.quantile(seconds * 1000, (0.0, 0.25, 0.5, 0.75, 1.0))
    told = (found.fastest, found.low, found.milliseconds, found.high, found.slowest)
    assert told == pytest.approx(tuple(expected))
    assert (found.repeats, found.threads) == (101, 2)
    # One call that was held up moves neither median nor spread.
    held_up = side_times("TVM", [*seconds[1:], 10.0], 2)
    assert held_up.milliseconds == pytest.approx(found.milliseconds, rel=0.05)
    assert held_up.high < 2 * found.high


def test_nothing_is_claimed_where_the_spread_is_larger_than_the_difference() -> None:
    slow, fast = sample(2.0, 0.2), sample(1.0, 0.2)
    assert told_apart(fast, slow)
    assert told_apart(slow, fast)
    # The spread of either side counts.
    assert not told_apart(fast, sample(2.0, 1.1))
    assert not told_apart(sample(1.0, 1.1), slow)
    assert not told_apart(sample(1.0, 0.2), sample(1.1, 0.2))
    assert not told_apart(fast, fast)


def test_what_another_program_uses_is_counted() -> None:
    working = "print(flush=True)\nwhile True: pass"
    busy = subprocess.Popen([sys.executable, "-c", working], stdout=subprocess.PIPE)
    assert busy.stdout is not None
    with busy.stdout:
        busy.stdout.readline()
        use = ProcessorUse()
        time.sleep(0.3)
        beside = use.by_others()
        busy.kill()
    busy.wait()
    assert 0.2 < beside <= use.processors


@pytest.mark.usefixtures("_collecting")
def test_the_sides_take_turns_and_the_first_calls_do_not_count() -> None:
    turns: list[str] = []
    collecting: list[bool] = []

    def call(name: str) -> None:
        turns.append(name)
        collecting.append(gc.isenabled())

    sides = [
        Implementation(name, partial(call, name), 1, partial(turns.append, f"-{name}"))
        for name in "ab"
    ]
    times = measure(sides, Measuring(warm_up=3, repeats=TURN + 2), lambda: None)
    # The first call of each turn finds the caches as the other side has left them.
    counts = (3, 1 + TURN, 1 + 2)
    assert turns == [
        word for count in counts for name in "ab" for word in [f"-{name}", name] * count
    ]
    assert [each.repeats for each in times.sides] == [TURN + 2, TURN + 2]
    assert times.warm_up == 3
    # The garbage of one side is not collected in the time of another.
    assert not any(collecting[6:])
    assert gc.isenabled()


@pytest.mark.usefixtures("_collecting")
def test_measuring_can_be_stopped() -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        measure([Implementation("a", lambda: None, 1)], Measuring(), stop)
    assert gc.isenabled()

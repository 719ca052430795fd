"""Times of a whole run, by side: median and spread, the claims that they support, and settings."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from lowerscope.core.model.problems import LowerscopeError

FEW = 8
"""Number of measurements below which quartiles mean little: the spread is the full range."""

HELD_UP = 3.0
"""Ratio of the median to the fastest call beyond which the machine was busy."""

DISTURBED = 0.05
"""Maximum share of the measuring time in which the engine may have worked."""


OTHERS = 0.2
"""Mean number of processors that other programs may have taken from the threads of a side."""


class SideTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one call of ``main``, or of the model, on one side; all in milliseconds."""

    side: str  # ``"TVM"``, ``"torch"``, ``"torch.compile"`` or ``"NumPy"``
    milliseconds: float  # the median
    # low, high: the spread: a quarter of the calls was faster than ``low``, and one slower than
    # ``high``; with fewer than `FEW` calls, the fastest and the slowest
    low: float
    high: float
    # fastest, slowest: of all calls
    fastest: float
    slowest: float
    repeats: int  # number of calls
    threads: int | None  # how many it may use; ``None`` where that is not known
    machine: str = ""  # the key of the other machine that it ran on; empty for this one


class RunTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The sides that were timed by turns, ours first."""

    sides: tuple[SideTimes, ...]
    warm_up: int  # calls of each side before
    # Time of ``torch.compile``; ``None`` where it was not requested, or failed.
    compile_ms: float | None = None
    compile_problem: str = ""  # reason why it failed, in one line
    disturbed: float = 0.0  # share of the time in which the engine was busy, from 0 to 1
    processors: int = 0  # number of processors of this process; 0 where that is not known
    others: float = 0.0  # mean number of them that other programs used meanwhile


def side_times(side: str, seconds: Sequence[float], threads: int | None) -> SideTimes:
    """Return median and spread of measurements in seconds."""
    times = sorted(each * 1000 for each in seconds)
    low, high = times[0], times[-1]
    if len(times) >= FEW:
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
    return SideTimes(
        side=side,
        milliseconds=statistics.median(times),
        low=low,
        high=high,
        fastest=times[0],
        slowest=times[-1],
        repeats=len(times),
        threads=threads,
    )


def told_apart(one: SideTimes, other: SideTimes) -> bool:
    """Return whether the medians differ by more than either spread, and the fastest calls agree.

    One call, as in a quick run, has no spread, so nothing can be concluded. Where other programs
    take the processors, one side may be held up at each of its calls: the threads of torch wait for
    one another.
    """
    if min(one.repeats, other.repeats) < 2:
        return False
    difference = one.milliseconds - other.milliseconds
    if abs(difference) <= max(one.high - one.low, other.high - other.low):
        return False
    return (one.fastest < other.fastest) == (difference < 0)


def times_as_fast(ours: SideTimes, other: SideTimes) -> float | None:
    """Return the speed of our side as a multiple of the other's, or ``None`` if that is unknown.

    It is unknown where they are not `told_apart`, were allowed another number of threads, or ran on
    another machine.
    """
    if ours.machine != other.machine or not told_apart(ours, other):
        return None
    if ours.threads is not None and other.threads is not None and ours.threads != other.threads:
        return None
    return other.milliseconds / ours.milliseconds


def held_up(times: RunTimes) -> tuple[SideTimes, ...]:
    """Return the sides most of whose calls took far longer than the fastest."""
    return tuple(each for each in times.sides if each.milliseconds > HELD_UP * each.fastest)


def is_short_of_processors(times: RunTimes) -> bool:
    """Return whether other programs took processors that the threads of a side were to run on.

    The threads of torch wait for one another after each operator: beside one busy program it may
    take several times as long, at each call. TVM's calls are held up far less.
    """
    wanted = max((side.threads or times.processors for side in times.sides), default=0)
    return were_taken(times.others, times.processors, wanted)


def were_taken(others: float, processors: int, wanted: int) -> bool:
    """Return whether other programs, by their number of processors, took some that were wanted."""
    return others - max(processors - wanted, 0) > OTHERS


def is_disturbed(times: RunTimes | None) -> bool:
    """Return whether the engine was busy for a significant share of the time.

    Queries while a run is measured take a processor from both sides.
    """
    return times is not None and times.disturbed > DISTURBED


def is_reliable(times: RunTimes | None) -> bool:
    """Return whether nothing else used the processors, so that a ratio of the times is reliable."""
    if times is None:
        return False
    return not (is_short_of_processors(times) or is_disturbed(times) or held_up(times))


BUDGET = 1.0
"""Seconds that all measurements of one run should take together, unless their number is given."""

REPEATS = 200
"""Maximum number of measurements of each side, unless their number is given."""

LEAST = 3
"""Minimum number of measurements of each side, unless their number is given."""

MOST = 100_000
"""Upper bound on the number of calls."""

MEASURING = "Measuring"
"""Prefix of the progress text of a run while it is measured."""


class Measuring(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the timing of both sides, by turns."""

    warm_up: int = 2  # unmeasured calls of each side at the start
    # Calls of each side that count; 0 for as many as a second allows, from `LEAST` to `REPEATS`.
    repeats: int = 0
    # Whether ``torch.compile`` of the model is a side as well. It takes seconds to minutes to
    # compile, and a C++ compiler.
    torch_compile: bool = False


def check_measuring(measuring: Measuring) -> Measuring:
    """Return `measuring`.

    Raises a `LowerscopeError` if a number in it makes no sense.
    """
    for option, number, least in (
        ("--warm-up", measuring.warm_up, 1),
        ("--repeats", measuring.repeats, 0),
    ):
        if not least <= number <= MOST:
            raise LowerscopeError(
                f"{number} is not a number of calls",
                where=option,
                todo=f"Write a number from {least} to {MOST}",
            )
    return measuring

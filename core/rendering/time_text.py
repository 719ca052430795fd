"""Times of a run in words: medians with their spread, and the claims that they support."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.core.model.formatting import duration_text, durations_text, ratio_text
from lowerscope.core.records.times import (
    FEW,
    RunTimes,
    SideTimes,
    held_up,
    is_disturbed,
    is_reliable,
    is_short_of_processors,
    times_as_fast,
)
from lowerscope.core.records.tuning import TunedFunction, TunedTime


def times_text(times: RunTimes) -> str:
    """Return the median of each side with its spread, on one line."""
    return ", ".join(map(_side_text, times.sides))


def claims_text(times: RunTimes) -> str:
    """Return the speed ratios of the sides, or that they are within noise, and the method.

    Also the reason why there is no ``torch.compile``, where it was requested.
    """
    parts = [*claims(times), *disturbances(times)]
    if times.compile_problem:
        parts.append(f"torch.compile does not work: {times.compile_problem}")
    parts.append(method_text(times))
    return "; ".join(parts)


def claims(times: RunTimes) -> list[str]:
    """Return the speed ratios of the sides; for unreliable times, that they are so.

    Empty for a single side.
    """
    ours, *others = times.sides
    beside = any(each.machine == ours.machine for each in others)
    if beside and not is_reliable(times):
        return [UNRELIABLE]
    return [_claim(ours, other) for other in others]


UNRELIABLE = "the times are unreliable: measure again when nothing else keeps the processors busy"
"""Text in place of a ratio."""


def unreliable_text(times: RunTimes | None) -> str:
    """Return a text on why the times are unreliable; empty where they are reliable."""
    if times is None or is_reliable(times):
        return ""
    return "; ".join((UNRELIABLE, *disturbances(times)))


def disturbances(times: RunTimes) -> Iterator[str]:
    """Yield the other uses of the processors during the measurement."""
    if is_disturbed(times):
        yield f"measured while the engine worked ({times.disturbed:.0%} of the time)"
    elif is_short_of_processors(times):
        used = f"{times.others:.1f} of the {times.processors} processors"
        yield f"other programs used {used} meanwhile"
    for each in held_up(times):
        yield f"{each.side} was held up: its fastest call took {duration_text(each.fastest)}"


def compiled_text(times: RunTimes) -> str:
    """Return the time of ``torch.compile``, or why it has none; empty if not requested."""
    if times.compile_problem:
        return f"torch.compile does not work: {times.compile_problem}"
    return ", ".join(_side_text(each) for each in times.sides if each.side == "torch.compile")


def method_text(times: RunTimes) -> str:
    """Return the method of the measurement: the number of calls, and of threads."""
    ours = times.sides[0]
    calls = "1 call" if ours.repeats == 1 else f"{ours.repeats} calls"
    spread = "quarters" if ours.repeats >= FEW else "extremes"
    together = len({each.machine for each in times.sides}) == 1
    by_turns = ", by turns" if len(times.sides) > 1 and together else ""
    found = f"median and {spread} of {calls} after {times.warm_up}{by_turns}"
    return f"{found}; {_threads_text(times)}"


def disturbed_times(one: TunedFunction, *names: TunedTime) -> str:
    """Return a text that times of a function are unreliable; empty where none of these is."""
    return UNRELIABLE if any(each in one.disturbed for each in names) else ""


def _side_text(side: SideTimes) -> str:
    spread = durations_text(side.low, side.high)
    return f"{side.side} {duration_text(side.milliseconds)} ({spread})"


def _claim(ours: SideTimes, other: SideTimes) -> str:
    if ours.machine != other.machine:
        return f"{ours.side} ran on {ours.machine} and {other.side} here, so neither is the faster"
    ratio = times_as_fast(ours, other)
    if ratio is None:
        return f"no difference between {ours.side} and {other.side} can be told"
    if ratio >= 1:
        return f"{ours.side} is {ratio_text(ratio)} as fast as {other.side}"
    return f"{other.side} is {ratio_text(1 / ratio)} as fast as {ours.side}"


def _threads_text(times: RunTimes) -> str:
    counts = {side.threads for side in times.sides}
    if len(counts) == 1 and None not in counts:
        (count,) = counts
        return "1 thread" if count == 1 else f"{count} threads"
    return ", ".join(
        f"{side.side} with {side.threads} threads"
        for side in times.sides
        if side.threads is not None
    )

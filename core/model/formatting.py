"""Text for sizes, durations, ratios, errors and shapes, as every view and command shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lowerscope.core.model.run_records import (
    AROUND_CALLS,
    FEW,
    LEAST,
    SLOW_RUN,
    VERDICT_OF,
    ExactErrors,
    Measuring,
    NodeStatus,
    OutputVerdict,
    RunEstimate,
    RunTimes,
    SideTimes,
    held_up,
    is_comparable,
    is_disturbed,
    is_reliable,
    is_short_of_processors,
    told_apart,
)
from lowerscope.core.model.texts import _, _n, joined
from lowerscope.core.model.tuning_records import TunedFunction, TunedTime

NONE = "–"
"""Text of an unknown value."""


def bytes_text(count: float) -> str:
    """Return a size in decimal units: ``401 kB``, which is 401,000 bytes."""
    return _scaled(count, ("B", "kB", "MB", "GB", "TB"))


def operations_text(count: float) -> str:
    """Return a number of operations: ``231 MFLOP``."""
    return _scaled(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"))


def cure_text(cure: str, predicted_ms: float | None) -> str:
    """Return the cure of a warning, with the predicted time after it."""
    if predicted_ms is None:
        return cure
    return _("{cure}: predicted {time}", cure=cure, time=duration_text(predicted_ms))


def duration_text(milliseconds: float | None, *, about: bool = False) -> str:
    """Return a duration: ``12.3 µs``, ``1.23 ms``, ``4.5 s``, ``3 min 20 s``, ``1 h 20 min``.

    `about`: whether it is unreliable: ``≈ 1.23 ms``.
    """
    if milliseconds is None:
        return NONE
    if about:
        return f"≈ {duration_text(milliseconds)}"
    if milliseconds == 0:
        return "0 ms"
    if milliseconds < 99_950:
        return _scaled(milliseconds * 1e6, ("ns", "µs", "ms", "s"))
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min {seconds} s"


def seconds_text(seconds: float | None) -> str:
    """Return a duration that is given in seconds; see `duration_text`."""
    return duration_text(None if seconds is None else seconds * 1000)


def estimate_text(estimate: RunEstimate, measuring: Measuring) -> str:
    """Return the estimated time of a run in words; empty for one that does not take long."""
    calls = AROUND_CALLS + measuring.warm_up + (measuring.repeats or LEAST)
    if estimate.seconds * calls < SLOW_RUN:
        return ""
    return _n(
        "A run takes about {whole} and a call about {one}: {unscheduled} of {count} function has "
        "no schedule.",
        "A run takes about {whole} and a call about {one}: {unscheduled} of {count} functions "
        "have no schedule.",
        estimate.functions,
        whole=_about(estimate.seconds * calls),
        one=_about(estimate.seconds),
        unscheduled=estimate.unscheduled,
    )


def _about(seconds: float) -> str:
    """Return a duration without needless digits: ``4 min``, ``25 s``."""
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.2g} s"


def durations_text(low: float, high: float) -> str:
    """Return a range of durations, the unit once if it is the same: ``1.2 – 1.4 ms``."""
    first, last = duration_text(low), duration_text(high)
    if first == last:
        return first
    number, _sep, unit = first.partition(" ")
    return f"{number if last.endswith(f' {unit}') else first} – {last}"


def ratio_text(ratio: float, *, about: bool = False) -> str:
    """Return a ratio with three significant digits: ``1.80×``, or ``≈ 1.80×``."""
    digits = f"{ratio:,.0f}" if ratio >= 999.5 else f"{ratio:#.3g}".rstrip(".")
    return _("≈ {digits}×", digits=digits) if about else f"{digits}×"


SAME = 0.1
"""Difference of two times of unknown spread, as a share, up to which neither is faster."""


def are_apart(ours: float, other: float) -> bool:
    """Return whether two times of unknown spread differ by more than `SAME`."""
    return max(ours, other) > (1 + SAME) * min(ours, other)


def beside_text(
    ours: float, other: float, name: str = "", *, about: bool = False, told: bool | None = None
) -> str:
    """Return how a time compares with another: ``1.80× slower``, ``as fast``.

    Args:
        name: Name of the other, as in ``1.80× slower than torch``; empty to leave it out.
        about: Whether a time is unreliable.
        told: Whether they differ by more than noise; by default, whether they `are_apart`.
    """
    if not (are_apart(ours, other) if told is None else told):
        same = _("as fast as {name}", name=name) if name else _("as fast")
        return _("≈ {same}", same=same) if about else same
    ratio = ratio_text(max(ours, other) / min(ours, other), about=about)
    if name:
        if ours > other:
            return _("{ratio} slower than {name}", ratio=ratio, name=name)
        return _("{ratio} faster than {name}", ratio=ratio, name=name)
    if ours > other:
        return _("{ratio} slower", ratio=ratio)
    return _("{ratio} faster", ratio=ratio)


def error_text(error: float | None) -> str:
    """Return a numerical error: ``2.1e-07``, ``4.0``; ``∞`` if it is not finite."""
    if error is None:
        return NONE
    if not math.isfinite(error):
        return "∞"
    return f"{error:#.2g}".rstrip(".") if error else "0"


def tolerance_text(atol: float, rtol: float, reference: str) -> str:
    """Return a tolerance: ``1e-05 + 0.0001 × |torch|``."""
    return f"{atol:g} + {rtol:g} × |{reference}|"


def share_text(share: float) -> str:
    """Return a share of a whole: ``12.3%``; a part is never said to be nothing or all."""
    if 0 < share < 0.0005:
        return "< 0.1%"
    if 0.9995 <= share < 1:
        return "> 99.9%"
    return f"{share:.1%}"


def share_of_text(count: int, whole: int) -> str:
    """Return a count as a share of a whole: ``97 of 100 (97.0%)``."""
    return _(
        "{count:,} of {whole:,} ({share})",
        count=count,
        whole=whole,
        share=share_text(count / whole),
    )


def figure_text(value: float | None) -> str:
    """Return a number with three significant digits, and all digits before the decimal point."""
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def shape_text(shape: Iterable[object] | None, scalar: str = "scalar") -> str:
    """Return a shape: ``1×784``, ``(n + 1)×4``; `scalar` for no dimensions, empty for no shape."""
    if shape is None:
        return ""
    extents = map(str, shape)
    return "×".join(f"({each})" if " " in each else each for each in extents) or scalar


def _scaled(value: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{figure_text(value)} {units[-1]}"


# Times of a run in words: medians with their spread, and the claims that they support.


def times_text(times: RunTimes) -> str:
    """Return the median of each side with its spread, on one line."""
    return _(", ").join(map(_side_text, times.sides))


def claims_text(times: RunTimes) -> str:
    """Return the speed ratios of the sides, or that they are within noise, and the method.

    Also the reason why there is no ``torch.compile``, where it was requested.
    """
    parts = [*claims(times), *disturbances(times)]
    if times.compile_problem:
        parts.append(
            _(
                "torch.compile does not work: {compile_problem}",
                compile_problem=times.compile_problem,
            )
        )
    parts.append(method_text(times))
    return _("; ").join(parts)


def claims(times: RunTimes) -> list[str]:
    """Return the speed ratios of the sides; for unreliable times, that they are so.

    Empty for a single side.
    """
    ours, *others = times.sides
    beside = any(each.machine == ours.machine for each in others)
    if beside and not is_reliable(times):
        return [UNRELIABLE]
    return [_claim(ours, other) for other in others]


UNRELIABLE = _(
    "the times are unreliable: measure again when nothing else keeps the processors busy"
)
"""Text in place of a ratio."""


def unreliable_text(times: RunTimes | None) -> str:
    """Return a text on why the times are unreliable; empty where they are reliable."""
    if times is None or is_reliable(times):
        return ""
    return _("; ").join((UNRELIABLE, *disturbances(times)))


def disturbances(times: RunTimes) -> Iterator[str]:
    """Yield the other uses of the processors during the measurement."""
    if is_disturbed(times):
        yield _(
            "measured while the engine was working ({disturbed:.0%} of the time)",
            disturbed=times.disturbed,
        )
    elif is_short_of_processors(times):
        used = _n(
            "{others:.1f} of {count} processor",
            "{others:.1f} of {count} processors",
            times.processors,
            others=times.others,
        )
        yield _("other programs used {used} in the meantime", used=used)
    for each in held_up(times):
        yield _(
            "{side} was disturbed: its fastest call took {fastest}",
            side=each.side,
            fastest=duration_text(each.fastest),
        )


def compiled_text(times: RunTimes) -> str:
    """Return the time of ``torch.compile``, or why it has none; empty if not requested."""
    if times.compile_problem:
        return _(
            "torch.compile does not work: {compile_problem}", compile_problem=times.compile_problem
        )
    return _(", ").join(_side_text(each) for each in times.sides if each.side == "torch.compile")


def calls_text(times: RunTimes) -> str:
    """Return the statistics of the times, with the number of calls that they are of."""
    ours = times.sides[0]
    return (
        _n(
            "median and quartiles of {count} call (warm-up: {warm_up})",
            "median and quartiles of {count} calls (warm-up: {warm_up})",
            ours.repeats,
            warm_up=times.warm_up,
        )
        if ours.repeats >= FEW
        else _n(
            "median and extremes of {count} call (warm-up: {warm_up})",
            "median and extremes of {count} calls (warm-up: {warm_up})",
            ours.repeats,
            warm_up=times.warm_up,
        )
    )


def method_text(times: RunTimes) -> str:
    """Return the method of the measurement: the number of calls, and of threads."""
    found = calls_text(times)
    if len(times.sides) > 1 and len({each.machine for each in times.sides}) == 1:
        found = _("{method}, in turn", method=found)
    return joined(_("; "), (found, _threads_text(times)))


def disturbed_times(one: TunedFunction, *names: TunedTime) -> str:
    """Return a text that times of a function are unreliable; empty where none of these is."""
    return UNRELIABLE if any(each in one.disturbed for each in names) else ""


def _side_text(side: SideTimes) -> str:
    spread = durations_text(side.low, side.high)
    return f"{side.side} {duration_text(side.milliseconds)} ({spread})"


def _claim(ours: SideTimes, other: SideTimes) -> str:
    if ours.machine != other.machine:
        return _(
            "{side} ran on {machine} and {side2} here, so their times are not compared",
            side=ours.side,
            machine=ours.machine,
            side2=other.side,
        )
    if not is_comparable(ours, other):
        return _(
            "{side} and {side2} had different numbers of threads, so their times are not compared",
            side=ours.side,
            side2=other.side,
        )
    told = told_apart(ours, other)
    compared = beside_text(ours.milliseconds, other.milliseconds, other.side, told=told)
    if told:
        return _("{side} is {compared}", side=ours.side, compared=compared)
    return _("{side} is {compared}, within measurement noise", side=ours.side, compared=compared)


def _threads_text(times: RunTimes) -> str:
    counts = {side.threads for side in times.sides}
    if len(counts) == 1 and None not in counts:
        (count,) = counts
        assert count is not None
        return _n("{count} thread", "{count} threads", count)
    return _(", ").join(
        _n(
            "{side} with {count} thread",
            "{side} with {count} threads",
            side.threads,
            side=side.side,
        )
        for side in times.sides
        if side.threads is not None
    )


# --- Verdicts in words, each with the role of its colour, for the window and reports ---

_WORDS: Mapping[OutputVerdict, tuple[str, str, str]] = {
    "match": (_("✓ matches"), _("✓ matches {reference}"), "right"),
    "rounding": (_("≈ differs by rounding"), "", "unsure"),
    "differ": (_("✕ differs"), _("✕ differs from {reference}"), "wrong"),
    "inconclusive": (_("? inconclusive"), "", "unsure"),
    "not-comparable": (_("– not comparable"), "", "quiet"),
    "no-reference": (_("– no reference"), "", "quiet"),
}
"""Mark and word, the same with the reference, and the role."""


def verdict_words(verdict: OutputVerdict, reference: str = "") -> tuple[str, str]:
    """Return words and role: ``("✓ matches", "right")``, or ``✕ differs from torch``."""
    words, named, role = _WORDS[verdict]
    return named.format(reference=reference) if reference and named else words, role


def status_words(status: NodeStatus) -> tuple[str, str]:
    """Return words and role of the verdict on a node."""
    return verdict_words(VERDICT_OF[status])


def exact_text(errors: ExactErrors) -> str:
    """Return the errors of both sides against float64, and which of them is the larger."""
    ratio = errors.tvm / errors.torch if errors.torch else float("inf")
    tvm, torch = error_text(errors.tvm), error_text(errors.torch)
    if 1 / SEVERAL <= ratio <= SEVERAL:
        return _(
            "against float64, TVM is off by {tvm} and torch by {torch}, about the same",
            tvm=tvm,
            torch=torch,
        )
    if ratio < 1:
        return _(
            "against float64, TVM is off by {tvm} and torch by {torch}; TVM is more accurate",
            tvm=tvm,
            torch=torch,
        )
    if ratio > MOST_SEVERAL:
        # A fault, and no question of exactness.
        return _(
            "against float64, TVM is off by {tvm}, and torch only by {torch}", tvm=tvm, torch=torch
        )
    return _(
        "against float64, TVM is off by {tvm} and torch by {torch}; TVM is {ratio} less accurate",
        tvm=tvm,
        torch=torch,
        ratio=ratio_text(ratio),
    )


SEVERAL = 3.0
"""Ratio of two errors beyond which one side is called less exact."""

MOST_SEVERAL = 1000.0
"""The ratio up to which that is said."""


def not_finite_text(count: int) -> str:
    """Return how many elements are NaN or infinite: ``3 not finite``; empty for none."""
    return _("{count:,} not finite", count=count) if count else ""

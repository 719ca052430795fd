"""Texts on the times of a whole run: claims, and the method."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.app.kit.charts.bars import Bar
from lowerscope.app.kit.tables.data_table import Cell
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    claims,
    disturbances,
    duration_text,
    ratio_text,
)
from lowerscope.core.model.run_records import FEW, RunTimes, SideTimes, is_reliable, times_as_fast
from lowerscope.core.model.texts import _, _n


def bars_of(times: RunTimes) -> tuple[Bar, ...]:
    """Return a bar for each side; one that is faster than all others is the best."""
    return tuple(
        Bar(
            side.side,
            (side.milliseconds,),
            duration_text(side.milliseconds),
            "" if side is times.sides[0] else "other",
            (side.low, side.high),
            _is_fastest(side, times),
        )
        for side in times.sides
    )


def _is_fastest(side: SideTimes, times: RunTimes) -> bool:
    others = [each for each in times.sides if each is not side]
    ratios = [times_as_fast(side, each) for each in others]
    return (
        bool(others)
        and is_reliable(times)
        and all(ratio is not None and ratio > 1 for ratio in ratios)
    )


def claims_of(times: RunTimes) -> str:
    """Return which side is how many times as fast, or that it is within noise; and the threads."""
    return " · ".join([*claims(times), threads_text(times)])


def short_claim(times: RunTimes) -> str:
    """Return the claim on TVM against the reference, shown after our time."""
    if len(times.sides) < 2:
        return ""
    ours, other = times.sides[:2]
    if not is_reliable(times):
        return _(
            "{side} {milliseconds}, unreliable",
            side=other.side,
            milliseconds=duration_text(other.milliseconds),
        )
    ratio = times_as_fast(ours, other)
    if ratio is None:
        return _(
            "{side} {milliseconds}", side=other.side, milliseconds=duration_text(other.milliseconds)
        )
    if ratio >= 1:
        return _("{ratio} as fast as {side}", ratio=ratio_text(ratio), side=other.side)
    return _("{side} is {ratio} as fast", side=other.side, ratio=ratio_text(1 / ratio))


SAME = 0.1
"""Difference of two times, as a share, up to which neither is called the faster."""


def ratio_cell(ours: float | None, other: float | None, times: RunTimes | None) -> Cell:
    """Return a cell with how many times slower or faster a part of a run is than in torch."""
    if not ours or not other:
        return Cell(NONE, "quiet")
    ratio, sure = ours / other, times is None or is_reliable(times)
    if abs(ratio - 1) <= SAME:
        return Cell(_("same"), "quiet", value=ratio)
    slower = ratio > 1
    words = (
        _("{ratio} slower", ratio=ratio_text(ratio if slower else 1 / ratio, about=not sure))
        if slower
        else _("{ratio} faster", ratio=ratio_text(ratio if slower else 1 / ratio, about=not sure))
    )
    text = words
    role = "unsure" if not sure else "wrong" if slower else "right"
    return Cell(text, role, tooltip="" if sure else UNRELIABLE, value=ratio)


def how_of(times: RunTimes) -> str:
    """Return the method of measurement: disturbances, torch.compile, repeats, warm-up."""
    return " · ".join(_how(times))


def _how(times: RunTimes) -> Iterator[str]:
    yield from disturbances(times)
    if times.compile_problem:
        yield _(
            "torch.compile does not work: {compile_problem}", compile_problem=times.compile_problem
        )
    ours = times.sides[0]
    spread = _("quartiles") if ours.repeats >= FEW else _("extremes")
    calls = _n("1 call", "{count} calls", ours.repeats)
    yield _(
        "median and {spread} of {calls} after {warm_up}",
        spread=spread,
        calls=calls,
        warm_up=times.warm_up,
    )
    if times.compile_ms is not None:
        took = duration_text(times.compile_ms)
        yield _("torch.compile took {took}", took=took)


def threads_text(times: RunTimes) -> str:
    """Return the number of threads of each side."""
    first, *others = [side.threads for side in times.sides] or [None]
    if first is not None and not others:
        return _n("{count} thread", "{count} threads", first)
    if first is not None and set(others) == {first}:
        return _n("{count} thread each", "{count} threads each", first)
    known = [side for side in times.sides if side.threads is not None]
    return ", ".join(
        _("{side} with {threads} threads", side=each.side, threads=each.threads) for each in known
    )

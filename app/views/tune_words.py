"""Texts of a tuning: rows, a function's curve, times, and the remaining work."""

from __future__ import annotations

from lowerscope.app.widgets.charts.best_curve import CurvePoint, Level
from lowerscope.app.widgets.table import Cell, Row
from lowerscope.app.workbench.tuning import Tuning
from lowerscope.core.model.formatting import ratio_text, seconds_text
from lowerscope.core.records.tuning import TunedFunction, TunedState, TuneState
from lowerscope.core.rendering.time_text import UNRELIABLE, disturbed_times

STATES: dict[TunedState, tuple[str, str]] = {
    "waiting": ("○ waits", "quiet"),
    "tuning": ("▸ tuning", "accent"),
    "done": ("✓ done", "right"),
    "stopped": ("■ stopped", "quiet"),
    "failed": ("✕ failed", "wrong"),
}

START_SECONDS = 12.0
"""Time before the first candidate is measured: imports of torch and TVM, and the derivation."""

FUNCTION_SECONDS = 3.0
"""Time per function before its first candidate."""

MEASURE_ANEW = "tune again with “Measure anew what the database has already”"

TRIAL_SECONDS = 0.8
"""Time per candidate if none was measured yet; most of it is compilation."""


def estimated_seconds(trials: int, functions: int, last: TuneState | None) -> float:
    """Return the estimated time of the trials, at the pace of the last tuning if there is one."""
    if last is not None and last.trials_done >= 4:
        return START_SECONDS + trials * last.seconds_spent / last.trials_done
    return START_SECONDS + functions * FUNCTION_SECONDS + trials * TRIAL_SECONDS


def tuned_row(function: TunedFunction) -> Row:
    """Return the row of a function: its state, its trials and its best time."""
    mark, role = STATES[function.state]
    if function.state == "done" and function.from_database:
        mark = "✓ known"
    name = function.name + (f"  +{len(function.twins)}" if function.twins else "")
    note = function.note
    if function.from_database and not note:
        note = "the best stood in the database"
    planned = max(function.planned, function.trials)
    unsure = disturbed_times(function, "best", "torch")
    ratio, slower = "", False
    if function.best is not None and function.torch:
        slower = function.best > function.torch
        ratio = ratio_text(function.best / function.torch, about=bool(unsure))
    if function.disturbed:
        note = "; ".join(each for each in (note, UNRELIABLE, MEASURE_ANEW) if each)
    return Row(
        function.name,
        (
            Cell(name, bold=True, tooltip="\n".join((function.name, *function.twins))),
            Cell(mark, role=role, tooltip=function.note),
            f"{function.trials:,} / {planned:,}",
            Cell(f"{function.failed:,}", role="wrong" if function.failed else "quiet"),
            seconds_text(function.best),
            Cell(ratio, role="unsure" if unsure else "" if slower else "right", tooltip=unsure),
            seconds_text(function.by_rules),
            seconds_text(function.torch),
            Cell(note, role="unsure" if function.disturbed else "quiet", tooltip=note),
        ),
    )


def levels_of(function: TunedFunction) -> list[Level]:
    """Return the reference times of a function's curve, as far as measured."""
    known = (
        ("torch", function.torch),
        ("rules", function.by_rules),
        ("unscheduled", function.unscheduled),
    )
    return [Level(label, value) for label, value in known if value]


def points_of(function: TunedFunction) -> list[CurvePoint]:
    """Return the points of the curve of a function."""
    before = function.unscheduled
    points = []
    if not function.points and function.best is not None:
        known = "from the database" if function.from_database else "as it was"
        points.append(CurvePoint(0, function.best, known))
    for each in function.points:
        parts = [seconds_text(each.seconds_spent)]
        if before and not disturbed_times(function, "best", "unscheduled"):
            parts.append(f"{ratio_text(before / each.best)} as fast as unscheduled")
        points.append(CurvePoint(each.trials, each.best, " · ".join(parts)))
    return points


def summary(tuning: Tuning) -> str:
    """Return the progress of a tuning, in one line."""
    state = tuning.state
    if state is None:
        return ""
    noun = "trial" if state.trials_total == 1 else "trials"
    parts = [f"{state.trials_done:,} of {state.trials_total:,} {noun}"]
    if tuning.phase in ("tuning", "pausing", "paused") and state.seconds_left is not None:
        parts.append(f"about {seconds_text(round(state.seconds_left))} left")
    parts.append(f"{seconds_text(round(state.seconds_spent))} spent")
    failed = sum(each.failed for each in state.functions)
    if failed:
        parts.append(f"{failed:,} failed")
    return " · ".join(parts)

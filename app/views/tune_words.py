"""What is said of a tuning: rows, the curve of a function, times, and what is left to do."""

from __future__ import annotations

from lowerscope.app.views.formats import count_text, duration_text
from lowerscope.app.widgets.best_curve import CurvePoint, Level
from lowerscope.app.widgets.table import Cell, Row
from lowerscope.app.workbench.tuning import Tuning
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
"""Until the first candidate is measured: torch and TVM are imported, the model is derived."""

FUNCTION_SECONDS = 3.0
"""What a function takes before its first candidate."""

MEASURE_ANEW = "tune again with “Measure anew what the database has already”"

TRIAL_SECONDS = 0.8
"""What a candidate takes where none was measured yet; most of it is spent on compiling it."""


def call_text(seconds: float | None) -> str:
    """Return the time of a call; a dash where it is not known."""
    if seconds is None:
        return "–"
    return f"{seconds * 1e9:.3g} ns" if 0 < seconds < 1e-6 else duration_text(seconds * 1000)


def ratio_text(one: float | None, other: float | None) -> str:
    """Return how many times as long one takes as the other; empty where one is not known."""
    if one is None or not other:
        return ""
    ratio = one / other
    return f"{ratio:.2f} ×" if ratio >= 0.1 else f"{ratio:.1g} ×"


def span_text(seconds: float) -> str:
    """Return a time that somebody waits: ``40 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def estimated_seconds(trials: int, functions: int, last: TuneState | None) -> float:
    """Return about how long so many trials take, by the pace of the last tuning if there is one."""
    if last is not None and last.trials_done >= 4:
        return START_SECONDS + trials * last.seconds_spent / last.trials_done
    return START_SECONDS + functions * FUNCTION_SECONDS + trials * TRIAL_SECONDS


def tuned_row(function: TunedFunction) -> Row:
    """Return the row of a function: its state, its trials and its best."""
    mark, role = STATES[function.state]
    if function.state == "done" and function.from_database:
        mark = "✓ known"
    name = function.name + (f"  +{len(function.twins)}" if function.twins else "")
    note = function.note
    if function.from_database and not note:
        note = "the best stood in the database"
    planned = max(function.planned, function.trials)
    slower = function.best is not None and function.torch is not None
    slower = slower and function.best > function.torch  # type: ignore[operator]
    unsure = disturbed_times(function, "best", "torch")
    ratio = ratio_text(function.best, function.torch)
    if unsure and ratio:
        ratio = f"≈ {ratio}"
    if function.disturbed:
        note = "; ".join(each for each in (note, UNRELIABLE, MEASURE_ANEW) if each)
    return Row(
        function.name,
        (
            Cell(name, bold=True, tooltip="\n".join((function.name, *function.twins))),
            Cell(mark, role=role, tooltip=function.note),
            f"{count_text(function.trials)} / {count_text(planned)}",
            Cell(count_text(function.failed), role="wrong" if function.failed else "quiet"),
            call_text(function.best),
            Cell(ratio, role="unsure" if unsure else "" if slower else "right", tooltip=unsure),
            call_text(function.by_rules),
            call_text(function.torch),
            Cell(note, role="unsure" if function.disturbed else "quiet", tooltip=note),
        ),
    )


def levels_of(function: TunedFunction) -> list[Level]:
    """Return what the curve of a function is compared with, as far as it was measured."""
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
        parts = [span_text(each.seconds_spent)]
        if before and not disturbed_times(function, "best", "unscheduled"):
            parts.append(f"{before / each.best:.3g} × as fast as unscheduled")
        points.append(CurvePoint(each.trials, each.best, " · ".join(parts)))
    return points


def summary(tuning: Tuning) -> str:
    """Return how far a tuning is, in one line."""
    state = tuning.state
    if state is None:
        return ""
    noun = "trial" if state.trials_total == 1 else "trials"
    parts = [f"{count_text(state.trials_done)} of {count_text(state.trials_total)} {noun}"]
    if tuning.phase in ("tuning", "pausing", "paused") and state.seconds_left is not None:
        parts.append(f"about {span_text(state.seconds_left)} left")
    parts.append(f"{span_text(state.seconds_spent)} spent")
    failed = sum(each.failed for each in state.functions)
    if failed:
        parts.append(f"{count_text(failed)} failed")
    return " · ".join(parts)

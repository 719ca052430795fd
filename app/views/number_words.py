"""The numbers of a function in words: its verdict, its rates and its work."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from lowerscope.app.views.formats import duration_text, error_text
from lowerscope.app.workbench.measurements import Measurements
from lowerscope.app.workbench.scheduled import Scheduled
from lowerscope.core.records.numbers import Checked, Measured

Verdict = tuple[str, str, str, str]
"""Role of a `Pill`, word, figure, and more about it."""


def verdict_of(measurements: Measurements, of: Scheduled) -> Verdict:
    """Return what is known of whether a function computes the same."""
    if not of.primitives:
        return "neutral", tr("unscheduled"), "", tr("What steps are compared with")
    checked = measurements.checked(of)
    if checked is not None:
        return _verdict(checked)
    problem = measurements.problem("check", of)
    if problem is not None:
        return "neutral", tr("not known"), _short(problem.what), problem.line()
    if measurements.doing == "check" and measurements.doing_of == of:
        return "busy", tr("checking"), "", tr("Compiled and run against the unscheduled function")
    if measurements.is_coming("check", of):
        return "busy", tr("to be checked"), "", ""
    return "neutral", tr("not checked"), "", tr("Measure checks it as well")


def _verdict(checked: Checked) -> Verdict:
    error, tolerance = checked.max_abs_error, checked.tolerance
    allowed = tr("exact values have to be equal")
    if tolerance is not None:
        allowed = tr("off by {0} at most, {1} is allowed for sums of this length").format(
            error_text(error), error_text(tolerance)
        )
    if checked.at:
        allowed += "\n" + tr("with {0}, the size that the model is traced at").format(checked.at)
    if checked.verdict == "same":
        figure = tr("exactly") if not error else tr("to {0}").format(error_text(error))
        more = f"{checked.reason}\n{allowed}" if checked.reason else allowed
        return "right", tr("same"), figure, more
    if checked.verdict == "inconclusive":
        return "unsure", tr("inconclusive"), "", checked.reason
    if checked.verdict == "differs":
        short = _short(checked.reason)
        is_far = error is not None and tolerance is not None and error > tolerance
        figure = tr("by {0}").format(error_text(error)) if is_far else short
        return "wrong", tr("differs"), figure, f"{checked.reason}\n{allowed}"
    return "neutral", tr("not known"), _short(checked.reason), checked.reason


def _short(reason: str) -> str:
    return reason if len(reason) <= 48 else f"{reason[:47]}…"


def spread_text(measured: Measured) -> str:
    """Return the quarters of a time: ``1.2 … 1.4 ms``."""
    if measured.repeats == 1:
        return tr("measured once")
    low, high = duration_text(measured.low), duration_text(measured.high)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} … {high}"


def rate_text(value: float | None, unit: str = "") -> str:
    """Return three digits or so; a dash for nothing."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def operations_text(value: float | None) -> str:
    """Return operations such as ``231 MFLOP``."""
    if value is None:
        return tr("not known")
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TFLOP"


def share_text(value: float | None) -> str:
    """Return a share as per cent."""
    if value is None:
        return "–"
    return f"{value * 100:.0f} %" if value >= 0.1 else f"{value * 100:.2g} %"


def faster_text(before: Measured, after: Measured) -> str:
    """Return how many times as fast: ``12 ×``, or ``≈ 12 ×`` of times that are unreliable."""
    factor = before.milliseconds / after.milliseconds
    text = f"{factor:,.0f} ×" if factor >= 10 else f"{factor:.2g} ×"
    return f"≈ {text}" if before.disturbed or after.disturbed else text


def tr(text: str) -> str:
    """Translate."""
    return QCoreApplication.translate("number_words", text)

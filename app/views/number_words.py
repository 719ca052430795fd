"""Texts on a function's metrics: its verdict, its rates and its work."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from lowerscope.app.workbench.measurements import Measurements
from lowerscope.app.workbench.scheduled import Scheduled
from lowerscope.core.model.formatting import error_text, ratio_text
from lowerscope.core.records.numbers import Checked, Measured

Verdict = tuple[str, str, str, str]
"""Role of a `Pill`, word, figure, and details."""


def verdict_of(measurements: Measurements, of: Scheduled) -> Verdict:
    """Return the verdict on whether a scheduled function computes the same."""
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


def faster_text(before: Measured, after: Measured) -> str:
    """Return the speedup: ``12.0×``, or ``≈ 12.0×`` if a time is unreliable."""
    about = before.disturbed or after.disturbed
    return ratio_text(before.milliseconds / after.milliseconds, about=about)


def tr(text: str) -> str:
    """Translate."""
    return QCoreApplication.translate("number_words", text)

"""The prediction of a run as bars: the five best classes of both sides."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.core.model.formatting import (
    error_text,
    not_finite_text,
)
from lowerscope.core.model.run_records import TOP, RunRecord
from lowerscope.core.model.texts import _


def show_prediction(bars: Bars, record: RunRecord | None, *, legend: bool = True) -> None:
    """Show in bars both sides' scores of the best classes of either; nothing without a record."""
    prediction = None if record is None else record.prediction
    if record is None or prediction is None:
        bars.set_bars(())
        bars.setToolTip("")
        return
    has_torch = all(each.torch is not None for each in prediction.top)
    sides = ("TVM", record.reference) if has_torch else ("TVM",)
    rows: list[Bar] = []
    for each in prediction.top:
        scores = (each.tvm,) if each.torch is None else (each.tvm, each.torch)
        rows.append(Bar(each.name, scores, _figures(scores), best=not rows))
    ours = prediction.tvm
    # A class found by one side only is always included.
    shown = [row for place, row in enumerate(rows) if place < TOP or row.name == ours]
    bars.set_bars(shown, sides if legend else ())
    said = {
        "softmax": _("The softmax of the output"),
        "output": _("The output itself, which sums to 1"),
    }
    heading = [said[prediction.scores]] if prediction.scores else []
    bars.setToolTip("\n".join([*heading, *(_line(row, sides) for row in rows)]))


def _line(row: Bar, sides: Sequence[str]) -> str:
    scores = (f"{side} {score:.1%}" for side, score in zip(sides, row.values, strict=True))
    return f"{row.name}: {', '.join(scores)}"


def _figures(scores: Sequence[float]) -> str:
    """Return the scores of both sides, once if they look the same: ``98.2%``, ``98.2 · 91.0%``."""
    texts = list(dict.fromkeys(f"{each:.1%}" for each in scores))
    return " · ".join([*(each.removesuffix("%") for each in texts[:-1]), texts[-1]])


def verdict_state(record: RunRecord) -> tuple[str, str, str]:
    """Return role, words and figure of the verdict on a run, as a `Pill` shows them."""
    role, words = {
        "match": ("right", _("matches {reference}", reference=record.reference)),
        "differ": ("wrong", _("differs from {reference}", reference=record.reference)),
        "rounding": ("near", _("differs by rounding")),
        "inconclusive": ("unsure", _("inconclusive")),
        "not-comparable": ("neutral", _("not comparable")),
        "no-reference": ("neutral", _("ran, no reference")),
    }[record.verdict]
    figures = []
    if record.verdict in ("match", "rounding", "differ"):
        figures.append(error_text(record.max_abs_error))
    figures.append(not_finite_text(record.not_finite_count))
    return role, words, " · ".join(filter(None, figures))

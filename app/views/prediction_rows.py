"""The prediction of a run as bars: the five best classes of both sides."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from lowerscope.app.widgets.score_bars import ScoreBars, ScoreRow
from lowerscope.core.records.run import TOP, RunRecord


def show_prediction(bars: ScoreBars, record: RunRecord | None) -> None:
    """Let bars show what both sides give the best classes of either; nothing without a record."""
    prediction = None if record is None else record.prediction
    if record is None or prediction is None:
        bars.set_rows((), ())
        return
    has_torch = all(each.torch is not None for each in prediction.top)
    sides = ("TVM", record.reference) if has_torch else ("TVM",)
    rows = [
        ScoreRow(each.name, (each.tvm,) if each.torch is None else (each.tvm, each.torch))
        for each in prediction.top
    ]
    ours = prediction.tvm
    # What one side sees and the other does not is there in any case.
    shown = [row for place, row in enumerate(rows) if place < TOP or row.name == ours]
    bars.set_rows(sides, shown, rows)
    if prediction.scores:
        said = {
            "softmax": _tr("The softmax of the output"),
            "output": _tr("The output itself: it adds up to 1"),
        }[prediction.scores]
        bars.setToolTip(f"{said}\n{bars.toolTip()}")


def _tr(text: str) -> str:
    return QCoreApplication.translate("PredictionRows", text)

"""A run's input picture, and the prediction of both sides."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Markup, MarkupLabel, join_markup, markup
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.run_records import TOP, RunRecord

# --- The prediction of a run as bars: the five best classes of both sides ---


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
        "softmax": _tr("The softmax of the output"),
        "output": _tr("The output itself: it adds up to 1"),
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


def _tr(text: str) -> str:
    return QCoreApplication.translate("PredictionRows", text)


WIDTH, PICTURE_SIDE = 186, 100

SMALL_PICTURE = 72
"""Side of the picture in a strip above the outputs."""

_ANY_WIDTH = 16_777_215
"""Qt's QWIDGETSIZE_MAX."""


class ResultSide(QWidget):
    """The strip beside or above the outputs: the first input picture, and the prediction."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.picture = PictureView(self.tr("Input picture"))
        self.picture.setFixedSize(PICTURE_SIDE, PICTURE_SIDE)
        self.prediction = MarkupLabel()
        self.prediction.hide()
        # The lines above serve as the legend of the sides' colours.
        self.bars = Bars(self.tr("The best classes of both sides"), whole=1.0)
        self._narrow = False
        self.setFixedWidth(WIDTH)
        head = row_of(None, self.picture, spacing=4)
        head.addWidget(self.prediction, 1, Qt.AlignmentFlag.AlignVCenter)
        column_of(self, head, self.bars, STRETCH, margins=(6, 0, 0, 0))
        document.on(("snapshot",), self._show_input)
        document.on(("run", "running"), self._show_run)
        theme.notifier().changed.connect(self._show_run)
        self._show_input()
        self._show_run()

    def set_narrow(self, narrow: bool) -> None:
        """Switch to a low layout across the full width, without the scores, or back."""
        if narrow == self._narrow:
            return
        self._narrow = narrow
        self.setMinimumWidth(0 if narrow else WIDTH)
        self.setMaximumWidth(_ANY_WIDTH if narrow else WIDTH)
        side = SMALL_PICTURE if narrow else PICTURE_SIDE
        self.picture.setFixedSize(side, side)
        self._show_side()

    def _show_input(self) -> None:
        snapshot = self._document.snapshot
        shown = next(
            (each for each in snapshot.model.inputs if each.picture is not None)
            if snapshot is not None
            else iter(()),
            None,
        )
        self.picture.setVisible(shown is not None)
        self._show_side()
        if shown is not None and shown.picture is not None:
            picture = shown.picture
            self.picture.set_picture(
                picture.pixels, picture.width, picture.height, picture.channels
            )
            self.picture.setToolTip(f"{shown.name} · {shape_text(shown.shape)} · {shown.origin}")

    def _show_run(self) -> None:
        record = self._document.run_record
        found = record is not None and record.prediction is not None
        self.prediction.setVisible(found)
        self.prediction.setText(_prediction(record) if record is not None and found else "")
        show_prediction(self.bars, record, legend=False)
        self._show_side()

    def _show_side(self) -> None:
        self.bars.setVisible(bool(self.bars.bars()) and not self._narrow)
        self.setVisible(not self.picture.isHidden() or not self.prediction.isHidden())


def _prediction(record: RunRecord) -> Markup:
    assert record.prediction is not None
    colours = theme.current()
    sides = (
        ("TVM", record.prediction.tvm, colours.accent),
        (record.reference, record.prediction.torch, colours.neutral),
    )
    pattern = (
        '<span style="color:{0}">■</span> <span style="color:{1}">{2}</span>'
        '<br><span style="font-weight:600">{3}</span>'
    )
    return join_markup(
        "<br>",
        [markup(pattern, ink, colours.quiet, side, name) for side, name, ink in sides if name],
    )

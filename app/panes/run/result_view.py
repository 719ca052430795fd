"""The outcome of a run: the outputs against torch, and the times."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.bars import Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel, PartsLabel
from lowerscope.app.kit.plain_text import Markup, MarkupLabel, join_markup, markup
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.prediction import show_prediction
from lowerscope.app.panes.run.compare_page import FirstDifferenceLine
from lowerscope.app.panes.run.run_dialogs import edit_measuring, edit_tolerances
from lowerscope.app.panes.run.runs import Runs
from lowerscope.app.panes.run.time_text import bars_of, claims_of, how_of, medians_of
from lowerscope.core.model.dimensions import sizes_text
from lowerscope.core.model.formatting import (
    bytes_text,
    duration_text,
    error_text,
    shape_text,
    tolerance_text,
    verdict_words,
)
from lowerscope.core.model.run_records import NOT_THERE, OutputRecord, RunRecord, SizeRecord

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


# The end-to-end times of the last run: a bar with its spread for each side, and the claims.


class TimesPanel(QWidget):
    """Hidden until there are times."""

    def __init__(self, document: Document, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._runs = runs
        self._short = False
        self.bars = Bars(self.tr("Times of the run"))
        self.claim = ElidedLabel()
        self.how = PartsLabel()
        self.how.setProperty("role", "quiet")
        self.again = _button(self.tr("Measure again"))
        self.again.setToolTip(self.tr("By the same executable; the verdict stays"))
        self.again.clicked.connect(runs.measure_again)
        self.settings = _button(self.tr("Settings…"))
        self.settings.setToolTip(self.tr("Threads, repeats, warm-up, and torch.compile"))
        self.settings.clicked.connect(self._edit)
        # A shortened label uses its whole width for the text.
        first = row_of(None, self.claim, margins=(10, 0, 12, 0), spacing=None)
        row = row_of(
            None, (self.how, 1), self.again, self.settings, margins=(10, 0, 8, 0), spacing=8
        )
        column_of(self, self.bars, first, row)
        document.on(("run", "running"), self._show_run)
        self._show_run()

    def fit(self, room: int) -> None:
        """Hide the bars if the width is too small for them; the text has all times."""
        words = max(self.how.sizeHint().height(), self.again.sizeHint().height())
        needed = self.bars.sizeHint().height() + self.claim.sizeHint().height() + words
        short = room < needed
        if short != self._short:
            self._short = short
            self._show_run()

    def _show_run(self) -> None:
        record = self._document.run_record
        times = None if record is None else record.times
        self.setVisible(times is not None)
        self.again.setEnabled(not self._document.running)
        if times is not None:
            self.bars.set_bars(bars_of(times))
            self.bars.setVisible(not self._short)
            claims = claims_of(times)
            self.claim.set_whole(f"{medians_of(times)} · {claims}" if self._short else claims)
            self.how.set_whole(how_of(times))

    def _edit(self) -> None:
        edit_measuring(self._document, self._runs, self)


def _button(text: str) -> QPushButton:
    button = push_button(text, look="quiet")
    button.setAccessibleName(text)
    return button


STATUS_WIDTH = 90
"""Width of ``✓ matches``."""

LEAST_TABLE = 64
"""Height of a table with one row."""

NARROW = 480
"""Width below which parts are stacked."""

LEFT_OUT = (1, 2, 4)
"""Columns of the outputs hidden in a narrow table: shape, dtype and relative error."""

ROOMY, DTYPE = 510, 2
"""Width from which the table of outputs shows the dtype too, and the index of that column."""


class ResultView(QWidget):
    """The page with the outcome of the last run."""

    def __init__(self, document: Document, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.outputs = Table(
            self.tr("Outputs"),
            (
                Column(self.tr("output"), width=68),
                Column(self.tr("shape"), numeric=True),
                Column(self.tr("dtype"), width=70),
                Column(self.tr("max abs error"), numeric=True, width=98),
                Column(self.tr("max rel error"), numeric=True, width=98),
                Column(self.tr("status"), stretch=True, width=STATUS_WIDTH),
            ),
        )
        self.sizes = Table(
            self.tr("Sizes"),
            (
                Column(self.tr("size"), width=110),
                Column(self.tr("max abs error"), numeric=True, width=98),
                Column(self.tr("torch"), numeric=True, width=72),
                Column(self.tr("TVM"), numeric=True, width=72),
                Column(self.tr("status"), stretch=True, width=STATUS_WIDTH),
            ),
        )
        self.sizes.hide()
        self.summary = MarkupLabel(role="quiet")
        self.summary.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.summary.linkActivated.connect(self._edit_tolerances)
        # Wrapped into two lines, it does not widen the pane beyond the table.
        self.summary.setWordWrap(True)
        # With a parent from the start: shown without one, it would be a window of its own.
        self.side = ResultSide(document, self)
        right = column_of(None, (self.sizes, 3), (self.outputs, 2))
        self.first_difference = FirstDifferenceLine(document)
        right.addWidget(self.first_difference)
        self.times = TimesPanel(document, runs)
        right.addWidget(self.times)
        self.summary.setContentsMargins(10, 6, 12, 8)
        right.addWidget(self.summary)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._halves.setContentsMargins(0, 0, 0, 0)
        self._halves.setSpacing(0)
        self._halves.addWidget(self.side)
        self._halves.addLayout(right, 1)
        document.on(("run", "running"), self._show_run)
        document.on(("snapshot",), self._fit)
        theme.notifier().changed.connect(self._show_run)
        self._show_run()

    def _show_run(self) -> None:
        record = self._document.run_record
        if record is None:
            if self._document.running:
                self.outputs.set_empty(
                    self.tr("Running…"), self.tr("Cancel, in the status bar, stops it.")
                )
            else:
                self.outputs.set_empty(
                    self.tr("Not run yet"),
                    self.tr("Run (F5) compiles the module, runs it, and compares it with torch."),
                )
            self.outputs.set_rows(())
            self.sizes.hide()
            self.summary.setText("")
            self.summary.hide()
            return
        self.outputs.set_rows([_row(output) for output in record.outputs])
        self.sizes.set_rows([_size_row(each) for each in record.sizes])
        self.sizes.setVisible(bool(record.sizes))
        self.summary.setText(self._summary(record))
        self.summary.show()
        self._fit()

    def _fit(self) -> None:
        """Stack the parts, and hide the bars of the times, if space is short."""
        narrow = self.width() < NARROW
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)
        self.side.set_narrow(narrow)
        beside = 0 if narrow or self.side.isHidden() else self.side.width()
        tight = self.width() - beside < ROOMY
        for column in LEFT_OUT:
            self.outputs.setColumnHidden(column, narrow or (tight and column == DTYPE))
        tables = 1 if self.sizes.isHidden() else 2
        words = [self.summary.heightForWidth(max(1, self.summary.width()))]
        if not self.first_difference.isHidden():
            words.append(self.first_difference.sizeHint().height())
        if narrow and not self.side.isHidden():
            words.append(self.side.sizeHint().height())
        self.times.fit(self.height() - tables * LEAST_TABLE - sum(words))

    def _edit_tolerances(self) -> None:
        edit_tolerances(self._document, self)

    def _summary(self, record: RunRecord) -> Markup:
        parts: list[str] = []
        if record.ran_on:
            there = self.tr("ran on {0}; torch here").format(record.ran_on)
            parts.append(markup('<span style="font-weight:600">{0}</span>', there))
        parts.append(self.tr("built in {0}").format(duration_text(record.build_ms)))
        functions = self.tr("1 function") if record.functions == 1 else self.tr("{0} functions")
        parts.append(functions.format(f"{record.functions:,}"))
        if record.max_abs_error is not None:
            tolerance = tolerance_text(record.atol, record.rtol, record.reference)
            words = self.tr("tolerance {0}").format(tolerance)
            link = '<a href="tolerances" style="color:{0}">{1}</a>'
            parts.append(markup(link, theme.current().accent, words))
        if record.ran_on:
            parts.append(self.tr(NOT_THERE))
        if record.quick:
            parts.append(self.tr("quick run: times of one call"))
        if record.kept_budget:
            kept, budget = bytes_text(record.kept_bytes), bytes_text(record.kept_budget)
            parts.append(self.tr("values kept: {0} of {1}").format(kept, budget))
        return join_markup("   ·   ", parts)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


def _size_row(record: SizeRecord) -> Row:
    text, role = verdict_words(record.verdict)
    name = sizes_text(record.sizes)
    shown = f"{text}: {record.reason}" if record.reason else text
    return Row(
        name,
        (
            Cell(name, bold=True),
            error_text(record.max_abs_error),
            duration_text(record.torch_ms),
            duration_text(record.tvm_ms),
            Cell(shown, role=role, tooltip=record.reason),
        ),
    )


def _row(output: OutputRecord) -> Row:
    text, role = verdict_words(output.verdict)
    shown = f"{text}: {output.reason}" if output.reason else text
    status = Cell(shown, role=role, tooltip=output.reason)
    return Row(
        output.name,
        (
            Cell(output.name, bold=True),
            shape_text(output.shape),
            Cell(output.dtype, role="quiet"),
            error_text(output.max_abs_error),
            error_text(output.max_rel_error),
            status,
        ),
    )

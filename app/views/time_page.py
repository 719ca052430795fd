"""The time of the last run: its calls and its memory as a chart, and a table."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.views.graph_page import EXTENDING
from lowerscope.app.views.time_rows import (
    memory_text,
    pieces_of,
    selected_with,
    shares_of,
    spans_of,
    time_rows,
)
from lowerscope.app.widgets.charts.run_chart import RunChart
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.segmented import Segment, SegmentedSwitch
from lowerscope.app.widgets.split import Split
from lowerscope.app.widgets.table import Column, Table
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.records.run import NOT_THERE, RunRecord

CHART_AND_TABLE = [88, 140]
"""Initial heights; the table takes additional space."""


class TimePage(QWidget):
    """The chart of the run above the times by node, by function, by module or by call."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._entities: dict[str, tuple[str, ...]] = {}
        self._stale = True
        self.by = SegmentedSwitch(
            self.tr("Times by"),
            (
                Segment("node", self.tr("Nodes"), self.tr("The time of each FX node's calls")),
                Segment("function", self.tr("Functions"), self.tr("All calls of each function")),
                Segment("module", self.tr("Modules"), self.tr("Each part of the model")),
                Segment("call", self.tr("Calls"), self.tr("Each call, in order")),
            ),
        )
        self.summary = ElidedLabel()
        self.summary.setProperty("role", "quiet")
        self.chart = RunChart(self.tr("Calls of the run and the memory that they take"))
        self.table = Table(
            self.tr("Times"),
            (
                Column(self.tr("name"), width=160),
                Column(self.tr("as"), width=50, tooltip=self.tr("The strategy")),
                Column(self.tr("calls"), numeric=True, width=56, falling=True),
                Column(
                    self.tr("TVM"),
                    numeric=True,
                    width=84,
                    falling=True,
                    tooltip=self.tr("Median over a few watched runs; of a fused call, all of it"),
                ),
                Column(self.tr("share"), numeric=True, width=72, falling=True),
                Column(
                    self.tr("torch"),
                    numeric=True,
                    width=84,
                    falling=True,
                    tooltip=self.tr("The nodes one by one in torch, median"),
                ),
                Column(
                    self.tr("ratio"),
                    numeric=True,
                    width=72,
                    falling=True,
                    tooltip=self.tr("TVM's time by torch's: above 1, TVM takes longer"),
                ),
                Column(self.tr("with"), stretch=True, width=110),
            ),
        )
        self.table.set_sortable(True)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 4, 10, 4)
        strip.setSpacing(12)
        strip.addWidget(self.by)
        strip.addWidget(self.summary, 1)
        self.parts = Split(Qt.Orientation.Vertical)
        self.parts.setChildrenCollapsible(False)
        self.parts.addWidget(self.chart)
        self.parts.addWidget(self.table)
        self.parts.setStretchFactor(1, 1)
        self.parts.setSizes(CHART_AND_TABLE)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.parts, 1)
        self.by.changed.connect(self._show_rows)
        self.table.row_clicked.connect(self._select_row)
        self.chart.chosen.connect(self._select_call)
        document.on(("snapshot",), self._show_run)
        document.on(("run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_run()

    def _show_run(self) -> None:
        # Thousands of rows are not built for a hidden page.
        self._stale = not self.isVisible()
        if self._stale:
            return
        snapshot, record = self._document.snapshot, self._document.run_record
        has_calls = snapshot is not None and record is not None and bool(record.calls)
        self.chart.setVisible(has_calls)
        self.by.setVisible(has_calls)
        if snapshot is not None and record is not None and has_calls:
            memory = record.memory
            self.chart.set_run(spans_of(snapshot, record), pieces_of(memory), memory_text(memory))
            self.summary.set_whole(self._summary(record))
        else:
            self.summary.set_whole("")
        self._say_empty()
        self._show_rows()

    def _summary(self, record: RunRecord) -> str:
        whole = sum(each.milliseconds for each in record.calls)
        count = len(record.calls)
        calls = self.tr("1 call") if count == 1 else self.tr("{0} calls").format(count)
        return self.tr("{0} in {1} watched, {2} unwatched").format(
            calls, duration_text(whole), duration_text(record.tvm_ms)
        )

    def _say_empty(self) -> None:
        record = self._document.run_record
        if self._document.running:
            said = self.tr("Running…"), self.tr("Cancel, in the status bar, stops it.")
        elif record is None:
            said = (
                self.tr("Not run yet"),
                self.tr("Run (F5) times each call of the virtual machine."),
            )
        elif record.ran_on:
            there = self.tr("It ran on {0}").format(record.ran_on)
            said = (there, self.tr(NOT_THERE))
        else:
            said = (
                self.tr("No call was timed"),
                self.tr("The run calls nothing, or its calls could not be told apart."),
            )
        self.table.set_empty(*said)

    def _show_rows(self) -> None:
        snapshot, record = self._document.snapshot, self._document.run_record
        self._entities = {}
        if snapshot is None or record is None or not record.calls:
            self.table.set_rows(())
            return
        by = self.by.current()
        self._entities = {each.key: each.entities for each in shares_of(snapshot, record, by)}
        self.table.set_rows(time_rows(snapshot, record, by))
        self._show_selection()

    def _show_selection(self) -> None:
        if self._stale:
            return
        chosen = set(self._document.selection.chosen)
        rows = [key for key, each in self._entities.items() if each and chosen >= set(each)]
        self.table.set_selection(rows)
        record = self._document.run_record
        if record is not None:
            marked = self.chart.marked()
            calls = [
                f"call:{index}"
                for index, call in enumerate(record.calls)
                if not chosen.isdisjoint(selected_with(call)) or call.entity in chosen
            ]
            # A function is called several times: the selected call stays marked.
            self.chart.mark([marked] if marked in calls else calls)

    def _select_row(self, key: str, modifiers: Qt.KeyboardModifier) -> None:
        entities = self._entities.get(key, ())
        if key.startswith("call:"):
            self.chart.mark([key])
        if entities:
            self._document.select(entities, extend=bool(modifiers & EXTENDING))

    def _select_call(self, key: str) -> None:
        record = self._document.run_record
        if record is not None:
            self._document.select(selected_with(record.calls[int(key.partition(":")[2])]))
            if self.by.current() == "call":
                self.table.set_selection([key])
                self.table.reveal(key)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._show_run()

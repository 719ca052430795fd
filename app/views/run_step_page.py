"""The page Call: what the call of the run that is looked at has read and written, with values."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.views.run_step_rows import (
    instruction_rows,
    tensor_name,
    tensor_of_row,
    tensor_rows,
)
from lowerscope.app.views.step_words import call_text
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.table import Cell, Column, Row, Table
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.run_step import RunStep
from lowerscope.core.records.steps import Moment

STRIP = 26
"""Height of the line above the table, in pixels."""


class RunStepPage(QWidget):
    """A page of Details, in front while the clock Run is gone through.

    Parameters
    ----------
    set_busy
        Called with whether the values are on their way.

    Signals
    -------
    tensor_wanted(object, str)
        The user wants to look at the values of a tensor: its `TensorPlace`, and what it is.
    """

    tensor_wanted = Signal(object, str)

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._steps = workspace.run_steps
        self._step: RunStep | None = None
        self.title = ElidedLabel()
        self.title.setProperty("role", "title")
        # It stays where it is beside a button that comes and goes.
        self.title.setFixedHeight(STRIP)
        self.unfold = QPushButton()
        self.unfold.setProperty("quiet", True)
        self.unfold.setCheckable(True)
        self.unfold.setToolTip(
            self.tr("What the virtual machine has called before it, for memory, shapes and checks")
        )
        self.table = Table(
            self.tr("What the call read and wrote"),
            (Column("", width=70), Column("", stretch=True, wrap=True)),
        )
        self.table.horizontalHeader().hide()
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 2, 6, 2)
        strip.setSpacing(6)
        strip.addWidget(self.title, 1)
        strip.addWidget(self.unfold)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.table, 1)
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self.unfold.toggled.connect(self._show_rows)
        self.table.clicked.connect(self._open_at)
        self.table.row_activated.connect(self._open)
        self._steps.call_changed.connect(self._show_call)
        workspace.run_changed.connect(self._note_run)
        self._show_call()

    @property
    def step(self) -> RunStep | None:
        """The call that is shown, once its values are there."""
        return self._step

    def _show_call(self) -> None:
        call, index = self._steps.call, self._steps.index
        self._step = None
        self.title.setVisible(call is not None)
        self.unfold.setVisible(call is not None and call.own > 0)
        failed = self._steps.failed
        if call is None or index is None:
            self._fetching.forget()
            self._say_nothing()
        elif failed is not None:
            self._fetching.forget()
            self.title.set_whole(call.function)
            none = self.tr("Of a run that came to a bad end, no values are kept")
            self.table.set_empty(none, failed.what)
        else:
            self.title.set_whole(f"{call.function} · {call_text(call, self._steps.calls)}")
            # Of another run, it is another call, whatever its place.
            self._fetching.forget()
            self._fetching.want(str(index))
        self._show_rows()

    def _note_run(self) -> None:
        if self._steps.call is None:
            self._say_nothing()

    def _say_nothing(self) -> None:
        if self._workspace.running:
            self.table.set_empty(self.tr("Running…"))
        elif not self._steps.calls:
            hint = self._steps.why_none or self.tr("Run (F5), and step through its calls.")
            self.table.set_empty(self.tr("No call to look at"), hint)
        else:
            self.table.set_empty(
                self.tr("No call is looked at"),
                self.tr("Click a dot of the timeline, or ▸: the calls of the run."),
            )

    def _ask(self, index: str, _moment: Moment | None) -> int:
        lines = self._steps.lines
        return self._workspace.fetches.run_step(int(index), lines, self._take, self._take_problem)

    def _take(self, step: RunStep) -> None:
        self._fetching.settle(came=True)
        self._step = step
        self._show_rows()

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self.table.set_empty(problem.headline, problem.todo)
        self._show_rows()

    def _show_rows(self) -> None:
        step, call, unfolded = self._step, self._steps.call, self.unfold.isChecked()
        own = 0 if call is None else call.own
        mark = "▾" if unfolded else "▸"
        self.unfold.setText(self.tr("{0} {1} before it").format(mark, own))
        self.unfold.setAccessibleName(self.tr("{0} calls for memory and shapes").format(own))
        rows: list[Row] = []
        if step is not None:
            rows = [*instruction_rows(step, unfolded), *tensor_rows(step)]
            if not step.tensors:
                none = self.tr("it reads and writes no tensors")
                rows.append(Row("none", (Cell(""), Cell(none, role="quiet"))))
        self.table.set_rows(rows)

    def _open_at(self, index: QModelIndex) -> None:
        self._open(self.table.rows()[index.row()].key)

    def _open(self, key: str) -> None:
        number = tensor_of_row(key)
        call = self._steps.call
        if number is None or self._step is None or call is None:
            return
        tensor = self._step.tensors[number]
        words = self.tr("{0}, read by {1}")
        if tensor.place.side == "written":
            words = self.tr("{0}, written by {1}")
        called = f"{self._step.call + 1} {call.function}"
        self.tensor_wanted.emit(tensor.place, words.format(tensor_name(tensor), called))

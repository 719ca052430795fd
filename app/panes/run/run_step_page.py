"""The page Call: the tensors read and written by the current call of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.timelines import RunSteps
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import call_text
from lowerscope.app.panes.run.tensor_page import statistics_text
from lowerscope.core.model.comparison_records import RunStep, StepTensor
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import RunStepQuery
from lowerscope.core.model.texts import _

# The rows of the page Call: statistics of the tensors that a call has read and written.


def instruction_rows(step: RunStep, unfolded: bool) -> Iterator[Row]:
    """Yield the bytecode line of the call; if unfolded, also the VM's own lines before it."""
    if not step.first_line:
        return
    *before, last = step.instructions
    for number, text in enumerate(before if unfolded else (), start=step.first_line):
        words = " ".join(text.split())
        # The virtual machine's full name is in the tool tip.
        short = words.removeprefix("call ").removeprefix("vm.builtin.")
        line = Cell(str(number), role="quiet")
        yield Row(f"own:{number}", (line, Cell(short, role="quiet", code=True, tooltip=words)))
    number = step.first_line + len(before)
    words = " ".join(last.split())
    line = Cell(_("line {number}", number=number), role="quiet")
    yield Row("instruction", (line, Cell(words, code=True, tooltip=words)))


def tensor_rows(step: RunStep) -> Iterator[Row]:
    """Yield the facts about each tensor; the keys begin with its index."""
    for number, tensor in enumerate(step.tensors):
        for part, cells in enumerate(_about(tensor)):
            yield Row(f"{number}:{part}", cells)


def tensor_of_row(key: str) -> int | None:
    """Return the index of a row's tensor; ``None`` for another row."""
    number = key.partition(":")[0]
    return int(number) if number.isdigit() else None


def tensor_name(tensor: StepTensor) -> str:
    """Return the name of a tensor, or its number among those of its side."""
    return tensor.name or _("tensor {item}", item=tensor.place.item)


def _about(tensor: StepTensor) -> Iterator[tuple[Cell, Cell]]:
    side = _("reads") if tensor.place.side == "read" else _("writes")
    title = f"{tensor_name(tensor)} · {shape_text(tensor.shape)} {tensor.dtype}"
    more = _("{title}. Click to see its values.", title=title)
    yield Cell(side, role="quiet"), Cell(title, bold=True, tooltip=more)
    nothing = Cell("")
    statistics = tensor.statistics
    if statistics is None:
        return
    text = statistics_text(statistics)
    strange = statistics.nans + statistics.infinities > 0
    yield nothing, Cell(text, role="wrong" if strange else "quiet", tooltip=text)
    if tensor.first:
        first = ", ".join(tensor.first) + (", …" if len(tensor.first) < statistics.count else "")
        yield nothing, Cell(first, code=True, tooltip=first)
    else:
        over = _("its values were not kept: over the memory limit")
        yield nothing, Cell(over, role="quiet", tooltip=over)


STRIP = 26
"""Height of the line above the table, in pixels."""


class RunStepPage(QWidget):
    """A page of Details, in front while the timeline Run is current.

    Args:
        set_busy: Called with whether the values are being fetched.
    """

    # Show the values of a tensor: its `TensorPlace` and its description.
    tensor_wanted = Signal(object, str)

    def __init__(
        self,
        document: Document,
        queries: Queries,
        run_steps: RunSteps,
        set_busy: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self._document = document
        self._steps = run_steps
        self.step: RunStep | None = None  # The call shown, once its values have arrived.
        self.title = ElidedLabel()
        self.title.setProperty("role", "title")
        # Its position does not depend on the button beside it, which may be hidden.
        self.title.setFixedHeight(STRIP)
        self.unfold = push_button(
            "",
            _("Calls of the virtual machine before it, for memory, shapes and checks"),
            look="quiet",
        )
        self.unfold.setCheckable(True)
        self.table = Table(
            _("Tensors read and written by the call"),
            (Column("", width=70), Column("", stretch=True, wrap=True)),
        )
        self.table.horizontalHeader().hide()
        strip = row_of(None, (self.title, 1), self.unfold, margins=(10, 2, 6, 2), spacing=6)
        column_of(self, strip, (self.table, 1))
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
        self.unfold.toggled.connect(self._show_rows)
        self.table.clicked.connect(self._open_at)
        self.table.row_activated.connect(self._open)
        self._steps.call_changed.connect(self._show_call)
        document.on(("run", "running"), self._note_run)
        # The query of a recipe with the same run has been superseded with it.
        document.on(("snapshot",), self._watch.update)
        self._show_call()

    def _show_call(self) -> None:
        call, index = self._steps.call, self._steps.index
        self.step = None
        self.title.setVisible(call is not None)
        self.unfold.setVisible(call is not None and call.own > 0)
        failed = self._steps.failed
        if call is None or index is None:
            self._say_nothing()
        elif failed is not None:
            self.title.set_whole(call.function)
            none = _("A run that failed keeps no values")
            self.table.set_empty(none, failed.headline)
        else:
            self.title.set_whole(f"{call.function} · {call_text(call, self._steps.calls)}")
        # In another run it is another call, whatever its index.
        self._watch.refresh()
        self._show_rows()

    def _note_run(self) -> None:
        if self._steps.call is None:
            self._say_nothing()

    def _say_nothing(self) -> None:
        if self._document.running:
            self.table.set_empty(_("Running…"))
        elif not self._steps.calls:
            hint = self._steps.why_none or _("Run (F5), and step through its calls.")
            self.table.set_empty(_("No call to show"), hint)
        else:
            self.table.set_empty(
                _("No call selected"),
                _("Click a dot of the timeline, or ›, to step through the calls of the run."),
            )

    def _query(self) -> RunStepQuery | None:
        steps, recipe = self._steps, self._document.recipe
        if recipe is None or steps.call is None or steps.index is None or steps.failed is not None:
            return None
        return RunStepQuery(recipe, steps.index, steps.lines)

    def _take(self, step: RunStep) -> None:
        self.step = step
        self._show_rows()

    def _take_problem(self, problem: Problem) -> None:
        self.table.set_empty(problem.headline, problem.todo)
        self._show_rows()

    def _show_rows(self) -> None:
        step, call, unfolded = self.step, self._steps.call, self.unfold.isChecked()
        own = 0 if call is None else call.own
        mark = "▾" if unfolded else "▸"
        self.unfold.setText(_("{mark} {own} before it", mark=mark, own=own))
        self.unfold.setAccessibleName(_("{own} calls for memory and shapes", own=own))
        rows: list[Row] = []
        if step is not None:
            rows = [*instruction_rows(step, unfolded), *tensor_rows(step)]
            if not step.tensors:
                none = _("it reads and writes no tensors")
                rows.append(Row("none", (Cell(""), Cell(none, role="quiet"))))
        self.table.set_rows(rows)

    def _open_at(self, index: QModelIndex) -> None:
        self._open(self.table.rows()[index.row()].key)

    def _open(self, key: str) -> None:
        number = tensor_of_row(key)
        call = self._steps.call
        if number is None or self.step is None or call is None:
            return
        tensor = self.step.tensors[number]
        name, called = tensor_name(tensor), f"{self.step.call + 1} {call.function}"
        if tensor.place.side == "written":
            words = _("{tensor}, written by {call}", tensor=name, call=called)
        else:
            words = _("{tensor}, read by {call}", tensor=name, call=called)
        self.tensor_wanted.emit(tensor.place, words)

"""The loop tree of a scheduled function, and the history of its schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.choice_list import Choice
from lowerscope.app.kit.tables.data_table import Cell, Column
from lowerscope.app.kit.tables.trees import StepList, StepRow, TreeRow, TreeTable
from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.formatting import bytes_text, duration_text
from lowerscope.core.model.schedule_records import (
    BufferNode,
    LoopNode,
    Move,
    ScheduleRecord,
    ScheduleStep,
    StepError,
    Verdict,
)

# --- The rows of the workbench: the loop tree, the primitives, and the history ---

BUFFERS = "section:buffers"
"""Key of the row above the buffers."""

START = "start"
"""Key of the history's row of the unscheduled function."""

STATUS = {"done": "✓ done", "failed": "✕ failed", "off": "○ off"}


def tree_rows(record: ScheduleRecord) -> list[TreeRow]:
    """Return the loops and blocks of a function, then its buffers."""
    rows = [_node_row(each, record.tree) for each in record.tree]
    if record.buffers:
        title = (Cell("Buffers"), Cell("bytes"), Cell("scope · role"))
        rows.append(TreeRow(BUFFERS, title, section=True))
        rows += [_buffer_row(each) for each in record.buffers]
    return rows


def _node_row(node: LoopNode, tree: Sequence[LoopNode]) -> TreeRow:
    parent = tree[node.parent].id if node.parent >= 0 else ""
    annotations = ", ".join(f"{name}={value}" for name, value in node.annotations)
    if node.kind == "loop":
        role = "quiet" if node.loop_kind == "serial" else "accent"
        kind = Cell(" · ".join(_some(node.loop_kind, annotations)), role=role)
        cells = (Cell(node.name), Cell(node.extent), kind)
        said = f"loop {node.name}, {node.extent}, {node.loop_kind}"
        return TreeRow(node.id, cells, parent, tooltip=" · ".join(_some(said, annotations)))
    axes = "".join(kind for _, kind, _ in node.axes)
    cells = (Cell(node.name, bold=True), Cell(""), Cell(" · ".join(_some(axes, annotations))))
    facts = [f"{name} {kind} {extent}" for name, kind, extent in node.axes]
    tooltip = "\n".join(
        _some(
            f"block {node.name}: {', '.join(facts)}",
            f"reads {', '.join(node.reads)}" if node.reads else "",
            f"writes {', '.join(node.writes)}" if node.writes else "",
            annotations,
        )
    )
    return TreeRow(node.id, cells, parent, note="block", tooltip=tooltip)


def _some(*texts: str) -> list[str]:
    return [text for text in texts if text]


def _buffer_row(buffer: BufferNode) -> TreeRow:
    size = "" if buffer.size is None else bytes_text(buffer.size)
    cells = (Cell(buffer.name), Cell(size), Cell(f"{buffer.scope} · {buffer.role}", role="quiet"))
    note = f"{buffer.shape.replace(' × ', '×')} {buffer.dtype}"
    tooltip = f"{buffer.role} {buffer.name}: {note}, {buffer.scope}, {size}"
    return TreeRow(f"buffer:{buffer.name}", cells, BUFFERS, note=note, tooltip=tooltip)


def move_choices(moves: Sequence[Move], asking: Sequence[str]) -> list[Choice]:
    """Return the primitives under their headings: in each group, legal ones first.

    Args:
        asking: Keys of the primitives that have a form.
    """
    rows: list[Choice] = []
    legal_first = sorted(
        dict.fromkeys(move.group for move in moves),
        key=lambda group: not any(each.legal for each in moves if each.group == group),
    )
    for group in legal_first:
        rows.append(Choice("", group))
        of_group = [move for move in moves if move.group == group]
        for move in sorted(of_group, key=lambda each: not each.legal):
            rows.append(_choice(move, move.name in asking))
    return rows


def _choice(move: Move, asks: bool) -> Choice:
    note = move.title if move.legal else move.reason
    mark = "⚠ unsafe" if move.unsafe else "…" if asks and move.legal else ""
    example = f"{move.before}\n→\n{move.after}" if move.before or move.after else ""
    tooltip = "\n\n".join(_some(move.help, move.reason, example))
    return Choice(move.name, move.name, note, usable=move.legal, mark=mark, tooltip=tooltip)


SAME: dict[Verdict | None, tuple[str, str, str]] = {
    None: ("", "", ""),
    "same": ("✓", "right", "checked: it computes the same after this step"),
    "differs": ("✕", "wrong", "checked: it computes something else after this step"),
    "inconclusive": ("?", "unsure", "checked: there was nothing finite to compare"),
    "unknown": ("?", "", "the check found out nothing after this step"),
}
"""Mark, role and text for a step, by the verdict on the function after it."""


def history_rows(record: ScheduleRecord, verdicts: Mapping[str, Verdict]) -> list[StepRow]:
    """Return the rows of the unscheduled function and of the steps of its schedule.

    Args:
        verdicts: Verdicts on the function after steps, by the steps' ids.
    """
    rows = [StepRow(START, "", "as it was", state="quiet", tooltip="Before the first step")]
    rows += [
        _step_row(place, step, verdicts.get(step.id)) for place, step in enumerate(record.steps)
    ]
    return rows


def _step_row(place: int, step: ScheduleStep, verdict: Verdict | None) -> StepRow:
    note = error_line(step.error) if step.error is not None else step.comment
    mark, role, checked = SAME[verdict]
    time = duration_text(step.milliseconds) if step.status == "done" else ""
    return StepRow(
        step.id,
        str(place + 1),
        step.title,
        note=note,
        changed=STATUS[step.status],
        time=mark,
        last_role=role,
        said=checked,
        on=step.status != "off",
        value=place + 1,
        place=place,
        state={"failed": "wrong", "off": "quiet"}.get(step.status, ""),
        tooltip="\n".join(
            _some(step.title, step.code, note, f"applied in {time}" if time else "", checked)
        ),
    )


def error_line(error: StepError) -> str:
    """Return why a step was not applied, in one line."""
    return error.message.partition("\n")[0]


class ScheduleTree(TreeTable):
    """Nested loops and blocks; the selection is shared with the script."""

    def __init__(
        self, document: Document, scheduling: Scheduling, parent: QWidget | None = None
    ) -> None:
        super().__init__(
            self.tr("Loop tree"),
            (
                Column(self.tr("loop or block"), stretch=True),
                Column(self.tr("extent"), numeric=True, width=78),
                Column(
                    self.tr("kind"), width=112, tooltip=self.tr("With annotations; of blocks: axes")
                ),
            ),
            parent,
        )
        self._document = document
        self._scheduling = scheduling
        self.setToolTip(self.tr("S opens the moves of what is selected, Return goes to their list"))
        self.rows_selected.connect(self._select)
        scheduling.changed.connect(self._show)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show()

    def _show(self) -> None:
        scheduling = self._scheduling
        record = scheduling.record
        if record is None:
            problem = scheduling.problem
            if problem is not None:
                self.empty.set_text(problem.headline, problem.todo)
            elif not scheduling.function:
                self.empty.set_text(
                    self.tr("No function to schedule"),
                    self.tr("Select a TensorIR function, or a node that has one."),
                )
            else:
                self.empty.set_text(self.tr("Reading {0}…").format(scheduling.function), "")
        self.set_rows(() if record is None else tree_rows(record))
        self._show_selection()

    def _show_selection(self) -> None:
        self.set_selection(self._document.selection.chosen)

    def _select(self, keys: list[str]) -> None:
        function = f"tir:{self._scheduling.function}"
        chosen = [key for key in keys if key.startswith(f"{function}/")]
        self._document.select(chosen or (function,))

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if plain and event.key() == Qt.Key.Key_S:
            self.open_menu()
        else:
            super().keyPressEvent(event)


_WIDTHS = {0: 56, 2: 74, 3: 50}


class ScheduleHistory(QWidget):
    """The list of steps; the current one is marked."""

    def __init__(
        self,
        stepping: Stepping,
        scheduling: Scheduling,
        measurements: Measurements,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._scheduling = scheduling
        self._stepping = stepping
        self._measurements = measurements
        titles = (self.tr("#"), self.tr("step"), self.tr("status"), self.tr("same"))
        self.list = StepList(self.tr("Steps of the schedule"), titles)
        self.list.headerItem().setToolTip(
            3, self.tr("Whether the function computes the same after the step, as far as checked")
        )
        for column, width in _WIDTHS.items():
            self.list.header().resizeSection(column, width)
        self.list.installEventFilter(self)
        self.place = ElidedLabel(role="quiet")
        self.end = push_button(
            self.tr("To the end"), self.tr("Look at the function after all steps"), look="quiet"
        )
        self.why = Label(role="wrong", wraps=True)
        self.force = QPushButton(self.tr("Apply anyway"))
        self.edit = QPushButton(self.tr("Edit…"))
        # The rule's comment on the current step: a row has space for a few words only.
        self.comment = Label(role="quiet", wraps=True)
        self.comment.setContentsMargins(10, 4, 10, 6)
        self.comment.hide()
        row = row_of(None, (self.place, 1), self.end, margins=(10, 0, 4, 0), spacing=None)
        self._footer = QWidget()
        self._footer.setLayout(row)
        failed = column_of(None, margins=(10, 4, 10, 6), spacing=4)
        buttons = row_of(None, self.edit, self.force, STRETCH, spacing=None)
        failed.addWidget(self.why)
        failed.addLayout(buttons)
        self._failed = QWidget()
        self._failed.setLayout(failed)
        column_of(self, (self.list, 1), self.comment, self._failed, self._footer)
        self.end.clicked.connect(self._scheduling.go_to_end)
        self.force.clicked.connect(self._force)
        self.edit.clicked.connect(self.edit_step)
        queued = Qt.ConnectionType.QueuedConnection
        self.list.currentItemChanged.connect(self._go, queued)
        self.list.row_activated.connect(self._edit, queued)
        self.list.switched.connect(self._scheduling.editing.switch)
        self.list.moved.connect(self._scheduling.editing.move, queued)
        self.list.removed.connect(self._scheduling.editing.remove)
        self.list.menu_wanted.connect(self._open_menu)
        self._scheduling.changed.connect(self._show)
        self._measurements.changed.connect(self._show_verdicts)
        self._stepping.schedule_moved.connect(self._show_place)
        self._show()

    def _show(self) -> None:
        self._show_verdicts()
        self._show_place()

    def _show_verdicts(self) -> None:
        record, verdicts = self._scheduling.record, self._measurements.verdicts()
        self.list.set_rows(() if record is None else history_rows(record, verdicts))

    def _show_place(self) -> None:
        scheduling = self._scheduling
        index = self._stepping.schedule_index
        steps = () if scheduling.record is None else scheduling.record.steps
        key = ""
        if index is not None:
            key = START if index == 0 else steps[index - 1].id if index <= len(steps) else ""
        self.list.set_marked(key)
        shown = "" if key else (steps[-1].id if steps else START)
        self._show_comment(key or shown)
        self.list.blockSignals(True)
        self.list.select(key or shown)
        self.list.blockSignals(False)
        before_end = index is not None and index < len(steps)
        self._footer.setVisible(before_end)
        self.place.set_whole(
            self.tr("new steps go in after step {0}").format(index)
            if index
            else self.tr("new steps go in before the first")
        )
        self._show_failed()

    def _show_comment(self, key: str) -> None:
        steps = () if self._scheduling.record is None else self._scheduling.record.steps
        found = (number for number, step in enumerate(steps) if step.id == key and step.comment)
        number = next(found, None)
        words = self.tr("Why step {0}: {1}.")
        self.comment.setText(
            "" if number is None else words.format(number + 1, steps[number].comment)
        )
        # In a history with comments it is always visible, so that rows do not move under the mouse.
        shown = any(step.comment for step in steps)
        if shown != self.comment.isVisibleTo(self):
            self.comment.setVisible(shown)
            layout = self.layout()
            assert layout is not None
            layout.activate()

    def _show_failed(self) -> None:
        step = self._scheduling.step
        error = None if step is None else step.error
        self._failed.setVisible(error is not None)
        if error is not None:
            self.why.setText(f"✕ {error.message}")
            self.force.setVisible(error.unsafe)
            self.force.setToolTip(
                self.tr("Apply it although: {0}. Check the numbers afterwards.").format(
                    error.message
                )
            )

    def _go(self) -> None:
        row = self.list.row(self.list.current_key())
        if row is not None and self._scheduling.record is not None:
            count = len(self._scheduling.record.steps)
            if row.value == count and self._stepping.schedule_index is None:
                step = self._scheduling.record.steps[-1] if count else None
                if step is None or step.status != "failed":
                    return
            self._scheduling.go(row.value)

    def _edit(self, key: str) -> None:
        if key != START:
            self._scheduling.trying.edit(key)

    def current(self) -> str:
        """Id of the selected step, or ``""``."""
        key = self.list.current_key()
        return "" if key == START else key

    def edit_step(self) -> None:
        """Show the form of the selected step."""
        if self.current():
            self._edit(self.current())

    def switch_step(self) -> None:
        """Enable or disable the selected step."""
        if self.current():
            self._scheduling.editing.switch(self.current())

    def remove_step(self) -> None:
        """Remove the selected step."""
        if self.current():
            self._scheduling.editing.remove(self.current())

    def move_step(self, by: int) -> None:
        """Move the selected step up or down."""
        row = self.list.row(self.list.current_key())
        if row is not None and row.place >= 0:
            self._scheduling.editing.move(row.place, row.place + by)

    def insert_before(self) -> None:
        """Insert the next applied primitive before the selected step."""
        row = self.list.row(self.list.current_key())
        if row is not None and row.place >= 0:
            self._scheduling.go(row.place)

    def _force(self) -> None:
        step = self._scheduling.step
        if step is not None:
            self._scheduling.editing.force(step.id)

    def _open_menu(self, key: str, place: QPoint) -> None:
        if key == START:
            return
        row = self.list.row(key)
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Edit…"), self.edit_step)
        off = row is not None and row.on
        menu.addAction(self.tr("Switch off") if off else self.tr("Switch on"), self.switch_step)
        menu.addAction(self.tr("Insert before it"), self.insert_before)
        menu.addSeparator()
        menu.addAction(self.tr("Delete"), self.remove_step)
        menu.popup(place)

    # Qt overrides

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
            if control and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.move_step(-1 if event.key() == Qt.Key.Key_Up else 1)
                return True
            if event.key() == Qt.Key.Key_Insert:
                self.insert_before()
                return True
        return super().eventFilter(watched, event)

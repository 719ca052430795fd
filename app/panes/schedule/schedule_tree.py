"""The loop tree of the scheduled function, with its buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.tables.choice_list import Choice
from lowerscope.app.kit.tables.table import Cell, Column
from lowerscope.app.kit.tables.trees import StepRow, TreeRow, TreeTable
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.formatting import bytes_text, duration_text
from lowerscope.core.model.function_metrics_records import Verdict
from lowerscope.core.model.schedule_records import (
    BufferNode,
    LoopNode,
    Move,
    ScheduleRecord,
    ScheduleStep,
    StepError,
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
    cells = (
        Cell(buffer.name),
        Cell(size),
        Cell(f"{buffer.scope} · {buffer.role}", role="quiet"),
    )
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

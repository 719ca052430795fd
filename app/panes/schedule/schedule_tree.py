"""The loop tree of a scheduled function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from lowerscope.app.document.document import Document
from lowerscope.app.kit.tables.choice_list import Choice
from lowerscope.app.kit.tables.data_table import Cell, Column
from lowerscope.app.kit.tables.trees import TreeRow, TreeTable
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.formatting import bytes_text, duration_text
from lowerscope.core.model.schedule_records import (
    BufferNode,
    LoopNode,
    Move,
    ScheduleRecord,
)
from lowerscope.core.model.texts import _

# --- The rows of the workbench: the loop tree, the primitives, and the history ---

BUFFERS = "section:buffers"
"""Key of the row above the buffers."""


LETTERS = {"S": "split", "R": "reorder", "P": "parallel", "V": "vectorize", "U": "unroll"}
"""Primitives by the keys that choose them in the tree."""


def tree_rows(record: ScheduleRecord) -> list[TreeRow]:
    """Return the loops and blocks of a function, then its buffers."""
    rows = [_node_row(each, record.tree) for each in record.tree]
    if record.buffers:
        title = (Cell(_("Buffers")), Cell(_("bytes")), Cell(_("scope · role")))
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
        said = _(
            "loop {name}, {extent}, {kind}",
            name=node.name,
            extent=node.extent,
            kind=node.loop_kind,
        )
        return TreeRow(node.id, cells, parent, tooltip=" · ".join(_some(said, annotations)))
    axes = "".join(kind for _other, kind, _other in node.axes)
    kind = Cell(" · ".join(_some(_("block"), axes, annotations)), role="quiet")
    cells = (Cell(node.name, bold=True), Cell(""), kind)
    facts = [f"{name} {kind} {extent}" for name, kind, extent in node.axes]
    tooltip = "\n".join(
        _some(
            _("block {name}: {axes}", name=node.name, axes=_(", ").join(facts)),
            _("reads {names}", names=_(", ").join(node.reads)) if node.reads else "",
            _("writes {names}", names=_(", ").join(node.writes)) if node.writes else "",
            annotations,
        )
    )
    return TreeRow(node.id, cells, parent, tooltip=tooltip)


def _some(*texts: str) -> list[str]:
    return [text for text in texts if text]


def _buffer_row(buffer: BufferNode) -> TreeRow:
    size = "" if buffer.size is None else bytes_text(buffer.size)
    cells = (Cell(buffer.name), Cell(size), Cell(f"{buffer.scope} · {buffer.role}", role="quiet"))
    note = buffer.shape.replace(" × ", "×")
    tooltip = f"{buffer.role} {buffer.name}: {note} {buffer.dtype}, {buffer.scope}, {size}"
    return TreeRow(f"buffer:{buffer.name}", cells, BUFFERS, note=note, tooltip=tooltip)


def move_choices(
    moves: Sequence[Move], asking: Sequence[str], measured: Mapping[str, float]
) -> list[Choice]:
    """Return the primitives under their headings: the groups and primitives that are fastest first.

    Args:
        asking: Keys of the primitives that have a form.
        measured: Milliseconds of a call with them, where that was measured.
    """

    def order(move: Move) -> tuple[bool, float]:
        milliseconds = measured.get(move.name, move.predicted_ms)
        return not move.legal, math.inf if milliseconds is None else milliseconds

    rows: list[Choice] = []
    groups: dict[str, list[Move]] = {}
    for move in sorted(moves, key=order):
        groups.setdefault(move.group, []).append(move)
    for group, of_group in groups.items():
        rows.append(Choice("", group))
        rows += (_choice(each, each.name in asking, measured.get(each.name)) for each in of_group)
    return rows


def _choice(move: Move, asks: bool, measured: float | None) -> Choice:
    note = move.title if move.legal else move.reason
    time = "" if move.predicted_ms is None else duration_text(move.predicted_ms)
    mark = _("⚠ unsafe") if move.unsafe else time
    title = f"{move.name}…" if asks and move.legal else move.name
    example = f"{move.before}\n→\n{move.after}" if move.before or move.after else ""
    price = _("Predicted time of a call with it: {time}", time=time) if time else ""
    if measured is not None:
        time = duration_text(measured)
        mark = _("{time} measured", time=time)
        price = "\n".join(_some(_("Measured time of a call with it: {time}", time=time), price))
    tooltip = "\n\n".join(_some(price, move.help, move.reason, example))
    return Choice(move.name, title, note, usable=move.legal, mark=mark, tooltip=tooltip)


class ScheduleTree(TreeTable):
    """Nested loops and blocks; the selection is shared with the script."""

    def __init__(self, document: Document, scheduling: Scheduling) -> None:
        super().__init__(
            _("Loop tree"),
            (
                Column(_("loop or block"), stretch=True),
                Column(_("extent"), numeric=True, width=76),
                Column(_("kind"), width=108, tooltip=_("With annotations; of blocks: axes")),
            ),
        )
        self._document = document
        self._scheduling = scheduling
        self.setToolTip(_("Return goes to the primitives; S, R, P, V and U choose one"))
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
                    _("No function to schedule"),
                    _("Select a TensorIR function, or a node that has one."),
                )
            else:
                self.empty.set_text(_("Reading {function}…", function=scheduling.function), "")
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
        primitive = LETTERS.get(event.text().upper()) if plain else None
        if primitive is not None and self._scheduling.chosen:
            self._scheduling.trying.choose_named(primitive)
        else:
            super().keyPressEvent(event)

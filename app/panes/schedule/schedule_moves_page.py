"""The loop tree of a scheduled function, and the primitives for the selection in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.choice_list import Choice, ChoiceList
from lowerscope.app.kit.tables.data_table import Cell, Column
from lowerscope.app.kit.tables.trees import TreeRow, TreeTable
from lowerscope.app.panes.schedule.measurements import Measurements, Scheduled
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.core.model.formatting import UNRELIABLE, bytes_text, duration_text
from lowerscope.core.model.schedule_records import (
    BufferNode,
    LoopNode,
    Measured,
    Move,
    ScheduleRecord,
)
from lowerscope.core.model.texts import _

# --- The loop tree of a scheduled function, and the choices of primitives ---

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
    moves: Sequence[Move], asking: Sequence[str], measured: Mapping[str, Measured]
) -> list[Choice]:
    """Return the primitives under their headings: the groups and primitives that are fastest first.

    Args:
        asking: Keys of the primitives that have a form.
        measured: The time of a call with them, where that was measured.
    """

    def order(move: Move) -> tuple[bool, float]:
        known = measured.get(move.name)
        milliseconds = move.predicted_ms if known is None else known.milliseconds
        return not move.legal, math.inf if milliseconds is None else milliseconds

    rows: list[Choice] = []
    groups: dict[str, list[Move]] = {}
    for move in sorted(moves, key=order):
        groups.setdefault(move.group, []).append(move)
    for group, of_group in groups.items():
        rows.append(Choice("", group))
        rows += (_choice(each, each.name in asking, measured.get(each.name)) for each in of_group)
    return rows


def _choice(move: Move, asks: bool, measured: Measured | None) -> Choice:
    note = move.title if move.legal else move.reason
    time = "" if move.predicted_ms is None else duration_text(move.predicted_ms)
    mark = _("⚠ unsafe") if move.unsafe else time
    title = f"{move.name}…" if asks and move.legal else move.name
    example = f"{move.before}\n→\n{move.after}" if move.before or move.after else ""
    price = _("Predicted time of a call with it: {time}", time=time) if time else ""
    if measured is not None:
        time = duration_text(measured.milliseconds, about=measured.disturbed)
        mark = _("{time} measured", time=time)
        said = _("Measured time of a call with it: {time}", time=time)
        price = "\n".join(_some(said, UNRELIABLE if measured.disturbed else "", price))
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
        elif primitive is not None and self._scheduling.record is not None:
            text = _("Select a loop or a block for {name}.", name=primitive)
            self._document.notify(text, "info")
        elif event.key() == Qt.Key.Key_Down and self.rows() and not self.selected_keys():
            # With the focus the first row became the current one; it is not selected yet.
            self.setCurrentItem(self.item_of(self.rows()[0].key))
        else:
            super().keyPressEvent(event)


KINDS = {"loop": _("loop"), "block": _("block")}


# --- The page with the tree, the primitives and their form ---


class ScheduleMovesPage(QWidget):
    """The list of primitives.

    Pointing at one previews it; selecting one applies it or opens its form.
    """

    done = Signal()  # A primitive was selected, or Escape pressed.

    def __init__(
        self, document: Document, scheduling: Scheduling, measurements: Measurements
    ) -> None:
        super().__init__()
        self._scheduling = scheduling
        self._measurements = measurements
        self._measured: dict[str, Measured] = {}  # The times of primitives that were measured.
        self._scale: float | None = None  # That of the predictions.
        self.measure = push_button(
            _("Measure"),
            _("Measure the function after each legal primitive, while nothing else runs"),
            look="quiet",
            act=self._measure,
        )
        self._pointed = ""
        self.about = ElidedLabel(role="quiet")
        self.choices = ChoiceList(_("Primitives"), _("Search primitives"))
        head = row_of(
            None, Label(_("Primitives"), role="title"), (self.about, 1), self.measure, spacing=8
        )
        column_of(self, head, (self.choices, 1), margins=(8, 6, 8, 4), spacing=4)
        self.choices.pointed.connect(self._point)
        self.choices.chosen.connect(self._choose)
        self.choices.escaped.connect(self._escape)
        scheduling.moves.changed.connect(self._show)
        scheduling.changed.connect(self._show)
        measurements.changed.connect(self._show_measured)
        document.on(("selection", "snapshot"), self._show)

    def _show(self) -> None:
        if not self.isVisible():
            # It is filled once visible: after a primitive is applied there is enough to redraw.
            return
        scheduling = self._scheduling
        chosen = scheduling.chosen
        names = _(", ").join(each.name for each in chosen)
        self.about.set_whole(f"{KINDS[chosen[0].kind]} {names}" if len(chosen) == 1 else names)
        # Without a selection, primitives that need none would be the only entries, so none is
        # listed.
        moves = scheduling.moves.all if scheduling.record is not None and chosen else ()
        asking = [each.name for each in moves if scheduling.trying.asks(each)]
        self._measured, self._scale = self._times(), self._measurements.scale
        moves = tuple(map(self._scaled, moves))
        self.choices.set_choices(move_choices(moves, asking, self._measured))
        self.measure.setVisible(any(each.legal for each in moves))
        self.choices.set_hint(*self._hint())
        if self._pointed and not scheduling.moves.are_coming:
            # The mouse may have stopped before these primitives arrived.
            self._try_pointed()

    def _hint(self) -> tuple[str, str]:
        """Return what the user has to do first: a title and a hint."""
        moves = self._scheduling.moves
        if self._scheduling.record is None or moves.are_coming:
            return "", ""
        if not self._scheduling.chosen:
            return (
                _("Select a loop or a block"),
                _("In the tree or in the script; with Ctrl or Shift, several."),
            )
        if moves.are_deadly:
            return (
                _("No primitives are known"),
                _("The engine crashes on this selection; select other loops."),
            )
        nothing = "" if moves.all else _("No primitive applies to the selection")
        return nothing, ""

    def _after_each(self) -> dict[str, Scheduled]:
        """Return the function after each legal primitive."""
        here = self._measurements.here
        if here is None:
            return {}
        legal = (each for each in self._scheduling.moves.all if each.legal and not each.unsafe)
        return {each.name: here.after((*here.primitives, each.primitive)) for each in legal}

    def _scaled(self, move: Move) -> Move:
        """Return a primitive with its prediction scaled to the measured time before it."""
        predicted, scale = move.predicted_ms, self._scale
        scaled = None if predicted is None or scale is None else predicted * scale
        return msgspec.structs.replace(move, predicted_ms=scaled)

    def _times(self) -> dict[str, Measured]:
        measured = self._measurements.measured
        return {
            name: found
            for name, each in self._after_each().items()
            if (found := measured(each)) is not None
        }

    def _measure(self) -> None:
        self._measurements.measure_all(
            tuple(each.primitives for each in self._after_each().values())
        )

    def _show_measured(self) -> None:
        known = self._measured, self._scale
        if self.isVisible() and known != (self._times(), self._measurements.scale):
            self._show()

    def _move(self, key: str) -> Move | None:
        return next((each for each in self._scheduling.moves.all if each.name == key), None)

    def _point(self, key: str) -> None:
        self._pointed = key
        self._try_pointed()

    def _try_pointed(self) -> None:
        move = self._move(self._pointed)
        self._scheduling.trying.show(None if move is None else move.primitive)

    def _choose(self, key: str) -> None:
        move = self._move(key)
        if move is not None:
            # Whatever replaces the row is previewed on the next mouse move.
            self._pointed = ""
            self.choices.list.setCurrentRow(-1)
            # The filter would hide the primitives of what comes next.
            self.choices.line.clear()
            self.done.emit()
            self._scheduling.trying.choose(move)

    def _escape(self) -> None:
        self._pointed = ""
        self.choices.list.setCurrentRow(-1)
        self._scheduling.trying.show(None)
        self.done.emit()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()


class ScheduleMenu(QFrame):
    """The list of primitives as a menu, over the window in which it was requested.

    It is a child of that window, so that previews stay visible beside it; it closes when it loses
    the focus.
    """

    def __init__(
        self,
        document: Document,
        scheduling: Scheduling,
        measurements: Measurements,
        pane: QWidget,
    ) -> None:
        super().__init__(pane)
        self._pane = pane
        self.setProperty("floating", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(_("Primitives"))
        self.page = ScheduleMovesPage(document, scheduling, measurements)
        column_of(self, self.page, margins=2, spacing=None)
        self.page.done.connect(self._close)
        theme.application().focusChanged.connect(self._follow_focus)
        self.hide()

    def open_at(self, place: QPoint) -> None:
        """Show the menu at a screen position, as far as the window has space."""
        window = self._pane.window()
        self.setParent(window)
        self.resize(min(380, window.width()), min(360, window.height()))
        corner = window.mapFromGlobal(place)
        self.move(
            max(0, min(corner.x(), window.width() - self.width())),
            max(0, min(corner.y(), window.height() - self.height())),
        )
        self.show()
        self.raise_()
        self.page.choices.line.setFocus()

    def _close(self) -> None:
        had_focus = self.isAncestorOf(self.window().focusWidget() or self.window())
        self.hide()
        if had_focus:
            self._pane.setFocus()

    def _follow_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        if self.isVisible() and new is not None and not self.isAncestorOf(new):
            self.hide()

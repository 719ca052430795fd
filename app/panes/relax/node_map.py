"""The node map as a table: the FX nodes, and what each added to the module."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.dialogs import filter_field
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.data_table import Cell, Column, Row
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.app.panes.common.entity_table import EntityTable, matching
from lowerscope.core.model.graph import STRATEGY_LETTERS, STRATEGY_NAMES, name_of
from lowerscope.core.model.module_steps import TranslationRecord
from lowerscope.core.model.snapshot import FxNode, Snapshot
from lowerscope.core.model.texts import _, _n

NOT_YET = _("not yet")
"""Text for a node that is not translated yet at the current step."""


class NodeMap(QWidget):
    """The page with the node map, which fills while stepping through the translation."""

    node_wanted = Signal()  # Show the translation of a node, on a double click.

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self._filled: tuple[Row, ...] = ()
        self._later: tuple[Row, ...] = ()
        self._unmade = True
        self._stale = True
        self.filter = filter_field(
            _("Filter: a node, a rule, a strategy, a value…"), _("Filter of the node map")
        )
        # The pane may be narrower than its placeholder.
        self.filter.setMinimumWidth(0)
        self.count = Label(role="quiet")
        self.table = EntityTable(
            document,
            _("Node map"),
            (
                Column(_("#"), numeric=True, width=56),
                Column(_("node"), width=108),
                Column(_("target"), width=76),
                Column(_("strategy"), width=72, tooltip=_("The strategy")),
                Column(_("rule"), width=150),
                Column(
                    _("value"),
                    width=64,
                    tooltip=_("The node's value in the module"),
                ),
                Column(_("type"), width=116),
                Column(
                    _("adds"),
                    width=110,
                    stretch=True,
                    tooltip=_("Functions that this node added to the module"),
                ),
            ),
            "fx",
        )
        self.table.set_sortable(True)
        self.table.set_empty(
            _("No node map"),
            _("It lists the translation of each FX node of a PyTorch model."),
        )
        strip = row_of(None, (self.filter, 1), self.count, margins=(10, 4, 10, 4), spacing=12)
        column_of(self, strip, (self.table, 1))
        self.filter.textChanged.connect(self._show_rows)
        # A page that has just been shown is laid out only then.
        self.table.verticalScrollBar().rangeChanged.connect(self._reveal_step)
        self.table.row_activated.connect(self._open)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("moment",), self._show_moment)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        self._unmade = True
        self._show_moment()

    def _show_moment(self) -> None:
        # Thousands of rows are not built for a hidden page.
        self._stale = not self.isVisible()
        if not self._stale:
            self._show_rows()
            self._reveal_step()

    def _make_rows(self) -> None:
        snapshot = self._document.snapshot
        if self._unmade:
            self._unmade = False
            self._filled, self._later = ((), ()) if snapshot is None else _rows_of(snapshot)

    def _reveal_step(self) -> None:
        done = self._done()
        if self._is_stepped() and done and not self._stale:
            self.table.reveal(self._filled[done - 1].key)

    def _show_rows(self) -> None:
        self._make_rows()
        done = self._done()
        rows = [*self._filled[:done], *self._later[done:]]
        if self._is_stepped() and done:
            rows[done - 1] = _marked(rows[done - 1])
        shown = matching(rows, self.filter.text())
        self.table.set_rows(shown)
        self.count.setText(self._count_text(done, len(shown)))
        self._show_selection()

    def _count_text(self, done: int, shown: int) -> str:
        count = len(self._filled)
        nodes = _n("1 node", "{count} nodes", count)
        if shown != count:
            return _("{shown} of {nodes}", shown=shown, nodes=nodes)
        if self._is_stepped():
            return _("{done} of {count} translated", done=done, count=count)
        return nodes if count else ""

    def _is_stepped(self) -> bool:
        moment = self._document.moment
        return moment is not None and moment.section == "translate"

    def _done(self) -> int:
        """Return the number of nodes translated at the current step."""
        moment = self._document.moment
        if moment is None or moment.section != "translate":
            return len(self._filled)
        return moment.index

    def _show_selection(self) -> None:
        if self._stale:
            return
        self.table.show_selection()

    def _open(self, entity: str) -> None:
        self._document.select((entity,))
        self.node_wanted.emit()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._show_moment()


def _rows_of(snapshot: Snapshot) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return each node's row once translated, and before."""
    pairs = list(zip(snapshot.translation, snapshot.fx, strict=True))
    return (
        tuple(_filled_row(record, node) for record, node in pairs),
        tuple(_later_row(record, node) for record, node in pairs),
    )


def _filled_row(record: TranslationRecord, node: FxNode) -> Row:
    value = record.value
    if record.rebound:
        value = _("{value}, also for {rebound}", value=value, rebound=names_of(record.rebound))
    bound = _(", ").join(name_of(each) for each in record.bindings)
    functions = _(", ").join(record.functions)
    return Row(
        record.node,
        (
            Cell(str(record.number), role="quiet", value=float(record.number)),
            Cell(node.name, bold=True, tooltip=node.label),
            Cell(node.target, role="quiet", tooltip=node.target),
            Cell(
                STRATEGY_LETTERS.get(node.strategy, ""),
                role=node.strategy,
                bold=True,
                tooltip=STRATEGY_NAMES.get(node.strategy, ""),
            ),
            Cell(node.rule, tooltip=node.rule),
            Cell(
                value,
                code=True,
                tooltip=_("{value}\nbound: {name}", value=value, name=bound) if bound else value,
            ),
            Cell(node.type, role="quiet", tooltip=node.type),
            Cell(functions, code=True, tooltip=functions),
        ),
    )


def _later_row(record: TranslationRecord, node: FxNode) -> Row:
    number = Cell(str(record.number), role="quiet", value=float(record.number))
    names = Cell(node.name, role="quiet"), Cell(node.target, role="quiet")
    return Row(record.node, (number, *names, *_LATER))


_LATER = tuple(Cell(text, role="quiet") for text in ("", NOT_YET, "", "", ""))
"""Cells shared by all rows of nodes that are not translated yet."""


def _marked(row: Row) -> Row:
    """Return the row of the current step."""
    number = row.cell(0)
    mark = replace(number, text=f"▸ {number.text}", role="accent", bold=True)
    return Row(row.key, (mark, *row.cells[1:]))

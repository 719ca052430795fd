"""The Details pane: facts about the last selected entity."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import (
    Facts,
    facts_of,
    find_node,
    tensor_of,
)
from lowerscope.app.panes.common.node_figures import run_facts
from lowerscope.app.panes.common.values_panel import ValuesPanel
from lowerscope.core.model.graph import name_of


class DetailsView(Pane):
    """The pane with labels and values."""

    rule_wanted = Signal()  # Show the rule of the node, on a double click.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("Inspector"), parent)
        self._document = document
        self._facts: Facts = ()
        self.table = Table(
            self.tr("Details"),
            (Column("", width=88), Column("", stretch=True, wrap=True)),
        )
        self.table.horizontalHeader().hide()
        self.table.set_empty(
            self.tr("Nothing selected"), self.tr("Click a node, a line or a function.")
        )
        self.table.row_activated.connect(self._activate)
        self.values = ValuesPanel(document, queries, self._add_facts, self.set_busy)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.table, 1)
        column.addWidget(self.values)
        self.add_page("details", self.tr("Selection"), page)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("snapshot",), self._show_selection)
        document.on(("run", "running"), self._show_selection)
        self._show_selection()

    def _activate(self, label: str) -> None:
        if label == "rule":
            self.rule_wanted.emit()

    def _show_selection(self) -> None:
        snapshot, chosen = self._document.snapshot, self._document.selection.chosen
        if snapshot is None or not chosen:
            self.values.show_nothing()
            self.table.set_rows(())
            self.set_context("")
            return
        entity = chosen[-1]
        linked = self._document.linked_to(entity)
        known = facts_of(snapshot, entity, linked, self._document.function_at_step(entity))
        self._facts = (*known, *run_facts(self._document.run_record, (entity,)))
        node = find_node(snapshot, entity)
        self.set_context(name_of(entity) if node is None else node.title)
        self._show_facts(self._facts)
        tensor = tensor_of(entity, linked)
        if tensor:
            self.values.show_tensor(tensor)
        else:
            self.values.show_nothing()

    def _add_facts(self, facts: Facts) -> None:
        # Its kind comes first, then its values, then its links.
        self._show_facts((*self._facts[:1], *facts, *self._facts[1:]))

    def _show_facts(self, facts: Facts) -> None:
        self.table.set_rows(
            [
                Row(label, (Cell(label, role="quiet"), Cell(value, tooltip=value)))
                for label, value in facts
            ]
        )

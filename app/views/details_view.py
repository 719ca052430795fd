"""The Details pane: what is known of the entity that was selected last."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from lowerscope.app.views.descriptions import facts_of, name_of
from lowerscope.app.widgets.pane import Pane
from lowerscope.app.widgets.table import Cell, Column, Row, Table
from lowerscope.app.workspace import Workspace


class DetailsView(Pane):
    """The pane with labels and values."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Details"), parent)
        self._workspace = workspace
        self.table = Table(
            self.tr("Details"),
            (Column("", width=88), Column("", stretch=True)),
        )
        self.table.horizontalHeader().hide()
        self.table.set_empty(
            self.tr("Nothing selected"), self.tr("Click a node, a line or a function.")
        )
        self.add_page("details", self.tr("Details"), self.table)
        workspace.selection_changed.connect(self._show_selection)
        workspace.snapshot_changed.connect(self._show_selection)
        self._show_selection()

    def _show_selection(self) -> None:
        snapshot, chosen = self._workspace.snapshot, self._workspace.selection.chosen
        if snapshot is None or not chosen:
            self.table.set_rows(())
            self.set_context("")
            return
        entity = chosen[-1]
        facts = facts_of(snapshot, entity, self._workspace.linked_to(entity))
        self.set_context(name_of(entity))
        self.table.set_rows(
            [
                Row(label, (Cell(label, role="quiet"), Cell(value, tooltip=value)))
                for label, value in facts
            ]
        )

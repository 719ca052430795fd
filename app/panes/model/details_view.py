"""The Details pane: facts about the last selected entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QVBoxLayout, QWidget

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.help_key import nothing_words
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.app.panes.inputs.input_panel import Facts, ValuesPanel
from lowerscope.app.panes.model.descriptions import facts_of, find_node, tensor_of
from lowerscope.app.panes.run.node_figures import run_facts
from lowerscope.app.panes.run.run_step_page import RunStepPage
from lowerscope.app.panes.run.run_steps import RunSteps
from lowerscope.core.model.entities import name_of


class DetailsView(Pane):
    """The pane with labels and values.

    Signals
    -------
    rule_wanted
        Show the rule of the node, on a double click.
    """

    rule_wanted = Signal()

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        run_steps: RunSteps,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("Details"), parent)
        self._document = document
        self._stepping = stepping
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
        self.call = RunStepPage(document, queries, run_steps, self.set_busy)
        self.add_page("call", self.tr("Call"), self.call)
        self._section = stepping.section
        stepping.list_changed.connect(self._follow_section)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("snapshot",), self._show_selection)
        document.on(("run", "running"), self._show_selection)
        self._show_selection()

    def _follow_section(self) -> None:
        """Bring the page Call to the front while the timeline Run is current."""
        section = self._stepping.section
        if section != self._section and "run" in (section, self._section):
            self.set_current("call" if section == "run" else "details")
        self._section = section

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


# --- The page with the user's file: lines are linked to the FX nodes they create ---


class SourcePage(QWidget):
    """One of the files that the nodes come from, with a choice if there are several."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        colouring: Colouring,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._files: tuple[str, ...] = ()
        self._lines: dict[str, str] = {}
        self.files = QComboBox()
        self.files.setAccessibleName(self.tr("File"))
        self.files.activated.connect(self._choose)
        self.text = FetchedPage(
            document,
            queries,
            colouring,
            "source",
            self.tr("Source of the model"),
            set_busy,
        )
        self.text.script.begins_at_spans = True
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.files)
        column.addWidget(self.text, 1)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("recipe", "pending"), self._show_wanted)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_snapshot()

    def _show_wanted(self) -> None:
        if self._document.snapshot is None:
            self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        nodes = () if snapshot is None else snapshot.fx
        lines = [node.line for node in nodes if node.line is not None]
        self._lines = {node.id: node.line.file for node in nodes if node.line is not None}
        # The model's own file first, then those that most nodes come from.
        counts = Counter(line.file for line in lines)
        own = "" if snapshot is None else snapshot.model.path
        files = tuple(sorted(counts, key=lambda file: (file != own, -counts[file])))
        before = self._current()
        self._files = files
        self.files.clear()
        for file in files:
            self.files.addItem(Path(file).name)
            self.files.setItemData(self.files.count() - 1, file, Qt.ItemDataRole.ToolTipRole)
        self.files.setVisible(len(files) > 1)
        if before in files:
            self.files.setCurrentIndex(files.index(before))
        words = (
            self.tr("No source"),
            self.tr("No line of a file is known that a node of this model comes from."),
        )
        self.text.show_nothing(*(nothing_words(self._document) if snapshot is None else words))
        if files:
            self.text.show_text_of(self._current())
            self._show_selection()

    def _show_selection(self) -> None:
        """Switch to the file of the selection, if none of it is in the one shown."""
        files = {
            self._lines[entity]
            for entity in self._document.selection.linked
            if entity in self._lines
        }
        if files and self._current() not in files:
            first = min(files, key=self._files.index)
            self.files.setCurrentIndex(self._files.index(first))
            self.text.show_text_of(first)

    def _choose(self, index: int) -> None:
        self.text.show_text_of(self._files[index])

    def _current(self) -> str:
        index = self.files.currentIndex()
        return self._files[index] if 0 <= index < len(self._files) else ""

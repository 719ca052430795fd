"""The FX pane: the graph of the traced model, its table, its code; below, the user's file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QComboBox, QWidget

from lowerscope.app.document.shared import Shared
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel, Pane
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.app.panes.common.descriptions import RANDOM, line_text, nothing_words
from lowerscope.app.panes.common.entity_table import EntityTable
from lowerscope.app.panes.common.graph_page import GraphPage
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.snapshot import FxNode, FxPart, SourceLine
from lowerscope.core.model.texts import _, _n


class FxView(Pane):
    """The pane with the FX graph."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(_("FX"))
        self._document = document = shared.document
        self._stale = False
        self.graph = GraphPage(shared, "fx", _("FX graph"), self.set_busy)
        self.table = EntityTable(
            document,
            _("FX nodes"),
            (
                Column(_("opcode")),
                Column(_("name")),
                Column(_("target"), width=180),
                Column(_("args"), width=180),
                Column(_("kwargs"), width=100),
                Column(_("shape"), numeric=True),
                Column(_("dtype")),
                Column(_("lowering"), stretch=True, width=110),
            ),
            "fx",
            "part",
        )
        self.add_page("graph", _("Graph"), self.graph)
        self.add_page("table", _("Table"), self.table)
        self.code = FetchedPage(shared, "code", _("FX code"), self.set_busy)
        self.add_page("code", _("Code"), self.code)
        self.source = SourceStrip(shared, self.set_busy)
        column = self.layout()
        assert column is not None
        column.removeWidget(self._stack)
        self._split = Split(
            Qt.Orientation.Vertical,
            self._stack,
            self.source,
            sizes=(600, LEAST + 8),
            shares=(1, 0),
        )
        self._split.setHandleWidth(1)
        column.addWidget(self._split)
        self.page_changed.connect(self._show_page)
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("moment",), self._show_context)
        self._show_snapshot()

    def _show_context(self) -> None:
        """Show the size of the graph, and that no step changes it."""
        snapshot = self._document.snapshot
        if snapshot is not None and snapshot.fx_graph is not None:
            at_step = self._document.moment is not None
            tracer = _("as traced, before all steps") if at_step else snapshot.tracer
            nodes = _n("{count:,} node", "{count:,} nodes", len(snapshot.fx))
            self.set_context(f"{nodes} · {tracer}")

    def show_source(self) -> None:
        """Show the line of the selection in the model's file."""
        self.source.set_folded(False)
        self.source.text.script.show_selection()
        self.source.text.script.code.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        self.code.show_nothing()
        if snapshot is None:
            title, hint = nothing_words(self._document)
            self.graph.canvas.set_empty(title, hint)
            self.table.set_empty(title, hint)
            self.code.show_nothing(title, hint)
            self.graph.show_nothing()
            self._stale = False
            self.table.set_rows(())
            self.set_context("")
            return
        if snapshot.fx_graph is None:
            title = _("No FX graph")
            hint = _("This source builds an IRModule: it starts in the Relax pane.")
            self.graph.canvas.set_empty(title, hint)
            self.table.set_empty(title, hint)
            self.code.show_nothing(title, hint)
            self.set_context("")
            self.graph.show_nothing()
        else:
            self.code.show_text_of("")
            self._show_context()
            self.graph.show_source(snapshot.model.title + snapshot.tracer, snapshot.fx_graph)
        self._stale = True
        self._show_selection()

    def _show_selection(self) -> None:
        if self.current() != "table":
            # The other pages update by themselves.
            return
        self._fill()
        self.table.show_selection()

    def _fill(self) -> None:
        """Build the rows of the table, of which there may be thousands, once it is visible."""
        snapshot = self._document.snapshot
        if self._stale and snapshot is not None:
            self._stale = False
            self.table.set_rows([row for node in snapshot.fx for row in _rows(node)])

    def _show_page(self) -> None:
        if self.current() == "graph":
            self.graph.show_selection()
        elif self.current() == "code":
            self.code.script.show_selection()
        else:
            self._show_selection()


def _rows(node: FxNode) -> list[Row]:
    """Return the row of a node, with the operators that it was decomposed into as child rows."""
    return [_row(node), *(_part_row(part) for part in node.parts)]


def _part_row(part: FxPart) -> Row:
    return Row(
        part.id,
        (
            Cell(_("part"), role="quiet"),
            Cell(f"    ↳ {part.name}"),
            Cell(part.target, code=True, tooltip=part.target),
            Cell(part.args, code=True, tooltip=part.args),
            "",
            shape_text(part.shape),
            Cell(part.dtype, role="quiet"),
            Cell(part.rule, role="quiet", tooltip=part.rule),
        ),
    )


def _row(node: FxNode) -> Row:
    how = (f"{STRATEGY_NAMES[node.strategy]} · {node.rule}" if node.strategy else "", node.reason)
    lowered = " · ".join(part for part in (*how, RANDOM if node.random else "") if part)
    return Row(
        node.id,
        (
            Cell(node.opcode, role="quiet"),
            Cell(node.name, bold=True),
            Cell(node.target, code=True, tooltip=node.target),
            Cell(node.args, code=True, tooltip=node.args),
            Cell(node.kwargs, code=True, tooltip=node.kwargs),
            shape_text(node.shape),
            Cell(node.dtype, role="quiet"),
            Cell(lowered, role=node.strategy, tooltip=lowered),
        ),
    )


# --- The user's file below the graph: lines are linked to the FX nodes they create ---

LEAST = 28 + 4 * 18
"""Minimum height of the strip: its title, and four lines."""


class SourceStrip(QWidget):
    """One of the files that the nodes come from, with a choice if there are several."""

    def __init__(self, shared: Shared, set_busy: Callable[[bool], None]) -> None:
        super().__init__()
        self._document = document = shared.document
        self._files: tuple[str, ...] = ()
        self._lines: dict[str, SourceLine] = {}
        self.fold = IconButton(
            "down", _("Fold or unfold the source (F2 goes there)"), size=(20, 20)
        )
        self.fold.clicked.connect(self._toggle)
        self.place = ElidedLabel(role="quiet")
        self.place.setFont(ui_font(12))
        self.place.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.files = QComboBox()
        self.files.setAccessibleName(_("File"))
        self.files.activated.connect(self._choose)
        self.text = FetchedPage(shared, "source", _("Source of the model"), set_busy)
        self.text.script.begins_at_spans = True
        self.text.script.as_printed = True
        title = Label(_("Source"))
        title.setFont(ui_font(12, QFont.Weight.Medium))
        head = QWidget()
        head.setFixedHeight(28)
        head.setProperty("ground", "panel")
        head.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row_of(
            head, self.fold, title, (self.place, 1), self.files, margins=(6, 0, 10, 0), spacing=4
        )
        column_of(self, head, (self.text, 1))
        self.set_folded(False)
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_snapshot()

    def set_folded(self, folded: bool) -> None:
        """Fold the strip to its title, or unfold it."""
        self.text.setVisible(not folded)
        self.fold.set_icon("right" if folded else "down")
        self.setMinimumHeight(28 if folded else LEAST)
        self.setMaximumHeight(28 if folded else 16_777_215)

    def _toggle(self) -> None:
        self.set_folded(self.text.isVisibleTo(self))

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        nodes = () if snapshot is None else snapshot.fx
        lines = [node.line for node in nodes if node.line is not None]
        self._lines = {node.id: node.line for node in nodes if node.line is not None}
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
        words = nothing_words(self._document)
        if snapshot is not None and not files:
            words = _("No source"), _("No source line is known for the nodes of this model.")
        self.text.show_nothing(*words)
        if files:
            self.text.show_text_of(self._current())
        self._show_selection()

    def _show_selection(self) -> None:
        """Switch to the file of the selection, if none of it is in the one shown."""
        chosen = self._document.selection.chosen
        here = next((self._lines[each] for each in chosen if each in self._lines), None)
        several = len(self._files) > 1
        name = "" if several or not self._files else Path(self._files[0]).name
        self.place.set_whole(name if here is None else line_text(here))
        files = {
            self._lines[entity].file
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

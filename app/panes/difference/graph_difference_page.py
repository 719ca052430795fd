"""The difference of two graphs as one drawing, with a list of the nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.hover_card import CardText
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import names_of
from lowerscope.app.panes.difference.difference_page import SidesPage, status_cell
from lowerscope.core.model.graph import STATUS_MARKS, Box, GraphRecord
from lowerscope.core.model.module_steps import GraphDifference, NodeDifference
from lowerscope.core.model.queries import GraphDifferenceQuery
from lowerscope.core.model.texts import _

LIST_WIDTH = 330


class GraphDifferencePage(SidesPage):
    """The added, removed or changed nodes on the left; the drawing on the right."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        pins: Pins,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        self._document = document
        self._pins = pins
        self._record: GraphDifference | None = None
        self._boxes: dict[str, Box] = {}
        self._here = ""
        self._function = "main"
        self.canvas = GraphCanvas(_("Difference of the graphs"))
        self.nodes = Table(
            _("Nodes of the difference"),
            (
                Column("", width=28, tooltip=_("Status")),
                Column(_("binding"), width=84),
                Column(_("value, and the old one"), stretch=True, wrap=True),
            ),
        )
        super().__init__(queries, set_busy, self.nodes, self.canvas, LIST_WIDTH, parent)
        self.canvas.set_legend(
            {
                "added": _("+ added"),
                "removed": _("− removed"),
                "changed": _("~ changed"),
            }
        )
        self.canvas.card_text = self._card
        self.nodes.row_clicked.connect(self._choose)
        self.canvas.node_clicked.connect(self._choose)
        document.on(("selection", "snapshot"), self._show_selection)

    @property
    def record(self) -> GraphDifference | None:
        """The difference shown; ``None`` before it arrives, and after a problem."""
        return self._record

    def show_sides(self, function: str) -> None:
        """Show the difference of a function in the comparison's two sides, once it arrives."""
        self._function = function
        sides = self._pins.sides
        if sides is None:
            self._show(None)
        self._watch.update()

    def changes(self) -> int:
        """Return the number of nodes that were added, removed or changed."""
        nodes = () if self._record is None else self._record.nodes
        return sum(node.status != "same" for node in nodes)

    def step(self, by: int) -> None:
        """Go to the next or the previous node of the list."""
        keys = [row.key for row in self.nodes.rows()]
        chosen = [each for each in self.nodes.selected_keys() if each in keys]
        if keys:
            # Of the boxes of the selection, the one visited last.
            here = self._here if self._here in chosen else chosen[0] if chosen else ""
            place = keys.index(here) + by if here else 0
            self._mark(keys[max(0, min(place, len(keys) - 1))])

    def _query(self) -> GraphDifferenceQuery | None:
        document = self._document
        sides = self._pins.sides
        if sides is None:
            return None
        return GraphDifferenceQuery(*sides, document.metrics, self._function, self._all)

    def _take(self, record: GraphDifference) -> None:
        title = _("No graph")
        hint = _("Neither side has a Relax function {function}.", function=record.function)
        if not self._all:
            title, hint = _("Nothing differs"), _("The data flow is the same. All shows it.")
        self.canvas.set_empty(title, hint)
        self._show(record)

    def _show_problem(self, title: str, hint: str) -> None:
        self.canvas.set_empty(title, hint)
        self._show(None)

    def _show(self, record: GraphDifference | None) -> None:
        self._record = record
        self._boxes = {} if record is None else {box.id: box for box in record.graph.boxes}
        if record is None:
            self.canvas.set_graph(GraphRecord())
        else:
            self.canvas.set_graph(record.graph)
        self._show_list()
        self._show_selection()
        self.shown.emit()

    def set_all(self, everything: bool) -> None:
        """Show unchanged nodes as well; otherwise those that changed, and their neighbours."""
        self._all = everything
        self._watch.update()

    def _show_list(self) -> None:
        nodes = () if self._record is None else self._record.nodes
        self.nodes.set_rows([_row(each) for each in nodes if self._all or each.status != "same"])

    def _choose(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        entities = self._boxes[key].entities if self._is_of_shown() else ()
        self._mark(key)
        if entities:
            self._document.select(entities)
            self._show_selection()

    def _show_selection(self) -> None:
        """Mark the selection, as far as it belongs to the module shown."""
        linked = self._document.selection.linked
        if self._is_of_shown():
            marked = [
                box.id
                for box in self._boxes.values()
                if not linked.isdisjoint((*box.entities, *box.members))
            ]
            self.canvas.set_selection(marked)
            self.nodes.set_selection(marked)

    def _is_of_shown(self) -> bool:
        """Return whether the boxes stand for bindings of the window's recipe."""
        sides, recipe = self._pins.sides, self._document.recipe
        if sides is None or recipe is None:
            return False
        replace = msgspec.structs.replace
        return replace(sides[1].recipe, steps=()) == replace(recipe, steps=())

    def _card(self, entity: str) -> CardText | None:
        nodes = () if self._record is None else self._record.nodes
        node = next((each for each in nodes if each.id == entity), None)
        if node is None:
            return None
        linked = self._document.linked_to(*self._boxes[entity].entities)
        nodes_of = tuple(sorted(each for each in linked if each.startswith("fx:")))
        rows = (
            (_("status"), f"{STATUS_MARKS[node.status]} {node.status}"),
            (_("before"), node.before),
            (_("after"), node.after),
            (_("FX nodes"), names_of(nodes_of) if self._is_of_shown() else ""),
        )
        return CardText(node.name, tuple(row for row in rows if row[1]))

    def _mark(self, entity: str) -> None:
        self._here = entity
        self.canvas.set_selection([entity])
        self.canvas.reveal(entity)
        self.nodes.set_selection([entity])
        self.nodes.reveal(entity)


def _row(node: NodeDifference) -> Row:
    quiet = "quiet" if node.status == "same" else ""
    values = dict.fromkeys(each for each in (node.before, node.after) if each)
    value = " → ".join(values)
    return Row(
        node.id,
        (
            status_cell(node.status),
            Cell(node.name, quiet, tooltip=node.name),
            Cell(value, quiet, tooltip=value),
        ),
    )

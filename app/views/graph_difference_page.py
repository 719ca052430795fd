"""The difference of two graphs as one drawing, with a list of the nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from lowerscope.app.views.canvas_records import canvas_graph
from lowerscope.app.views.descriptions import names_of
from lowerscope.app.views.difference_page import ROLES
from lowerscope.app.views.formats import STATUS_MARKS
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.graph_canvas import CanvasGraph, GraphCanvas
from lowerscope.app.widgets.hover_card import CardText
from lowerscope.app.widgets.table import Cell, Column, Row, Table
from lowerscope.app.workspace import Workspace
from lowerscope.core.difference_records import GraphDifference, NodeDifference
from lowerscope.core.errors import Problem
from lowerscope.core.graph_records import Box
from lowerscope.core.step_records import Moment

LIST_WIDTH = 460


class GraphDifferencePage(QWidget):
    """Nodes that were added, removed or changed, at the left; the drawing at the right.

    Parameters
    ----------
    set_busy
        Called with whether a difference is on its way.

    Signals
    -------
    shown
        Another difference has come, or a problem.
    """

    shown = Signal()

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self._record: GraphDifference | None = None
        self._boxes: dict[str, Box] = {}
        self._here = ""
        self._function = "main"
        self._filter = ""
        self._all = False
        self.canvas = GraphCanvas(self.tr("Difference of the graphs"))
        self.nodes = Table(
            self.tr("Nodes of the difference"),
            (
                Column("", width=28, tooltip=self.tr("Status")),
                Column(self.tr("binding"), width=110),
                Column(self.tr("before"), stretch=True),
                Column(self.tr("after"), stretch=True),
            ),
        )
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self.split.addWidget(self.nodes)
        right = QWidget()
        self.column = QVBoxLayout(right)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(self.canvas, 1)
        self.split.addWidget(right)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([LIST_WIDTH, 700])
        self.split.setCollapsible(1, False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.split)
        self.canvas.set_legend(
            {
                "added": self.tr("+ added"),
                "removed": self.tr("− removed"),
                "changed": self.tr("~ changed"),
            }
        )
        self.canvas.card_text = self._card
        self.nodes.row_clicked.connect(self._choose)
        self.canvas.node_clicked.connect(self._choose)
        workspace.selection_changed.connect(self._show_selection)

    @property
    def record(self) -> GraphDifference | None:
        """What is shown; ``None`` before it has come, and where there was a problem."""
        return self._record

    def show_sides(self, function: str) -> None:
        """Show the difference of a function in the workspace's two sides, once it is there."""
        self._function = function
        sides = self._workspace.pins.sides
        if sides is None:
            self._fetching.forget()
            self._show(None)
        else:
            self._fetching.want(msgspec.json.encode((function, sides)).decode())

    def forget(self) -> None:
        """Count what is shown as out of date."""
        self._fetching.forget()

    def set_filter(self, text: str, everything: bool) -> None:
        """List the nodes with this in their names or values; those that are the same, or not."""
        if (text, everything) != (self._filter, self._all):
            self._filter, self._all = text, everything
            self._show_nodes()

    def changes(self) -> int:
        """Return how many nodes were added, removed or changed."""
        nodes = () if self._record is None else self._record.nodes
        return sum(node.status != "same" for node in nodes)

    def step(self, by: int) -> None:
        """Go to the next node of the list, or to the one before."""
        keys = [row.key for row in self.nodes.rows()]
        chosen = [each for each in self.nodes.selected_keys() if each in keys]
        if keys:
            # Of those that what is selected came to, the one that was gone to last.
            here = self._here if self._here in chosen else chosen[0] if chosen else ""
            place = keys.index(here) + by if here else 0
            self._mark(keys[max(0, min(place, len(keys) - 1))])

    def _ask(self, _sides: str, _moment: Moment | None = None) -> int:
        sides = self._workspace.pins.sides
        assert sides is not None
        return self._workspace.fetches.graph_difference(
            sides, self._function, self._take, self._take_problem
        )

    def _take(self, record: GraphDifference) -> None:
        self._fetching.settle(came=True)
        title = self.tr("No graph")
        hint = self.tr("Neither side has a Relax function {0}.").format(record.function)
        self.canvas.set_empty(title, hint)
        self._show(record)

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self.canvas.set_empty(problem.what[:1].upper() + problem.what[1:], problem.todo)
        self._show(None)

    def _show(self, record: GraphDifference | None) -> None:
        self._record = record
        self._boxes = {} if record is None else {box.id: box for box in record.graph.boxes}
        if record is None:
            self.canvas.set_graph(CanvasGraph())
        else:
            self.canvas.set_graph(canvas_graph(record.graph))
        self._show_nodes()
        self._show_selection()
        self.shown.emit()

    def _show_nodes(self) -> None:
        nodes = () if self._record is None else self._record.nodes
        wanted = self._filter.lower()
        self.nodes.set_rows(
            [
                _row(node)
                for node in nodes
                if (self._all or node.status != "same") and wanted in _words(node).lower()
            ]
        )

    def _choose(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        entities = self._boxes[key].entities if self._is_of_shown() else ()
        self._mark(key)
        if entities:
            self._workspace.select(entities)
            self._show_selection()

    def _show_selection(self) -> None:
        """Mark what is selected, where it is of the module that is shown."""
        linked = self._workspace.selection.linked
        if self._is_of_shown():
            marked = [
                box.id
                for box in self._boxes.values()
                if not linked.isdisjoint((*box.entities, *box.members))
            ]
            self.canvas.set_selection(marked)
            self.nodes.set_selection(marked)

    def _is_of_shown(self) -> bool:
        """Return whether the boxes stand for bindings that the window's recipe is lowered to."""
        sides, recipe = self._workspace.pins.sides, self._workspace.recipe
        if sides is None or recipe is None:
            return False
        replace = msgspec.structs.replace
        return replace(sides[1].recipe, steps=()) == replace(recipe, steps=())

    def _card(self, entity: str) -> CardText | None:
        nodes = () if self._record is None else self._record.nodes
        node = next((each for each in nodes if each.id == entity), None)
        if node is None:
            return None
        linked = self._workspace.linked_to(*self._boxes[entity].entities)
        nodes_of = tuple(sorted(each for each in linked if each.startswith("fx:")))
        rows = (
            (self.tr("status"), f"{STATUS_MARKS[node.status]} {node.status}"),
            (self.tr("before"), node.before),
            (self.tr("after"), node.after),
            (self.tr("FX nodes"), names_of(nodes_of) if self._is_of_shown() else ""),
        )
        return CardText(node.name, tuple(row for row in rows if row[1]))

    def _mark(self, entity: str) -> None:
        self._here = entity
        self.canvas.set_selection([entity])
        self.canvas.reveal(entity)
        self.nodes.set_selection([entity])
        self.nodes.reveal(entity)


def _words(node: NodeDifference) -> str:
    return f"{node.name} {node.before} {node.after}"


def _row(node: NodeDifference) -> Row:
    role = ROLES[node.status]
    return Row(
        node.id,
        (
            Cell(
                STATUS_MARKS[node.status],
                role,
                bold=True,
                tooltip=node.status,
                spoken=node.status,
            ),
            Cell(node.name, "quiet" if node.status == "same" else ""),
            Cell(node.before, "quiet" if node.status == "same" else "", tooltip=node.before),
            Cell(node.after, "quiet" if node.status == "same" else "", tooltip=node.after),
        ),
    )

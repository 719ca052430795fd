"""A graph of the document on a canvas, tied to the selection. The FX and Relax panes have one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.runs.steps import can_break
from lowerscope.app.views.canvas_records import canvas_graph
from lowerscope.app.views.descriptions import name_of
from lowerscope.app.views.graph_cards import card_text, frame_text
from lowerscope.app.views.graph_menu import open_menu
from lowerscope.app.views.node_figures import figures_of, why_no_figures
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.canvas.colours import Colouring
from lowerscope.app.widgets.canvas.graph_canvas import GraphCanvas
from lowerscope.app.widgets.hover_card import CardText
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.graph import WHOLE, Box, GraphName, GraphRecord, Region
from lowerscope.core.records.steps import Moment

EXTENDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
NOTHING = GraphRecord(boxes=(), edges=(), width=0, height=0)


class GraphPage(QWidget):
    """A canvas that shows one graph of the snapshot, with some of its groups expanded.

    These are modules and fused functions. Which ones is kept while the same source is shown,
    whatever is changed of its recipe.

    Parameters
    ----------
    graph
        Which graph it is.
    name
        Accessible name of the canvas.
    set_busy
        Called with whether the graph is on its way.

    Signals
    -------
    rule_wanted
        The user wants to write a rule for a node: its id.
    picture_wanted
        The page is to be saved as a picture, or the part of it that is seen.
    """

    rule_wanted = Signal(str)
    picture_wanted = Signal(object, bool)

    def __init__(
        self,
        workspace: Workspace,
        graph: GraphName,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.graph: GraphName = graph
        self.workspace = workspace
        self._record: GraphRecord | None = None
        self._boxes: dict[str, Box] = {}
        self._frames: dict[str, Region] = {}
        self._box_of: dict[str, list[str]] = {}
        self._title = ""
        # What is expanded, or None for the level that fits this size.
        self._expanded: tuple[str, ...] | None = None
        self._fits: tuple[float, float] | None = None
        self._moment: Moment | None = None
        # What was expanded or collapsed, and whether another level as a whole is asked for.
        self._anchor = ""
        self._is_other_level = False
        # Whether something else is selected than what is marked: nobody looked at it since.
        self._is_stale = False
        self.canvas = GraphCanvas(name)
        self.canvas.card_text = self._card_text
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self.canvas.node_clicked.connect(self._select)
        self.canvas.ends_wanted.connect(self._select_ends)
        self.canvas.background_clicked.connect(self._clear)
        self.canvas.expand_wanted.connect(self.expand)
        self.canvas.collapse_wanted.connect(self.collapse)
        self.canvas.menu_requested.connect(self._open_menu)
        self.canvas.flag_wanted.connect(self.toggle_break)
        workspace.run_steps.breaks_changed.connect(self._show_breaks)
        workspace.selection_changed.connect(self.show_selection)
        workspace.run_changed.connect(self._show_figures)

    # What is shown

    def show_source(
        self, title: str, record: GraphRecord | None = None, moment: Moment | None = None
    ) -> None:
        """Show the graph of the workspace's snapshot; until it is there, the one of before.

        Parameters
        ----------
        title
            What the view, and what is expanded, are kept for.
        record
            The graph at the level that fits, where it is there already.
        moment
            The moment at which it is shown; ``None`` for the graph as a whole.
        """
        self._fetching.forget()
        self._moment = moment
        if title != self._title:
            self._expanded = self._fits = None
        if record is not None and self._expanded is None and self._fits is None:
            self._show(record, title)
        else:
            self._fetching.want(title, moment)

    def show_nothing(self) -> None:
        """Show that there is no graph."""
        self._fetching.forget()
        self._show(None, "")

    def show_selection(self) -> None:
        """Mark what is selected, and bring the first of it into view."""
        self._mark(reveal=True)

    # What is expanded

    @property
    def record(self) -> GraphRecord | None:
        """The graph that is shown."""
        return self._record

    @property
    def is_collapsible(self) -> bool:
        """Whether the graph has modules or fused functions that can be collapsed or expanded."""
        return self._record is not None and self._record.collapsible

    def expand(self, entity: str) -> None:
        """Look into a module or a fused function; what was expanded in it before is again."""
        self._show_level((*self._now_expanded(), entity), anchor=entity)

    def collapse(self, entity: str) -> None:
        """Show a module or a fused function as one box."""
        rest = tuple(each for each in self._now_expanded() if each != entity)
        self._show_level(rest, anchor=entity)

    def collapse_all(self) -> None:
        """Show every module and every fused function as one box."""
        self._show_level(())

    def expand_all(self) -> None:
        """Look into every module and every fused function."""
        self._show_level(None, WHOLE)

    def show_fitting_level(self) -> None:
        """Expand as many modules as can be read in this size."""
        size = self.canvas.viewport().size()
        self._show_level(None, (float(size.width()), float(size.height())))

    def _now_expanded(self) -> tuple[str, ...]:
        if self._expanded is not None:
            return self._expanded
        return () if self._record is None else self._record.expanded

    def _show_level(
        self,
        expanded: tuple[str, ...] | None,
        fits: tuple[float, float] | None = None,
        anchor: str = "",
    ) -> None:
        self._expanded, self._fits = expanded, fits
        self._anchor, self._is_other_level = anchor, not anchor
        self._fetching.forget()
        self._fetching.want(self._title, self._moment)

    # How it comes

    def _ask(self, _title: str, moment: Moment | None) -> int:
        return self.workspace.fetches.graph(
            self._take_graph,
            self._take_problem,
            graph=self.graph,
            moment=moment,
            expanded=self._expanded,
            fits=self._fits,
        )

    def _take_graph(self, record: GraphRecord) -> None:
        self._fetching.settle(came=True)
        self._show(record, self._fetching.shown or "")

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self.canvas.set_empty(problem.headline, problem.todo)
        self._show(None, "")

    def _show(self, record: GraphRecord | None, title: str) -> None:
        anchor, self._anchor = self._anchor, ""
        # Another level as a whole is looked at from its top.
        keep_view = title == self._title and not self._is_other_level
        is_other = record != self._record or not keep_view
        self._is_other_level = False
        self._record, self._title = record, title
        self._boxes = {box.id: box for box in (record or NOTHING).boxes}
        self._frames = {region.id: region for region in (record or NOTHING).regions if region.id}
        self._box_of = {}
        for box in self._boxes.values():
            for entity in (*box.entities, *box.members):
                self._box_of.setdefault(entity, []).append(box.id)
        self._show_figures()
        if is_other:
            graph = canvas_graph(record or NOTHING)
            self.canvas.set_graph(graph, keep_view=keep_view, anchor=anchor)
        self._show_breaks()
        # What was expanded or collapsed stays where it is, whatever is selected.
        self._mark(reveal=not anchor)

    def _show_figures(self) -> None:
        record = self.workspace.run_record
        self.canvas.set_figures(figures_of(record, self._boxes.values()))

    def _show_breaks(self) -> None:
        self.canvas.set_flags(self._boxes_of(self.workspace.run_steps.marked()))

    def why_not(self, colouring: Colouring) -> str:
        """Return why nodes cannot have colours by time or by error; empty where they can."""
        if self.canvas.has_figures(colouring):
            return ""
        why = why_no_figures(self.workspace.run_record, colouring)
        return why or self.tr("Nothing that is shown here is a call of the run")

    def _mark(self, reveal: bool) -> None:
        self._is_stale = not self.isVisible()
        if self._is_stale:
            return
        selection = self.workspace.selection
        marked = self._boxes_of(selection.linked)
        self.canvas.set_selection(marked)
        first = self._boxes_of(selection.chosen) or marked
        if first and reveal:
            self.canvas.reveal(first[0])

    def _boxes_of(self, entities: tuple[str, ...] | frozenset[str]) -> list[str]:
        """Return the boxes that are, or hold, one of some entities: from the top."""
        found = {name for entity in entities for name in self._box_of.get(entity, ())}
        boxes = self._boxes
        return sorted(found, key=lambda name: (boxes[name].y, boxes[name].x, name))

    # What the user does

    def entities_of(self, name: str) -> tuple[str, ...]:
        """Return the entities that a box or a frame stands for, for the selection."""
        if name.startswith("module:"):
            # The second group of a module is the same module.
            return (name.partition("#")[0],)
        if name in self._boxes:
            return self._boxes[name].entities
        frame = self._frames.get(name)
        return (name,) if frame is None else frame.origins

    def name_of(self, name: str) -> str:
        """Return what a box or a frame is called."""
        return name_of(name.partition("#")[0] if name.startswith("module:") else name)

    def meant(self, name: str) -> tuple[str, ...]:
        """Return the FX nodes that a menu on a box or frame is about.

        These are all that is selected, if the box is among it.
        """
        selection, entities = self.workspace.selection, self.entities_of(name)
        if not set(entities).isdisjoint(selection.chosen):
            return selection.of_kind("fx")
        if name in self._boxes and self._boxes[name].kind == "group":
            return self._boxes[name].members
        linked = self.workspace.linked_to(*entities).union(entities)
        return tuple(sorted(each for each in linked if each.startswith("fx:")))

    def breaks_of(self, name: str) -> tuple[str, ...]:
        """Return the nodes or bindings of a box, or those that are selected without one."""
        entities = self.entities_of(name) if name else self.workspace.selection.chosen
        return tuple(each for each in entities if can_break(each)) or self.meant(name)

    def toggle_break(self, name: str) -> None:
        """Let playing stop at the calls of a box, or of what is selected; or no more."""
        self.workspace.run_steps.toggle(self.breaks_of(name))

    def _card_text(self, name: str) -> CardText | None:
        box = self._boxes.get(name)
        if box is not None:
            return card_text(self.workspace, box)
        return frame_text(self._frames[name]) if name in self._frames else None

    def _select(self, name: str, modifiers: Qt.KeyboardModifier) -> None:
        entities, extend = self.entities_of(name), bool(modifiers & EXTENDING)
        others = [each for each in entities if each not in self.workspace.selection.chosen]
        # A box that was selected in part is selected as a whole.
        self.workspace.select(others if extend and others else entities, extend=extend)

    def _select_ends(self, names: tuple[str, ...]) -> None:
        ends = [entity for name in names for entity in self.entities_of(name)]
        self.workspace.select(dict.fromkeys(ends))

    def _open_menu(self, name: str, position: QPoint) -> None:
        open_menu(self, name, position)

    def _clear(self) -> None:
        self.workspace.select(())

    # Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self.show_selection()

"""A graph of the document on a canvas, linked to the selection; used by the FX and Relax panes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.runs.steps import RunSteps, can_break
from lowerscope.app.views.graph_cards import card_text, frame_text
from lowerscope.app.views.graph_menu import open_menu
from lowerscope.app.views.node_figures import figures_of, why_no_figures
from lowerscope.app.widgets.canvas.colours import Colouring
from lowerscope.app.widgets.canvas.graph_canvas import GraphCanvas
from lowerscope.app.widgets.hover_card import CardText
from lowerscope.core.errors import Problem
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.graph import FITS, WHOLE, Box, GraphName, GraphRecord, Region
from lowerscope.core.model.queries import GraphQuery
from lowerscope.core.records.steps import Moment

EXTENDING = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
NOTHING = GraphRecord()


class GraphPage(QWidget):
    """A canvas that shows a graph of the snapshot, with some of its groups expanded.

    Groups are modules and fused functions. The set of expanded ones is kept for the same source,
    whatever is changed in its recipe.

    Parameters
    ----------
    graph
        Kind of graph.
    name
        Accessible name of the canvas.
    set_busy
        Called with whether the graph is being fetched.

    Signals
    -------
    rule_wanted
        Write a rule for a node: its id.
    picture_wanted
        Save the page as a picture, or its visible part.
    """

    rule_wanted = Signal(str)
    picture_wanted = Signal(object, bool)

    def __init__(
        self,
        document: Document,
        queries: Queries,
        run_steps: RunSteps,
        graph: GraphName,
        name: str,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.graph: GraphName = graph
        self.document = document
        self.run_steps = run_steps
        self._record: GraphRecord | None = None
        self._boxes: dict[str, Box] = {}
        self._frames: dict[str, Region] = {}
        self._box_of: dict[str, list[str]] = {}
        self._title = ""
        # The expanded groups, or None for the level that fits this size.
        self._expanded: tuple[str, ...] | None = None
        self._fits: tuple[float, float] | None = None
        self._moment: Moment | None = None
        # The group just expanded or collapsed, and whether another level as a whole is requested.
        self._anchor = ""
        self._is_other_level = False
        # Whether the marks are outdated: the selection changed while the page was hidden.
        self._is_stale = False
        self.canvas = GraphCanvas(name)
        self.canvas.card_text = self._card_text
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.canvas)
        self._wanted_title: str | None = None
        self._watch = queries.watch(
            self, self._query, self._take_graph, self._take_problem, set_busy
        )
        self.canvas.node_clicked.connect(self._select)
        self.canvas.ends_wanted.connect(self._select_ends)
        self.canvas.background_clicked.connect(self._clear)
        self.canvas.expand_wanted.connect(self.expand)
        self.canvas.collapse_wanted.connect(self.collapse)
        self.canvas.menu_requested.connect(self._open_menu)
        self.canvas.flag_wanted.connect(self.toggle_break)
        run_steps.breaks_changed.connect(self._show_breaks)
        document.on(("selection", "snapshot"), self.show_selection)
        document.on(("run", "running"), self._show_figures)

    # Content

    def show_source(
        self, title: str, record: GraphRecord | None = None, moment: Moment | None = None
    ) -> None:
        """Show the graph of the document's snapshot; until it arrives, the previous one stays.

        Parameters
        ----------
        title
            Key of the stored view and expanded groups.
        record
            The graph at the fitting level, if already available.
        moment
            The step at which it is shown; ``None`` for the final graph.
        """
        self._moment = moment
        if title != self._title:
            self._expanded = self._fits = None
        if record is not None and self._expanded is None and self._fits is None:
            self._wanted_title = None
            self._watch.update()
            self._show(record, title)
        else:
            self._wanted_title = title
            self._watch.update()

    def show_nothing(self) -> None:
        """Show that there is no graph."""
        self._wanted_title = None
        self._watch.update()
        self._show(None, "")

    def show_selection(self) -> None:
        """Mark the selection, and scroll to the first of it."""
        self._mark(reveal=True)

    # Groups

    @property
    def record(self) -> GraphRecord | None:
        """The graph shown."""
        return self._record

    @property
    def is_collapsible(self) -> bool:
        """Return whether the graph has modules or fused functions to collapse or expand."""
        return self._record is not None and self._record.collapsible

    def expand(self, entity: str) -> None:
        """Expand a module or a fused function, with the groups in it that were expanded before."""
        self._show_level((*self._now_expanded(), entity), anchor=entity)

    def collapse(self, entity: str) -> None:
        """Collapse a module or a fused function to one box."""
        rest = tuple(each for each in self._now_expanded() if each != entity)
        self._show_level(rest, anchor=entity)

    def collapse_all(self) -> None:
        """Collapse all modules and fused functions."""
        self._show_level(())

    def expand_all(self) -> None:
        """Expand all modules and fused functions."""
        self._show_level(None, WHOLE)

    def show_fitting_level(self) -> None:
        """Expand as many modules as are readable in this size."""
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
        self._wanted_title = self._title
        self._watch.refresh()

    # Fetching

    def _query(self) -> GraphQuery | None:
        recipe, metrics = self.document.recipe, self.document.metrics
        if recipe is None or self._wanted_title is None:
            return None
        fits = self._fits or FITS
        return GraphQuery(recipe, metrics, self.graph, self._moment, self._expanded, fits)

    def _take_graph(self, record: GraphRecord) -> None:
        self._show(record, self._wanted_title or "")

    def _take_problem(self, problem: Problem) -> None:
        self.canvas.set_empty(problem.headline, problem.todo)
        self._show(None, "")

    def _show(self, record: GraphRecord | None, title: str) -> None:
        anchor, self._anchor = self._anchor, ""
        # Another level as a whole is shown from its top.
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
            self.canvas.set_graph(record or NOTHING, keep_view=keep_view, anchor=anchor)
        self._show_breaks()
        # The group just expanded or collapsed stays in place, whatever is selected.
        self._mark(reveal=not anchor)

    def _show_figures(self) -> None:
        record = self.document.run_record
        self.canvas.set_figures(figures_of(record, self._boxes.values()))

    def _show_breaks(self) -> None:
        self.canvas.set_flags(self._boxes_of(self.run_steps.marked()))

    def why_not(self, colouring: Colouring) -> str:
        """Return why nodes cannot be coloured by time or by error; empty if they can."""
        if self.canvas.has_figures(colouring):
            return ""
        why = why_no_figures(self.document.run_record, colouring)
        return why or self.tr("Nothing that is shown here is a call of the run")

    def _mark(self, reveal: bool) -> None:
        self._is_stale = not self.isVisible()
        if self._is_stale:
            return
        selection = self.document.selection
        marked = self._boxes_of(selection.linked)
        self.canvas.set_selection(marked)
        first = self._boxes_of(selection.chosen) or marked
        if first and reveal:
            self.canvas.reveal(first[0])

    def _boxes_of(self, entities: tuple[str, ...] | frozenset[str]) -> list[str]:
        """Return the boxes that are, or contain, any of some entities, from the top."""
        found = {name for entity in entities for name in self._box_of.get(entity, ())}
        boxes = self._boxes
        return sorted(found, key=lambda name: (boxes[name].y, boxes[name].x, name))

    # User actions

    def entities_of(self, name: str) -> tuple[str, ...]:
        """Return the entities that a box or a frame stands for, for the selection."""
        if name.startswith("module:"):
            # The second group of a module is of the same module.
            return (name.partition("#")[0],)
        if name in self._boxes:
            return self._boxes[name].entities
        frame = self._frames.get(name)
        return (name,) if frame is None else frame.origins

    def name_of(self, name: str) -> str:
        """Return the displayed name of a box or a frame."""
        return name_of(name.partition("#")[0] if name.startswith("module:") else name)

    def meant(self, name: str) -> tuple[str, ...]:
        """Return the FX nodes that a menu on a box or frame applies to.

        These are all selected ones, if the box is among them.
        """
        selection, entities = self.document.selection, self.entities_of(name)
        if not set(entities).isdisjoint(selection.chosen):
            return selection.of_kind("fx")
        if name in self._boxes and self._boxes[name].kind == "group":
            return self._boxes[name].members
        linked = self.document.linked_to(*entities).union(entities)
        return tuple(sorted(each for each in linked if each.startswith("fx:")))

    def breaks_of(self, name: str) -> tuple[str, ...]:
        """Return the nodes or bindings of a box, or the selected ones if there is none."""
        entities = self.entities_of(name) if name else self.document.selection.chosen
        return tuple(each for each in entities if can_break(each)) or self.meant(name)

    def toggle_break(self, name: str) -> None:
        """Toggle breakpoints on the calls of a box, or of the selection."""
        self.run_steps.toggle(self.breaks_of(name))

    def _card_text(self, name: str) -> CardText | None:
        box = self._boxes.get(name)
        if box is not None:
            return card_text(self.document, box)
        return frame_text(self._frames[name]) if name in self._frames else None

    def _select(self, name: str, modifiers: Qt.KeyboardModifier) -> None:
        entities, extend = self.entities_of(name), bool(modifiers & EXTENDING)
        others = [each for each in entities if each not in self.document.selection.chosen]
        # A partly selected box is selected as a whole.
        self.document.select(others if extend and others else entities, extend=extend)

    def _select_ends(self, names: tuple[str, ...]) -> None:
        ends = [entity for name in names for entity in self.entities_of(name)]
        self.document.select(dict.fromkeys(ends))

    def _open_menu(self, name: str, position: QPoint) -> None:
        open_menu(self, name, position)

    def _clear(self) -> None:
        self.document.select(())

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self.show_selection()

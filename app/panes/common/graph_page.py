"""A graph of the document on a canvas, linked to the selection; used by the FX and Relax panes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QShowEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.document.shared import Shared
from lowerscope.app.document.timelines import can_break
from lowerscope.app.kit.canvas.colouring import FIGURES, Colouring
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.hover_card import CardText
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.panes.common.descriptions import RANDOM, Facts, find_node, line_text, names_of
from lowerscope.app.panes.common.run_figures import (
    figures_of,
    measured_in,
    run_facts,
    why_no_figures,
)
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import (
    FITS,
    STRATEGY_NAMES,
    WHOLE,
    Box,
    Edge,
    GraphName,
    GraphRecord,
    Region,
    name_of,
)
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import GraphQuery
from lowerscope.core.model.recipe import STRATEGIES
from lowerscope.core.model.snapshot import FxNode, Snapshot
from lowerscope.core.model.texts import _

# --- Texts of the cards of a graph's boxes ---

_TYPE = re.compile(r"(?<=\w): .+? = ")

_WORD = re.compile(r"\w+")

MOST_FLOWS = 8
"""Pairs of nodes in the menu of an edge."""

MOST_CODE = 8
"""Lines of code in a card."""


def card_text(document: Document, box: Box) -> CardText:
    snapshot = document.snapshot
    if box.kind == "group" or snapshot is None:
        measured = run_facts(document.run_record, measured_in(box))
        return CardText(box.title, (*_group_facts(box), *measured))
    node = find_node(snapshot, box.id)
    if node is not None:
        code = "" if node.line is None else node.line.text.strip()
        facts = (*_given(_node_facts(node)), *run_facts(document.run_record, (box.id,)))
        return CardText(f"{node.title} · {node.label}", facts, code)
    linked = document.linked_to(*box.entities)
    # Links of functions are those after the passes, not those of a step.
    functions = (*_of_kind(linked, "tir"), *_of_kind(linked, "ext")) if box.origins is None else ()
    described = [
        (_("from"), _other_name(box)),
        (_("operator"), box.description),
        (_("value"), "" if box.shape is None else f"{shape_text(box.shape)} {box.dtype}"),
        (_("contains"), names_of(box.members, most=6)),
        (_("strategy"), STRATEGY_NAMES.get(box.strategy, "")),
        (_("FX nodes"), names_of(_of_kind(linked, "fx"))),
        (_("functions"), names_of(functions)),
    ]
    measured = run_facts(document.run_record, measured_in(box))
    facts = (*_given(described), *measured)
    return CardText(box.title, facts, _binding_text(snapshot, box.entities))


def frame_text(region: Region) -> CardText:
    """Return the text of the card of the frame of an expanded module or fused function."""
    if region.id.startswith("module:"):
        return CardText(region.title, ((_("module"), module_path(region.id)),))
    return CardText(region.title, ((_("contains"), names_of(region.origins, most=6)),))


def module_path(entity: str) -> str:
    """Return the dotted path of a module in a graph, without the number of its group."""
    return entity.partition(":")[2].partition("#")[0]


def _node_facts(node: FxNode) -> list[tuple[str, str]]:
    how = STRATEGY_NAMES.get(node.strategy, "")
    return [
        (_("kind"), node.opcode),
        (_("value"), node.type),
        (_("module"), node.module),
        (_("source"), line_text(node.line) if node.line is not None else ""),
        (_("lowered as"), f"{how} · {node.rule}" if how and node.rule else how),
        (_("reason"), node.reason),
        (_("random"), RANDOM if node.random else ""),
        (_("bindings"), names_of(node.bindings)),
        (_("functions"), names_of(node.functions)),
    ]


def _group_facts(box: Box) -> Facts:
    facts = [
        (_("module"), module_path(box.id)),
        (_("kind"), box.description),
        (_("strategy"), STRATEGY_NAMES.get(box.strategy, "")),
        (_("contains"), names_of(box.members, most=6)),
    ]
    return _given(facts)


def _other_name(box: Box) -> str:
    """Return the name of the binding as it was lowered, if that is different."""
    is_other = len(box.entities) == 1 and box.entities != (box.id,)
    return name_of(box.entities[0]) if is_other else ""


def _binding_text(snapshot: Snapshot, entities: tuple[str, ...]) -> str:
    """Return the lines of the script that define some bindings, as they were lowered.

    Their leading types are omitted, since a card is narrow.
    """
    whole = snapshot.relax.text.splitlines()
    lines = [
        _TYPE.sub(" = ", line.strip())
        for span in snapshot.relax.spans
        if span.entity in entities
        for line in whole[span.first - 1 : span.last]
    ]
    return "\n".join(lines[:MOST_CODE] + ["…"] * (len(lines) > MOST_CODE))


def _of_kind(entities: frozenset[str], kind: str) -> tuple[str, ...]:
    return tuple(sorted(each for each in entities if each.startswith(f"{kind}:")))


def _given(facts: list[tuple[str, str]]) -> Facts:
    return tuple((label, value) for label, value in facts if value)


# --- The menu of a graph: commands on a box, and on the graph as a whole ---

Deeds = dict[QAction, Callable[[], object]]


def open_menu(page: GraphPage, name: str, edge: Edge | None, position: QPoint) -> None:
    """Open the menu of a graph.

    Args:
        name: The box or frame; empty for an edge and the background.
        position: Screen position.
    """
    menu = QMenu(page)
    deeds: Deeds = {}
    if name:
        _add_thing(page, name, menu, deeds)
        menu.addSeparator()
    flows = () if edge is None else page.flows_along(edge)
    for source, target in flows:
        text = _(
            "Explain the fusion of {source} and {target}",
            source=literal(page.name_of(source)),
            target=literal(page.name_of(target)),
        )
        deeds[menu.addAction(text)] = partial(page.why_wanted.emit, source, target)
    if flows:
        menu.addSeparator()
    _add_graph(page, menu, deeds)
    # A command may replace the graph: run it once the menu is gone.
    chosen = menu.exec(position)
    menu.deleteLater()
    if chosen in deeds:
        deeds[chosen]()


def _add_thing(page: GraphPage, name: str, menu: QMenu, deeds: Deeds) -> None:
    canvas, document = page.canvas, page.document
    entities = page.entities_of(name)
    deeds[menu.addAction(_("Select"))] = partial(document.select, entities)
    add = menu.addAction(_("Add to selection"))
    deeds[add] = partial(document.select, entities, extend=True)
    deeds[menu.addAction(_("Inspector"))] = partial(canvas.show_card, name)
    around = canvas.frame_around(name)
    if canvas.is_group(name):
        deeds[menu.addAction(_("Expand\t+"))] = partial(page.expand, name)
    if canvas.is_frame(name):
        around = name
    if around:
        text = _("Collapse {name}\t-", name=literal(page.name_of(around)))
        deeds[menu.addAction(text)] = partial(page.collapse, around)
    breaks = page.breaks_of(name)
    if breaks:
        check = menu.addAction(_("Breakpoint at its calls\tB"))
        check.setCheckable(True)
        check.setChecked(page.run_steps.breaks.issuperset(breaks))
        deeds[check] = partial(page.toggle_break, name)
    neighbours = page.neighbours(name)
    if neighbours:
        why = menu.addMenu(_("Explain the fusion with"))
        for other in neighbours:
            deeds[why.addAction(literal(page.name_of(other)))] = partial(
                page.why_wanted.emit, name, other
            )
    if page.graph != "fx":
        return
    below = menu.addMenu(_("Lower as"))
    meant = page.meant(name)
    for strategy in STRATEGIES:
        action = below.addAction(STRATEGY_NAMES[strategy])
        deeds[action] = partial(document.lower_nodes, meant, strategy)
    below.addSeparator()
    deeds[below.addAction(_("Reset to default"))] = partial(document.lower_nodes, meant, None)
    if name.startswith("fx:"):
        write = menu.addAction(_("Write a rule for {name}…", name=literal(name_of(name))))
        deeds[write] = partial(page.rule_wanted.emit, name)


def _add_graph(page: GraphPage, menu: QMenu, deeds: Deeds) -> None:
    canvas = page.canvas
    if page.is_collapsible:
        deeds[menu.addAction(_("Collapse all"))] = page.collapse_all
        deeds[menu.addAction(_("Expand all"))] = page.expand_all
        deeds[menu.addAction(_("Expand modules to fit"))] = page.show_fitting_level
        menu.addSeparator()
    deeds[menu.addAction(_("Fit\tF"))] = canvas.fit
    deeds[menu.addAction(_("Zoom to selection\tZ"))] = canvas.zoom_to_selection
    deeds[menu.addAction(_("Actual size\t0"))] = canvas.reset_zoom
    deeds[menu.addAction(_("Find…\t/"))] = canvas.open_find
    menu.addSeparator()
    for text, shown, switch in (
        (_("Show values beside all edges\tL"), canvas.labels(), canvas.switch_labels),
        (_("Overview\tM"), canvas.wants_minimap(), canvas.switch_minimap),
    ):
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(shown)
        deeds[action] = switch
    menu.addSeparator()
    deeds[menu.addAction(_("Save picture…"))] = partial(page.picture_wanted.emit, page, False)
    seen = menu.addAction(_("Save picture of the visible part…"))
    deeds[seen] = partial(page.picture_wanted.emit, page, True)
    menu.addSeparator()
    colours = menu.addMenu(_("Colours"))
    colours.setToolTipsVisible(True)
    words: dict[Colouring, str] = {
        "family": _("By operator family\tC"),
        "strategy": _("By strategy\tC"),
        "time": _("By time"),
        "error": _("By error"),
    }
    for colouring, text in words.items():
        action = colours.addAction(text)
        action.setCheckable(True)
        action.setChecked(canvas.colouring() == colouring)
        if colouring in FIGURES:
            why_not = page.why_not(colouring)
            action.setEnabled(not why_not)
            action.setToolTip(why_not)
        deeds[action] = partial(canvas.set_colouring, colouring)


NOTHING = GraphRecord()


class GraphPage(QWidget):
    """A canvas that shows a graph of the snapshot, with some of its groups expanded.

    Groups are modules and fused functions. The set of expanded ones is kept for the same source,
    whatever is changed in its recipe.

    Args:
        graph: Kind of graph.
        name: Accessible name of the canvas.
        set_busy: Called with whether the graph is being fetched.
    """

    rule_wanted = Signal(str)  # Write a rule for a node: its id.
    why_wanted = Signal(str, str)  # Explain the fusion of two nodes, by their ids.
    picture_wanted = Signal(object, bool)  # Save the page as a picture, or its visible part.

    def __init__(
        self, shared: Shared, graph: GraphName, name: str, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self.graph: GraphName = graph
        self.document = document = shared.document
        self.run_steps = run_steps = shared.run_steps
        self.record: GraphRecord | None = None  # The graph shown.
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
        self._watch = shared.queries.watch(
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

        Args:
            title: Key of the stored view and expanded groups.
            record: The graph at the fitting level, if already available.
            moment: The step at which it is shown; ``None`` for the final graph.
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
    def is_collapsible(self) -> bool:
        """Return whether the graph has modules or fused functions to collapse or expand."""
        return self.record is not None and self.record.collapsible

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
        return () if self.record is None else self.record.expanded

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
        self.canvas.empty.set_problem(problem, self._watch.refresh)
        self._show(None, "")

    def _show(self, record: GraphRecord | None, title: str) -> None:
        anchor, self._anchor = self._anchor, ""
        # Another level as a whole is shown from its top.
        keep_view = title == self._title and not self._is_other_level
        is_other = record != self.record or not keep_view
        self._is_other_level = False
        self.record, self._title = record, title
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
        return why or _("Nothing shown here is a call of the run")

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

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return the calls that read a call's value, and those whose values it reads."""
        flows = self._flows()
        users = (target for source, target in flows if source == name)
        sources = (source for source, target in flows if target == name)
        return tuple(dict.fromkeys((*users, *sources)))

    def flows_along(self, edge: Edge) -> tuple[tuple[str, str], ...]:
        """Return the calls between which values flow along an edge, which may be in modules."""
        ends = [
            {each, *self._boxes[each].members} if each in self._boxes else {each}
            for each in (edge.source, edge.target)
        ]
        found = (each for each in self._flows() if each[0] in ends[0] and each[1] in ends[1])
        return tuple(found)[:MOST_FLOWS]

    def _flows(self) -> list[tuple[str, str]]:
        """Return the pairs of nodes with code of which the second reads a value of the first."""
        snapshot = self.document.snapshot
        if self.graph == "fx" and snapshot is not None:
            # Those in modules have no boxes.
            calls = [each for each in snapshot.fx if each.strategy]
            ids = {each.name: each.id for each in calls}
            return [
                (ids[word], each.id)
                for each in calls
                for word in dict.fromkeys(_WORD.findall(f"{each.args} {each.kwargs}"))
                if word in ids
            ]
        is_call = {name for name, box in self._boxes.items() if box.kind == "call"}
        edges = () if self.record is None else self.record.edges
        return [
            (each.source, each.target)
            for each in edges
            if is_call.issuperset((each.source, each.target))
        ]

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

    def _open_menu(self, name: str, edge: Edge | None, position: QPoint) -> None:
        open_menu(self, name, edge, position)

    def _clear(self) -> None:
        self.document.select(())

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._is_stale:
            self.show_selection()

"""The pages of a difference, fetched when they are visible: its text, and the base of a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, get_args

import msgspec
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.code.diff_editor import (
    DiffPart,
    DiffRun,
    Printed,
    SideText,
    compact_side,
    told_apart,
)
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.hover_card import CardText
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import names_of, nothing_words
from lowerscope.core.model.compact_script import LANGUAGE
from lowerscope.core.model.graph import STATUS_MARKS, Box, GraphRecord
from lowerscope.core.model.line_difference import changed_words
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    GraphDifference,
    Moment,
    NodeDifference,
    Status,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import (
    CodeDifferenceQuery,
    DifferenceQuery,
    GraphDifferenceQuery,
    Query,
)
from lowerscope.core.model.texts import _, _n

# --- Base of the pages of a difference: a list on the left, the content beside it ---

ROLES: dict[Status, str] = {"same": "quiet", "changed": "", "added": "right", "removed": "wrong"}
"""The roles of the marks of a list."""

_ALL = 1000


def status_cell(status: Status) -> Cell:
    """Return the cell of a row's mark, with a word for screen readers."""
    return Cell(STATUS_MARKS[status], ROLES[status], bold=True, tooltip=status, spoken=status)


class SidesPage(QWidget):
    """A difference of the comparison's two sides, fetched when it is visible.

    Args:
        set_busy: Called with whether a difference is being fetched.
        table: The list.
        view: The widget on the right.
        width: Width of the list, in pixels.
    """

    shown = Signal()  # Another difference or a problem has arrived.

    def __init__(
        self,
        queries: Queries,
        set_busy: Callable[[bool], None],
        table: Table,
        view: QWidget,
        width: int,
    ) -> None:
        super().__init__()
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
        self._all = False
        self.split = Split(Qt.Orientation.Horizontal)
        self.split.addWidget(table)
        right = QWidget()
        self.column = QVBoxLayout(right)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(view, 1)
        self.split.addWidget(right)
        # The width of the list does not depend on the pane's.
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([width, _ALL - width])
        self.split.setCollapsible(1, False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.split)

    def _query(self) -> Query[Any] | None:
        """Return the query for the difference."""
        raise NotImplementedError

    def _take(self, record: Any) -> None:
        """Show the difference."""
        raise NotImplementedError

    def _take_problem(self, problem: Problem) -> None:
        """Show why there is no difference."""
        raise NotImplementedError

    def _show_list(self) -> None:
        raise NotImplementedError


MOST_AHEAD = 100
"""Functions of the next step whose compact form is found ahead; twice as many texts are kept."""

Kind = Literal["relax", "tensorir"]
CodeView = Literal["llvm", "asm"]


class DifferencePage(QWidget):
    """The text of a difference: of the Relax functions, or of those of TensorIR.

    Args:
        set_busy: Called with whether a difference is being fetched.
        around: The view that it is a page of. While another page of it is visible, the difference
            is fetched nevertheless: the view shows its sentence and its functions.
    """

    arrived = Signal()  # Another difference has arrived, and is about to be shown.
    shown = Signal()  # Another difference or a problem has arrived, or another kind is shown.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        pins: Pins,
        set_busy: Callable[[bool], None],
        around: QWidget | None = None,
    ) -> None:
        super().__init__()
        self._document = document
        self._queries = queries
        self._pins = pins
        # The difference shown; ``None`` before it arrives, and after a problem.
        self.record: DifferenceRecord | None = None
        self._sides: tuple[ComparedModule, ComparedModule] | None = None
        self._wanted: Kind = "relax"
        # Whether the kind was chosen for these sides: it stays then, though nothing of it differs.
        self._is_chosen = False
        self.shows_all = False  # Whether unchanged functions are shown as well.
        self._only = ""
        self._ahead: Iterator[Callable[[], object]] = iter(())
        self._preparing = QTimer(self, interval=0)
        self._preparing.timeout.connect(self._prepare_one)
        self.diff = DiffView(_("Difference"), changed_words)
        column_of(self, (self.diff, 1))
        self._watch = queries.watch(
            around or self, self._query, self._take, self._take_problem, set_busy
        )
        document.on(("selection", "snapshot"), self._follow_selection)
        document.on(("code_form",), self._show_functions)

    @property
    def is_current(self) -> bool:
        """Return whether the difference shown is that of the comparison's two sides."""
        return self.record is not None and self._sides == self._pins.sides

    @property
    def kind(self) -> Kind:
        """The kind of the functions shown: the chosen one, or on other sides what alone changed."""
        found = {kind for kind in get_args(Kind) if self.changed(kind)}
        is_kept = self._is_chosen or self._wanted in found or not found
        return self._wanted if is_kept else next(iter(found))

    @property
    def relax_function(self) -> str:
        """The Relax function of the current row, or else ``main``."""
        return self.diff.current_part() or "main" if self.kind == "relax" else "main"

    def set_kind(self, kind: Kind) -> None:
        """Show the functions of a kind."""
        before, self._wanted, self._is_chosen = self.kind, kind, True
        if kind != before:
            self._show_functions()

    def set_all(self, everything: bool) -> None:
        """Show unchanged functions as well, or not."""
        if everything != self.shows_all:
            self.shows_all = everything
            self._show_functions()

    def set_only(self, name: str) -> None:
        """Show the functions with this in their name; empty for any."""
        self._only = name
        self._show_functions()

    def functions(self, kind: Kind) -> list[FunctionDifference]:
        """Return the functions of a kind, including unchanged ones."""
        every = () if self.record is None else self.record.functions
        return [each for each in every if each.kind == kind and self._only in each.name]

    def changed(self, kind: Kind) -> list[FunctionDifference]:
        """Return the functions of a kind that differ."""
        return [each for each in self.functions(kind) if each.status != "same"]

    def shown_functions(self) -> list[FunctionDifference]:
        """Return the functions in view, from the top."""
        return self.functions(self.kind) if self.shows_all else self.changed(self.kind)

    def groups(self) -> dict[str, int]:
        """Return the functions that lines moved into, each with a number from 0."""
        every = () if self.record is None else self.record.functions
        return {each.name: number for number, each in enumerate(e for e in every if e.moved_in)}

    def show_sides(self) -> None:
        """Show the difference of the comparison's two sides, once it arrives."""
        if self._pins.sides is None:
            self.diff.set_empty(*nothing_words(self._document))
            self._show_none()
        elif self.record is None:
            self.diff.set_empty(_("Comparing…"))
        self._watch.update()

    def ask_ahead(self, moment: Moment) -> None:
        """Have the difference at a step computed that may be shown next."""
        sides = self._pins.sides_at(moment)
        if sides is not None and self.is_current and sides != self._sides:
            self._queries.ask_ahead(DifferenceQuery(*sides), self._prepare)

    def _prepare(self, record: DifferenceRecord) -> None:
        """Find the compact form of what a difference will show, function by function, when idle."""
        form = self._document.code_form
        if form.compact and record.language == LANGUAGE:
            changed = (each for each in record.functions if each.status != "same")
            first = islice(changed, MOST_AHEAD)
            self._ahead = (partial(_compact, each, form.types) for each in first)
            self._preparing.start()

    def _prepare_one(self) -> None:
        work = next(self._ahead, None)
        if work is None:
            self._preparing.stop()
        else:
            work()

    def _query(self) -> DifferenceQuery | None:
        sides = self._pins.sides
        return None if sides is None else DifferenceQuery(*sides)

    def _take(self, record: DifferenceRecord) -> None:
        self._is_chosen = self._is_chosen and self._sides == self._pins.sides
        self.record, self._sides = record, self._pins.sides
        self._preparing.stop()
        self.arrived.emit()
        self._show_functions()
        self._follow_selection()

    def _take_problem(self, problem: Problem) -> None:
        self.diff.empty.set_problem(problem, self._watch.refresh)
        self._show_none()

    def _show_none(self) -> None:
        self.record = None
        self.diff.set_parts(())
        self.shown.emit()

    def _show_functions(self) -> None:
        record = self.record
        if record is None:
            return
        functions, groups = self.shown_functions(), self.groups()
        if not functions:
            others = any(self.changed(kind) for kind in get_args(Kind))
            title = _("No function of this kind differs") if others else ""
            self.diff.set_empty(title or _("Nothing differs"), "")
        form = self._document.code_form
        compact = form.compact and record.language == LANGUAGE
        every = {each.name: each for each in record.functions}

        @cache
        def sides(name: str) -> tuple[SideText, SideText]:
            # Only of what is shown: to shorten all of a large module takes long.
            return _compact(every[name], form.types) if compact else _printed(every[name])

        parts = [diff_part(each, sides, groups) for each in functions]
        self.diff.set_parts(parts, record.language)
        self.shown.emit()

    def _follow_selection(self) -> None:
        """Scroll to what is selected in the other panes."""
        linked = self._document.selection.linked
        found = [each.name for each in self.shown_functions() if f"tir:{each.name}" in linked]
        if found:
            self.diff.show_part(found[0])


def _printed(function: FunctionDifference) -> tuple[SideText, SideText]:
    """Return both sides of a function as printed."""
    old, new = (
        SideText(lines, {}, list(map(Printed, lines)))
        for lines in (function.old.split("\n"), function.new.split("\n"))
    )
    return old, new


def _compact(function: FunctionDifference, types: bool) -> tuple[SideText, SideText]:
    """Return both sides of a function in their compact form, line by line."""
    old = compact_side(function.old, tuple(function.old_names.items()), types)
    new = compact_side(function.new, tuple(function.new_names.items()), types)
    changed = ((run.old, run.new, run.length) for run in function.runs if run.status == "changed")
    return told_apart(old, new, changed)


class CodePage(QWidget):
    """The difference of the code of a TensorIR function, compiled by itself on both sides.

    Args:
        set_busy: Called with whether the worker is compiling.
    """

    shown = Signal()  # Another difference or a problem has arrived.

    def __init__(self, queries: Queries, pins: Pins, set_busy: Callable[[bool], None]) -> None:
        super().__init__()
        self._pins = pins
        self.name = ""  # The function.
        self._view: CodeView = "llvm"
        self._set_busy = set_busy
        self.diff = DiffView(_("Difference of the code"), changed_words)
        column_of(self, (self.diff, 1))
        self._watch = queries.watch(
            self, self._query, self._take, self._take_problem, self._note_busy, self._note_progress
        )

    def show_code(self, name: str, view: CodeView) -> None:
        """Show the LLVM IR or the assembly of a function, once it is compiled."""
        self.name, self._view = name, view
        if not name:
            self._watch.update()
            title = _("No TensorIR function changed")
            hint = _("Code is compared for TensorIR functions that the step changed.")
            self._show_nothing(title, hint)
            return
        self._watch.update()

    def _query(self) -> CodeDifferenceQuery | None:
        sides = self._pins.sides
        if sides is None or not self.name:
            return None
        return CodeDifferenceQuery(*sides, self.name, self._view)

    def _note_busy(self, busy: bool) -> None:
        self._set_busy(busy)
        if busy:
            self._show_nothing(_("Compiling {name}…", name=self.name), "")

    def _note_progress(self, text: str, _fraction: float | None) -> None:
        self._show_nothing(_("Compiling {name}…", name=self.name), text)

    def _take(self, record: DifferenceRecord) -> None:
        parts = [diff_part(each) for each in record.functions]
        self.diff.set_parts(parts, record.language)
        self.shown.emit()

    def _take_problem(self, problem: Problem) -> None:
        self.diff.empty.set_problem(problem, self._watch.refresh)
        self._show_none()

    def _show_nothing(self, title: str, hint: str) -> None:
        self.diff.set_empty(title, hint)
        self._show_none()

    def _show_none(self) -> None:
        self.diff.set_parts(())
        self.shown.emit()


def function_counts(function: FunctionDifference) -> list[tuple[str, str]]:
    """Return the numbers of lines of a changed function, with their roles."""
    changed = function.changed + len(function.constants)
    moved = function.moved_in + function.moved_out
    counts = (
        (f"+{function.added:,}", "right", function.added),
        (f"−{function.removed:,}", "wrong", function.removed),
        (f"~{changed:,}", "unsure", changed),
        (f"↪{moved:,}", "", moved),
    )
    return [(text, role) for text, role, count in counts if count]


def diff_part(
    function: FunctionDifference,
    sides: Callable[[str], tuple[SideText, SideText]] | None = None,
    groups: Mapping[str, int] = MappingProxyType({}),
) -> DiffPart:
    """Return the difference of a function, in the viewer's format.

    Args:
        sides: Returns the texts of a function by its name, also of one that lines moved from.
        groups: Numbers of the functions that lines moved into.
    """
    before, after = sides(function.name) if sides is not None else _printed(function)
    after = before if function.status == "same" else after
    old = list(before.lines) if function.status != "added" else []
    new = list(after.lines) if function.status != "removed" else []
    old_notes, new_notes = (
        {at + 1: note for at, note in each.notes.items()} for each in (before, after)
    )
    old_printed, new_printed = before.printed_by_number(), after.printed_by_number()
    runs: list[DiffRun] = []
    foreign: list[int] = []
    sources = Counter[str]()
    own = len(old) + len(function.constants)
    old_lines: list[str] = []
    for run in function.runs:
        if run.status == "moved-in":
            assert sides is not None
            source = sides(run.other)[0]
            first = own + len(foreign) + 1
            lines = range(run.old, run.old + run.length)
            foreign += lines
            for place, line in enumerate(lines, first):
                old_lines.append(source.lines[line - 1])
                old_printed[place] = source.printed[line - 1]
                if note := source.notes.get(line - 1):
                    old_notes[place] = note
            group = groups.get(function.name, -1)
            runs.append(DiffRun(run.status, first, run.new, run.length, group))
            sources[run.other] += run.length
        else:
            group = groups.get(run.other, -1)
            runs.append(DiffRun(run.status, run.old, run.new, run.length, group))
    if function.constants:
        # They have lines of their own below the text, which refers to constants by number.
        first_lines = len(old) + 1, len(new) + 1
        runs.append(DiffRun("changed", *first_lines, len(function.constants)))
        old += [f"# values of {each.name}: {each.count:,}" for each in function.constants]
        new += [f"# {each.line()}" for each in function.constants]
    return DiffPart(
        title=function.name,
        status=function.status,
        old=[*old, *old_lines],
        new=new,
        runs=runs,
        foreign=foreign,
        note=_moved_text(function, sources),
        group=groups.get(function.name, -1) if sources else -1,
        old_notes=old_notes,
        new_notes=new_notes,
        old_printed=old_printed,
        new_printed=new_printed,
    )


def _moved_text(function: FunctionDifference, sources: Counter[str]) -> str:
    """Return ``↪3 lines from main``."""
    parts = []
    if sources:
        names = [name for name, _count in sources.most_common(3)]
        more = f" +{len(sources) - 3}" if len(sources) > 3 else ""
        lines = _n("1 line", "{count} lines", function.moved_in)
        words = _("↪ {lines} moved from {names}", lines=lines, names=_(", ").join(names) + more)
        parts.append(words)
    if function.moved_out:
        lines = _n("1 line", "{count} lines", function.moved_out)
        parts.append(_("↪ {lines} moved out", lines=lines))
    return " · ".join(parts)


# --- The difference of two graphs as one drawing, with a list of the nodes ---


LIST_WIDTH = 330


class GraphDifferencePage(SidesPage):
    """The added, removed or changed nodes on the left; the drawing on the right."""

    def __init__(
        self, document: Document, queries: Queries, pins: Pins, set_busy: Callable[[bool], None]
    ) -> None:
        self._document = document
        self._pins = pins
        # The difference shown; ``None`` before it arrives, and after a problem.
        self.record: GraphDifference | None = None
        self._sides: tuple[ComparedModule, ComparedModule] | None = None
        self._boxes: dict[str, Box] = {}
        self._here = ""
        self._function = "main"
        self.canvas = GraphCanvas(_("Difference of the graphs"))
        self.nodes = Table(
            _("Nodes of the difference"),
            (
                Column("", width=28, tooltip=_("Status")),
                Column(_("binding"), width=84),
                Column(_("value and old value"), stretch=True, wrap=True),
            ),
        )
        super().__init__(queries, set_busy, self.nodes, self.canvas, LIST_WIDTH)
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

    def show_sides(self, function: str) -> None:
        """Show the difference of a function in the comparison's two sides, once it arrives."""
        self._function = function
        sides = self._pins.sides
        if sides is None:
            self._show(None)
        self._watch.update()

    @property
    def is_current(self) -> bool:
        """Return whether the difference shown is that of the comparison's two sides."""
        return self.record is not None and self._sides == self._pins.sides

    def changes(self) -> int:
        """Return the number of nodes that were added, removed or changed."""
        nodes = () if self.record is None else self.record.nodes
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
        self._sides = self._pins.sides
        self._show(record)

    def _take_problem(self, problem: Problem) -> None:
        self.canvas.empty.set_problem(problem, self._watch.refresh)
        self._show(None)

    def _show(self, record: GraphDifference | None) -> None:
        self.record = record
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
        nodes = () if self.record is None else self.record.nodes
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
        nodes = () if self.record is None else self.record.nodes
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

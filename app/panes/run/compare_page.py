"""Page that compares all tensors with the reference implementation, in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QContextMenuEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLineEdit, QMenu, QPushButton, QSizePolicy, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import find_node, line_text, names_of
from lowerscope.app.panes.common.dlpack_text import hand_over_text
from lowerscope.app.panes.run.tensor_page import TensorPage
from lowerscope.core.model.formatting import duration_text, error_text, status_words
from lowerscope.core.model.graph import STRATEGY_LETTERS, STRATEGY_NAMES
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import STRATEGIES
from lowerscope.core.model.run_records import NOT_THERE, NodeRun, NodeStatus, RunRecord
from lowerscope.core.model.snapshot import FxNode, Snapshot

# --- The rows of the page Compare: the results of a run for each FX node, as text ---

GIVEN = ("placeholder", "get_attr", "output")
"""Opcodes of nodes that compute nothing, so that there is nothing to compare."""

_ORDER: dict[NodeStatus, float] = {
    "differs": 0.0,
    "inconclusive": 1.0,
    "not comparable": 2.0,
    "no reference": 3.0,
    "matches": 4.0,
}
"""Sort order of the verdicts."""


def compared_nodes(snapshot: Snapshot, record: RunRecord) -> Iterator[tuple[FxNode, NodeRun]]:
    """Yield the nodes that compute something, in the order of the graph, with their results."""
    runs = {each.id: each for each in record.nodes}
    for node in snapshot.fx:
        if node.opcode not in GIVEN and node.id in runs:
            yield node, runs[node.id]


def is_of(run: NodeRun, sort: str) -> bool:
    """Return whether a node is one of ``"all"``, ``"starts"``, ``"differs"``,
    ``"not-compared"``.
    """
    if sort == "starts":
        return starts_here(run)
    if sort == "not-compared":
        return run.matches is None
    return sort == "all" or run.matches is False


def starts_here(run: NodeRun) -> bool:
    """Return whether a node also differs in isolation, on torch's inputs: its error is its own."""
    return run.matches is not True and run.own_matches is False


def came_from_above(run: NodeRun) -> bool:
    """Return whether a node differs in the run, but not in isolation on torch's inputs."""
    return run.matches is False and run.own_matches is True


def node_rows(snapshot: Snapshot, record: RunRecord) -> tuple[Row, ...]:
    """Return the rows of the nodes that compute something, keyed by node id."""
    inside = _compared_at(record)
    return tuple(
        _row(node, run, record, inside.get(node.id, ()))
        for node, run in compared_nodes(snapshot, record)
    )


def verdict_cell(run: NodeRun) -> Cell:
    """Return the cell with a node's verdict: a mark and a word."""
    words, role = status_words(run.status)
    return Cell(words, role=role, value=_ORDER[run.status], spoken=words.partition(" ")[2])


def _compared_at(record: RunRecord) -> Mapping[str, Sequence[str]]:
    """Return, by the node that holds the value of a fused group, the group's other nodes."""
    runs = {each.id: each for each in record.nodes}
    return {
        run.id: [each for each in run.shared_with if each in runs and runs[each].matches is None]
        for run in record.nodes
        if run.matches is not None and run.shared_with and run.id.startswith("fx:")
    }


def _row(node: FxNode, run: NodeRun, record: RunRecord, inside: Sequence[str]) -> Row:
    letters, name = STRATEGY_LETTERS.get(node.strategy), STRATEGY_NAMES.get(node.strategy, "")
    called = dict.fromkeys(record.calls[index].function for index in run.calls)
    functions = ", ".join(called)
    about = "\n".join(each for each in (node.label, name, node.rule, functions) if each)
    operator = f"{letters} · {_operator(node)}" if letters else _operator(node)
    handed = hand_over_text([record.calls[index] for index in run.calls])
    said = "; ".join((*_said(run, inside), *filter(None, (handed,))))
    return Row(
        node.id,
        (
            verdict_cell(run),
            Cell(node.title, bold=True, tooltip=node.label),
            Cell(operator, role=node.strategy or "quiet", tooltip=about),
            _error_cell(run.max_abs_error, run.matches),
            _error_cell(run.own_abs_error, run.own_matches, run.own_reason),
            _time_cell(run.milliseconds),
            _time_cell(run.torch_ms),
            Cell(said, role="quiet", tooltip=said) if said else "",
        ),
    )


def _operator(node: FxNode) -> str:
    """Return a node's operator: the class of its module, or the name of its function."""
    return node.label.partition(" · ")[0]


def _error_cell(error: float | None, matches: bool | None, reason: str = "") -> Cell | str:
    if error is None:
        return Cell("–", role="quiet", tooltip=reason) if reason else "–"
    role = "wrong" if matches is False else ""
    return Cell(error_text(error), role=role, value=error, tooltip=reason)


def _time_cell(milliseconds: float | None) -> Cell | str:
    if milliseconds is None:
        return "–"
    return Cell(duration_text(milliseconds), value=milliseconds)


def _said(run: NodeRun, inside: Sequence[str]) -> Iterator[str]:
    if run.not_finite:
        yield run.not_finite
    if came_from_above(run):
        yield _tr("came from above")
    elif starts_here(run):
        yield _tr("starts here")
    reason = run.reason.removeprefix(run.not_finite).removeprefix("; ")
    if reason:
        yield reason
    if inside:
        yield _tr("the value of a fused group, with {0} inside").format(names_of(tuple(inside)))
    if run.own_with:
        yield _tr("alone, run with {0}").format(names_of(run.own_with))


def _tr(text: str) -> str:
    return QCoreApplication.translate("CompareRows", text)


OWN_ERROR, TORCH_TIME = 4, 6
"""Indices of columns."""


class CompareTable(QWidget):
    """The nodes of the last run."""

    # The menu of a row was requested: the node, and the screen position.
    menu_wanted = Signal(str, QPoint)
    node_wanted = Signal(str)  # A row was activated by double click or Enter: the node.

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._rows: tuple[Row, ...] = ()
        self._runs: dict[str, NodeRun] = {}
        self._stale = True
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(self.tr("Filter: a node, an operator, a reason…"))
        self.filter.setAccessibleName(self.tr("Filter of the nodes"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setMinimumWidth(96)
        self.sorts = SegmentedSwitch(self.tr("Which nodes"))
        self.count = Label(role="quiet")
        self.table = Table(
            self.tr("Nodes against torch"),
            (
                Column(self.tr("verdict"), width=108),
                Column(self.tr("node"), width=100),
                Column(
                    self.tr("operator"), width=96, tooltip=self.tr("The strategy and the operator")
                ),
                self._figure(
                    self.tr("in run"),
                    self.tr(
                        "The largest absolute error of its value, on what the run has computed"
                    ),
                ),
                self._figure(
                    self.tr("alone"),
                    self.tr("The largest absolute error of the node alone, on torch's inputs"),
                ),
                self._figure(
                    self.tr("TVM"),
                    self.tr("The time of its calls, median; of all that it is fused with"),
                ),
                self._figure(self.tr("torch"), self.tr("The time of the node in torch, median")),
                Column(self.tr("reason"), stretch=True, width=80),
            ),
        )
        self.table.set_sortable(True)
        strip = row_of(
            None, (self.filter, 1), self.sorts, self.count, margins=(10, 4, 10, 4), spacing=12
        )
        self.strip = strip
        column_of(self, strip, (self.table, 1))
        self.filter.textChanged.connect(self._show_rows)
        self.sorts.changed.connect(self._show_rows)
        self.table.row_clicked.connect(self._select)
        self.table.row_activated.connect(self._open)
        document.on(("snapshot",), self._show_run)
        document.on(("run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_run()

    def show_all(self) -> None:
        """Show every node, so that the selected one is visible."""
        self.filter.clear()
        self.sorts.set_current("all")
        self._show_rows()

    def _show_run(self) -> None:
        # Thousands of rows are not built for a hidden page.
        self._stale = not self.isVisible()
        if self._stale:
            return
        snapshot, record = self._document.snapshot, self._document.run_record
        self._rows, self._runs = (), {}
        if snapshot is not None and record is not None:
            self._rows = node_rows(snapshot, record)
            self._runs = {node.id: run for node, run in compared_nodes(snapshot, record)}
        # Without isolated runs or torch's times, the column would contain dashes only.
        runs = self._runs.values()
        for column, known in (
            (OWN_ERROR, any(each.own_matches is not None for each in runs)),
            (TORCH_TIME, any(each.torch_ms is not None for each in runs)),
        ):
            self.table.setColumnHidden(column, not known)
        self._say_empty()
        self._show_sorts()
        self._show_rows()

    def _say_empty(self) -> None:
        record = self._document.run_record
        if self._document.running:
            said = self.tr("Running…"), self.tr("Cancel, in the status bar, stops it.")
        elif record is None:
            said = (
                self.tr("Not run yet"),
                self.tr("Run (F5) compares the value of every node with torch's."),
            )
        elif record.ran_on:
            there = self.tr("It ran on {0}").format(record.ran_on)
            said = (there, self.tr(NOT_THERE))
        elif record.quick and not record.nodes:
            said = (
                self.tr("Not compared node by node"),
                self.tr("The run was a quick one, of a slow model. Run (F5) compares its nodes."),
            )
        elif not record.nodes:
            said = (
                self.tr("No nodes to compare"),
                self.tr("This source has no torch side: its outputs stand on the page Result."),
            )
        elif self._rows:
            said = self.tr("No such node"), self.tr("The filter leaves none.")
        else:
            said = self.tr("No nodes to compare"), self.tr("No node computes anything.")
        self.table.set_empty(*said)

    def _show_sorts(self) -> None:
        counted = [
            (key, label, tooltip, sum(is_of(run, key) for run in self._runs.values()))
            for key, label, tooltip in self._kinds()
        ]
        self.sorts.set_segments(
            [
                Segment("all", self.tr("All"), self.tr("Every node that computes something")),
                *(
                    Segment(key, label.format(count), tooltip)
                    for key, label, tooltip, count in counted
                    if count
                ),
            ]
        )
        self.sorts.setVisible(bool(self._rows))

    def _kinds(self) -> tuple[tuple[str, str, str], ...]:
        """Return key, text and tool tip of the filters that match any node."""
        return (
            (
                "starts",
                self.tr("✕ Starts here {0}"),
                self.tr("Nodes that are out of tolerance alone, on torch's inputs, as well"),
            ),
            (
                "differs",
                self.tr("✕ Differs {0}"),
                self.tr("Nodes whose value is out of tolerance in the run"),
            ),
            (
                "not-compared",
                self.tr("– Not compared {0}"),
                self.tr("Nodes whose value could not be compared, with the reason"),
            ),
        )

    def _figure(self, title: str, tooltip: str) -> Column:
        return Column(title, numeric=True, width=78, falling=True, tooltip=tooltip)

    def _show_rows(self) -> None:
        words = self.filter.text().casefold().split()
        chosen = self.sorts.current()
        shown = [
            row
            for row in self._rows
            if is_of(self._runs[row.key], chosen) and all(word in _text(row) for word in words)
        ]
        self.table.set_rows(shown)
        count = len(self._rows)
        text = self.tr("1 node") if count == 1 else self.tr("{0} nodes").format(count)
        if len(shown) < count:
            text = self.tr("{0} of {1}").format(len(shown), text)
        self.count.setText(text if count else "")
        self._show_selection()

    def _show_selection(self) -> None:
        if self._stale or not self.isVisible():
            return
        marked = self._document.selection.of_kind("fx")
        self.table.set_selection(marked)
        chosen = [each for each in self._document.selection.chosen if each in marked]
        if marked:
            self.table.reveal((chosen or list(marked))[0])

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._document.select((entity,), extend=bool(modifiers & EXTENDING))

    def _open(self, entity: str) -> None:
        self._document.select((entity,))
        self.node_wanted.emit(entity)

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._show_run()
        else:
            self._show_selection()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        view = self.table.viewport()
        index = self.table.currentIndex()
        if not by_key:
            index = self.table.indexAt(view.mapFromGlobal(event.globalPos()))
        if not index.isValid():
            return
        place = event.globalPos()
        if by_key:
            place = view.mapToGlobal(self.table.visualRect(index).center())
        self.menu_wanted.emit(self.table.rows()[index.row()].key, place)


def _text(row: Row) -> str:
    return "\n".join(
        each if isinstance(each, str) else f"{each.text}\n{each.tooltip}" for each in row.cells
    ).casefold()


# --- The menu of a row of the page Compare, with the commands on a node ---

Deeds = dict[QAction, Callable[[], object]]


def open_menu(page: ComparePage, entity: str, position: QPoint) -> None:
    """Open the menu of a node.

    Args:
        position: Screen position.
    """
    menu = QMenu(page)
    deeds: Deeds = {}
    _fill(page, entity, menu, deeds)
    # A command may replace the rows: run it once the menu is gone.
    chosen = menu.exec(position)
    menu.deleteLater()
    if chosen in deeds:
        deeds[chosen]()


def _fill(page: ComparePage, entity: str, menu: QMenu, deeds: Deeds) -> None:
    document, tr = page.document, page.tr
    snapshot = document.snapshot
    node = None if snapshot is None else find_node(snapshot, entity)
    if snapshot is None or node is None:
        return
    deeds[menu.addAction(tr("Look at its values"))] = page.tensor_wanted.emit
    rule = tr("How it was translated: {0}").format(literal(node.rule)) if node.rule else ""
    deeds[menu.addAction(rule or tr("How it was translated"))] = page.translation_wanted.emit
    if node.rule_line is not None:
        text = tr("Open the rule: {0}").format(literal(line_text(node.rule_line)))
        deeds[menu.addAction(text)] = page.rule_wanted.emit
    step = next((each for each in snapshot.translation if each.node == entity), None)
    if step is not None:
        moment = Moment(section="translate", index=step.number)
        text = tr("Step {0} of the translation").format(step.number)
        deeds[menu.addAction(text)] = partial(page.stepping.go, moment)
    if node.strategy:
        below = menu.addMenu(tr("Lower as"))
        for strategy in STRATEGIES:
            action = below.addAction(STRATEGY_NAMES[strategy])
            deeds[action] = partial(document.lower_nodes, (entity,), strategy)
        below.addSeparator()
        reset = below.addAction(tr("Reset to default"))
        deeds[reset] = partial(document.lower_nodes, (entity,), None)
    menu.addSeparator()
    deeds[menu.addAction(tr("Show all nodes"))] = page.nodes.show_all
    deeds[menu.addAction(tr("Copy the rows\tCtrl+C"))] = page.nodes.table.copy


# The line below the outputs that names the first node whose value differs from torch's.


class FirstDifferenceLine(QPushButton):
    """A button that selects the first differing node; visible if the last run had one."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._node = ""
        self.setProperty("quiet", True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        # If space is short, the end is elided, and not the name.
        self.setStyleSheet("text-align: left")
        self.setMinimumWidth(120)
        self.clicked.connect(self._select)
        document.on(("run", "running"), self._show_run)
        self._show_run()

    def _show_run(self) -> None:
        record = self._document.run_record
        self._node = "" if record is None else record.first_difference
        self.setVisible(bool(self._node))
        if record is None or not self._node:
            return
        run = next(each for each in record.nodes if each.id == self._node)
        made = record.first_made
        passes, schedules = ", ".join(made.passes), "; ".join(made.schedules)
        parts = [
            self.tr("✕ First difference: {0}").format(self._node.removeprefix("fx:")),
            run.not_finite,
            self.tr("{0} absolute").format(error_text(run.max_abs_error)),
            self.tr("alone it matches: it came from above") if run.own_matches else "",
            made.rule,
            self.tr("passes {0}").format(passes) if passes else "",
            self.tr("schedule of {0}").format(schedules) if schedules else self.tr("no schedule"),
        ]
        text = "  ·  ".join(part for part in parts if part)
        self.setText(literal(text))
        self.setAccessibleName(text)
        select = self.tr("Select the node in all panes (F9)")
        self.setToolTip("\n".join(each for each in (*parts, run.reason, select) if each))

    def _select(self) -> None:
        if self._node:
            self._document.select((self._node,))


BOTH = 1240
"""Width, in pixels, from which the table and the values are side by side."""

COUNTED = 400
"""Width from which the number of nodes is shown."""


class ComparePage(QWidget):
    """The table of nodes, and the values of the selected one.

    Args:
        set_busy: Called with whether values are being fetched.
    """

    translation_wanted = Signal()  # Show the translation of the selected node.
    rule_wanted = Signal()  # Show the file of its rule.
    tensor_wanted = Signal()  # Show its values.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.document = document
        self.stepping = stepping
        self.nodes = CompareTable(document)
        self.tensor = TensorPage(document, queries, set_busy)
        self.first_difference = FirstDifferenceLine(document)
        self.parts = SegmentedSwitch(
            self.tr("Part of the comparison"),
            (
                Segment("nodes", self.tr("Nodes"), self.tr("All nodes against torch")),
                Segment("tensor", self.tr("Tensor"), self.tr("The values of the selected node")),
            ),
        )
        self.halves = Split(Qt.Orientation.Horizontal, self.nodes, self.tensor, sizes=(560, 680))
        # Only one of them is shown if space is short, so they must not set the pane's minimum
        # width.
        self.halves.setMinimumWidth(320)
        self.foot = QWidget()
        column_of(self.foot, self.first_difference, spacing=None)
        column_of(self, (self.halves, 1), self.foot)
        self.parts.changed.connect(self._choose_part)
        self.nodes.menu_wanted.connect(self._open_menu)
        self.nodes.node_wanted.connect(self.tensor_wanted)
        self._show_parts()

    def show_part(self, key: str) -> None:
        """Show ``"nodes"`` or ``"tensor"``, if there is not enough space for both."""
        self.parts.set_current(key)
        self._show_parts()

    def _choose_part(self, key: str) -> None:
        if key == "tensor":
            # It needs more height than a table.
            self.tensor_wanted.emit()
        self._show_parts()

    def _show_parts(self) -> None:
        both, chosen = self.width() >= BOTH, self.parts.current()
        # The switch is at the end of the visible part's header.
        (self.nodes if chosen == "nodes" else self.tensor).strip.addWidget(self.parts)
        self.parts.setVisible(not both)
        self.nodes.count.setVisible(self.width() >= COUNTED)
        self.nodes.setVisible(both or chosen == "nodes")
        self.tensor.setVisible(both or chosen == "tensor")
        self.foot.setVisible(both or chosen == "nodes")

    def _open_menu(self, node: str, place: QPoint) -> None:
        if node not in self.document.selection.chosen:
            self.document.select((node,))
        open_menu(self, node, place)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_parts()

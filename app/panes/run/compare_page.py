"""The page Compare: the table of nodes beside torch's, and the values of the selected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import QLineEdit, QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.commands import choose_from
from lowerscope.app.kit.layouts import STRETCH, column_of
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Gauge, Row, figures
from lowerscope.app.kit.theme import family_colour
from lowerscope.app.panes.common.descriptions import find_node, line_text, names_of
from lowerscope.app.panes.common.entity_table import EntityTable, matching
from lowerscope.app.panes.common.run_figures import hand_over_text, ratio_cell
from lowerscope.app.panes.run.outcomes import (
    is_inherited,
    runs_alone,
    select_next,
    starting,
    starts_here,
)
from lowerscope.app.panes.run.runs import Runs
from lowerscope.app.panes.run.tensor_page import TensorPage
from lowerscope.core.model.formatting import are_apart, duration_text, error_text, status_words
from lowerscope.core.model.graph import FAMILY_NAMES, STRATEGY_NAMES
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import STRATEGIES
from lowerscope.core.model.run_records import NOT_THERE, NodeRun, NodeStatus, RunRecord
from lowerscope.core.model.snapshot import FxNode, Snapshot
from lowerscope.core.model.texts import _

# --- Table of the nodes of the last run, beside torch ---

GIVEN = ("placeholder", "get_attr", "output")
"""Opcodes of nodes that compute nothing, so that there is nothing to compare."""

LOWEST = 1e-9
"""Error at the left end of the scale, unless the tolerance is smaller."""

_ORDER: dict[NodeStatus, float] = {
    "differs": 0.0,
    "inconclusive": 1.0,
    "rounding": 2.0,
    "not comparable": 3.0,
    "no reference": 4.0,
    "matches": 5.0,
}
"""Sort order of the verdicts."""


def compared_nodes(snapshot: Snapshot, record: RunRecord) -> Iterator[tuple[FxNode, NodeRun]]:
    """Yield the nodes that compute something, in the order of the graph, with their results."""
    runs = {each.id: each for each in record.nodes}
    for node in snapshot.fx:
        if node.opcode not in GIVEN and node.id in runs:
            yield node, runs[node.id]


def torch_in_calls(run: NodeRun, runs: Mapping[str, NodeRun]) -> float | None:
    """Return torch's time, in milliseconds, for all nodes that the calls of a node compute.

    ``None`` if the node was not timed in torch.
    """
    if run.torch_ms is None:
        return None
    others = (runs[each].torch_ms for each in run.shared_with if each in runs)
    return run.torch_ms + sum(filter(None, others))


def is_slower(run: NodeRun, runs: Mapping[str, NodeRun]) -> bool:
    """Return whether the calls of a node took longer than the nodes that they compute in torch."""
    ours, torch = run.milliseconds, torch_in_calls(run, runs)
    return ours is not None and torch is not None and ours > torch and are_apart(ours, torch)


KINDS: Mapping[str, Callable[[NodeRun, Mapping[str, NodeRun]], bool]] = {
    "all": lambda run, runs: True,
    "starts": lambda run, runs: starts_here(run),
    "differs": lambda run, runs: run.matches is False,
    "slower": is_slower,
    "not-compared": lambda run, runs: run.matches is None,
}
"""Predicates of the filters, given a node and all of them by their ids."""


def node_rows(snapshot: Snapshot, record: RunRecord) -> tuple[Row, ...]:
    """Return the rows of the nodes that compute something, keyed by node id."""
    inside, scale = _compared_at(record), _Scale(record)
    runs = {each.id: each for each in record.nodes}
    colours = {family: family_colour(theme.current(), family) for family in FAMILY_NAMES}
    return tuple(
        _row(
            number,
            node,
            run,
            record,
            scale,
            inside.get(node.id, ()),
            colours[node.family],
            torch_in_calls(run, runs),
        )
        for number, (node, run) in enumerate(compared_nodes(snapshot, record), start=1)
    )


class _Scale:
    """The logarithmic scale of the errors of a run, with the place of its tolerance."""

    def __init__(self, record: RunRecord) -> None:
        errors = [each.max_abs_error for each in record.nodes if each.max_abs_error]
        finite = [each for each in errors if math.isfinite(each)]
        self._low = math.log10(min(LOWEST, record.atol / 10 or LOWEST))
        self._span = math.log10(max(10 * record.atol, 1e-3, *finite)) - self._low
        self.mark = self.share(record.atol) if record.atol else None

    def share(self, error: float) -> float:
        if error == 0:
            return 0.0
        if not math.isfinite(error):
            return 1.0
        return min(1.0, max(0.02, (math.log10(error) - self._low) / self._span))


def _compared_at(record: RunRecord) -> Mapping[str, Sequence[str]]:
    """Return, by the node that holds the value of a fused group, the group's other nodes."""
    runs = {each.id: each for each in record.nodes}
    return {
        run.id: [each for each in run.shared_with if each in runs and runs[each].matches is None]
        for run in record.nodes
        if run.matches is not None and run.shared_with and run.id.startswith("fx:")
    }


def _row(
    number: int,
    node: FxNode,
    run: NodeRun,
    record: RunRecord,
    scale: _Scale,
    inside: Sequence[str],
    colour: str,
    torch_ms: float | None,
) -> Row:
    called = dict.fromkeys(record.calls[index].function for index in run.calls)
    strategy = STRATEGY_NAMES.get(node.strategy, "")
    about = "\n".join(filter(None, (node.label, strategy, node.rule, _(", ").join(called))))
    handed = hand_over_text([record.calls[index] for index in run.calls])
    is_first = node.id == record.first_difference
    facts = "\n".join((*_facts(run, inside, is_first), *filter(None, (handed,))))
    return Row(
        node.id,
        (
            Cell(str(number), "quiet", value=number),
            Cell(node.title, bold=is_first, tooltip=node.label),
            Cell(node.operator, "quiet", tooltip=about, square=colour),
            _error_cell(run, scale),
            _alone_cell(run),
            _time_cell(run.milliseconds),
            _time_cell(run.torch_ms),
            ratio_cell(run.milliseconds, torch_ms, record.times),
            _status_cell(run, facts),
        ),
        wrong=is_first,
    )


def _error_cell(run: NodeRun, scale: _Scale) -> Cell:
    error = run.max_abs_error
    if error is None:
        return Cell("–", "quiet")
    role = "pale-wrong" if is_inherited(run) else status_words(run.status)[1]
    gauge = Gauge(scale.share(error), role, scale.mark)
    text = "wrong" if run.matches is False and not is_inherited(run) else ""
    return Cell(error_text(error), text, value=error, gauge=gauge)


def _alone_cell(run: NodeRun) -> Cell:
    if run.own_abs_error is None:
        return Cell("–", "quiet", tooltip=run.own_reason)
    role = "wrong" if run.own_matches is False else "quiet"
    error = run.own_abs_error
    return Cell(error_text(error), role, tooltip=run.own_reason, value=error)


def _time_cell(milliseconds: float | None) -> Cell | str:
    if milliseconds is None:
        return "–"
    return Cell(duration_text(milliseconds), value=milliseconds)


def _status_cell(run: NodeRun, facts: str) -> Cell:
    words, role = status_words(run.status)
    if starts_here(run):
        words, role = _("✕ starts here"), "wrong"
    elif is_inherited(run):
        words, role = _("inherited"), "quiet"
    spoken = words.lstrip("✕✓≈ ")
    if run.status == "rounding":
        words = _("≈ rounding")
    order = _ORDER[run.status] + (0.5 if is_inherited(run) else 0.0)
    bold = role == "wrong"
    return Cell(words, role, bold=bold, tooltip=facts, value=order, spoken=spoken)


def _facts(run: NodeRun, inside: Sequence[str], is_first: bool) -> Iterator[str]:
    """Yield lines on the verdict on a node."""
    if is_first:
        yield _("The first node that differs, in the order of the graph")
    if starts_here(run):
        yield _("It also differs alone, on torch's inputs: the difference starts here")
    elif is_inherited(run):
        yield _("Alone, on torch's inputs, it matches: the difference is inherited")
    if run.not_finite:
        yield run.not_finite
    reason = run.reason.removeprefix(run.not_finite).removeprefix("; ")
    if reason:
        yield reason
    if inside:
        yield _("the value of a fused group, with {inside} inside", inside=names_of(tuple(inside)))
    if run.own_with:
        yield _("alone, together with {own_with}", own_with=names_of(run.own_with))


NUMBER, ALONE, TORCH_TIME, RATIO = 0, 4, 6, 7
"""Indices of columns."""


class NodesTable(QWidget):
    """The nodes of the last run, below their filters."""

    node_wanted = Signal(str)  # A row was activated by double click or Enter: the node.

    def __init__(self, document: Document, runs: Runs) -> None:
        super().__init__()
        self._document = document
        self._model = runs
        self._rows: tuple[Row, ...] = ()
        self._runs: dict[str, NodeRun] = {}
        self._stale = True
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(_("Node or operator"))
        self.filter.setAccessibleName(_("Filter of the nodes"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setMinimumWidth(70)
        self.filter.setMaximumWidth(160)
        self.sorts = SegmentedSwitch(_("Nodes to show"))
        self.table = EntityTable(
            document,
            _("Nodes compared with torch"),
            (
                Column("#", numeric=True, width=36),
                Column(_("node"), width=112, stretch=True),
                Column(
                    _("operator"),
                    width=98,
                    tooltip=_("Its colour is that of its operator family, as in graphs"),
                ),
                figures(
                    _("error in the run"),
                    122,
                    _(
                        "The largest absolute error of its value in the run; the mark is the "
                        "absolute tolerance, on a logarithmic scale"
                    ),
                ),
                figures(
                    _("alone"),
                    60,
                    _("The largest absolute error of the node alone, on torch's inputs"),
                ),
                figures(
                    _("TVM"), 60, _("Median time of its calls, with all that it is fused with")
                ),
                figures(_("torch"), 60, _("Median time of the node in torch")),
                figures(_("vs. torch"), 96),
                Column(_("status"), width=118),
            ),
            "fx",
        )
        self.table.set_sortable(True)
        column_of(self, strip_of(self.sorts, STRETCH, (self.filter, 1)), (self.table, 1))
        for keys, step in (("N", 1), ("Shift+N", -1)):
            shortcut = QShortcut(QKeySequence(keys), self.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(partial(select_next, document, starting, step))
        self.filter.textChanged.connect(self._show_rows)
        self.sorts.changed.connect(self._show_rows)
        self.table.row_activated.connect(self._open)
        document.on(("snapshot", "run", "running"), self._show_run)
        document.on(("selection", "snapshot"), self._show_selection)
        theme.notifier().changed.connect(self._show_run)
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
        snapshot, record = self._document.snapshot, self._model.newest
        self._rows, self._runs = (), {}
        if snapshot is not None and record is not None:
            self._rows = node_rows(snapshot, record)
            self._runs = {node.id: run for node, run in compared_nodes(snapshot, record)}
            self.table.set_empty(*self._nothing(record))
        self._show_sorts()
        self._show_rows()
        self._show_columns()

    def _nothing(self, record: RunRecord) -> tuple[str, str]:
        """Return the hint of the empty table."""
        if self._rows:
            return _("No such node"), _("No node passes the filter.")
        if record.ran_on:
            return _("It ran on {ran_on}", ran_on=record.ran_on), NOT_THERE
        title = _("No nodes to compare")
        if record.quick and not record.nodes:
            hint = _("This was a quick run of a slow model. Run (F5) compares its nodes.")
        elif not record.nodes:
            hint = _(
                "This source has no torch model to compare with; its outputs are in the summary."
            )
        else:
            hint = _("No node computes anything.")
        return title, hint

    def _show_columns(self) -> None:
        """Hide columns of dashes, and those that a narrow table has no room for."""
        runs = self._runs.values()
        has_torch = any(each.torch_ms is not None for each in runs)
        has_own = any(each.own_matches is not None for each in runs)
        for column, shown in (
            (NUMBER, True),
            (ALONE, has_own),
            (TORCH_TIME, has_torch),
            (RATIO, has_torch),
        ):
            self.table.setColumnHidden(column, not shown)
        for column in (ALONE, TORCH_TIME, NUMBER):
            if self.table.least_width() > self.table.viewport().width():
                self.table.setColumnHidden(column, True)

    def _show_sorts(self) -> None:
        segments = []
        for key, label, tooltip in self._kinds():
            count = sum(KINDS[key](each, self._runs) for each in self._runs.values())
            if count or key == "all":
                segments.append(Segment(key, f"{label} {count}", tooltip))
        self.sorts.set_segments(segments)
        self.sorts.setVisible(bool(self._rows))

    def _kinds(self) -> tuple[tuple[str, str, str], ...]:
        """Return key, text and tool tip of the filters."""
        return (
            ("all", _("All"), _("Every node that computes something")),
            (
                "starts",
                _("✕ Starts here"),
                _("Nodes that are out of tolerance on torch's inputs as well"),
            ),
            ("differs", _("Differs"), _("Nodes whose value is out of tolerance in the run")),
            (
                "slower",
                _("Slower"),
                _("Nodes whose calls take longer than torch for all that they compute"),
            ),
            (
                "not-compared",
                _("Not compared"),
                _("Nodes whose value could not be compared, with the reason"),
            ),
        )

    def _show_rows(self) -> None:
        belongs = KINDS.get(self.sorts.current(), KINDS["all"])
        rows = [row for row in self._rows if belongs(self._runs[row.key], self._runs)]
        self.table.set_rows(matching(rows, self.filter.text()))
        self._show_selection()

    def _show_selection(self) -> None:
        if self._stale or not self.isVisible():
            return
        self.table.show_selection()

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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_columns()


TENSOR = 376
"""Width of the values."""


class ComparePage(QWidget):
    """The table of nodes and, while one of them is selected, its values.

    Args:
        set_busy: Called with whether values are being fetched.
    """

    translation_wanted = Signal()  # Show the translation of the selected node.
    rule_wanted = Signal()  # Show the file of its rule.
    node_wanted = Signal()  # Show the selected node beside what it became.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        runs: Runs,
        set_busy: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self.document = document
        self.stepping = stepping
        self._runs = runs
        self.nodes = NodesTable(document, runs)
        self.tensor = TensorPage(document, queries, set_busy)
        across = Qt.Orientation.Horizontal
        self._split = Split(across, self.nodes, self.tensor, sizes=(720, TENSOR), shares=(1, 0))
        column_of(self, (self._split, 1))
        self.nodes.table.menu_wanted.connect(self._open_menu)
        self.nodes.node_wanted.connect(self.node_wanted)
        self.tensor.subject_changed.connect(self._show_tensor)
        document.on(("snapshot", "run", "running"), self._show_tensor)
        for key, step in ((Qt.Key.Key_Left, -1), (Qt.Key.Key_Right, 1)):
            shortcut = QShortcut(QKeySequence(key), self.nodes.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(partial(self.tensor.matrix.slices.step, step))
        alone = QShortcut(QKeySequence("A"), self)
        alone.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        alone.activated.connect(self._run_alone)
        self._show_tensor()

    def _run_alone(self) -> None:
        if runs_alone(self.document):
            self.tensor.show_alone()

    def _show_tensor(self) -> None:
        ran = self._runs.newest is not None
        self.tensor.setVisible(ran and self.tensor.has_subject)

    def _open_menu(self, node: str, place: QPoint) -> None:
        if node not in self.document.selection.chosen:
            self.document.select((node,))
        menu = QMenu(self)
        choose_from(menu, place, self._actions(menu, node))

    def _actions(self, menu: QMenu, entity: str) -> dict[QAction, Callable[[], object]]:
        """Fill the menu of a node; return what its entries do."""
        document = self.document
        snapshot = document.snapshot
        node = None if snapshot is None else find_node(snapshot, entity)
        if snapshot is None or node is None:
            return {}
        rule = _("Translation: {rule}", rule=literal(node.rule)) if node.rule else ""
        actions: dict[QAction, Callable[[], object]] = {
            menu.addAction(_("Show in Explore\tReturn")): self.node_wanted.emit,
            menu.addAction(rule or _("Translation")): self.translation_wanted.emit,
        }
        if node.rule_line is not None:
            text = _("Open the rule: {rule_line}", rule_line=literal(line_text(node.rule_line)))
            actions[menu.addAction(text)] = self.rule_wanted.emit
        step = next((each for each in snapshot.translation if each.node == entity), None)
        if step is not None:
            moment = Moment(section="translate", index=step.number)
            text = _("Step {number} of the translation", number=step.number)
            actions[menu.addAction(text)] = partial(self.stepping.go, moment)
        if node.strategy:
            below = menu.addMenu(_("Lower as"))
            for strategy in STRATEGIES:
                action = below.addAction(STRATEGY_NAMES[strategy])
                actions[action] = partial(document.lower_nodes, (entity,), strategy)
            below.addSeparator()
            reset = below.addAction(_("Reset to default"))
            actions[reset] = partial(document.lower_nodes, (entity,), None)
        menu.addSeparator()
        actions[menu.addAction(_("Show all nodes"))] = self.nodes.show_all
        actions[menu.addAction(_("Copy the rows\tCtrl+C"))] = self.nodes.table.copy
        return actions

"""The node map as a table, and the translation of one node: its rule, and its ``emit_te``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.dialogs import filter_field
from lowerscope.app.kit.layouts import column_of, row_of, stack_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import find_node, line_text, names_of
from lowerscope.app.panes.common.entity_table import EntityTable, matching
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import STRATEGY_LETTERS, STRATEGY_NAMES, name_of
from lowerscope.core.model.module_steps import TranslationRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import TranslationQuery
from lowerscope.core.model.snapshot import FxNode, NodeTranslation, RuleSource, Snapshot, TeRecord
from lowerscope.core.model.texts import _, _n, capitalized, labelled, sentences

# --- The node map as a table: the FX nodes, and what each added to the module ---

NOT_YET = _("not yet")
"""Text for a node that is not translated yet at the current step."""


class NodeMap(QWidget):
    """The page with the node map, which fills while stepping through the translation."""

    node_wanted = Signal()  # Show the translation of a node, on a double click.

    def __init__(self, document: Document) -> None:
        super().__init__()
        self._document = document
        self._filled: tuple[Row, ...] = ()
        self._later: tuple[Row, ...] = ()
        self._unmade = True
        self._stale = True
        self.filter = filter_field(
            _("Filter: a node, a rule, a strategy, a value…"), _("Filter of the node map")
        )
        # The pane may be narrower than its placeholder.
        self.filter.setMinimumWidth(0)
        self.count = Label(role="quiet")
        self.table = EntityTable(
            document,
            _("Node map"),
            (
                Column(_("#"), numeric=True, width=56),
                Column(_("node"), width=108),
                Column(_("target"), width=76),
                Column(_("strategy"), width=72, tooltip=_("The strategy")),
                Column(_("rule"), width=150),
                Column(
                    _("value"),
                    width=64,
                    tooltip=_("The node's value in the module"),
                ),
                Column(_("type"), width=116),
                Column(
                    _("adds"),
                    width=110,
                    stretch=True,
                    tooltip=_("Functions that this node added to the module"),
                ),
            ),
            "fx",
        )
        self.table.set_sortable(True)
        self.table.set_empty(
            _("No node map"),
            _("It lists the translation of each FX node of a PyTorch model."),
        )
        strip = row_of(None, (self.filter, 1), self.count, margins=(10, 4, 10, 4), spacing=12)
        column_of(self, strip, (self.table, 1))
        self.filter.textChanged.connect(self._show_rows)
        # A page that has just been shown is laid out only then.
        self.table.verticalScrollBar().rangeChanged.connect(self._reveal_step)
        self.table.row_activated.connect(self._open)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("moment",), self._show_moment)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        self._unmade = True
        self._show_moment()

    def _show_moment(self) -> None:
        # Thousands of rows are not built for a hidden page.
        self._stale = not self.isVisible()
        if not self._stale:
            self._show_rows()
            self._reveal_step()

    def _make_rows(self) -> None:
        snapshot = self._document.snapshot
        if self._unmade:
            self._unmade = False
            self._filled, self._later = ((), ()) if snapshot is None else _rows_of(snapshot)

    def _reveal_step(self) -> None:
        done = self._done()
        if self._is_stepped() and done and not self._stale:
            self.table.reveal(self._filled[done - 1].key)

    def _show_rows(self) -> None:
        self._make_rows()
        done = self._done()
        rows = [*self._filled[:done], *self._later[done:]]
        if self._is_stepped() and done:
            rows[done - 1] = _marked(rows[done - 1])
        shown = matching(rows, self.filter.text())
        self.table.set_rows(shown)
        self.count.setText(self._count_text(done, len(shown)))
        self._show_selection()

    def _count_text(self, done: int, shown: int) -> str:
        count = len(self._filled)
        nodes = _n("1 node", "{count} nodes", count)
        if shown != count:
            return _("{shown} of {nodes}", shown=shown, nodes=nodes)
        if self._is_stepped():
            return _("{done} of {count} translated", done=done, count=count)
        return nodes if count else ""

    def _is_stepped(self) -> bool:
        moment = self._document.moment
        return moment is not None and moment.section == "translate"

    def _done(self) -> int:
        """Return the number of nodes translated at the current step."""
        moment = self._document.moment
        if moment is None or moment.section != "translate":
            return len(self._filled)
        return moment.index

    def _show_selection(self) -> None:
        if self._stale:
            return
        self.table.show_selection()

    def _open(self, entity: str) -> None:
        self._document.select((entity,))
        self.node_wanted.emit()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._show_moment()


def _rows_of(snapshot: Snapshot) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return each node's row once translated, and before."""
    nodes = {node.id: node for node in snapshot.fx}
    found = ((record, nodes.get(record.node)) for record in snapshot.translation)
    pairs = [(record, node) for record, node in found if node is not None]
    return (
        tuple(_filled_row(record, node) for record, node in pairs),
        tuple(_later_row(record, node) for record, node in pairs),
    )


def _filled_row(record: TranslationRecord, node: FxNode) -> Row:
    value = record.value
    if record.rebound:
        value = _("{value}, also for {rebound}", value=value, rebound=names_of(record.rebound))
    bound = _(", ").join(name_of(each) for each in record.bindings)
    functions = _(", ").join(record.functions)
    return Row(
        record.node,
        (
            Cell(str(record.number), role="quiet", value=float(record.number)),
            Cell(node.name, bold=True, tooltip=node.label),
            Cell(node.target, role="quiet", tooltip=node.target),
            Cell(
                STRATEGY_LETTERS.get(node.strategy, ""),
                role=node.strategy,
                bold=True,
                tooltip=STRATEGY_NAMES.get(node.strategy, ""),
            ),
            Cell(node.rule, tooltip=node.rule),
            Cell(
                value,
                code=True,
                tooltip=_("{value}\nbound: {name}", value=value, name=bound) if bound else value,
            ),
            Cell(node.type, role="quiet", tooltip=node.type),
            Cell(functions, code=True, tooltip=functions),
        ),
    )


def _later_row(record: TranslationRecord, node: FxNode) -> Row:
    number = Cell(str(record.number), role="quiet", value=float(record.number))
    names = Cell(node.name, role="quiet"), Cell(node.target, role="quiet")
    return Row(record.node, (number, *names, *_LATER))


_LATER = tuple(Cell(text, role="quiet") for text in ("", NOT_YET, "", "", ""))
"""Cells shared by all rows of nodes that are not translated yet."""


def _marked(row: Row) -> Row:
    """Return the row of the current step."""
    number = row.cell(0)
    mark = replace(number, text=f"▸ {number.text}", role="accent", bold=True)
    return Row(row.key, (mark, *row.cells[1:]))


# --- The four steps of ``emit_te`` for a binding ---


class TePanel(QWidget):
    """Placeholders, expression, function and ``call_tir`` of one call at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: tuple[TeRecord, ...] = ()
        self.choice = QComboBox()
        self.choice.setAccessibleName(_("Call of emit_te"))
        self.choice.setMinimumContentsLength(12)
        self.choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.steps = SegmentedSwitch(
            _("Step of emit_te"),
            (
                Segment("placeholders", _("1 Placeholders")),
                Segment("expression", _("2 Expression")),
                Segment("function", _("3 Function")),
                Segment("call", _("4 call_tir")),
            ),
        )
        self.table = Table(
            _("Placeholders"),
            (
                Column(_("placeholder"), width=130),
                Column(_("shape"), width=120),
                Column(_("dtype"), width=90),
                Column(_("represents"), stretch=True),
            ),
        )
        self.table.set_empty(_("No placeholders"), _("It reads no tensor."))
        self.code = CodeView(_("Results of emit_te"))
        self.pages = stack_of(self.code, self.table)
        row = row_of(None, self.steps, (self.choice, 1), margins=(10, 4, 10, 4), spacing=8)
        column_of(self, row, (self.pages, 1))
        self.choice.currentIndexChanged.connect(self._show_step)
        self.steps.changed.connect(self._show_step)
        self.show_calls((), "", "")

    def show_calls(self, calls: tuple[TeRecord, ...], title: str, hint: str) -> None:
        """Show the first of some calls, at the same step as before; or a hint if there are none."""
        self._calls = calls
        self.code.set_empty(title, hint)
        self.choice.blockSignals(True)
        self.choice.clear()
        for each in calls:
            text = f"{name_of(each.binding)} = {each.title}"
            self.choice.addItem(_("{call} by LegalizeOps", call=text) if each.by_pass else text)
        self.choice.blockSignals(False)
        self.choice.setVisible(bool(calls))
        self.steps.setVisible(bool(calls))
        self._show_step()

    def _show_step(self) -> None:
        place = self.choice.currentIndex()
        found = self._calls[place] if 0 <= place < len(self._calls) else None
        step = self.steps.current()
        self.choice.setToolTip(self.choice.currentText())
        if found is None:
            self.pages.setCurrentWidget(self.code)
            self.code.set_text("")
            return
        self.pages.setCurrentWidget(self.table if step == "placeholders" else self.code)
        if step == "placeholders":
            self.table.set_rows(
                [
                    Row(
                        str(number),
                        (
                            Cell(each.name, code=True),
                            Cell(shape_text(each.shape)),
                            Cell(each.dtype, role="quiet"),
                            Cell(each.argument, code=True, tooltip=each.argument),
                        ),
                    )
                    for number, each in enumerate(found.placeholders)
                ]
            )
        elif step == "expression" and found.expression is None:
            self.code.set_empty(_("Not written as tensor expressions"), capitalized(found.refusal))
            self.code.set_text("")
        else:
            self.code.set_text(*_text_of(found, step))


def _text_of(found: TeRecord, step: str) -> tuple[str, str]:
    """Return the text of a step, and its language."""
    if step == "expression" and found.expression is not None:
        return found.expression.text, found.expression.language
    if step == "function":
        text = found.script.text
        if found.first_made:
            first = _(
                "an equal function was created for {binding}, and is called again",
                binding=name_of(found.first_made),
            )
            text = f"# {first}\n{text}"
        return text, found.script.language
    return found.call, "tvmscript"


# --- The rules that translated a node, with their source and its location ---

KINDS = {
    "user": _("your rule"),
    "built-in": _("rule"),
    "tvm": _("TVM's converter"),
    "library": _("registered as"),
    "torch": _("torch's source"),
    "python": _("computed by"),
    "te": _("TE function"),
}


class RulePanel(QWidget):
    """Shows one of several sources."""

    place_wanted = Signal(object)  # Open the file of a source: its `SourceLine`.

    def __init__(self) -> None:
        super().__init__()
        self._sources: tuple[RuleSource, ...] = ()
        self.choice = QComboBox()
        self.choice.setAccessibleName(_("Rule or function"))
        self.place = push_button("", act=self._open, look="quiet")
        self.remark = ElidedLabel(role="quiet")
        self.code = CodeView(_("Source of the rule"))
        parts = (self.choice, self.place, (self.remark, 1))
        column_of(self, row_of(None, *parts, margins=(10, 4, 10, 4), spacing=8), (self.code, 1))
        self.choice.currentIndexChanged.connect(self._show_source)
        self.show_sources((), "", "")

    def show_sources(self, sources: tuple[RuleSource, ...], title: str, hint: str) -> None:
        """Show the first of some sources, or a hint if there are none."""
        self._sources = sources
        self.code.set_empty(title, hint)
        self.choice.blockSignals(True)
        self.choice.clear()
        for each in sources:
            self.choice.addItem(labelled(KINDS[each.kind], each.name))
        self.choice.blockSignals(False)
        self.choice.setVisible(bool(sources))
        self._show_source(0)

    def _show_source(self, place: int) -> None:
        found = self._sources[place] if 0 <= place < len(self._sources) else None
        line = None if found is None else found.line
        self.place.setVisible(line is not None)
        if line is not None:
            self.place.setText(literal(line_text(line)))
            self.place.setToolTip(_("Open {value}", value=f"{Path(line.file)}:{line.line}"))
            self.place.setAccessibleName(self.place.toolTip())
        self.remark.set_whole("" if found is None else found.remark)
        if found is not None and not found.text:
            self.code.set_empty(_("No source"), capitalized(found.remark))
        self.code.set_text("" if found is None else found.text, "python")

    def _open(self) -> None:
        line = self._sources[self.choice.currentIndex()].line
        if line is not None:
            self.place_wanted.emit(line)


BOTH = 900
"""Width, in pixels, from which the rule and the calls of ``emit_te`` are side by side."""


class TranslationPage(QWidget):
    """The page about the last selected node, by a click or by a step.

    Args:
        set_busy: Called with whether the answer is pending.
    """

    def __init__(
        self, document: Document, queries: Queries, set_busy: Callable[[bool], None]
    ) -> None:
        super().__init__()
        self._document = document
        self._node = ""
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
        self.title = Label(role="title")
        self.summary = ElidedLabel(role="quiet")
        self.rule = RulePanel()
        self.te = TePanel()
        self.parts = SegmentedSwitch(
            _("Part of the translation"),
            (
                Segment("rule", _("Rule"), _("The source of the rule that lowered the node")),
                Segment("te", _("emit_te"), _("The four steps of emit_te")),
            ),
        )
        parts = (self.title, (self.summary, 1), self.parts)
        row = row_of(None, *parts, margins=(10, 4, 10, 0), spacing=12)
        self.halves = Split(Qt.Orientation.Horizontal)
        self.halves.setChildrenCollapsible(False)
        self.halves.addWidget(self.rule)
        self.halves.addWidget(self.te)
        self.halves.setSizes([500, 580])
        # Only one of them is shown if space is short, so they must not set the pane's minimum
        # width.
        self.halves.setMinimumWidth(320)
        column_of(self, row, (self.halves, 1))
        self.parts.changed.connect(self._show_parts)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show_parts()
        self._show_snapshot()

    def _show_parts(self) -> None:
        both, chosen = self.width() >= BOTH, self.parts.current()
        self.parts.setVisible(not both)
        self.rule.setVisible(both or chosen == "rule")
        self.te.setVisible(both or chosen == "te")

    def _show_snapshot(self) -> None:
        node = self._node
        snapshot = self._document.snapshot
        if snapshot is None or not snapshot.translation:
            self._show_nothing()
        elif self._document.selection.of_kind("fx"):
            self._show_selection()
        elif node and find_node(snapshot, node):
            self._want(node)
        else:
            # A useful default: the first node with a rule.
            self._want(next((each.id for each in snapshot.fx if each.strategy), snapshot.fx[0].id))

    def _show_selection(self) -> None:
        selection = self._document.selection
        chosen = [each for each in selection.chosen if each.startswith(("fx:", "part:"))]
        linked = selection.of_kind("fx")
        if chosen:
            self._want(chosen[-1] if chosen[-1].startswith("fx:") else linked[0])
        elif linked:
            self._want(linked[0])

    def _want(self, node: str) -> None:
        snapshot = self._document.snapshot
        found = None if snapshot is None else find_node(snapshot, node)
        if found is None:
            return
        strategy = STRATEGY_NAMES.get(found.strategy, "")
        self.title.setText(f"{name_of(node)} · {strategy}" if strategy else name_of(node))
        self._node = node
        self._watch.update()

    def _show_nothing(self) -> None:
        self._node = ""
        self._watch.update()
        self.title.setText("")
        self.summary.set_whole("")
        title = _("No translation")
        hint = _("The nodes of a PyTorch model are translated by rules, which are shown here.")
        self.rule.show_sources((), title, hint)
        self.te.show_calls((), "", "")

    def _query(self) -> TranslationQuery | None:
        recipe = self._document.recipe
        return TranslationQuery(recipe, self._node) if recipe is not None and self._node else None

    def _take(self, record: NodeTranslation) -> None:
        snapshot = self._document.snapshot
        count = 0 if snapshot is None else len(snapshot.fx)
        place = _("Node {number} of {count}.", number=record.number, count=count)
        self.summary.set_whole(sentences(place, record.summary))
        self.rule.show_sources(
            record.sources, _("No rule for {name}", name=name_of(record.node)), record.summary
        )
        self.te.show_calls(
            record.calls,
            _("No emit_te for {name}", name=name_of(record.node)),
            self._reason(record),
        )

    def _reason(self, record: NodeTranslation) -> str:
        if any(each.kind == "library" for each in record.sources):
            return _("It calls torch, so there are no tensor expressions.")
        return _("It adds no call of a TensorIR function.")

    def _take_problem(self, problem: Problem) -> None:
        self.summary.set_whole("")
        self.rule.show_sources((), problem.headline, problem.todo)
        self.te.show_calls((), "", "")

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_parts()

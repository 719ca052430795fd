"""The translation of one node: the rule with its source, and its calls of ``emit_te``."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.views.descriptions import find_node
from lowerscope.app.views.rule_panel import RulePanel
from lowerscope.app.views.te_panel import TePanel
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.segmented import Segment, SegmentedSwitch
from lowerscope.app.widgets.split import Split
from lowerscope.core.errors import Problem
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.labels import STRATEGY_NAMES
from lowerscope.core.model.queries import TranslationQuery
from lowerscope.core.records.translation import NodeTranslation

BOTH = 900
"""Width, in pixels, from which the rule and the calls of ``emit_te`` are side by side."""


class TranslationPage(QWidget):
    """The page about the last selected node, by a click or by a step.

    Parameters
    ----------
    set_busy
        Called with whether the answer is pending.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._node = ""
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
        self.title = Label()
        self.title.setProperty("role", "title")
        self.summary = ElidedLabel()
        self.summary.setProperty("role", "quiet")
        self.rule = RulePanel()
        self.te = TePanel()
        self.parts = SegmentedSwitch(
            self.tr("Part of the translation"),
            (
                Segment("rule", self.tr("Rule"), self.tr("The source of what lowered the node")),
                Segment("te", self.tr("emit_te"), self.tr("What emit_te did, in four steps")),
            ),
        )
        row = QHBoxLayout()
        row.setContentsMargins(10, 4, 10, 0)
        row.setSpacing(12)
        row.addWidget(self.title)
        row.addWidget(self.summary, 1)
        row.addWidget(self.parts)
        self.halves = Split(Qt.Orientation.Horizontal)
        self.halves.setChildrenCollapsible(False)
        self.halves.addWidget(self.rule)
        self.halves.addWidget(self.te)
        self.halves.setSizes([500, 580])
        # Only one of them is shown if space is short, so they must not set the pane's minimum
        # width.
        self.halves.setMinimumWidth(320)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.halves, 1)
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
        title = self.tr("No translation")
        hint = self.tr("The nodes of a PyTorch model are translated by rules; they stand here.")
        self.rule.show_sources((), title, hint)
        self.te.show_calls((), "", "")

    def _query(self) -> TranslationQuery | None:
        recipe = self._document.recipe
        return TranslationQuery(recipe, self._node) if recipe is not None and self._node else None

    def _take(self, record: NodeTranslation) -> None:
        snapshot = self._document.snapshot
        count = 0 if snapshot is None else len(snapshot.fx)
        place = self.tr("Node {0} of {1}.").format(record.number, count)
        self.summary.set_whole(f"{place} {record.summary}")
        self.rule.show_sources(
            record.sources, self.tr("No rule for {0}").format(name_of(record.node)), record.summary
        )
        self.te.show_calls(
            record.calls,
            self.tr("No emit_te for {0}").format(name_of(record.node)),
            self._reason(record),
        )

    def _reason(self, record: NodeTranslation) -> str:
        if any(each.kind == "library" for each in record.sources):
            return self.tr("It calls torch, so there are no tensor expressions.")
        return self.tr("It adds no call of a TensorIR function.")

    def _take_problem(self, problem: Problem) -> None:
        self.summary.set_whole("")
        self.rule.show_sources((), problem.headline, problem.todo)
        self.te.show_calls((), "", "")

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_parts()

"""The page Compare: FX nodes of the last run against torch, and the selected node's values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QMenu, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.split import Split
from lowerscope.app.panes.model.descriptions import find_node, line_text
from lowerscope.app.panes.run.compare_table import CompareTable
from lowerscope.app.panes.run.tensor_page import TensorPage
from lowerscope.core.model.entities import STRATEGY_NAMES
from lowerscope.core.model.formatting import error_text
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import STRATEGIES

# --- The menu of a row of the page Compare, with the commands on a node ---

if TYPE_CHECKING:
    pass

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
        self.halves = Split(Qt.Orientation.Horizontal)
        self.halves.setChildrenCollapsible(False)
        self.halves.addWidget(self.nodes)
        self.halves.addWidget(self.tensor)
        self.halves.setSizes([560, 680])
        # Only one of them is shown if space is short, so they must not set the pane's minimum
        # width.
        self.halves.setMinimumWidth(320)
        self.foot = QWidget()
        foot = QVBoxLayout(self.foot)
        foot.setContentsMargins(0, 0, 0, 0)
        foot.addWidget(self.first_difference)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.halves, 1)
        column.addWidget(self.foot)
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

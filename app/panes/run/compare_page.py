"""The page Compare: all nodes beside torch's, and the values of the selected one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.commands import choose_from
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import literal
from lowerscope.app.kit.split import Split
from lowerscope.app.panes.common.descriptions import find_node, line_text
from lowerscope.app.panes.run.differences import runs_alone
from lowerscope.app.panes.run.nodes_table import NodesTable
from lowerscope.app.panes.run.runs import Runs
from lowerscope.app.panes.run.tensor_page import TensorPage
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import STRATEGIES
from lowerscope.core.model.texts import _

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
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
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

"""The page Compare: FX nodes of the last run against torch, and the selected node's values."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.stepping import Stepping
from lowerscope.app.views.compare_menu import open_menu
from lowerscope.app.views.compare_table import CompareTable
from lowerscope.app.views.first_difference_line import FirstDifferenceLine
from lowerscope.app.views.tensor_page import TensorPage
from lowerscope.app.widgets.segmented import Segment, SegmentedSwitch
from lowerscope.app.widgets.split import Split

BOTH = 1240
"""Width, in pixels, from which the table and the values are side by side."""

COUNTED = 400
"""Width from which the number of nodes is shown."""


class ComparePage(QWidget):
    """The table of nodes, and the values of the selected one.

    Parameters
    ----------
    set_busy
        Called with whether values are being fetched.

    Signals
    -------
    translation_wanted
        Show the translation of the selected node.
    rule_wanted
        Show the file of its rule.
    tensor_wanted
        Show its values.
    """

    translation_wanted = Signal()
    rule_wanted = Signal()
    tensor_wanted = Signal()

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

"""The page Compare: each FX node of the last run against torch."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.views.compare_menu import open_menu
from lowerscope.app.views.compare_table import CompareTable
from lowerscope.app.views.first_difference_line import FirstDifferenceLine
from lowerscope.app.workspace import Workspace


class ComparePage(QWidget):
    """The table of nodes, and below it the first one that differs.

    Signals
    -------
    translation_wanted
        The user wants to see how the node that is selected was translated.
    rule_wanted
        The user wants to see the file of its rule.
    """

    translation_wanted = Signal()
    rule_wanted = Signal()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self.nodes = CompareTable(workspace)
        self.first_difference = FirstDifferenceLine(workspace)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.nodes, 1)
        column.addWidget(self.first_difference)
        self.nodes.menu_wanted.connect(self._open_menu)

    def _open_menu(self, node: str, place: QPoint) -> None:
        if node not in self.workspace.selection.chosen:
            self.workspace.select((node,))
        open_menu(self, node, place)

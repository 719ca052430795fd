"""What the pages of a difference have in common: a list at the left, the rest beside it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.views.formats import STATUS_MARKS
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.split import Split
from lowerscope.app.widgets.table import Cell, Table
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.difference import Status
from lowerscope.core.records.steps import Moment

ROLES: dict[Status, str] = {"same": "quiet", "changed": "", "added": "right", "removed": "wrong"}
"""The roles of the marks of a list."""

_ALL = 1000


def status_cell(status: Status) -> Cell:
    """Return the cell of a row's mark, which a screen reader says in words."""
    return Cell(STATUS_MARKS[status], ROLES[status], bold=True, tooltip=status, spoken=status)


class SidesPage(QWidget):
    """A difference of the workspace's two sides, fetched when it is looked at.

    Parameters
    ----------
    set_busy
        Called with whether a difference is on its way.
    table
        The list.
    view
        What stands at the right.
    width
        Of the list, in pixels.

    Signals
    -------
    shown
        Another difference has come, or a problem.
    """

    shown = Signal()

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        table: Table,
        view: QWidget,
        width: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self._filter = ""
        self._all = False
        self.split = Split(Qt.Orientation.Horizontal)
        self.split.addWidget(table)
        right = QWidget()
        self.column = QVBoxLayout(right)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.column.addWidget(view, 1)
        self.split.addWidget(right)
        # The list is as wide as it is, whatever the pane is.
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([width, _ALL - width])
        self.split.setCollapsible(1, False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.split)

    def forget(self) -> None:
        """Count what is shown as out of date."""
        self._fetching.forget()

    def set_filter(self, text: str, everything: bool) -> None:
        """List what has this in its name; what is the same on both sides as well, or not."""
        if (text, everything) != (self._filter, self._all):
            self._filter, self._all = text, everything
            self._show_list()

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self._show_problem(problem.headline, problem.todo)

    def _ask(self, sides: str, moment: Moment | None = None) -> int:
        """Ask for the difference; return the number of the request."""
        raise NotImplementedError

    def _show_list(self) -> None:
        raise NotImplementedError

    def _show_problem(self, title: str, hint: str) -> None:
        raise NotImplementedError

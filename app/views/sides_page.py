"""Base of the pages of a difference: a list on the left, the content beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.queries import Queries
from lowerscope.app.widgets.split import Split
from lowerscope.app.widgets.table import Cell, Table
from lowerscope.core.errors import Problem
from lowerscope.core.model.labels import STATUS_MARKS
from lowerscope.core.model.queries import Query
from lowerscope.core.records.difference import Status

ROLES: dict[Status, str] = {"same": "quiet", "changed": "", "added": "right", "removed": "wrong"}
"""The roles of the marks of a list."""

_ALL = 1000


def status_cell(status: Status) -> Cell:
    """Return the cell of a row's mark, with a word for screen readers."""
    return Cell(STATUS_MARKS[status], ROLES[status], bold=True, tooltip=status, spoken=status)


class SidesPage(QWidget):
    """A difference of the comparison's two sides, fetched when it is visible.

    Parameters
    ----------
    set_busy
        Called with whether a difference is being fetched.
    table
        The list.
    view
        The widget on the right.
    width
        Width of the list, in pixels.

    Signals
    -------
    shown
        Another difference or a problem has arrived.
    """

    shown = Signal()

    def __init__(
        self,
        queries: Queries,
        set_busy: Callable[[bool], None],
        table: Table,
        view: QWidget,
        width: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
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
        # The width of the list does not depend on the pane's.
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([width, _ALL - width])
        self.split.setCollapsible(1, False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.split)

    def set_filter(self, text: str, everything: bool) -> None:
        """List the entries whose name contains a text, including unchanged ones or not."""
        if (text, everything) != (self._filter, self._all):
            self._filter, self._all = text, everything
            self._show_list()

    def _take_problem(self, problem: Problem) -> None:
        self._show_problem(problem.headline, problem.todo)

    def _query(self) -> Query[Any] | None:
        """Return the query for the difference."""
        raise NotImplementedError

    def _take(self, record: Any) -> None:
        """Show the difference."""
        raise NotImplementedError

    def _show_list(self) -> None:
        raise NotImplementedError

    def _show_problem(self, title: str, hint: str) -> None:
        raise NotImplementedError

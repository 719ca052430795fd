"""The text of a difference, with a list of its functions; fetched when it is visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.code.diff_editor import DiffPart, DiffRun
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.core.model.graph import STATUS_MARKS
from lowerscope.core.model.line_difference import changed_words
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    Status,
)
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import DifferenceQuery, Query

# --- Base of the pages of a difference: a list on the left, the content beside it ---

ROLES: dict[Status, str] = {"same": "quiet", "changed": "", "added": "right", "removed": "wrong"}
"""The roles of the marks of a list."""

_ALL = 1000


def status_cell(status: Status) -> Cell:
    """Return the cell of a row's mark, with a word for screen readers."""
    return Cell(STATUS_MARKS[status], ROLES[status], bold=True, tooltip=status, spoken=status)


class SidesPage(QWidget):
    """A difference of the comparison's two sides, fetched when it is visible.

    Args:
        set_busy: Called with whether a difference is being fetched.
        table: The list.
        view: The widget on the right.
        width: Width of the list, in pixels.
    """

    shown = Signal()  # Another difference or a problem has arrived.

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


LIST_WIDTH = 240


class DifferencePage(SidesPage):
    """The functions that differ, on the left, and the difference of the selected one."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        pins: Pins,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        self._document = document
        self._pins = pins
        self._record: DifferenceRecord | None = None
        self._sides: tuple[ComparedModule, ComparedModule] | None = None
        self.diff = DiffView(_tr("Difference"), changed_words)
        self.functions = Table(
            _tr("Functions of the difference"),
            (
                Column("", width=28, tooltip=_tr("Status")),
                Column(_tr("function"), stretch=True, wrap=True),
                Column(_tr("lines"), numeric=True),
            ),
        )
        super().__init__(queries, set_busy, self.functions, self.diff, LIST_WIDTH, parent)
        self.functions.row_clicked.connect(self._choose)
        self.functions.empty.set_text(self.tr("No function"), "")
        document.on(("selection", "snapshot"), self._follow_selection)

    @property
    def record(self) -> DifferenceRecord | None:
        """The difference shown; ``None`` before it arrives, and after a problem."""
        return self._record

    @property
    def is_current(self) -> bool:
        """Return whether the difference shown is that of the comparison's two sides."""
        return self._record is not None and self._sides == self._pins.sides

    @property
    def relax_function(self) -> str:
        """The Relax function selected in the list, or else ``main``."""
        chosen = self.functions.selected_keys()
        functions = () if self._record is None else self._record.functions
        relax = [each.name for each in functions if each.kind == "relax" and each.name in chosen]
        return relax[0] if relax else "main"

    def show_sides(self) -> None:
        """Show the difference of the comparison's two sides, once it arrives."""
        sides = self._pins.sides
        if sides is None:
            self._show_problem(self.tr("Nothing is open"), "")
        self._watch.update()

    def _query(self) -> DifferenceQuery | None:
        sides = self._pins.sides
        return None if sides is None else DifferenceQuery(*sides)

    def _take(self, record: DifferenceRecord) -> None:
        self._record, self._sides = record, self._pins.sides
        self._show_list()
        self._follow_selection()
        self.shown.emit()

    def _show_problem(self, title: str, hint: str) -> None:
        self._record = None
        self.functions.set_rows(())
        self.diff.set_empty(title, hint)
        self.diff.set_parts(())
        self.shown.emit()

    def _show_list(self) -> None:
        record = self._record
        if record is None:
            return
        wanted = self._filter.lower()
        named = [each for each in record.functions if wanted in each.name.lower()]
        chosen = [each for each in named if self._all or each.status != "same"]
        self.functions.set_rows([_row(each) for each in chosen])
        if not chosen:
            self.diff.set_empty(*self._nothing(bool(named)))
        self.diff.set_parts([diff_part(each) for each in chosen], record.language)

    def _nothing(self, named: bool) -> tuple[str, str]:
        if named:
            hint = self.tr("Tick “Same too” to see the functions all the same.")
            return self.tr("Nothing differs"), hint
        return self.tr("No function has this in its name"), ""

    def _choose(self, key: str, _modifiers: Qt.KeyboardModifier) -> None:
        self.diff.show_part(key)

    def _follow_selection(self) -> None:
        """Scroll to what is selected in the other panes."""
        linked = self._document.selection.linked
        rows = [row.key for row in self.functions.rows()]
        found = [key for key in rows if f"tir:{key}" in linked]
        self.functions.set_selection(found)
        if found:
            self.functions.reveal(found[0])
            self.diff.show_part(found[0])


def _row(function: FunctionDifference) -> Row:
    quiet = "quiet" if function.status == "same" else ""
    some = [
        (status, count)
        for status, count in _counts(function)
        if count and function.status != "same"
    ]
    counts = [f"{STATUS_MARKS[status]}{count}" for status, count in some]
    spoken = ", ".join(f"{count} {status}" for status, count in some)
    return Row(
        function.name,
        (
            status_cell(function.status),
            Cell(function.name, quiet, tooltip=function.name),
            Cell(" ".join(counts), "quiet", spoken=spoken),
        ),
    )


def _counts(function: FunctionDifference) -> tuple[tuple[Status, int], ...]:
    return (
        ("added", function.added),
        ("removed", function.removed),
        ("changed", function.changed + len(function.constants)),
    )


def diff_part(function: FunctionDifference) -> DiffPart:
    """Return the difference of a function, in the viewer's format."""
    old = function.old.split("\n") if function.status != "added" else []
    same = function.status == "same"
    new = (function.old if same else function.new).split("\n")
    new = new if function.status != "removed" else []
    runs = [DiffRun(run.status, run.old, run.new, run.length) for run in function.runs]
    if function.constants:
        # They have lines of their own below the text, which refers to constants by number.
        first = len(old) + 1, len(new) + 1
        runs.append(DiffRun("changed", *first, len(function.constants)))
        old += [f"# values of {each.name}: {each.count:,}" for each in function.constants]
        new += [f"# {each.line()}" for each in function.constants]
    return DiffPart(title=function.name, status=function.status, old=old, new=new, runs=runs)


def _tr(text: str) -> str:
    return QCoreApplication.translate("DifferencePage", text)

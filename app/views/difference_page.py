"""The text of a difference, with the list of its functions; fetched when it is looked at."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QWidget

from lowerscope.app.views.formats import STATUS_MARKS
from lowerscope.app.views.sides_page import SidesPage, status_cell
from lowerscope.app.widgets.diff.view import DiffPart, DiffRun, DiffView
from lowerscope.app.widgets.table import Cell, Column, Row, Table
from lowerscope.app.workspace import Workspace
from lowerscope.core.records.difference import DifferenceRecord, FunctionDifference, Side, Status
from lowerscope.core.records.steps import Moment
from lowerscope.core.rendering.changed_words import changed_words

LIST_WIDTH = 240


class DifferencePage(SidesPage):
    """The functions that differ at the left, and their lines."""

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        self._record: DifferenceRecord | None = None
        self._sides: tuple[Side, Side] | None = None
        self.diff = DiffView(_tr("Difference"), changed_words)
        self.functions = Table(
            _tr("Functions of the difference"),
            (
                Column("", width=28, tooltip=_tr("Status")),
                Column(_tr("function"), stretch=True, wrap=True),
                Column(_tr("lines"), numeric=True),
            ),
        )
        super().__init__(workspace, set_busy, self.functions, self.diff, LIST_WIDTH, parent)
        self.functions.row_clicked.connect(self._choose)
        self.functions.empty.set_text(self.tr("No function"), "")
        workspace.selection_changed.connect(self._follow_selection)

    @property
    def record(self) -> DifferenceRecord | None:
        """What is shown; ``None`` before it has come, and where there was a problem."""
        return self._record

    @property
    def is_current(self) -> bool:
        """Whether what is shown is the difference of the workspace's two sides."""
        return self._record is not None and self._sides == self._workspace.pins.sides

    @property
    def relax_function(self) -> str:
        """The Relax function that is chosen in the list; ``main`` where none is."""
        chosen = self.functions.selected_keys()
        functions = () if self._record is None else self._record.functions
        relax = [each.name for each in functions if each.kind == "relax" and each.name in chosen]
        return relax[0] if relax else "main"

    def show_sides(self) -> None:
        """Show the difference of the workspace's two sides, as soon as it is there."""
        sides = self._workspace.pins.sides
        if sides is None:
            self._fetching.forget()
            self._show_problem(self.tr("Nothing is open"), "")
        else:
            self._fetching.want(msgspec.json.encode(sides).decode())

    def _ask(self, _sides: str, _moment: Moment | None = None) -> int:
        sides = self._workspace.pins.sides
        assert sides is not None
        return self._workspace.fetches.difference(sides, self._take, self._take_problem)

    def _take(self, record: DifferenceRecord) -> None:
        self._fetching.settle(came=True)
        self._record, self._sides = record, self._workspace.pins.sides
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
        """Bring what is selected in the other panes into view."""
        linked = self._workspace.selection.linked
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
    """Return the difference of a function, as the viewer takes it."""
    old = function.old.split("\n") if function.status != "added" else []
    same = function.status == "same"
    new = (function.old if same else function.new).split("\n")
    new = new if function.status != "removed" else []
    runs = [DiffRun(run.status, run.old, run.new, run.length) for run in function.runs]
    if function.constants:
        # Lines of their own below the text, which names constants by number.
        first = len(old) + 1, len(new) + 1
        runs.append(DiffRun("changed", *first, len(function.constants)))
        old += [f"# values of {each.name}: {each.count:,}" for each in function.constants]
        new += [f"# {each.line()}" for each in function.constants]
    return DiffPart(title=function.name, status=function.status, old=old, new=new, runs=runs)


def _tr(text: str) -> str:
    return QCoreApplication.translate("DifferencePage", text)

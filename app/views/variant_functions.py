"""Two variants side by side: which functions they call, how long each takes, what has changed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.views.variant_rows import function_columns, function_row
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.table import Table
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.difference import DifferenceRecord, FunctionDifference, Side
from lowerscope.core.records.steps import Moment
from lowerscope.core.records.times import is_reliable
from lowerscope.core.records.variant import Variant, can_be_told, function_times
from lowerscope.core.rendering.time_text import UNRELIABLE, ratio_text


class VariantFunctions(QWidget):
    """The functions of two variants that have run.

    Signals
    -------
    text_wanted(str)
        The user wants to see how the script of a function has changed.

    Parameters
    ----------
    set_busy
        Called with whether a difference is on its way.
    """

    text_wanted = Signal(str)

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._sides: tuple[Variant, Variant] | None = None
        self._texts: dict[str, FunctionDifference] = {}
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)
        self.table = Table(self.tr("Functions of both variants"), function_columns())
        self.table.set_sortable(True)
        self.table.set_empty(self.tr("Neither of them calls a function"))
        self.table.row_activated.connect(self.text_wanted)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.table, 1)

    @property
    def sides(self) -> tuple[Variant, Variant] | None:
        """The variants that are compared, A and B."""
        return self._sides

    def words(self) -> str:
        """Return which variants these are, and which is the faster one; empty without any."""
        if self._sides is None:
            return ""
        old, new = self._sides
        before, after = old.record, new.record
        assert before is not None
        assert after is not None
        quicker, slower = sorted((before.tvm_ms, after.tvm_ms))
        said = self.tr("no difference in time can be told")
        if not (is_reliable(before.times) and is_reliable(after.times)):
            said = UNRELIABLE
        if can_be_told(old, new):
            is_new = after.tvm_ms < before.tvm_ms
            said = self.tr("B is {0} as fast") if is_new else self.tr("A is {0} as fast")
        ratio = ratio_text(slower / quicker)
        # What it comes to is said first, since names are long.
        return self.tr("{2}: A {0}, B {1}").format(old.name, new.name, said.format(ratio))

    def set_sides(self, sides: tuple[Variant, Variant] | None) -> None:
        """Compare other variants, both of which have run; or none."""
        if sides == self._sides:
            return
        recipes = None if self._sides is None else [each.recipe for each in self._sides]
        self._sides = sides
        if sides is None:
            self._fetching.forget()
            return
        if [each.recipe for each in sides] != recipes:
            self._texts = {}
            self._fetching.want(msgspec.json.encode([each.recipe for each in sides]).decode())
        self._show()

    def _show(self) -> None:
        assert self._sides is not None
        before, after = (each.record for each in self._sides)
        assert before is not None
        assert after is not None
        rows = [function_row(each, self._texts) for each in function_times(before, after)]
        self.table.set_rows(rows)

    def _ask(self, _recipes: str, _moment: Moment | None) -> int:
        assert self._sides is not None
        old, new = (Side(recipe=each.recipe) for each in self._sides)
        return self._workspace.fetches.difference((old, new), self._take, self._take_problem)

    def _take(self, record: DifferenceRecord) -> None:
        self._fetching.settle(came=True)
        self._texts = {each.name: each for each in record.functions}
        if self._sides is not None:
            self._show()

    def _take_problem(self, _problem: Problem) -> None:
        # The times stand without it, and whoever opens the difference reads why.
        self._fetching.settle(came=False)

"""Two variants side by side: their functions, the time of each, and the changes."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from lowerscope.app.document.queries import Queries
from lowerscope.app.views.variant_rows import function_columns, function_row
from lowerscope.app.widgets.table import Table
from lowerscope.core.errors import Problem
from lowerscope.core.model.formatting import ratio_text
from lowerscope.core.model.queries import DifferenceQuery
from lowerscope.core.records.difference import DifferenceRecord, FunctionDifference, Side
from lowerscope.core.records.times import is_reliable
from lowerscope.core.records.variant import Variant, can_be_told, function_times
from lowerscope.core.rendering.time_text import UNRELIABLE


class VariantFunctions(QWidget):
    """The functions of two variants that have run.

    Signals
    -------
    text_wanted(str)
        Show the changes of a function's script.

    Parameters
    ----------
    set_busy
        Called with whether a difference is being fetched.
    """

    text_wanted = Signal(str)

    def __init__(
        self,
        queries: Queries,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._sides: tuple[Variant, Variant] | None = None
        self._texts: dict[str, FunctionDifference] = {}
        self._watch = queries.watch(self, self._query, self._take, self._take_problem, set_busy)
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
        """The compared variants, A and B."""
        return self._sides

    def words(self) -> str:
        """Return the names of the variants, and which is faster; empty without any."""
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
        # The result comes first, since names are long.
        return self.tr("{2}: A {0}, B {1}").format(old.name, new.name, said.format(ratio))

    def set_sides(self, sides: tuple[Variant, Variant] | None) -> None:
        """Set the variants to compare, both of which have run; or none."""
        if sides == self._sides:
            return
        recipes = None if self._sides is None else [each.recipe for each in self._sides]
        self._sides = sides
        if sides is None:
            self._watch.update()
            return
        if [each.recipe for each in sides] != recipes:
            self._texts = {}
            self._watch.refresh()
        self._show()

    def _show(self) -> None:
        assert self._sides is not None
        before, after = (each.record for each in self._sides)
        assert before is not None
        assert after is not None
        rows = [function_row(each, self._texts) for each in function_times(before, after)]
        self.table.set_rows(rows)

    def _query(self) -> DifferenceQuery | None:
        if self._sides is None:
            return None
        return DifferenceQuery(*(Side(recipe=each.recipe) for each in self._sides))

    def _take(self, record: DifferenceRecord) -> None:
        self._texts = {each.name: each for each in record.functions}
        if self._sides is not None:
            self._show()

    def _take_problem(self, _problem: Problem) -> None:
        """Show the times without it; the difference itself shows the problem."""

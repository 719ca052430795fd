"""The page Rounding: both sides against float64, node by node, and the cost of narrower weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import KeptAnswer, Queries
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.split import strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Gauge, Row, figures
from lowerscope.app.panes.common.entity_table import EntityTable
from lowerscope.core.model.comparison_records import ErrorBudget, NodeErrors, WeightDtype
from lowerscope.core.model.formatting import error_text
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.queries import NodeErrorsQuery
from lowerscope.core.model.texts import _


class Rounding(KeptAnswer[ErrorBudget]):
    """The computation in float64 in progress, and the errors of the nodes in the last run."""

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document, queries, "rounding")
        document.on(("recipe", "pending", "run", "running"), self.follow_changes)

    @property
    def can_start(self) -> bool:
        """Return whether there is a run, and no other is in progress."""
        document = self._document
        return document.run_record is not None and not (document.running or document.is_changing)

    def start(self, dtype: WeightDtype) -> None:
        """Compute the errors, with those of weights of a dtype if one is named."""
        recipe = self._document.recipe
        if recipe is not None and self.can_start:
            query = NodeErrorsQuery(recipe, dtype)
            self._start(recipe, query, _("Computing the nodes in float64"))


def rounding_rows(budget: ErrorBudget) -> Iterator[Row]:
    """Yield a row for each node, of its tensor with the largest error."""
    worst: dict[str, NodeErrors] = {}
    for each in budget.nodes:
        if each.id not in worst or worst[each.id].relative < each.relative:
            worst[each.id] = each
    largest = max((each.made or 0.0 for each in worst.values()), default=0.0)
    for number, each in enumerate(worst.values(), start=1):
        gauge = Gauge((each.made or 0.0) / largest, "unsure") if largest else None
        yield Row(
            each.id,
            (
                Cell(str(number), "quiet", value=number),
                Cell(name_of(each.id)),
                Cell(each.operator, "quiet"),
                *(Cell(error_text(error), value=error) for error in (each.tvm, each.torch)),
                Cell(each.nearer),
                Cell(error_text(each.relative), value=each.relative),
                Cell(error_text(each.made), value=each.made, gauge=gauge),
                *(
                    Cell(error_text(error), value=error)
                    for error in (each.narrow_made, each.narrow)
                ),
            ),
        )


NARROW = (8, 9)
"""Indices of the columns on narrower weights."""


class RoundingPage(SeenPage):
    """The nodes with their errors against float64, below the choice of a dtype of weights."""

    def __init__(self, document: Document, rounding: Rounding) -> None:
        super().__init__()
        self._rounding = rounding
        self.dtype = SegmentedSwitch(
            _("Weights"),
            [Segment(each, each or _("own weights")) for each in get_args(WeightDtype)],
        )
        self.compute = push_button(
            _("Compute"),
            _("Run the nodes in float64, and compare TVM and torch with that"),
            act=self._start_or_stop,
        )
        self.state = ElidedLabel(role="quiet")
        self.table = EntityTable(
            document,
            _("Errors against float64"),
            (
                Column("#", numeric=True, width=36),
                Column(_("node"), width=112, stretch=True),
                Column(_("operator"), width=112),
                figures("TVM", 90, _("The largest absolute error of TVM in the run")),
                figures("torch", 90, _("The largest absolute error of torch")),
                Column(
                    _("nearer"), width=80, tooltip=_("The side with the far smaller error, if any")
                ),
                figures(
                    _("relative"),
                    90,
                    _("Error of TVM: root mean square, relative to that of the exact values"),
                ),
                figures(
                    _("own error"),
                    122,
                    _("Error of the node alone, as torch computes it on exact inputs"),
                ),
                figures(
                    _("low-precision weights"),
                    110,
                    _("Relative error of the node alone, if its weights alone were of that dtype"),
                ),
                figures(
                    _("in the run"),
                    90,
                    _("Relative error here, if the weights of all nodes were of that dtype"),
                ),
            ),
            "fx",
        )
        self.table.set_sortable(True)
        strip = strip_of(self.dtype, self.compute, (self.state, 1))
        column_of(self, strip, (self.table, 1))
        self.dtype.changed.connect(lambda _key: self._start())
        rounding.changed.connect(self.show_if_seen)
        document.on(("selection",), self._show_selection)
        self.show_content()

    def _start(self) -> None:
        self._rounding.start(cast("WeightDtype", self.dtype.current()))

    def _start_or_stop(self) -> None:
        if self._rounding.running:
            self._rounding.cancel()
        else:
            self._start()

    def show_content(self) -> None:
        rounding, budget = self._rounding, self._rounding.record
        self.compute.setText(_("Stop") if rounding.running else _("Compute"))
        self.compute.setEnabled(rounding.running or rounding.can_start)
        if rounding.running:
            self.state.set_whole(rounding.progress[0])
        elif rounding.problem is not None:
            self.state.set_whole(rounding.problem.line())
        else:
            self.state.set_whole("" if budget is None else budget.text)
        self.table.set_empty(
            _("No errors yet"),
            _("Compute runs the nodes in float64, and compares TVM and torch with that."),
        )
        self.table.set_rows([] if budget is None else list(rounding_rows(budget)))
        for column in NARROW:
            self.table.setColumnHidden(column, budget is None or not budget.dtype)
        self._show_selection()

    def _show_selection(self) -> None:
        if self.isVisible():
            self.table.show_selection()

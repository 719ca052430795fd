"""The page Rounding, with plain values as answers."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.rounding_page import RoundingPage
from lowerscope.core.model.comparison_records import ErrorBudget, NodeErrors
from lowerscope.core.model.queries import NodeErrorsQuery
from tests.app.panes.test_run_model import TIMED
from tests.app.panes.test_run_pages import shown
from tests.app.plain_values import CANCELLED, RECIPE, TE, Bench

NODES = (
    NodeErrors(
        id="fx:dense", item=0, operator="linear", tvm=3e-7, torch=4e-6, relative=1e-7, made=3e-7
    ),
    NodeErrors(id="fx:relu", item=0, operator="relu", tvm=2e-6, torch=1e-6, made=0.0),
)


def test_rounding_is_computed_cancelled_and_shown(bench: Bench, qtbot: QtBot) -> None:
    rounding = bench.features.rounding
    page = RoundingPage(bench.document, rounding)
    page.resize(1200, 400)
    bench.open(RECIPE)
    shown(qtbot, page)
    assert not page.compute.isEnabled()
    bench.run(TIMED)
    page.compute.click()
    sent = bench.sent(NodeErrorsQuery)
    assert sent.query == NodeErrorsQuery(RECIPE)
    sent.progress("Computing relu in float64")
    assert page.state.whole() == "Computing relu in float64"
    page.compute.click()
    sent.refuse(CANCELLED)
    assert (rounding.running, list(page.table.rows())) == (False, [])
    page.compute.click()
    bench.sent(NodeErrorsQuery).answer(ErrorBudget(nodes=NODES))
    dense, relu = page.table.rows()
    assert [row.cells[1].text for row in (dense, relu)] == ["dense", "relu"]
    assert (dense.cells[5].text, relu.cells[5].text) == ("TVM", "")
    assert "linear" in page.state.whole()
    assert page.table.isColumnHidden(8)
    page.dtype.set_current("int8")
    page.dtype.changed.emit("int8")
    sent = bench.sent(NodeErrorsQuery)
    assert sent.query == NodeErrorsQuery(RECIPE, "int8")
    sent.answer(ErrorBudget(dtype="int8", nodes=NODES))
    assert not page.table.isColumnHidden(8)
    # Of another recipe, nothing is known.
    bench.open(TE)
    assert not page.table.rows()

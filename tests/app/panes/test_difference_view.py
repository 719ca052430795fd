"""The difference of a step, with records as plain values."""

from __future__ import annotations

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.difference.difference_view import DifferenceView
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.module_steps import (
    DifferenceRecord,
    FunctionDifference,
    GraphDifference,
    Run,
)
from lowerscope.core.model.queries import DifferenceQuery, GraphDifferenceQuery, SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from tests.app.conftest import bench
from tests.app.plain_values import WRONG, Bench

__all__ = ["bench"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), steps=(Step(name="LegalizeOps"),))
LONGER = msgspec.structs.replace(RECIPE, steps=(*RECIPE.steps, Step(name="FoldConstant")))
MAIN = FunctionDifference(
    name="main", kind="relax", status="changed", old="a", new="b", runs=(Run("changed", 1, 1, 1),)
)
DIFFERENCE = DifferenceRecord(old_label="before", new_label="after", functions=(MAIN,))
GRAPHS = GraphDifference(
    old_label="before", new_label="after", function="main", graph=GraphRecord(), nodes=()
)


@pytest.fixture
def view(qtbot: QtBot, bench: Bench) -> DifferenceView:
    """Return the view, with the difference of an open recipe."""
    view = DifferenceView(bench.features.shared, lambda _busy: None)
    qtbot.addWidget(view)
    view.resize(900, 600)
    view.show()
    bench.open(RECIPE)
    bench.sent(DifferenceQuery).answer(DIFFERENCE)
    assert not view.veil.text()
    return view


def test_a_difference_of_the_previous_pipeline_is_not_shown_as_the_new_one(
    qtbot: QtBot, bench: Bench, view: DifferenceView
) -> None:
    bench.document.change(LONGER)
    assert view.veil.text() == "Passes are running…"
    assert view.page.record is DIFFERENCE
    qtbot.waitUntil(view.veil.isVisible)
    bench.derive()
    assert view.veil.text() == "Comparing…"
    bench.sent(DifferenceQuery).answer(msgspec.structs.replace(DIFFERENCE, old_label="other"))
    assert not view.veil.text()
    assert not view.veil.isVisible()


def test_a_rejected_pipeline_leaves_the_difference_as_it_is(
    bench: Bench, view: DifferenceView
) -> None:
    bench.document.change(LONGER)
    bench.sent(SnapshotQuery).refuse(WRONG)
    assert not view.veil.text()
    bench.document.change(LONGER)
    bench.derive()
    bench.sent(DifferenceQuery).refuse(WRONG)
    assert not view.veil.text()
    assert view.page.record is None


def test_the_graph_waits_for_its_own_difference(bench: Bench, view: DifferenceView) -> None:
    view.kinds.changed.emit("graph")
    bench.sent(GraphDifferenceQuery).answer(GRAPHS)
    assert not view.veil.text()
    bench.change(LONGER)
    bench.sent(DifferenceQuery).answer(DIFFERENCE)
    assert view.veil.text() == "Comparing…"
    bench.sent(GraphDifferenceQuery).answer(GRAPHS)
    assert not view.veil.text()

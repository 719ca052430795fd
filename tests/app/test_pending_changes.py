"""Requests before the last change is there: nothing is lost, and nothing too much."""

from __future__ import annotations

import msgspec
from pytestqt.qtbot import QtBot

from lowerscope.core.model.queries import RunQuery, ScheduleQuery
from lowerscope.core.model.schedule import Primitive
from tests.app.conftest import bench
from tests.app.plain_values import RECIPE, TE, Bench
from tests.app.test_features import scheduled

__all__ = ["bench"]

LIBRARY = msgspec.structs.replace(RECIPE, lowering="library")
NATIVE = msgspec.structs.replace(TE, target="native")


def test_undo_and_redo_go_on_while_the_last_is_pending(bench: Bench) -> None:
    document = bench.document
    bench.open(RECIPE)
    bench.change(TE)
    bench.change(NATIVE)
    document.undo()
    document.undo()
    assert document.wanted == RECIPE
    assert not document.can_undo
    document.redo()
    assert document.wanted == TE
    bench.derive()
    assert document.recipe == TE
    # Another change while it goes back: undo leads to where it went back to.
    document.undo()
    bench.change(LIBRARY)
    document.undo()
    bench.derive()
    assert document.recipe == RECIPE
    # A change that is undone before its records arrive can be redone.
    document.change(NATIVE)
    document.undo()
    assert not document.is_changing
    assert document.recipe == RECIPE
    document.redo()
    bench.derive()
    assert document.recipe == NATIVE


def test_a_reload_leaves_a_pending_change(bench: Bench) -> None:
    document = bench.document
    bench.open(TE)
    document.change(NATIVE)
    document.reload()
    bench.derive(key="2")
    assert document.recipe == NATIVE
    document.undo()
    bench.derive(key="2")
    assert document.recipe == TE


def test_a_primitive_leaves_a_pending_change(bench: Bench) -> None:
    document, scheduling = bench.document, bench.features.scheduling
    bench.open(TE)
    scheduling.look("dense")
    bench.features.stepping.set_section("schedule")
    bench.sent(ScheduleQuery).answer(scheduled(0))
    document.change(NATIVE)
    assert document.is_changing
    scheduling.editing.apply(Primitive(id="", name="unroll"))
    bench.derive()
    assert document.recipe is not None
    assert document.recipe.target == "native"
    assert len(scheduling.primitives) == 1


def test_a_run_of_a_source_that_is_withdrawn_is_given_up(bench: Bench, qtbot: QtBot) -> None:
    document = bench.document
    document.open(RECIPE)
    bench.features.runs.run()
    assert document.running
    document.undo()
    assert not document.running
    assert not document.job.text
    assert bench.count(RunQuery) == 0

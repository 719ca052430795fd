"""Playing until something of a node changes, and breakpoints on nodes in the passes."""

from __future__ import annotations

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.queries import SnapshotQuery, TouchingStepsQuery
from tests.app.conftest import bench
from tests.app.plain_values import RECIPE, Bench, snapshot

__all__ = ["bench"]

PASSES = tuple(
    PassRecord(number=number, label=str(number), name=f"Pass{number}", step=number, changed=("f",))
    for number in range(1, 6)
)


@pytest.fixture
def opened(bench: Bench) -> Bench:
    bench.document.open(RECIPE)
    records = msgspec.structs.replace(snapshot("dense", "relu"), passes=PASSES)
    bench.sent(SnapshotQuery).answer(records)
    return bench


def after(index: int) -> Moment:
    return Moment(section="passes", index=index)


def test_playing_goes_on_until_the_selection_changes(qtbot: QtBot, opened: Bench) -> None:
    features, stepping = opened.features, opened.features.stepping
    opened.document.select(("fx:dense",))
    stepping.go(after(2))
    features.node_steps.play_until_changed()
    sent = opened.sent(TouchingStepsQuery)
    assert sent.query == TouchingStepsQuery(RECIPE, ("fx:dense",))
    sent.answer((1, 4, 5))
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == after(4)
    features.node_steps.play_until_changed()
    opened.sent(TouchingStepsQuery).answer((1, 4))
    assert stepping.moment == after(4)
    assert opened.notices[-1:] == ["No later pass changes the selection."]


def test_a_breakpoint_on_a_node_holds_for_the_passes_that_change_it(
    qtbot: QtBot, opened: Bench
) -> None:
    features, stepping = opened.features, opened.features.stepping
    features.run_steps.toggle(("fx:relu",))
    opened.sent(TouchingStepsQuery).answer((3,))
    stepping.play()
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == after(3)
    stepping.to_break(-1)
    assert stepping.moment == after(0)
    stepping.to_break(1)
    assert stepping.moment == after(3)
    features.run_steps.clear()
    assert not any(stepping.stops_at(line) for line in stepping.lines("passes"))

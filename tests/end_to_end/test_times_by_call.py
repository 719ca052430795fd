"""Where the time of a run goes, in the real window: the chart, and the table by what."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.time_page import TimePage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Step
from lowerscope.core.model.run_records import RunRecord
from tests.end_to_end.driving import OpenWindow, run_and_wait

LEFT = Qt.MouseButton.LeftButton
FUSED = tuple(
    Step(name=each) for each in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
)


def click_segment(qtbot: QtBot, page: TimePage, key: str) -> None:
    keys = [each.key for each in page.by.segments()]
    page.by.setFocus()
    steps = keys.index(key) - keys.index(page.by.current())
    for _ in range(abs(steps)):
        qtbot.keyClick(page.by, Qt.Key.Key_Right if steps > 0 else Qt.Key.Key_Left)
    assert page.by.current() == key


def column(page: TimePage, number: int) -> dict[str, str]:
    return {row.key: row.cell(number).text for row in page.table.rows()}


def values(page: TimePage, number: int) -> dict[str, float]:
    return {row.key: row.cell(number).value or 0.0 for row in page.table.rows()}


def opened(qtbot: QtBot, open_window: OpenWindow) -> tuple[MainWindow, TimePage, RunRecord]:
    window = open_window("sample:transformer_block", steps=FUSED)
    window.panes.show_page("time")
    page = window.panes.time
    assert window.panes.outcome.empty.isVisible()
    run_and_wait(qtbot, window)
    window.panes.show_page("time")
    record = window.document.run_record
    assert record is not None
    return window, page, record


def test_every_way_to_share_out_the_time_adds_up(qtbot: QtBot, open_window: OpenWindow) -> None:
    window, page, record = opened(qtbot, open_window)
    whole = sum(each.milliseconds for each in record.calls)
    for by in ("call", "function"):
        click_segment(qtbot, page, by)
        assert sum(values(page, 3).values()) == pytest.approx(whole)
        assert sum(values(page, 4).values()) == pytest.approx(1)
    click_segment(qtbot, page, "function")
    assert sum(values(page, 2).values()) == len(record.calls)
    click_segment(qtbot, page, "module")
    rows = page.table.rows()
    assert rows[0].cell(0).text == "the whole model"
    assert values(page, 4)["module:"] == pytest.approx(1)
    names = [row.cell(0).text for row in rows]
    # In the order of the model, each below what it is a part of.
    assert names.index("    norm0") < names.index("    attention") < names.index("        query")
    assert names.index("        query") < names.index("    norm1")
    click_segment(qtbot, page, "node")
    times = {each.id: each.milliseconds for each in record.nodes}
    for key, taken in values(page, 3).items():
        assert taken == pytest.approx(times[key] or 0.0), key
    # A fused call is not shared out: its nodes have all of it, and say so.
    notes = column(page, 7)
    shared = {each.id for each in record.nodes if each.shared_with and each.id in notes}
    assert shared
    assert {key for key, note in notes.items() if note.startswith("fused with")} == shared
    assert page.summary.whole().startswith(f"{len(record.calls)} calls in ")

    # Chart and table select in all panes.
    window.document.select(())
    chart = window.panes.outcome.calls.chart
    assert [each.length for each in chart.spans()] == [each.milliseconds for each in record.calls]
    assert [each.amount for each in chart.spans()] == list(record.memory.live)
    longest = max(range(len(record.calls)), key=lambda each: record.calls[each].milliseconds)
    place = chart.place_of(longest).toPoint()
    click_segment(qtbot, page, "call")
    qtbot.mouseClick(chart, LEFT, pos=place)
    assert window.document.selection.chosen == record.calls[longest].nodes
    # A node may have several calls: all of them, and no others.
    nodes = set(record.calls[longest].nodes)
    of_node = {f"call:{n}" for n, each in enumerate(record.calls) if nodes & set(each.nodes)}
    assert set(page.table.selected_keys()) == of_node
    click_segment(qtbot, page, "function")
    row = page.table.rows()[0].key
    index = page.table.model().index(0, 0)
    qtbot.mouseClick(page.table.viewport(), LEFT, pos=page.table.visualRect(index).center())
    called = next(each for each in record.calls if each.function == row)
    assert window.document.selection.chosen == (called.entity,)
    assert chart.marked() == f"call:{record.calls.index(called)}"

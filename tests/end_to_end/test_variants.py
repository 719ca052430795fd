"""Runs side by side in the real window: rows, bars, going back, and two of them compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.variants_page import VariantsPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.formatting import duration_text, durations_text, error_text
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records

NAMES = ["high-level · legalised", "TE · legalised", "high-level · fused", "TE · fused"]


def texts(page: VariantsPage, column: int) -> list[str]:
    """What stands in a column, from the top."""
    return [row.cell(column).text for row in page.table.rows()]


def run_variants(qtbot: QtBot, window: MainWindow) -> VariantsPage:
    """Let the command run them, and wait for the last."""
    window.commands.action("run-variants").trigger()
    assert window.document.running
    qtbot.waitUntil(lambda: not window.document.running, timeout=PATIENCE)
    return window.panes.variants


def press(qtbot: QtBot, page: VariantsPage, key: Qt.Key) -> None:
    """Press a key in the table."""
    page.window().activateWindow()
    page.table.setFocus()
    qtbot.waitUntil(page.table.hasFocus)
    QTest.keyClick(page.table, key)


def choose(page: VariantsPage, *places: int) -> None:
    """Select rows, as clicks with Ctrl do."""
    for count, place in enumerate(places):
        index = page.table.table_model().index(place, 1)
        modifier = Qt.KeyboardModifier.ControlModifier if count else Qt.KeyboardModifier.NoModifier
        where = page.table.visualRect(index).center()
        QTest.mouseClick(page.table.viewport(), Qt.MouseButton.LeftButton, modifier, where)


def test_four_variants_run_in_a_row_and_can_be_gone_back_to_compared_and_exported(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp")
    document = window.document
    page = run_variants(qtbot, window)
    assert window.panes.outcome.current() == "variants"
    assert not document.can_undo
    kept = window.features.runs.variants.kept
    assert texts(page, 1) == NAMES
    # The figures are those of the records, and the best that matches has the star.
    records = [each.record for each in kept]
    assert all(record is not None and record.verdict == "match" for record in records)
    shown = [record for record in records if record is not None]
    assert texts(page, 2) == [duration_text(each.tvm_ms) for each in shown]
    assert texts(page, 3) == ["✓ matches"] * 4
    for text, each in zip(texts(page, 4), shown, strict=True):
        assert each.times is not None
        ours = each.times.sides[0]
        assert text == durations_text(ours.low, ours.high)
    assert texts(page, 5) == [duration_text(each.torch_ms or 0.0) for each in shown]
    assert texts(page, 7) == [error_text(each.max_abs_error) for each in shown]
    assert texts(page, 8) == [str(each.functions) for each in shown] == ["7", "5", "2", "2"]
    # They were measured by turns, beside the same calls of torch.
    assert len({each.torch_ms for each in shown}) == 1
    best = min(range(4), key=lambda place: shown[place].tvm_ms)
    stars = [place for place, mark in enumerate(texts(page, 0)) if "★" in mark]
    assert best in stars
    assert texts(page, 0)[0].startswith("●")
    bars = page.bars.bars()
    assert [bar.name for bar in bars] == [*NAMES, "torch"]
    assert [bar.values for bar in bars[:4]] == [(each.tvm_ms,) for each in shown]
    assert [place for place, bar in enumerate(bars) if bar.best] == stars
    # What is shown has its outcome now, as after a run of its own.
    assert document.run_record == shown[0]

    # Sorted by time, as a click on the title does; another one the other way.
    page.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert texts(page, 2)[-1] == duration_text(shown[best].tvm_ms)
    page.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)

    # Return goes to the recipe of a row with its outcome, as one step of undo.
    choose(page, 3)
    press(qtbot, page, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert document.recipe is not None
    assert document.recipe.lowering == "te"
    assert document.run_record == shown[3]
    assert texts(page, 0)[3].startswith("●")
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe.lowering == "high-level"
    assert len(page.table.rows()) == 4

    # Two of them, function by function.
    window.panes.show_page("variants")
    choose(page, 0, 1)
    functions = page.functions
    assert functions.isVisible()
    assert page.state.whole().endswith(": A high-level · legalised, B TE · legalised")
    spent: dict[str, float] = {}
    for call in shown[0].calls:
        spent[call.function] = spent.get(call.function, 0.0) + call.milliseconds
    rows = {
        row.key: [row.cell(column).text for column in range(7)] for row in functions.table.rows()
    }
    assert {name for name, row in rows.items() if row[1] != "–"} == set(spent)
    assert rows["matmul"][1:4] == [
        duration_text(spent["matmul"]),
        "–",
        f"−{duration_text(spent['matmul'])}",
    ]
    assert rows["matmul"][4:] == ["only in A", "1 → 0", "linear0"]
    assert rows["dense"][1] == "–"
    assert rows["dense"][4] == "only in B"
    both = [name for name, row in rows.items() if "–" not in row[1:3]]
    qtbot.waitUntil(
        lambda: all(row.cell(4).text for row in functions.table.rows() if row.key in both),
        timeout=PATIENCE,
    )
    functions.table.row_activated.emit("matmul")
    assert window.panes.changes.current() == "difference"
    difference = window.panes.difference
    qtbot.waitUntil(lambda: difference.page.is_current, timeout=PATIENCE)
    qtbot.waitUntil(lambda: bool(difference.page.functions("tensorir")), timeout=PATIENCE)
    shown_there = {each.name for each in difference.page.functions("tensorir")}
    assert shown_there == {"matmul", "matmul1"}

    # As a report: all of them, or those that are selected.
    file = tmp_path / "all"
    saving = "lowerscope.app.panes.export.commands.QFileDialog.getSaveFileName"
    monkeypatch.setattr(saving, lambda *_: (str(file), ""))
    action = window.commands.action("export-report")
    window.panes.show_page("variants")
    page.table.clearSelection()
    action.trigger()
    text = file.with_suffix(".html").read_text(encoding="utf-8")
    for each in shown:
        assert f'data-value="{each.tvm_ms!r}"' in text
    file = tmp_path / "one"
    choose(page, 2)
    action.trigger()
    assert "Run: high-level · fused" in file.with_suffix(".html").read_text(encoding="utf-8")
    file = tmp_path / "gone" / "report"
    action.trigger()
    assert "the report cannot be written" in document.problems[0].line()

"""Steps, lowerings and pipelines, compared in the window by mouse and keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.difference.difference_view import DifferenceView
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records

LEGAL = Moment(section="passes", index=1)


def wait_for_sides(qtbot: QtBot, view: DifferenceView, old: str, new: str) -> None:
    """Wait until the labels say what each side is."""

    def arrived() -> None:
        assert view.old_label.whole().endswith(old), view.old_label.whole()
        assert view.new_label.whole().endswith(new), view.new_label.whole()

    qtbot.waitUntil(arrived, timeout=PATIENCE)


def statuses(view: DifferenceView) -> dict[str, str]:
    """Return the functions that differ."""
    record = view.page.record
    assert record is not None
    return {each.name: each.status for each in record.functions if each.status != "same"}


@pytest.fixture
def window(open_window: OpenWindow) -> MainWindow:
    """Return a window with a sample."""
    window = open_window("sample:fashion_mlp")
    window.resize(1440, 900)
    window.show_panes()
    return window


def test_a_pinned_step_is_compared_with_another_lowering(qtbot: QtBot, window: MainWindow) -> None:
    view = window.panes.difference
    window.features.stepping.go(LEGAL)
    window.commands.action("difference").trigger()
    wait_for_sides(qtbot, view, "Before", "After · 1 LegalizeOps")
    assert view.sentence.text().startswith("LegalizeOps replaced 7 calls of ")
    assert [chip.name for chip in view.chips.chips()] == ["main"]
    assert statuses(view)["main"] == "changed"
    assert statuses(view)["matmul"] == "added"
    window.commands.action("next-change").trigger()
    assert view.figure.text() == "change 1 of 1"
    old, new = view.page.diff.texts()
    assert "R.permute_dims" in (old or "")
    assert "R.call_tir(transpose" in (new or "")
    window.commands.action("pin-step").trigger()
    window.commands.action("te").trigger()
    wait_for_records(qtbot, window)
    wait_for_sides(
        qtbot, view, "High-level · after 1 LegalizeOps · pinned", "TE · after 1 LegalizeOps"
    )
    assert statuses(view)["dense"] == "added"
    view.kinds.setFocus()
    qtbot.keyClick(view.kinds, Qt.Key.Key_Right)
    names = {chip.name: chip.mark for chip in view.chips.chips()}
    assert names["dense"] == names["dense1"] == "+"
    window.commands.action("compare-pinned").trigger()
    window.features.stepping.leave()
    wait_for_sides(
        qtbot,
        view,
        "High-level · after 1 LegalizeOps · pinned",
        "TE · after 1 LegalizeOps · pinned",
    )
    window.commands.action("swap-sides").trigger()
    wait_for_sides(
        qtbot,
        view,
        "TE · after 1 LegalizeOps · pinned",
        "High-level · after 1 LegalizeOps · pinned",
    )
    assert statuses(view)["dense"] == "removed"
    window.commands.action("unpin").trigger()
    wait_for_sides(qtbot, view, "TE · before all passes", "TE · after all passes")
    assert view.sentence.text().startswith("The pipeline ")

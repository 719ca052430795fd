"""The tolerances of a run, in the real window: the verdict follows them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.run_dialogs import TolerancesDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.run_records import RunRecord
from tests.core.cli.test_cli import HALF
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait


def settled(qtbot: QtBot, window: MainWindow) -> RunRecord:
    """Wait until there is an outcome and nothing more is under way; return it."""
    document = window.document

    def ended() -> None:
        assert not document.is_changing
        assert not document.running
        assert document.run_record is not None, document.problems

    qtbot.waitUntil(ended, timeout=PATIENCE)
    assert document.run_record is not None
    return document.run_record


def test_other_tolerances_are_one_step_of_undo_and_the_verdict_follows(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    net = tmp_path / "net.py"
    net.write_text(HALF.replace(", self.linear(x).float()", ""))
    window = open_window(str(net))
    run_and_wait(qtbot, window)
    first = settled(qtbot, window)
    assert (first.verdict, first.rtol) == ("match", 1e-2)
    # The tolerance in the summary of the result leads to the form.
    details = window.panes.summary.details
    assert "tolerance 0.001 + 0.01" in details.text()
    details.linkActivated.emit("tolerances")
    dialog = window.findChild(TolerancesDialog)
    assert dialog is not None
    ok = dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)
    row = dialog.rows["float16"]
    for wrong, why in (("-1", "distance"), ("one", "not a number"), ("1", "below 1")):
        row.rtol.setText(wrong)
        assert why in dialog.error.text()
        assert not ok.isEnabled()
    row.rtol.setText("1e-7")
    row.atol.setText("0")
    assert "closer than float16 can tell" in row.means.text()
    ok.click()
    judged = settled(qtbot, window)
    assert judged.verdict == "differ"
    assert "differs" in window.tool_bar.verdict.text()
    assert (judged.rtol, judged.atol) == (1e-7, 0.0)
    # It was held against torch anew, by the same executable, and not measured.
    assert (judged.build_ms, judged.times) == (first.build_ms, first.times)
    node = next(each for each in judged.nodes if each.id == "fx:linear")
    assert node.matches is False
    window.commands.action("undo").trigger()
    assert settled(qtbot, window) == first
    assert "matches" in window.tool_bar.verdict.text()
    window.commands.action("redo").trigger()
    assert settled(qtbot, window) == judged

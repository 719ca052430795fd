"""What a run is held to, and how it is timed, in the real window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.app.panes.run.run_dialogs import MeasuringDialog, TolerancesDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.time_records import MEASURING, Measuring, is_disturbed
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
    result = window.panes.result
    assert "tolerance 0.001 + 0.01" in result.summary.text()
    result.summary.linkActivated.emit("tolerances")
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


def test_threads_and_repeats_are_set_in_a_form_and_a_run_is_measured_by_them(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    assert not window.commands.action("measure-again").isEnabled()
    run_and_wait(qtbot, window)
    first = settled(qtbot, window)
    window.commands.action("measure-again").trigger()
    assert window.document.run_record == first
    again = settled(qtbot, window)
    assert again.times != first.times
    assert (again.outputs, again.build_ms) == (first.outputs, first.build_ms)
    panel = window.panes.result.times
    panel.settings.click()
    dialog = window.findChild(MeasuringDialog)
    assert dialog is not None
    dialog.threads.setValue(1)
    dialog.repeats.setValue(5)
    dialog.accept()
    slower = settled(qtbot, window)
    assert slower.times is not None
    assert {(each.threads, each.repeats) for each in slower.times.sides} == {(1, 5)}
    assert "1 thread each" in panel.claim.whole()
    assert "extremes of 5 calls" in panel.how.whole()
    assert [bar.name for bar in panel.bars.bars()] == ["TVM", "torch"]
    assert "1 thread" in window.tool_bar.target.text()
    window.commands.action("undo").trigger()
    assert settled(qtbot, window) == again


def test_a_measurement_that_the_engine_disturbs_says_so_and_is_made_again(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu", measuring=Measuring(repeats=8_000))
    document, panel = window.document, window.panes.result.times
    told: list[tuple[bool, str]] = []
    asked: list[int] = []

    def work(_change: Change) -> None:
        """Give the engine something to do as soon as the run is measured."""
        if document.job.text.startswith(MEASURING) and not asked:
            # With weights of its own: no window has opened it before.
            other = Recipe(source=Source(spec="sample:resnet18"), seed=4711)
            params = SnapshotQuery(recipe=other, metrics=document.metrics)
            asked.append(window.features.processes.engine.request(params, drop, drop))

    def drop(_answer: object) -> None:
        """It is the work that counts."""

    def note(change: Change) -> None:
        record = document.run_record
        if "run" in change.fields and record is not None and record.times is not None:
            told.append((is_disturbed(record.times), panel.how.whole()))

    document.changed.connect(work)
    document.changed.connect(note)
    run_and_wait(qtbot, window)
    settled(qtbot, window)
    assert asked
    assert told[0][0]
    assert "measured while the engine worked" in told[0][1]
    # Measured again by itself, in quiet.
    assert told[-1] == (False, panel.how.whole())
    assert "while the engine" not in panel.how.whole()

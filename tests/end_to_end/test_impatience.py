"""What is asked for before the last thing is there: nothing is lost, and nothing is left over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.remote.remote_dialog import RemoteDialog
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import Primitive
from tests.end_to_end.driving import OpenWindow, wait_for_records, wait_until
from tests.end_to_end.scheduling import Bench
from tests.soak.files_by_chance import answered_by_chance, fill
from tests.soak.fresh_window import check_session
from tests.soak.impatience import Impatience


def test_undo_and_redo_go_on_while_the_last_is_on_its_way(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    document, action = window.document, window.commands.action
    came = [document.recipe]
    for key in ("te", "pipeline-fuse"):
        action(key).trigger()
        wait_for_records(qtbot, window)
        came.append(document.recipe)
    action("undo").trigger()
    action("undo").trigger()
    assert document.wanted == came[0]
    assert not action("undo").isEnabled()
    action("redo").trigger()
    assert document.wanted == came[1]
    wait_for_records(qtbot, window)
    assert document.recipe == came[1]
    # Something else, while it goes back: undo leads to where it went back to.
    action("undo").trigger()
    action("library").trigger()
    wait_for_records(qtbot, window)
    action("undo").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe == came[0]
    # What is taken back before it has come can be had again.
    action("pipeline-fuse").trigger()
    given_up = document.wanted
    action("undo").trigger()
    assert not document.is_changing
    assert document.recipe == came[0]
    action("redo").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe == given_up != came[0]


def test_a_step_of_a_schedule_leaves_a_change_on_its_way_alone(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu", lowering="te")
    document, bench = window.document, Bench(window)
    window.features.measurements.set_automatic(False)
    bench.open("te_matmul")
    loop = next(each.reference for each in bench.record.tree if each.kind == "loop")
    window.commands.action("target-native").trigger()
    assert document.is_changing
    step = Primitive(id="", name="parallel", arguments={"loop": loop})  # type: ignore[dict-item]
    bench.scheduling.editing.apply(step)
    bench.steps(1)
    assert document.recipe is not None
    assert document.recipe.target == "native"


def test_files_that_are_read_again_leave_a_change_on_its_way_alone(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    window.commands.action("target-native").trigger()
    window.commands.action("reload").trigger()
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.target == "native"
    window.commands.action("undo").trigger()
    wait_for_records(qtbot, window)
    assert window.document.recipe.target == "llvm"


def test_a_run_of_what_is_not_opened_after_all(qtbot: QtBot, open_window: OpenWindow) -> None:
    window = open_window("sample:fashion_mlp", wait=False)
    window.commands.action("run").trigger()
    assert window.document.running
    window.commands.action("undo").trigger()
    assert not window.document.running
    assert not window.document.job.text
    assert window.tool_bar.run.text() == "Run"


def test_strokes_are_of_the_model_that_they_were_drawn_for(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    document = window.document
    for shade in (1, 2, 3):
        window.features.inputs.draw(bytes([shade]) * 784)
    other = Recipe(source=Source(spec="sample:matmul_relu"))
    document.open(other)
    wait_for_records(qtbot, window)
    assert document.recipe == other
    assert not document.running


def test_a_session_that_is_opened_twice_is_opened_once(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    window, path = open_window("sample:matmul_relu"), tmp_path / "kept.lowerscope"
    window.sessions.save_as(str(path))
    window.sessions.save_now()
    window.open_source("sample:matmul")
    wait_for_records(qtbot, window)
    for _ in range(2):
        window.open_session(str(path))
    wait_for_records(qtbot, window)
    assert window.sessions.path == path
    assert not window.sessions.read_only


def test_an_export_without_a_dialog_can_be_stopped(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, out = open_window("sample:matmul_relu"), tmp_path / "out"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(out))
    window.commands.action("export-step").trigger()
    assert window.document.job.text == "Exporting"
    window.commands.action("stop").trigger()
    assert wait_until(lambda: not window.document.job.text)
    assert not out.exists()
    # One in a dialog that is closed over it tells nobody.
    window.commands.action("export-files").trigger()
    dialog = window.exports.dialog
    assert dialog is not None
    dialog.folder.setText("~nobody that there is/out")
    dialog.export.click()
    dialog.close()
    assert wait_until(lambda: window.features.processes.worker.state == "ready")


def test_what_another_machine_says_is_not_taken_for_the_next(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu")
    window.commands.action("target-remote").trigger()
    dialog = next(each for each in window.findChildren(RemoteDialog) if each.isVisible())
    dialog.tracker.setText("127.0.0.1:1")
    dialog.key.setText("none")
    dialog.test.click()
    dialog.tracker.clear()
    assert wait_until(lambda: window.features.processes.worker.state == "ready")
    assert not dialog.test.isEnabled()
    assert "a key needs a tracker" in dialog.said.text()
    dialog.reject()


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_user_without_patience(
    qtbot: QtBot, qtlog: object, open_window: OpenWindow, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    fill(folder)
    window = open_window("sample:matmul_relu", lowering="te")
    with qtbot.captureExceptions() as exceptions, answered_by_chance(folder, 1):
        user = Impatience(window, folder, 1, lambda: exceptions, lambda: (), hurry=0.1)
        user.run(range(60))
        assert not user.failure, user.story()
        if window.isVisible():
            user.settle()
            user.check_undo(1)
            check_session(window, tmp_path / "saved.lowerscope", user.story)
    assert not [each for each in os.listdir(folder) if each.endswith(".lock")]

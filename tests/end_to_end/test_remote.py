"""A model runs, and a function is tuned, on another machine, in the real window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.dialogs import Question
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.panes.remote.commands import RemoteDialog, TargetDialog
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records
from tests.remote_servers import KEY, Farm, farm_in, free_port
from tests.sandboxes import reason_without


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    yield from farm_in(tmp_path_factory.mktemp("farm"))


def dialog_of(window: MainWindow, command: str, kind: type) -> Any:
    window.commands.action(command).trigger()
    found = [each for each in window.findChildren(kind) if each.isVisible()]
    assert len(found) == 1
    return found[0]


def let_reach_the_network(window: MainWindow) -> None:
    """Answer the question that is asked before the worker leaves its sandbox for a machine."""
    questions = [each for each in window.findChildren(Question) if each.isVisible()]
    assert len(questions) == (0 if reason_without() else 1)
    for question in questions:
        assert "Runs on another machine" in question.text()
        assert question.act.text() == "Allow"
        question.act.click()
        assert window.sandbox.sandboxing.has_network
        assert len(window.settings.reached()) == 1


def ok_of(dialog: TargetDialog | RemoteDialog) -> object:
    return dialog.buttons.button(QDialogButtonBox.StandardButton.Ok)


def test_a_model_runs_on_another_machine(qtbot: QtBot, open_window: OpenWindow, farm: Farm) -> None:
    window = open_window("sample:fashion_mlp")
    document = window.document
    dialog = dialog_of(window, "target-remote", RemoteDialog)
    assert not dialog.test.isEnabled()
    dialog.tracker.setText(f"127.0.0.1:{free_port()}")
    assert "needs the key" in dialog.said.text()
    dialog.key.setText(KEY)
    dialog.test.click()
    let_reach_the_network(window)
    qtbot.waitUntil(lambda: "no tracker answers" in dialog.said.text(), timeout=PATIENCE)
    dialog.tracker.setText(farm.tracker)
    dialog.test.click()
    qtbot.waitUntil(lambda: "✓" in dialog.said.text(), timeout=PATIENCE)
    assert f"{KEY}: 1 server, 1 free" in dialog.said.text()
    assert dialog.adopt.isVisible()
    ok_of(dialog).click()
    wait_for_records(qtbot, window)
    assert f"remote: {KEY}" in window.tool_bar.target.text()
    assert window.status.remote.text() == f"→ remote: {KEY}"
    assert document.recipe is not None
    assert '"num-cores"' in document.recipe.target
    run_and_wait(qtbot, window)
    record = document.run_record
    assert record is not None
    assert record.verdict == "match"
    summary = window.panes.summary.details.text()
    assert f"ran on {KEY}, 127.0.0.1:" in summary
    assert "for runs on this machine only" in summary
    assert f"TVM ran on {KEY} and torch here" in window.tool_bar.times.toolTip()
    window.show_page("compare")
    said = [each.accessibleDescription() for each in window.panes.compare.findChildren(EmptyState)]
    assert any("for runs on this machine only" in each for each in said)
    document.undo()
    wait_for_records(qtbot, window)
    assert "remote" not in window.tool_bar.target.text()
    assert not window.status.remote.isVisible()
    document.redo()
    wait_for_records(qtbot, window)
    assert document.run_record == record
    for port in list(farm.servers):
        farm.kill(port)
    window.commands.action("run").trigger()
    qtbot.waitUntil(lambda: window.features.faults.failed is not None, timeout=PATIENCE)
    failed = window.features.faults.failed
    assert failed is not None
    assert f"no server has the key {KEY}" in failed.line()
    window.commands.action("target-here").trigger()
    wait_for_records(qtbot, window)
    assert document.recipe is not None
    assert document.recipe.remote is None

"""The form for another machine: what it answers is of the machine that was asked."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.remote.commands import RemoteDialog, Targets
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import RemoteQuery
from tests.app.conftest import bench
from tests.app.plain_values import RECIPE, Bench

__all__ = ["bench"]


@pytest.fixture
def dialog(qtbot: QtBot, bench: Bench) -> RemoteDialog:
    bench.open(RECIPE)
    targets = Targets(bench.features.queries, bench.document)
    dialog = RemoteDialog(bench.document, targets)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.tracker.setText("127.0.0.1:1")
    dialog.key.setText("none")
    return dialog


def test_an_answer_is_dropped_once_another_machine_is_typed(
    bench: Bench, dialog: RemoteDialog
) -> None:
    dialog.test.click()
    pending = bench.sent(RemoteQuery)
    assert not dialog.test.isEnabled()
    dialog.tracker.clear()
    assert pending.fate
    assert not dialog.test.isEnabled()
    assert "a key needs a tracker" in dialog.said.text()
    dialog.tracker.setText("127.0.0.1:2")
    assert dialog.test.isEnabled()
    dialog.test.click()
    bench.sent(RemoteQuery).refuse(Problem(what="nobody is there"))
    assert "nobody is there" in dialog.said.text()
    assert dialog.test.isEnabled()


def test_the_machine_is_a_part_of_the_recipe(bench: Bench, dialog: RemoteDialog) -> None:
    remote = dialog.remote()
    assert remote is not None
    assert (remote.tracker, remote.key) == ("127.0.0.1:1", "none")
    dialog.buttons.button(QDialogButtonBox.StandardButton.Ok).click()
    assert bench.document.wanted == msgspec.structs.replace(RECIPE, remote=remote)

"""What is asked for before the last thing is there: nothing is lost, and nothing is left over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.end_to_end.driving import OpenWindow
from tests.soak.files_by_chance import answered_by_chance, fill
from tests.soak.fresh_window import check_session
from tests.soak.impatience import Impatience


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

"""Requests before the last thing is there: nothing is lost, and nothing is left over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.files.sessions import Hashes, load_session
from lowerscope.core.model.recipe import with_trust
from tests.diagonal import many
from tests.end_to_end.driving import OpenWindow
from tests.soak.impatience import Impatience, answered_by_chance


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_user_without_patience(
    qtbot: QtBot, qtlog: object, open_window: OpenWindow, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    window = open_window("sample:matmul_relu", lowering="te")
    with qtbot.captureExceptions() as exceptions, answered_by_chance(folder, 1):
        user = Impatience(window, folder, 1, lambda: exceptions)
        user.run(range(many(60)))
        assert not user.failure, user.story()
        if window.isVisible():
            user.settle()
            user.check_undo(1)
            recipe = window.document.recipe
            if recipe is not None and not window.sessions.read_only:
                window.sessions.save_now()
                place = window.sessions._place
                assert place is not None
                saved = load_session(place.path, Hashes()).recipe
                assert with_trust(saved, trust=False) == with_trust(recipe, trust=False)
    assert not [each for each in os.listdir(folder) if each.endswith(".lock")]

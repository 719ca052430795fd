"""Windows with a child that practices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pytestqt.qtbot import QtBot

from tests.app.engine.practice_window import Window


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let who dies at once be started anew without a pause."""
    monkeypatch.setattr("lowerscope.app.engine.client.RESTART_DELAYS_MS", (0, 20, 40))


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[Window]:
    """Return a window whose child has been started."""
    window = Window(qtbot)
    window.client.start()
    yield window
    family = [] if window.client.pid is None else window.family()
    window.client.stop()
    window.until_gone(family)


@pytest.fixture
def open_window(qtbot: QtBot) -> Iterator[Callable[..., Window]]:
    """Return a function that makes a window with a command of one's own, not yet started."""
    windows = []

    def open_one(*command: str) -> Window:
        windows.append(Window(qtbot, *command))
        return windows[-1]

    yield open_one
    for window in windows:
        window.client.stop()

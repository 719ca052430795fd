"""The real window with the real engine and worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from lowerscope.app import theme
from lowerscope.app.window import MainWindow
from lowerscope.core.recipe import Recipe, Source
from tests.end_to_end.driving import OpenWindow, wait_for_records


@pytest.fixture(scope="session", autouse=True)
def _look(qapp: object) -> None:
    theme.start(qapp, "light")  # type: ignore[arg-type]


@pytest.fixture
def open_window(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenWindow]:
    """Return a function that opens a window on a source and waits until it is shown."""
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    windows: list[MainWindow] = []

    def open_(spec: str = "", *, wait: bool = True, **fields: object) -> MainWindow:
        window = MainWindow()
        windows.append(window)
        qtbot.addWidget(window)
        window.show()
        recipe = Recipe(source=Source(spec=spec), **fields) if spec else None  # type: ignore[arg-type]
        window.begin(recipe)
        if spec and wait:
            wait_for_records(qtbot, window)
        return window

    yield open_
    pids = [
        pid
        for window in windows
        for client in (window.workspace.engine, window.workspace.worker)
        if (pid := client.pid) is not None
    ]
    for window in windows:
        window.close()
    qtbot.waitUntil(lambda: not any(psutil.pid_exists(pid) for pid in pids), timeout=10_000)

"""A whole window whose children a test stands in for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.snapshot import Snapshot
from tests.app.plain_values import Client, Sent, snapshot

OpenPlainWindow = Callable[..., MainWindow]


def sent(window: MainWindow) -> Sent:
    """Return the last query for the records of a recipe."""
    engine: Any = window.features.processes.engine
    return [each for each in engine.sent if isinstance(each.query, SnapshotQuery)][-1]


@pytest.fixture
def open_plain_window(
    qtbot: QtBot, qapp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenPlainWindow]:
    """Return a function that opens a window, on a recipe with records that a test gives."""
    theme.start(qapp, "light")
    monkeypatch.setattr("lowerscope.app.engine.children.EngineClient", Client)
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    windows: list[MainWindow] = []

    def open_(recipe: Recipe | None = None, records: Snapshot | None = None) -> MainWindow:
        window = MainWindow()
        windows.append(window)
        qtbot.addWidget(window)
        window.settings.set_asks_first(False)
        window.settings.set_sandbox(False)
        window.show()
        window.begin(recipe)
        if recipe is not None:
            # It is laid out before an engine could answer.
            QApplication.processEvents()
            sent(window).answer(records or snapshot("dense", "relu"))
        return window

    yield open_
    for window in windows:
        window.close()

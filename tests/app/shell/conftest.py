"""A whole window whose children a test stands in for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def plain_windows(application: Any, folder: Path) -> Iterator[OpenPlainWindow]:
    """Yield a function that opens windows, with their settings in a folder, until the end."""
    if not application.styleSheet():
        theme.start(application, "light")
    # What is as it was is not laid out anew.
    theme.set_scheme("light")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(folder))
    windows: list[MainWindow] = []

    def open_(recipe: Recipe | None = None, records: Snapshot | None = None) -> MainWindow:
        window = MainWindow()
        windows.append(window)
        window.settings.asks_first = False
        window.settings.sandbox = False
        window.show()
        window.begin(recipe)
        if recipe is not None:
            # It is laid out before an engine could answer.
            QApplication.processEvents()
            sent(window).answer(records or snapshot("dense", "relu"))
        return window

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lowerscope.app.engine.children.EngineClient", Client)
        yield open_
    for window in windows:
        window.close()
        # Else Python's collector would take it to pieces in any order.
        window.deleteLater()


@pytest.fixture
def open_plain_window(qtbot: QtBot, qapp: Any, tmp_path: Path) -> Iterator[OpenPlainWindow]:
    """Return a function that opens a window, on a recipe with records that a test gives."""
    with plain_windows(qapp, tmp_path / "settings") as open_:
        yield open_


@pytest.fixture(scope="module")
def shared(open_shared_window: OpenPlainWindow, request: pytest.FixtureRequest) -> MainWindow:
    """Return a window on the ``RECIPE`` of a module, with its ``RECORDS``, for all its tests."""
    return open_shared_window(request.module.RECIPE, request.module.RECORDS)


@pytest.fixture(scope="module")
def open_shared_window(
    qapp: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenPlainWindow]:
    """Return a function that opens a window for all tests of a module: it takes a second."""
    with plain_windows(qapp, tmp_path_factory.mktemp("settings")) as open_:
        yield open_

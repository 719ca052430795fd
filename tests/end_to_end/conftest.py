"""The real window with the real engine and worker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app import theme
from lowerscope.app.engine_client import EngineClient
from lowerscope.app.window import MainWindow
from lowerscope.core.recipe import Recipe, Source
from tests.end_to_end.children import Children, LastingClient
from tests.end_to_end.driving import OpenWindow, wait_for_records, wait_until
from tests.end_to_end.scheduling import Bench


@pytest.fixture(scope="session", autouse=True)
def _look(qapp: object) -> None:
    theme.start(qapp, "light")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def children(qapp: object) -> Iterator[Children | None]:
    """The engine and the worker that the windows of a file open their sources in, one by one."""
    children = Children()
    yield children
    children.close()


def children_of(window: MainWindow) -> tuple[EngineClient, EngineClient]:
    return window.workspace.engine, window.workspace.worker


@pytest.fixture
def open_window(
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Children | None,
    request: pytest.FixtureRequest,
) -> Iterator[OpenWindow]:
    """Return a function that opens a window on a source and waits until it is shown.

    Code runs in a sandbox where the test's module says ``SANDBOX = True``: files that count in a
    test how often they run could not do so there.
    """
    if children is not None:
        client = partial(LastingClient, children)
        monkeypatch.setattr("lowerscope.app.workspace.EngineClient", client)
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    windows: list[MainWindow] = []

    def open_(
        spec: str = "",
        *,
        wait: bool = True,
        asks_first: bool = False,
        **fields: object,
    ) -> MainWindow:
        window = MainWindow()
        window.settings.set_asks_first(asks_first)
        window.settings.set_sandbox(getattr(request.module, "SANDBOX", False))
        windows.append(window)
        qtbot.addWidget(window)
        window.show()
        recipe = Recipe(source=Source(spec=spec), **fields) if spec else None  # type: ignore[arg-type]
        window.begin(recipe)
        if spec and wait:
            wait_for_records(qtbot, window)
        return window

    yield open_
    clients = [each for window in windows for each in children_of(window)]
    pids = [client.pid for client in clients if client.pid is not None]
    for window in windows:
        window.close()
    if children is None:
        qtbot.waitUntil(lambda: not any(map(psutil.pid_exists, pids)), timeout=10_000)


@pytest.fixture(scope="module")
def bench(
    qapp: QApplication, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """Return the workbench of a window that the tests of a module share.

    The module's ``RECIPE`` is open; each test begins with that, and with no schedule.
    """
    settings = str(tmp_path_factory.mktemp("settings"))
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    window = MainWindow()
    window.settings.set_sandbox(getattr(request.module, "SANDBOX", False))
    window.show()
    window.begin(request.module.RECIPE)
    workspace = window.workspace
    assert wait_until(lambda: workspace.recipe is not None), workspace.problems
    yield Bench(window)
    pids = [client.pid for client in (workspace.engine, workspace.worker)]
    window.close()
    assert wait_until(lambda: not any(pid and psutil.pid_exists(pid) for pid in pids), 10_000)

"""The real window with the real engine and worker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from lowerscope.app.engine import client
from lowerscope.app.engine.client import EngineClient, server_command
from lowerscope.app.kit import theme
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.paths import remove
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.sandbox.folder import own_folder
from tests.end_to_end.children import Children, LastingClient
from tests.end_to_end.driving import OpenWindow, wait_for_records, wait_until
from tests.end_to_end.scheduling import Bench
from tests.sandboxes import reason_without


@pytest.fixture(scope="session", autouse=True)
def _look(qapp: object) -> None:
    theme.start(qapp, "light")  # type: ignore[arg-type]


@pytest.fixture(scope="session", autouse=True)
def _quick() -> Iterator[None]:
    """Start children that measure for tenths of a second."""

    def quick(*given: Any) -> tuple[str, ...]:
        program, isolated, _, _, *options = server_command(*given)
        return program, isolated, str(Path(__file__).with_name("quick_server.py")), *options

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "server_command", quick)
        yield


@pytest.fixture(scope="session")
def lasting(qapp: object) -> Iterator[Children]:
    """The engine and the worker that all windows open their sources in, one by one."""
    children = Children()
    yield children
    children.close()


@pytest.fixture(scope="module", autouse=True)
def _settled(lasting: Children) -> Iterator[None]:
    """Let no file find a child that is still at what another one has asked it for."""
    yield
    lasting.settle()


@pytest.fixture
def children(lasting: Children, request: pytest.FixtureRequest) -> Children | None:
    """The children that a window opens its sources in; ``None`` for ones that end with it.

    The latter where the test's module says ``OWN_CHILDREN = True``, and why.
    """
    return None if getattr(request.module, "OWN_CHILDREN", False) else lasting


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill at once, and not after seconds, a child that hangs in what nobody wants any more."""
    for name in ("document.queries", "panes.schedule.measurements"):
        monkeypatch.setattr(f"lowerscope.app.{name}.SUPERSEDED_MS", 100)


def children_of(window: MainWindow) -> tuple[EngineClient, EngineClient]:
    return window.features.processes.engine, window.features.processes.worker


def sandboxed(request: pytest.FixtureRequest) -> bool:
    """Return whether windows run code in a sandbox, as they do for users where there is one.

    Not where the test's module says ``SANDBOX = False``, and why.
    """
    return getattr(request.module, "SANDBOX", True) and not reason_without()


@pytest.fixture
def writable() -> Iterator[Path]:
    """Return a folder that code may write to from a sandbox, as it leaves files for the window."""
    folder = own_folder().new_folder()
    yield folder
    remove(folder)


@pytest.fixture
def open_window(
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    children: Children | None,
    request: pytest.FixtureRequest,
) -> Iterator[OpenWindow]:
    """Return a function that opens a window on a source and waits until it is shown."""
    if children is not None:
        lasting = partial(LastingClient, children)
        monkeypatch.setattr("lowerscope.app.engine.children.EngineClient", lasting)
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    windows: list[MainWindow] = []

    def open_(
        spec: str = "", *, wait: bool = True, asks_first: bool = False, **fields: object
    ) -> MainWindow:
        window = MainWindow()
        window.settings.asks_first = asks_first
        window.settings.sandbox = sandboxed(request)
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
    pids = [each.pid for each in clients if each.pid is not None]
    for window in windows:
        window.close()
    if children is None:
        qtbot.waitUntil(lambda: not any(map(psutil.pid_exists, pids)))


@pytest.fixture(scope="module")
def bench(
    lasting: Children, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """Return the workbench of a window that the tests of a module share.

    The module's ``RECIPE`` is open; each test begins with that, and with no schedule.
    """
    settings = str(tmp_path_factory.mktemp("settings"))
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    with pytest.MonkeyPatch.context() as patch:
        starting = partial(LastingClient, lasting)
        patch.setattr("lowerscope.app.engine.children.EngineClient", starting)
        window = MainWindow()
        window.settings.asks_first = False
        window.settings.sandbox = sandboxed(request)
        window.show()
        window.begin(request.module.RECIPE)
    document = window.document
    assert wait_until(lambda: document.recipe is not None), document.problems
    yield Bench(window)
    window.close()
    # Else Python's collector would take it to pieces while it still answers.
    window.deleteLater()

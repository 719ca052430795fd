"""A sandbox that cannot be had: no code runs before the user has decided."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.engine.sandboxing import Sandboxing
from lowerscope.app.shell.sandbox_commands import NoSandboxDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.engine.practice_window import Window
from tests.core.engine import practice_child as practice
from tests.end_to_end.driving import PATIENCE, OpenWindow, changes, wait_for_records
from tests.sandboxes import needs_sandbox

pytestmark = needs_sandbox

REASON = "The system cannot create a sandbox (Can't find source path /no/such/folder"


class Bubblewrap:
    """A program in place of bubblewrap that can be broken, as where namespaces are used up."""

    def __init__(self, folder: Path) -> None:
        self._broken = folder / "broken"
        program = folder / "bwrap"
        program.write_text(
            f'#!/bin/sh\n[ ! -e {self._broken} ] || set -- --ro-bind /no/such/folder /x "$@"\n'
            f'exec {shutil.which("bwrap")} "$@"\n'
        )
        program.chmod(0o755)
        self.program = program

    def break_(self) -> None:
        self._broken.touch()

    def mend(self) -> None:
        self._broken.unlink()


@pytest.fixture
def bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bubblewrap:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Bubblewrap(folder)


@pytest.fixture
def sandboxing(bubblewrap: Bubblewrap, tmp_path: Path, qapp: object) -> Sandboxing:
    ini = QSettings.Format.IniFormat
    QSettings.setPath(ini, QSettings.Scope.UserScope, str(tmp_path / "settings"))
    return Sandboxing(Settings())


@pytest.fixture
def open_client(qtbot: QtBot, sandboxing: Sandboxing) -> Iterator[Callable[[], Window]]:
    windows: list[Window] = []

    def open_one() -> Window:
        windows.append(Window(qtbot))
        windows[-1].client.sandbox = sandboxing
        return windows[-1]

    yield open_one
    for window in windows:
        window.client.stop()


def held_of(sandboxing: Sandboxing) -> list[str]:
    held: list[str] = []
    sandboxing.held.connect(lambda: held.append(sandboxing.availability))
    return held


def test_the_next_child_is_not_started_without_the_sandbox_that_was_in_force(
    open_client: Callable[[], Window], sandboxing: Sandboxing, bubblewrap: Bubblewrap
) -> None:
    window, held = open_client(), held_of(sandboxing)
    window.client.start()
    assert window.result(window.ask("echo", practice.Text("first"))) == "first"
    bubblewrap.break_()
    window.client.restart()
    request = window.ask("echo", practice.Text("second"))
    window.until(lambda: bool(held))
    assert held[0].startswith(REASON)
    assert sandboxing.state == "held"
    # Whoever asks for a start does not get one, and is not told to ask the user again.
    window.client.start()
    window.client.restart()
    assert window.client.pid is None
    assert window.client.state == "stopped"
    assert len(held) == 1
    assert request not in window.results
    assert request not in window.problems

    # Tried again in vain, it is asked again.
    sandboxing.try_again()
    window.until(lambda: len(held) == 2)
    assert window.client.pid is None
    bubblewrap.mend()
    sandboxing.try_again()
    assert window.result(request) == "second"
    assert sandboxing.availability.startswith("Opened code can write only")
    assert window.endings == []


def test_it_runs_without_one_when_the_user_says_so(
    open_client: Callable[[], Window], sandboxing: Sandboxing, bubblewrap: Bubblewrap
) -> None:
    bubblewrap.break_()
    first, second, held = open_client(), open_client(), held_of(sandboxing)
    requests = [each.ask("echo", practice.Text("here")) for each in (first, second)]
    first.client.start()
    second.client.start()
    first.until(lambda: bool(held) and {first.client.pid, second.client.pid} == {None})
    assert len(held) == 1
    sandboxing.go_without()
    assert [first.result(requests[0]), second.result(requests[1])] == ["here", "here"]
    assert sandboxing.state == "refused"
    assert sandboxing.availability.startswith(REASON)
    # In this session.
    assert Settings().sandbox


def test_a_program_that_has_gone_is_no_reason_to_run_without_it(
    open_client: Callable[[], Window], sandboxing: Sandboxing, bubblewrap: Bubblewrap
) -> None:
    bubblewrap.program.unlink()
    window, held = open_client(), held_of(sandboxing)
    window.client.start()
    window.until(lambda: bool(held))
    assert "No such file or directory" in held[0]
    assert window.client.pid is None


def dialogs() -> list[NoSandboxDialog]:
    found = [each for each in QApplication.topLevelWidgets() if isinstance(each, NoSandboxDialog)]
    return [each for each in found if each.isVisible()]


NET = """
import os, torch
open(os.path.join({cache!r}, "ran"), "a").close()

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

example_inputs = (torch.ones(2, 3),)
"""


def pids(window: MainWindow) -> set[int | None]:
    return {window.features.processes.engine.pid, window.features.processes.worker.pid}


def test_the_window_asks_once_says_why_and_runs_nothing_meanwhile(
    qtbot: QtBot, open_window: OpenWindow, bubblewrap: Bubblewrap, tmp_path: Path, writable: Path
) -> None:
    model, ran = tmp_path / "net.py", writable / "ran"
    model.write_text(NET.format(cache=str(writable)))
    bubblewrap.break_()
    window = open_window(str(model), wait=False)
    qtbot.waitUntil(lambda: bool(dialogs()), timeout=PATIENCE)
    (dialog,) = dialogs()
    assert "/no/such/folder" in dialog.why.text()
    assert dialog.act.hasFocus() or dialog.act.isDefault()
    assert window.status.sandbox.text() == "no sandbox"
    assert pids(window) == {None}
    # Nothing of what else the user does starts them.
    window.features.processes.worker.start()
    assert pids(window) == {None}

    # Closed, it says in its problems why nothing is shown.
    with qtbot.waitSignal(
        window.document.changed, check_params_cb=changes("problems"), timeout=PATIENCE
    ):
        dialog.reject()
    (problem,) = window.document.problems
    assert problem.code == "sandbox"
    assert pids(window) == {None}
    assert not ran.exists()

    # Once more, as the problem says.
    window.commands.action("restart").trigger()
    qtbot.waitUntil(lambda: bool(dialogs()), timeout=PATIENCE)
    (dialog,) = dialogs()
    assert not ran.exists()
    bubblewrap.mend()
    dialog.act.click()
    window.document.open(Recipe(source=Source(spec=str(model))))
    wait_for_records(qtbot, window)
    assert ran.exists()
    assert window.sandbox.sandboxing.state == "on"
    assert window.status.sandbox.text() == "sandboxed"
    assert not dialogs()

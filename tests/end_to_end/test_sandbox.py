"""Code that is opened runs in a sandbox: what it may not do is said in one line, and not done."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.sessions import Hashes, save_session
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    changes,
    wait_for_problem,
    wait_for_records,
)
from tests.sandboxes import needs_sandbox

pytestmark = needs_sandbox

NET = """
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

example_inputs = (torch.ones(2, 3),)
"""


def refused(qtbot: QtBot, window: MainWindow, path: Path, text: str) -> str:
    """Return the line of the problem that opening a file with this text leads to."""
    path.write_text(f"import torch\n{text}\n{NET}")
    with qtbot.waitSignal(
        window.document.changed, check_params_cb=changes("problems"), timeout=PATIENCE
    ):
        window.open_source(str(path))
    (problem,) = window.document.problems
    assert problem.code == "sandbox"
    texts = [each.text() for each in window.panes.problems.findChildren(QLabel)]
    assert any(each.startswith("✕ The sandbox does not let it") for each in texts)
    return problem.line()


def test_a_file_that_writes_to_home_or_opens_a_socket_fails_with_one_clear_line(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window()
    assert window.status.sandbox.text() == "sandboxed"
    assert "temporary files; it has no network" in window.status.sandbox.toolTip()

    model, home = tmp_path / "model.py", tmp_path / "home"
    home.mkdir()
    line = refused(qtbot, window, model, f"open({str(home / 'mine')!r}, 'w').write('mine')")
    assert line.startswith(
        f"{model}:2: the sandbox does not let it write to {home / 'mine'}."
        " If you trust the file, let code run without it (File, Run code in a sandbox)"
    )
    line = refused(qtbot, window, model, "torch.save(1, __file__ + '.pt')")
    assert line.startswith(
        f"{model}:2: the sandbox does not let it write other files than temporary ones. "
    )

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        address = server.getsockname()
        for text in (
            f"__import__('socket').create_connection({address})",
            f"__import__('urllib.request').request.urlopen('http://127.0.0.1:{address[1]}')",
            "__import__('socket').getaddrinfo('example.org', 80)",
        ):
            line = refused(qtbot, window, model, text)
            assert line.startswith(f"{model}:2: the sandbox does not let it reach the network. ")
        with pytest.raises(BlockingIOError):
            server.accept()
    assert not list(home.iterdir())
    assert not model.with_suffix(".py.pt").exists()

    # Without the sandbox, the same file opens; the children are started anew for that.
    model.write_text(f"import torch\nopen({str(home / 'mine')!r}, 'w').write('mine')\n{NET}")
    window.commands.action("sandbox").trigger()
    assert window.status.sandbox.text() == "no sandbox"
    window.open_source(str(model))
    qtbot.waitUntil(lambda: window.document.snapshot is not None, timeout=PATIENCE)
    assert (home / "mine").read_text() == "mine"
    assert not window.settings.sandbox()


def test_code_writes_to_the_folder_of_the_session_where_the_user_wants_that(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    config = project / ".git" / "config"
    config.write_text("[core]")
    model, beside = project / "net.py", project / "beside"
    session = project / "net.lowerscope"

    def write(path: Path) -> None:
        model.write_text(f"import torch\nopen({str(path)!r}, 'w').write('mine')\n{NET}")

    write(beside)
    save_session(session, Recipe(source=Source(spec=str(model))), WindowLayout(), {}, Hashes())
    first = session.stat().st_ino
    window = open_window()
    assert not window.settings.shares_folder()
    window.sandbox.set_shares(True)
    sandboxing = window.sandbox.sandboxing
    assert sandboxing.shared is None
    window.open_session(str(session))
    assert sandboxing.shared == project
    wait_for_records(qtbot, window)
    assert beside.read_text() == "mine"
    assert f"to {project}, but for what is hidden there" in window.status.sandbox.toolTip()
    # Saving it does not give it away, by whichever of its two names.
    for lowering in ("te", "high-level"):
        window.commands.action(lowering).trigger()
        wait_for_records(qtbot, window)
        window.sessions.save_now()
    twin = project / ".net.lowerscope~"
    assert {session.stat().st_ino, twin.stat().st_ino} >= {first}
    written = session.read_text()
    for path in (config, session, twin):
        write(path)
        window.commands.action("reload").trigger()
        line = wait_for_problem(qtbot, window)
        assert f"the sandbox does not let it write to {path}." in line
        assert "what is hidden and the session's file stay as they are" in line
        window.document.clear_problems()
    assert config.read_text() == "[core]"
    assert written == session.read_text()

    # Another document has nothing to write there.
    beside.unlink()
    write(beside)
    window.open_source(f"{model}:Net")
    assert sandboxing.shared is None
    line = wait_for_problem(qtbot, window)
    assert f"the sandbox does not let it write to {beside}." in line
    assert "or to the folder of the saved session (a setting: File, Settings)" in line
    assert not beside.exists()
    assert not twin.exists()

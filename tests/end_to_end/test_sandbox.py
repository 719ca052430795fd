"""Code that is opened runs in a sandbox: what it may not do is said in one line, and not done."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, changes
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
    assert any(each.startswith("✕ ") and "sandbox" in each for each in texts)
    return problem.line()


def test_a_file_that_writes_to_home_or_opens_a_socket_fails_with_one_clear_line(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window()
    assert window.status.sandbox.text() == "sandboxed"
    assert "no network" in window.status.sandbox.toolTip()

    model, home = tmp_path / "model.py", tmp_path / "home"
    home.mkdir()
    line = refused(qtbot, window, model, f"open({str(home / 'mine')!r}, 'w').write('mine')")
    assert line.startswith(f"{model}:2: ")
    assert str(home / "mine") in line
    line = refused(qtbot, window, model, "torch.save(1, __file__ + '.pt')")
    assert line.startswith(f"{model}:2: ")
    assert "temporary" in line

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        address = server.getsockname()
        for text in (
            f"__import__('socket').create_connection({address})",
            f"__import__('urllib.request').request.urlopen('http://127.0.0.1:{address[1]}')",
            "__import__('socket').getaddrinfo('example.org', 80)",
        ):
            line = refused(qtbot, window, model, text)
            assert line.startswith(f"{model}:2: ")
            assert "network" in line
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
    assert not window.settings.sandbox

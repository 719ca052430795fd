"""A model in memory in a window, which no file has: opened, replayed, saved, and gone."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbclient
import nbformat
import psutil
import pytest
import torch
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot
from torch import nn

from lowerscope.core import explore
from lowerscope.core.cli import main
from lowerscope.core.files import in_memory
from lowerscope.core.files.in_memory import VARIABLE, Order, pack, private_file, take
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records
from tests.warm_processes import run_warm

SCRIPT = """
import torch
from lowerscope.core import explore
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)
    def forward(self, x):
        return torch.relu(self.linear(x))
explore(Net(), torch.ones(2, 8), lowering="te")
"""


OWN_CHILDREN = True
"""They are started with what was handed over."""


@pytest.fixture
def handed() -> Iterator[Recipe]:
    """Hand a model over to this process, as to a window that Python has opened."""
    parcel = pack(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), torch.ones(2, 8), "Mine")
    recipe = Recipe(source=Source(spec=parcel.spec), lowering="te")
    with private_file(parcel) as (file, token):
        take(Order(file=file, token=token, recipe=recipe))
    yield recipe
    os.close(int(os.environ.pop(VARIABLE).partition(":")[0]))


def test_a_model_in_memory_is_replayed_and_its_session_says_what_it_is(
    qtbot: QtBot,
    open_window: OpenWindow,
    handed: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    window = open_window(handed.source.spec, lowering="te")
    assert window.windowTitle().startswith("Mine")
    assert handed.source.spec not in window.settings.recent()
    run_and_wait(qtbot, window)
    assert window.document.run_record is not None
    assert window.document.run_record.verdict == "match"
    # The file is long gone: the next engine reads the model where the last one did.
    engine = window.features.processes.engine
    killed = engine.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    qtbot.waitUntil(lambda: engine.pid not in (killed, None), timeout=PATIENCE)
    window.commands.action("high-level").trigger()
    wait_for_records(qtbot, window)
    recipe = window.document.recipe
    assert recipe is not None
    assert recipe.lowering == "high-level"
    # The session has the choices, and says that it has no model.
    path = tmp_path / "mine.lowerscope"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    with qtbot.waitSignal(window.sessions.saved, timeout=PATIENCE):
        window.commands.action("save-session").trigger()
    assert "cannot be opened again" in window.banner.message()
    assert json.loads(path.read_text())["recipe"]["lowering"] == "high-level"
    monkeypatch.setattr(in_memory, "_here", {})
    number = os.environ[VARIABLE]
    monkeypatch.delenv(VARIABLE)
    assert main.main(["show", str(path), "--stage", "fx"]) == main.ERROR
    assert "Mine exists only in the memory of the Python process" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, number)


def test_python_opens_a_window_of_its_own_and_goes_on(tmp_path: Path) -> None:
    config, files = tmp_path / "config", tmp_path / "files"
    files.mkdir()
    environment = os.environ | {"XDG_CONFIG_HOME": str(config), "TMPDIR": str(files)}
    pid = tmp_path / "pid"
    more = (
        "import sys, psutil; open(sys.argv[1], 'w').write(str(psutil.Process().children()[0].pid))"
    )
    done = run_warm("-c", SCRIPT + more, str(pid), environment=environment)
    assert done.returncode == 0, done.stderr
    # Python has ended, its file is gone, and the window is there and saves its session.
    assert not list(files.glob("lowerscope-model-*"))
    window = psutil.Process(int(pid.read_text()))
    started = window.children()
    try:
        end = time.monotonic() + PATIENCE / 1000
        sessions = config / "lowerscope" / "sessions"
        while len(started) < 2 or not list(sessions.glob("[!.]*.lowerscope")):
            assert window.is_running()
            assert time.monotonic() < end
            time.sleep(0.05)
            started = window.children()
        assert len(started) == 2
    finally:
        window.terminate()
        psutil.wait_procs([window, *started], timeout=PATIENCE / 1000)
    assert not any(each.is_running() for each in started)
    assert not list(Path(tempfile.gettempdir()).glob(f"lowerscope-model-{window.pid}*"))


def test_a_window_that_cannot_come_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "no-such-platform")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(LowerscopeError, match="Net: the window does not open") as caught:
        explore(nn.Linear(8, 4), torch.ones(2, 8), title="Net")
    assert "window=False" in caught.value.problem.line()
    assert not list(tmp_path.glob("lowerscope-model-*"))


def test_a_notebook_shows_it_inline_and_opens_no_window(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(SCRIPT),
            nbformat.v4.new_code_cell("_.fx()[1].line.text, _.run().verdict"),
            nbformat.v4.new_code_cell("import psutil; psutil.Process().children()"),
        ]
    )
    nbclient.NotebookClient(
        notebook, timeout=PATIENCE / 1000, kernel_name="python3", resources={}
    ).execute(cwd=str(tmp_path))
    shown = notebook.cells[0].outputs[-1]["data"]
    assert shown["text/plain"] == "<Exploration of Net: lowering='te'>"
    assert "<svg" in shown["text/html"]
    assert "te_relu" in shown["text/html"] or "relu" in shown["text/html"]
    # A node knows its line in a cell, which is in no file.
    assert notebook.cells[1].outputs[-1]["data"]["text/plain"] == (
        "('return torch.relu(self.linear(x))', 'match')"
    )
    assert notebook.cells[2].outputs[-1]["data"]["text/plain"] == "[]"

"""Opened code in the window that takes too much, by as many processes as it likes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.sandbox import bubblewrap
from tests.end_to_end.driving import OpenWindow, wait_for_problem, wait_for_records
from tests.sandboxes import needs_sandbox

pytestmark = needs_sandbox

FEW = 64 + 16 * (os.cpu_count() or 1)
"""More than torch and TVM have threads."""

MODEL = """
import os, time, torch

def start(count, held):
    for _ in range(count):
        try:
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    kept = b"x" * held
                    time.sleep(60)
                os._exit(0)
        except BlockingIOError:
            pass
    time.sleep(60)

class Net(torch.nn.Module):
    def forward(self, x):
        start({count}, {held})
        return torch.relu(x)

example_inputs = (torch.ones(2, 3),)
"""


@pytest.mark.parametrize(
    ("count", "held", "code", "said"),
    [
        (FEW + 10, 0, "processes", "processes and threads"),
        (8, 400 << 20, "memory", "it and its children used"),
    ],
)
def test_what_forward_starts_is_stopped_with_the_engine_and_said(
    qtbot: QtBot,
    open_window: OpenWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    held: int,
    code: str,
    said: str,
) -> None:
    monkeypatch.setattr(bubblewrap, "task_limit", lambda: FEW)
    window = open_window("sample:matmul")
    window.features.processes.engine.memory_limit = 2 << 30
    window.features.processes.engine.restart()
    model = tmp_path / "net.py"
    model.write_text(MODEL.format(count=count, held=held))
    window.open_source(str(model))
    line = wait_for_problem(qtbot, window)
    (problem,) = window.document.problems
    assert problem.code == code
    assert "The engine was stopped while" in line
    assert said in line
    # It is back, for what can be opened.
    window.open_source("sample:matmul")
    wait_for_records(qtbot, window)

"""Text of files on a terminal, on one that has ASCII alone, and in lines of any length."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.files import console
from tests.warm_processes import WarmProcess

HOSTILE = "\x1b]0;title\x07\x1b[31mred\u202eabc\x9b31m\r\x00"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_control_characters_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    console.put_out(f"first\n\tsecond é × {HOSTILE}")
    text = terminal.getvalue()
    assert text.startswith(
        "first\n\tsecond é × \\x1b]0;title\\x07\\x1b[31mred\\u202eabc\\x9b31m\\r"
    )
    assert all(each.isprintable() or each in "\n\t" for each in text)


def on_terminal(*arguments: str) -> tuple[int, str]:
    """Return the exit code of a command, and all that it sends to its terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb", 0) as terminal:
        process = WarmProcess("-m", "lowerscope.app", *arguments, output=terminal, errors=terminal)
    sent = b""
    try:
        while piece := os.read(ours, 1 << 16):
            sent += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    finally:
        os.close(ours)
    return process.wait(), sent.decode()


NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module({name!r}, torch.nn.ReLU())

    def forward(self, x):
        return next(self.children())(x)

example_inputs = (torch.ones(1, 3),)
"""


@pytest.mark.parametrize(("inputs", "code"), [((HOSTILE,), 2), ((), 0)], ids=["problem", "answer"])
def test_a_session_sends_nothing_to_a_terminal(
    tmp_path: Path, inputs: tuple[str, ...], code: int
) -> None:
    (tmp_path / "net.py").write_text(NET.format(name=HOSTILE), encoding="utf-8")
    recipe = {
        "source": {"spec": "net.py"},
        "inputs": [{"name": name, "shape": [1, 3]} for name in inputs],
    }
    (tmp_path / "a.lowerscope").write_text(json.dumps({"recipe": recipe}))
    returned, sent = on_terminal("show", str(tmp_path / "a.lowerscope"), "--stage", "fx")
    assert returned == code, sent
    assert "\\x1b[31mred\\u202eabc\\x9b31m" in sent
    assert all(each.isprintable() or each in "\r\n\t" for each in sent)


def test_problems_are_shown_wherever_they_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    path.write_text(f"raise ValueError({HOSTILE!r})", encoding="utf-8")
    assert main(["show", str(path), "--stage", "fx"]) == 2
    (line,) = capsys.readouterr().err.rstrip("\n").split("\n")
    assert "\\x1b[31mred\\u202eabc" in line
    assert line.isprintable()

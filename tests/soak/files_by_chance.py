"""Files for dialogs to be answered with: a few good ones, others not, often none."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)
    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)

def example_inputs():
    return (torch.ones(2, 8),)
"""


def fill(folder: Path) -> None:
    """Put files into a folder that dialogs are answered with: a few good ones, others not."""
    folder.mkdir(exist_ok=True)
    (folder / "net.py").write_text(NET)
    (folder / "broken.py").write_text("def f(:\n")
    (folder / "nothing.py").write_text("x = 1\n")
    (folder / "empty.json").write_text("")
    (folder / "other.json").write_text('{"version": 1, "schedules": []}')
    (folder / "broken.lowerscope").write_text('{"version": 1, "recipe": {')
    (folder / "broken.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    (folder / "values.npy").write_bytes(os.urandom(200))
    (folder / "二进制.pt2").write_bytes(os.urandom(2000))


@contextlib.contextmanager
def answered_by_chance(folder: Path, seed: int) -> Iterator[None]:
    """Let dialogs for files be answered with something at random, often with nothing."""
    drawn = random.Random(f"{seed} files")

    def path(*_: object, **__: object) -> str:
        there = [*map(str, folder.iterdir()), str(folder / "new.json"), "/nowhere/at/all.json"]
        return drawn.choice(there) if drawn.random() < 0.6 else ""

    def file(*_: object, **__: object) -> tuple[str, str]:
        return path(), "SVG (*.svg)"

    def written(*_: object, **__: object) -> tuple[str, str]:
        name = drawn.choice(
            ("a.json", "a.svg", "a.lowerscope", "a.npy", "中文.png", "no/such/b.pdf")
        )
        return (str(folder / "written" / name) if drawn.random() < 0.6 else ""), "SVG (*.svg)"

    def written_to(*_: object, **__: object) -> str:
        return str(folder / "written") if drawn.random() < 0.6 else ""

    (folder / "written").mkdir(exist_ok=True)
    before = {
        name: getattr(QFileDialog, name)
        for name in ("getOpenFileName", "getSaveFileName", "getExistingDirectory")
    }
    opens = QDesktopServices.openUrl
    QFileDialog.getOpenFileName = staticmethod(file)  # type: ignore[method-assign]
    QFileDialog.getSaveFileName = staticmethod(written)  # type: ignore[method-assign]
    QFileDialog.getExistingDirectory = staticmethod(written_to)  # type: ignore[method-assign]
    QDesktopServices.openUrl = staticmethod(lambda _url: True)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(QFileDialog, name, method)
        QDesktopServices.openUrl = opens  # type: ignore[method-assign]

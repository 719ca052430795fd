"""Names that a model brings are no markup: nothing is read, and nothing hidden, for them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import Qt as Texts
from PySide6.QtWidgets import QAbstractItemView, QLabel, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.window import MainWindow
from tests.end_to_end.driving import OpenWindow, wait_until

EVIL = "<img src='/dev/zero'>"

NET = f"""
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module({EVIL!r}, torch.nn.Linear(3, 2))

    def forward(self, x):
        return next(self.children())(x)

example_inputs = (torch.ones(2, 3),)
"""


def tips_of_items(view: QAbstractItemView, parent: QModelIndex) -> list[str]:
    model, found = view.model(), []
    for row in range(model.rowCount(parent)):
        for column in range(model.columnCount(parent)):
            tip = model.index(row, column, parent).data(Qt.ItemDataRole.ToolTipRole)
            found += [str(tip)] if tip else []
        found += tips_of_items(view, model.index(row, 0, parent))
    return found


def texts_of(window: MainWindow) -> list[str]:
    views = [each for each in window.findChildren(QAbstractItemView) if each.model() is not None]
    labels = window.findChildren(QLabel)
    return [
        *(tip for view in views for tip in tips_of_items(view, QModelIndex())),
        *(each.toolTip() for each in window.findChildren(QWidget)),
        *(each.text() for each in labels if each.textFormat() != Qt.TextFormat.PlainText),
    ]


def test_a_name_is_shown_as_it_is(qtbot: QtBot, open_window: OpenWindow, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(NET)
    window = open_window(str(file))
    window.workspace.select(("fx:_img_src_dev_zero_",))
    window.workspace.run()
    assert wait_until(lambda: window.workspace.run_record is not None)
    texts = texts_of(window)
    assert any("&lt;img src" in each for each in texts)
    assert not [each for each in texts if EVIL in each and Texts.mightBeRichText(each)]
    window.open_source(str(tmp_path / f"{EVIL.replace('/', '-')}.py"))
    assert wait_until(lambda: bool(window.workspace.problems))
    assert not [each for each in texts_of(window) if "<img" in each]

"""The pipeline, edited in the window by mouse and keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.steps.pass_dialog import PassDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Step
from tests.end_to_end.driving import PATIENCE, OpenWindow, wait_for_records

LEFT = Qt.MouseButton.LeftButton


def names(window: MainWindow) -> list[str]:
    recipe = window.document.wanted
    assert recipe is not None
    return [step.name for step in recipe.steps]


def select(qtbot: QtBot, window: MainWindow, key: str) -> None:
    steps = window.panes.pipeline.list
    place = steps.row_rect(key).center().toPoint()
    qtbot.mouseClick(steps.viewport(), LEFT, pos=QPoint(120, place.y()))
    assert steps.current_key() == key


def open_dialog(qtbot: QtBot, window: MainWindow) -> PassDialog:
    """Wait until the dialog has its passes."""
    pipeline = window.panes.pipeline
    qtbot.waitUntil(lambda: pipeline.dialog is not None, timeout=PATIENCE)
    dialog = pipeline.dialog
    assert dialog is not None
    filled = lambda: bool(dialog.form.title.text())  # noqa: E731
    qtbot.waitUntil(filled, timeout=PATIENCE)
    return dialog


OWN_PASSES = """
import tvm


@tvm.transform.module_pass(opt_level=0)
class KeepAsItIs:
    \"\"\"Leaves everything as it is.\"\"\"

    def transform_module(self, module, context):
        return module
"""


def test_a_pass_is_added_from_the_catalogue_with_options(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_window("sample:fashion_mlp")
    window.commands.action("add-pass").trigger()
    dialog = open_dialog(qtbot, window)
    assert "of" in dialog.count.text()
    qtbot.keyClicks(dialog.line, "fuseops")
    assert dialog.form.title.text() == "FuseOps"
    assert "fuse" in dialog.form.doc.toPlainText().lower()
    field = dialog.form.fields["fuse_opt_level"]
    assert isinstance(field, QLineEdit)
    qtbot.keyClicks(field, "much")
    assert "“much” is not a valid value of fuse_opt_level" in dialog.wrong.text()
    assert not dialog.ok.isEnabled()
    field.clear()
    qtbot.keyClicks(field, "0")
    assert dialog.wrong.text() == ""
    qtbot.mouseClick(dialog.ok, LEFT)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.steps == (
        Step(name="LegalizeOps"),
        Step(name="FuseOps", options={"fuse_opt_level": 0}),
    )
    row = next(row for row in window.panes.pipeline.list.rows() if row.title == "FuseOps")
    assert row.note == "fuse_opt_level=0"

    select(qtbot, window, row.key)
    window.commands.action("step-options").trigger()
    dialog = open_dialog(qtbot, window)
    field = dialog.form.fields["fuse_opt_level"]
    assert isinstance(field, QLineEdit)
    assert field.text() == "0"
    field.clear()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert window.document.recipe.steps[1] == Step(name="FuseOps")

    # Passes of the user's own are in the catalogue as well.
    file = tmp_path / "own.py"
    file.write_text(OWN_PASSES)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    window.commands.action("load-passes").trigger()
    wait_for_records(qtbot, window)
    window.commands.action("add-pass").trigger()
    dialog = open_dialog(qtbot, window)
    qtbot.keyClicks(dialog.line, "own keepas")
    assert dialog.shown() == ["own.KeepAsItIs"]
    qtbot.keyClick(dialog.line, Qt.Key.Key_Return)
    wait_for_records(qtbot, window)
    assert names(window) == ["LegalizeOps", "FuseOps", "own.KeepAsItIs"]
    row = next(each for each in window.panes.pipeline.list.rows() if each.place == 2)
    assert row.words == "nothing changed"

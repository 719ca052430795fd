"""Functions that crash, never end or hog memory: the call is named, the way back
offered, and what was measured stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import (
    PATIENCE,
    OpenWindow,
    run_and_wait,
    wait_for_problem,
    wait_for_records,
)
from tests.faulty_functions import (
    CRASHES,
    faulty_relu,
)


@pytest.fixture
def worked(qtbot: QtBot, open_window: OpenWindow) -> MainWindow:
    """A window with a run that worked."""
    window = open_window("sample:fashion_mlp")
    run_and_wait(qtbot, window)
    return window


def run_faulty(qtbot: QtBot, window: MainWindow, folder: Path, body: str) -> None:
    """Let a function of a library stand in for ReLU, and run."""
    window.document.change_fields(extensions=faulty_relu(folder, body))
    wait_for_records(qtbot, window)
    window.commands.action("run").trigger()


def button(window: MainWindow, text: str) -> QPushButton | None:
    found = window.panes.problems.findChildren(QPushButton)
    return next((each for each in found if each.text() == text and each.isVisible()), None)


def go_back(qtbot: QtBot, window: MainWindow) -> None:
    """Press the button in Problems, and look that what was measured is there again."""
    text = "Back to the last correct state"
    qtbot.waitUntil(lambda: button(window, text) is not None, timeout=PATIENCE)
    qtbot.mouseClick(button(window, text), Qt.MouseButton.LeftButton)
    wait_for_records(qtbot, window)
    assert window.document.recipe is not None
    assert window.document.recipe.extensions == ()
    assert window.tool_bar.verdict.role() == "right"
    assert window.document.run_record is not None
    assert not window.commands.action("go-back").isEnabled()


def test_the_call_that_crashes_is_named(qtbot: QtBot, worked: MainWindow, tmp_path: Path) -> None:
    run_faulty(qtbot, worked, tmp_path, CRASHES)
    assert "crashed with SIGSEGV while running the model (in call 4 of 7" in wait_for_problem(
        qtbot, worked
    )
    # The list ends at the call that did it.
    worked.features.stepping.set_section("run")
    failed = [dot.tooltip for dot in worked.panes.pipeline.slider.dots() if dot.state == "wrong"]
    assert [text.split(" · ")[0] for text in failed] == ["4 env.faulty"]
    qtbot.mouseClick(button(worked, "Select the called function"), Qt.MouseButton.LeftButton)
    assert worked.document.selection.of_kind("fx") == ("fx:relu",)
    go_back(qtbot, worked)

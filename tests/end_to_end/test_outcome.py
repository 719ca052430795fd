"""The Outcome pane while things happen: during a run, and when the colours change."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.theme import DARK, LIGHT
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait


def test_a_run_says_that_it_runs_and_then_what_came_out(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    outputs = window.panes.result.outputs
    assert outputs.empty.accessibleName() == "Not run yet"
    window.commands.action("run").trigger()
    assert outputs.empty.accessibleName() == "Running…"
    window.features.cancel()
    qtbot.waitUntil(lambda: not window.document.running, timeout=PATIENCE)
    assert outputs.empty.accessibleName() == "Not run yet"
    run_and_wait(qtbot, window)
    assert [row.key for row in outputs.rows()] == ["output"]

    # In a narrow pane, what stands side by side is stacked, and nothing is cut.
    window.resize(1440, 900)
    side = window.panes.result.side
    assert side.geometry().right() <= outputs.geometry().left()
    window.commands.action("workbench").trigger()
    qtbot.waitUntil(lambda: side.geometry().bottom() <= outputs.geometry().top())
    times = window.panes.result.times
    for button in (times.again, times.settings):
        assert button.width() >= button.sizeHint().width()
        assert times.rect().contains(button.geometry())


def test_a_problem_takes_the_colours_of_another_scheme(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    window.document.change_fields(target="nonsense")
    qtbot.waitUntil(lambda: bool(window.document.problems), timeout=PATIENCE)

    def headline() -> str:
        labels = window.panes.problems.findChildren(QLabel)
        return next(each.styleSheet() for each in labels if each.text().startswith("✕"))

    window.commands.action("light").trigger()
    assert headline() == f"color: {LIGHT.wrong}"
    window.commands.action("dark").trigger()
    qtbot.waitUntil(lambda: headline() == f"color: {DARK.wrong}")
    window.commands.action("light").trigger()

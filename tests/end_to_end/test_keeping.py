"""How much of a run's values is kept is a setting, remembered, and said after the run."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.views.settings_dialog import SettingsDialog
from lowerscope.app.window import MainWindow
from tests.end_to_end.driving import OpenWindow, run_and_wait


def say(window: MainWindow, text: str) -> str:
    window.commands.action("keep").trigger()
    dialog = next(each for each in window.findChildren(SettingsDialog) if each.isVisible())
    dialog.keep.setText(text)
    wrong = dialog.wrong.text()
    assert dialog.ok.isEnabled() == (not wrong)
    dialog.reject() if wrong else dialog.accept()
    return wrong


def test_values_are_kept_as_far_as_the_memory_that_is_typed_reaches(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp")
    said: list[tuple[str, str]] = []
    window.workspace.announced.connect(lambda *each: said.append(each))
    assert say(window, "much") == "'much' is no amount of memory, such as 3GB"
    assert said == []
    assert say(window, "1 kB") == ""
    assert said[0] == ("From the next run on, 1 kB of its values are kept", "info")
    assert window.settings.keep() == 1024
    run_and_wait(qtbot, window)
    record = window.workspace.run_record
    assert record is not None
    assert (record.kept_budget, record.verdict) == (1024, "match")
    assert 0 < record.kept_bytes <= 1024
    assert 0 < record.kept_calls < len(record.calls)
    texts = " ".join(each.text() for each in window.panes.result.findChildren(QLabel))
    assert "of 1 kB" in texts

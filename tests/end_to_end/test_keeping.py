"""How much of a run's values is kept is a setting, remembered, and said after the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.dialogs import Question
from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import OpenWindow, notices_of, run_and_wait


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
    notices_of(window, lambda *each: said.append(each))
    assert say(window, "much") == "Values kept: 'much' is no amount of memory, such as 3GB"
    assert said == []
    assert say(window, "1 kB") == ""
    assert said[0] == ("From the next run on, 1 kB of its values are kept", "info")
    assert window.settings.keep() == 1000
    run_and_wait(qtbot, window)
    record = window.document.run_record
    assert record is not None
    assert (record.kept_budget, record.verdict) == (1000, "match")
    assert 0 < record.kept_bytes <= 1000
    assert 0 < record.kept_calls < len(record.calls)
    texts = " ".join(each.text() for each in window.panes.result.findChildren(QLabel))
    assert "of 1 kB" in texts


def test_the_caches_are_cleared_when_the_question_is_answered(
    open_window: OpenWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    window = open_window()
    said: list[tuple[str, str]] = []
    notices_of(window, lambda *each: said.append(each))
    clear = window.commands.action("clear-caches")
    clear.trigger()
    assert said == [("The caches are empty", "info")]
    file = tmp_path / "cache" / "lowerscope" / "peaks-1.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 3000)
    clear.trigger()
    asked = next(each for each in window.findChildren(Question) if each.isVisible())
    assert asked.text() == "Clear 3 kB of caches?"
    asked.cancel.click()
    assert file.exists()

    window.commands.action("settings").trigger()
    dialog = next(each for each in window.findChildren(SettingsDialog) if each.isVisible())
    assert (dialog.cache_limit.text(), dialog.cached.text()) == ("1 GB", "3 kB on the disk")
    dialog.clear.click()
    asked = next(each for each in dialog.findChildren(Question) if each.isVisible())
    asked.act.click()
    assert said[1] == ("Removed 3 kB of caches", "info")
    assert (dialog.clear.isEnabled(), dialog.cached.text()) == (False, "0 B on the disk")
    assert not file.exists()

    file.write_bytes(b"x" * 3000)
    dialog.cache_limit.setText("2 kB")
    dialog.accept()
    assert said[2] == ("The caches may have 2 kB. Removed 3 kB of caches", "info")
    assert not file.exists()

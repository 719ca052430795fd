"""Settings in one dialog, and the details that a report of a problem needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QByteArray, QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.kit import theme
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.typefaces import CODE_PIXELS
from lowerscope.app.shell.about import AboutDialog
from lowerscope.app.shell.settings_dialog import SettingsDialog
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe, Source

OTHERS: dict[str, Any] = {
    "scheme": "dark",
    "code_pixels": 16.0,
    "scale": 150,
    "asks_first": False,
    "watching": False,
    "memory_limit": 3_000_000_000,
    "keep": 2_000_000_000,
}


@pytest.fixture
def window(qtbot: QtBot, tmp_path: Path) -> Iterator[MainWindow]:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    window = MainWindow()
    qtbot.addWidget(window)
    window._complete()
    window.show()
    yield window
    window.features.stop()
    theme.set_code_pixels(CODE_PIXELS)
    theme.set_scheme("light")


def fill(dialog: SettingsDialog) -> None:
    for name in ("scheme", "code_pixels", "scale"):
        field = dialog.fields[name]
        assert isinstance(field, QComboBox)
        field.setCurrentIndex(field.findData(OTHERS[name]))
    dialog.asks_first.click()
    dialog.watching.click()
    dialog.memory_limit.setText("3 GB")
    dialog.keep.setText("2 GB")


def opened(window: MainWindow) -> SettingsDialog:
    window.commands.action("settings").trigger()
    return next(each for each in window.findChildren(SettingsDialog) if each.isVisible())


def test_what_is_chosen_is_in_effect_after_ok_and_nothing_of_it_after_cancel(
    qtbot: QtBot, window: MainWindow
) -> None:
    code = CodeView("code")
    qtbot.addWidget(code)
    code.set_text("x = 1")
    usual, height = code.editor.font().pointSizeF(), code.editor.fontMetrics().height()
    before = window.preferences.current()
    others = replace(before, **OTHERS)
    dialog = opened(window)
    assert dialog.wanted() == before
    fill(dialog)
    assert dialog.wanted() == others
    dialog.reject()
    assert window.preferences.current() == before
    dialog = opened(window)
    fill(dialog)
    dialog.accept()
    assert window.preferences.current() == others
    assert theme.current().name == "dark"
    assert window.commands.action("dark").isChecked()
    assert code.editor.font().pointSizeF() == pytest.approx(usual * 16 / CODE_PIXELS)
    assert code.editor.fontMetrics().height() > height
    assert not window.source_watch.on
    assert window.features.processes.worker.memory_limit == 3_000_000_000
    assert window.features.runs.keep == 2_000_000_000
    assert window.banner.isVisible()
    # The next window has them from its start.
    assert Settings().scale == 150
    assert Settings().code_pixels == 16.0


def test_what_is_no_amount_of_memory_is_said_and_not_taken(window: MainWindow) -> None:
    dialog = opened(window)
    dialog.memory_limit.setText("10 MB")
    assert "torch and TVM need" in dialog.wrong.text()
    assert not dialog.ok.isEnabled()
    dialog.memory_limit.setText("")
    assert dialog.ok.isEnabled()
    dialog.reject()


def test_files_that_may_run_are_forgotten(window: MainWindow) -> None:
    window.settings.set_trusted({"/home/somebody/net.py": "hash"})
    dialog = opened(window)
    assert dialog.known.text() == "1 file may run"
    dialog.forget.click()
    assert window.settings.trusted() == {}
    assert dialog.known.text() == "None"
    dialog.reject()


def test_details_for_a_report_are_copied_without_paths(qtbot: QtBot, window: MainWindow) -> None:
    path = str(Path.home() / "secret project" / "net.py")
    window.document.set(recipe=Recipe(source=Source(spec=f"{path}:Net")))
    window.document.report(Problem(what="no such thing", where=f"{path}:12"))
    about = AboutDialog(window.preferences, window)
    qtbot.addWidget(about)
    about.show()
    about.copy.click()
    text = QGuiApplication.clipboard().text()
    for part in ("lowerscope ", "torch 2", "apache-tvm 0.27", "PySide6", "Python 3", "Qt 6"):
        assert part in text
    assert "engine stopped, worker stopped" in text
    assert "steps LegalizeOps" in text
    assert "net.py:12" in text
    assert "no such thing" in text
    assert "secret" not in text
    assert str(Path.home()) not in text


# What is remembered from one start to the next


def test_a_layout_that_was_not_shown_stays_as_it_was(tmp_path: Path) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    Settings().save(QByteArray(b"place"), "panes")
    # A window that was closed on its welcome page has no panes.
    Settings().save(QByteArray(b"another place"), "")
    assert Settings().layout() == "panes"
    assert Settings().geometry() == QByteArray(b"another place")

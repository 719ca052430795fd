"""What is remembered from one start to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QSettings
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.run_records import KEEP


def test_docks_that_were_not_shown_stay_where_they_were(tmp_path: Path) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    Settings().save(QByteArray(b"place"), QByteArray(b"docks"))
    # A window that was closed on its welcome page has no docks.
    Settings().save(QByteArray(b"another place"), QByteArray())
    assert Settings().layout() == QByteArray(b"docks")
    assert Settings().geometry() == QByteArray(b"another place")


def test_a_timeline_that_was_closed_stays_closed() -> None:
    settings = Settings()
    assert settings.timeline()
    settings.set_timeline(False)
    assert not Settings().timeline()
    settings.set_timeline(True)
    assert Settings().timeline()


KEYS = (
    *("recent", "trusted", "reached", "last-session", "ask-first", "sandbox", "watching", "scheme"),
    *("code-pixels", "scale", "timeline", "memory-limit", "keep", "geometry", "layout-2"),
)


@pytest.mark.parametrize(
    "value",
    [
        *("", "nan", "-1", "9" * 5000, "x, y, z", "@Invalid()", '"\\xd800\\x0"', "[[["),
        "@ByteArray(\\x1\\x2)",
        "@Rect(1 2 3 4)",
    ],
)
def test_damaged_settings_do_not_stop_the_start(qtbot: QtBot, tmp_path: Path, value: str) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    file = tmp_path / "lowerscope" / "lowerscope.ini"
    file.parent.mkdir()
    lines = "\n".join(f"{key}={value}" for key in KEYS)
    file.write_bytes(f"[General]\n{lines}\n".encode() + b"\xff\xfe\0[[\n=\n")
    window = MainWindow()
    qtbot.addWidget(window)
    window.show()
    settings = Settings()
    assert settings.memory_limit() == 0
    assert settings.keep() == KEEP
    assert settings.scheme() == "system"
    for read in (settings.recent, settings.trusted, settings.reached, settings.last_session):
        read()
    for source in settings.recent():
        settings.recipe_of(source)
    settings.add_recent("sample:matmul", "{}")
    assert Settings().recent()[0] == "sample:matmul"

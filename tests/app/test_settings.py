"""What is remembered from one start to the next."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, QSettings

from lowerscope.app.settings import Settings


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

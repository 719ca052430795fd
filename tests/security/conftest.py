"""Shared set-up of the security tests: the real window, and folders of a user."""

from pathlib import Path

import pytest

from tests.end_to_end.conftest import (
    _look,
    _quick,
    _settled,
    children,
    lasting,
    open_window,
    writable,
)

__all__ = ["_look", "_quick", "_settled", "children", "lasting", "open_window", "writable"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of the user's, beside a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    return folder

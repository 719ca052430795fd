"""2,000 bad files through the engine, and some through the window; see `tests.soak.bad_files`.

``LOWERSCOPE_SOAK_FILES=N`` opens another number of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.end_to_end.conftest import _look, children, lasting, open_window, writable
from tests.end_to_end.driving import OpenWindow
from tests.end_to_end.test_bad_files import open_in_window
from tests.soak.bad_files import numbers
from tests.soak.opening_bad_files import open_bad_files

__all__ = ["_look", "children", "lasting", "open_window", "writable"]

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_FILES", "2000"))


def test_bad_files_are_refused_clearly(tmp_path: Path) -> None:
    tally, wrong = open_bad_files(tmp_path, COUNT)
    print(tally.text(), *wrong, sep="\n")
    assert not wrong, "\n".join(wrong)
    assert tally.total == len(list(numbers(COUNT)))


def test_a_bad_file_leaves_what_is_open(
    qtbot: QtBot, open_window: OpenWindow, writable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(open_in_window(qtbot, open_window, writable, monkeypatch, COUNT // 10))

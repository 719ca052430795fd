"""Users without patience, and what their windows show after it beside a fresh window.

``LOWERSCOPE_SOAK_IMPATIENCE=5000`` says how many steps, ``LOWERSCOPE_SOAK_SEED`` which window is
the first, and ``LOWERSCOPE_SOAK_STEPS=3,17,90`` which steps of that one alone are done, to find out
what a failure takes.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.conftest import _look, children_of, open_window
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.soak.files_by_chance import answered_by_chance, fill
from tests.soak.fresh_window import check_session, compare
from tests.soak.impatience import STALL_MS, Impatience
from tests.soak.killing import PATIENCE, temporary_folder

__all__ = ["_look", "open_window", "temporary_folder"]

STEPS = int(os.environ.get("LOWERSCOPE_SOAK_IMPATIENCE", "0"))
SEED = int(os.environ.get("LOWERSCOPE_SOAK_SEED", "0"))
ONLY = [int(each) for each in os.environ.get("LOWERSCOPE_SOAK_STEPS", "").split(",") if each]

EACH = 120
"""So many steps a window lives."""


class Figures:
    """What many windows have come to."""

    def __init__(self) -> None:
        self.steps = 0
        self.counts: Counter[str] = Counter()
        self.stalls: list[tuple[float, str]] = []
        self.endings: list[str] = []

    def add(self, user: Impatience) -> None:
        """Add what one window has come to."""
        self.steps += user.done
        self.counts += user.deeds.counts
        self.stalls += user.stalls
        self.endings += user.endings

    def report(self) -> str:
        """Return the figures."""
        worst = sorted(self.stalls, reverse=True)[:12]
        return "\n".join(
            (
                f"{self.steps} steps: {dict(self.counts)}",
                f"{len(self.stalls)} stalls above {STALL_MS} ms of the window's own work:",
                *(f"  {ms:.0f} ms after {step}" for ms, step in worst),
                f"{len(self.endings)} children ended by themselves:",
                *(f"  {each}" for each in self.endings[:12]),
            )
        )


@pytest.fixture
def children() -> None:
    """Each window has children of its own, which end with it."""


@pytest.fixture
def fresh(tmp_path: Path, qtbot: QtBot) -> Iterator[MainWindow]:
    """Return a window in which nobody does anything but open sessions."""
    settings = str(tmp_path / "settings")
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
    window = MainWindow()
    window.settings.set_asks_first(False)
    window.settings.set_sandbox(False)
    window.begin(None)
    yield window
    window.close()


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.skipif(not STEPS, reason="takes an hour")
def test_a_user_without_patience(
    qtbot: QtBot,
    qtlog: object,
    open_window: OpenWindow,
    fresh: MainWindow,
    temporary_folder: Path,
    tmp_path: Path,
) -> None:
    figures, number = Figures(), SEED
    while figures.steps < STEPS:
        folder = tmp_path / f"files {number}"
        fill(folder)
        warned = len(qtlog.records)  # type: ignore[attr-defined]
        source = str(folder / "net.py") if number % 2 else "sample:matmul_relu"
        window = open_window(source, wait=number % 3 != 0, lowering="te")
        with qtbot.captureExceptions() as exceptions, answered_by_chance(folder, number):
            user = Impatience(
                window,
                folder,
                number,
                exceptions=lambda: exceptions,
                warnings=lambda: _said(qtlog, warned),  # noqa: B023
            )
            user.run(ONLY or range(EACH))
            assert not user.failure, user.story()
            if window.isVisible():
                user.settle()
                user.check_undo(3)
                path = tmp_path / f"{number}.lowerscope"
                if check_session(window, path, user.story) is not None:
                    compare(window, fresh, path, user.story)
            pids = [each.pid for each in children_of(window) if each.pid is not None]
            window.close()
            assert wait_until(lambda: not any(map(psutil.pid_exists, pids)), PATIENCE)  # noqa: B023
            assert not list(folder.rglob("*.lock")), user.story()
        figures.add(user)
        print(
            f"{time.strftime('%H:%M:%S')} {number}: {figures.report()}",
            flush=True,
        )
        number += 1
        if ONLY:
            break
    fresh.close()
    assert wait_until(lambda: not os.listdir(temporary_folder), PATIENCE), os.listdir(
        temporary_folder
    )


def _said(log: object, first: int) -> list[str]:
    """Return what Qt has warned of since then."""
    return [
        each.message
        for each in log.records[first:]  # type: ignore[attr-defined]
        if not each.ignored and each.type.name in ("QtWarningMsg", "QtCriticalMsg", "QtFatalMsg")
    ]

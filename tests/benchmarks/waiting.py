"""Waits in a window as it does in use: asleep until something comes."""

from __future__ import annotations

import time
from collections.abc import Callable

from lowerscope.app.shell.window import MainWindow

PATIENCE = 300.0
"""Seconds."""

WAKE_MS = 20
"""What says nothing when it is there is looked for as often."""


def wait(window: MainWindow, done: Callable[[], bool]) -> None:
    """Go on with the window's events until `done` is true; a problem ends the benchmark."""
    from PySide6.QtCore import QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    wake = QTimer()
    wake.start(WAKE_MS)
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, "the window did not get there"
        assert not window.document.problems, window.document.problems[0].line()
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

"""From the start of the process to the first painted window, against a bare ``QMainWindow``."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.benchmarks.figures import Figure, alternately

GOAL = 1.5
PAIRS = 15

# Both sides end at their first paint event, so that they do the same but for the window.
UNTIL_PAINTED = """
import os, sys, time
from PySide6.QtCore import QEvent, QObject

class Watch(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            watched.repaint()
            sys.stdout.write(repr(time.time()))
            sys.stdout.flush()
            os._exit(0)
        return False

watch = Watch()
"""
OURS = """
from lowerscope.app.shell.start import make_window
application, window = make_window()
"""
BARE = """
from PySide6.QtWidgets import QApplication, QMainWindow
application = QApplication(["bare"])
window = QMainWindow()
window.resize(1440, 900)
window.show()
"""
WAIT = """
window.installEventFilter(watch)
application.exec()
"""


def _start(code: str) -> float:
    environment = os.environ | {"QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen")}
    begun = time.time()
    result = subprocess.run(
        [sys.executable, "-c", UNTIL_PAINTED + code + WAIT],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=60,
    )
    return (float(result.stdout) - begun) * 1000


def measure() -> list[Figure]:
    """Measure the start."""
    for code in (OURS, BARE):
        _start(code)
    ours, theirs = alternately(lambda: _start(OURS), lambda: _start(BARE), PAIRS)
    return [Figure("startup", ours, theirs, "a bare QMainWindow", GOAL)]

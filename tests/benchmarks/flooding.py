"""How late the event loop of the real window comes round while a child floods it.

Its own processor time is measured: of a busy machine's clock, others have a part.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

from tests.benchmarks.figures import Figure

LIMIT = 100.0
"""Milliseconds."""

FLOODS = (
    *("error", "huge-error", "choices", "long-choices", "too-long-error"),
    *("long-progress", "answers", "ready", "line", "lines", "empty-lines"),
)


def measure() -> list[Figure]:
    """Measure the longest gap of each flood, until it is over and its outcome is shown."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QSettings

    from lowerscope.app.shell.start import make_window

    with tempfile.TemporaryDirectory() as folder:
        # The user's own settings stay as they are.
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, folder)
        _, first = make_window()
        first.begin(None)
        first.close()
        return [_figure(flood) for flood in FLOODS]


def _figure(flood: str) -> Figure:
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.engine.children import Children
    from lowerscope.app.engine.client import EngineClient
    from lowerscope.app.shell.window import MainWindow
    from lowerscope.core.model.recipe import Recipe, Source
    from tests.end_to_end.driving import wait_until
    from tests.pulse import Pulse
    from tests.security import flooding_child

    command = (sys.executable, str(Path(flooding_child.__file__)))

    def client(role: str, parent: Children) -> EngineClient:
        return EngineClient(role, command=(*command, role, flood), parent=parent)  # type: ignore[arg-type]

    # The window makes its clients when it begins.
    with mock.patch("lowerscope.app.engine.children.EngineClient", client):
        window = MainWindow()
        # No sandbox bounds what is said, and none lets in a child that is a test's.
        window.settings.set_sandbox(False)
        window.show()
        window.begin(None)
    assert wait_until(lambda: window.features.processes.engine.state == "ready")
    window.show_panes()
    window.show_page("log")
    QApplication.processEvents()
    # A window is alone in its process: those of the other floods are no garbage of its own.
    gc.collect()
    gc.freeze()
    pulse = Pulse()
    window.document.open(Recipe(source=Source(spec="sample:matmul_relu")))
    told = wait_until(lambda: bool(window.document.problems), 120_000)
    QApplication.processEvents()
    pulse.end()
    assert told
    window.close()
    return Figure(f"gap in {flood}", [pulse.processor], [LIMIT], "what it may take", 1.0)

"""An engine that is asked for something and does nothing: the user is told, and what ends it.

What works uses the processor, even on a busy machine; what is stopped, or waits for itself, does
not. Nothing is ended without being asked for: a model's file may well wait for something.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

LOOK_MS = 3000
"""It is looked so often, while the engine is busy."""

HANGS_MS = 12_000
"""Who has done nothing for so long is said to hang."""

LEAST = 0.02
"""Of the time, what the engine has to have the processor for, lest it do nothing."""


class Hanging(QObject):
    """Says when the engine hangs, once for each time that it does."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        # When it was last seen at work, and what it had used by then.
        self._since = time.monotonic()
        self._used = 0.0
        self._pid: int | None = None
        self._is_said = False
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)
        workspace.engine.state_changed.connect(self._follow)

    def _follow(self, state: str) -> None:
        if state == "busy":
            self._pid = None  # what it has used by now is looked at when it has taken long
            self._timer.start()
        else:
            self._timer.stop()

    def _look(self) -> None:
        used, now = self._processor_time(), time.monotonic()
        seconds = now - self._since
        if self._pid != self._workspace.engine.pid or used - self._used > LEAST * seconds:
            self._note_work(used)
        elif seconds * 1000 >= HANGS_MS and not self._is_said:
            self._is_said = True
            text = self.tr(
                "The engine has done nothing for {0} s: it waits for something, or hangs."
                " Run → Restart engine and worker starts it anew, and nothing is lost."
            )
            self._workspace.announced.emit(text.format(round(seconds)), "wrong")

    def _note_work(self, used: float) -> None:
        self._since, self._used, self._is_said = time.monotonic(), used, False
        self._pid = self._workspace.engine.pid

    def _processor_time(self) -> float:
        """Return the seconds that the engine has had a processor, with what it has started."""
        import psutil  # not at the start of the window, which it would hold up

        pid = self._workspace.engine.pid
        if pid is None:
            return 0.0
        try:
            process = psutil.Process(pid)
            times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        except psutil.Error:
            return 0.0
        return float(sum(each.user + each.system for each in times))

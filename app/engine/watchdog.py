"""Hang watchdog: an engine that uses no processor time on a request is reported.

A working process uses the processor, even on a busy machine; one that is stopped or deadlocked does
not. Nothing is killed without the user's request: a model's file may well wait for something.
"""

from __future__ import annotations

import time

from PySide6.QtCore import QObject, QTimer

from lowerscope.app.document.document import Document
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model.texts import _, capitalized

LOOK_MS = 3000
"""Interval of the checks while the engine is busy."""

HANGS_MS = 12_000
"""Time without processor use after which the engine is said to hang."""

LEAST = 0.02
"""Minimum share of processor time for the engine to count as working."""


class Hanging(QObject):
    """Emits a signal each time that the engine hangs."""

    def __init__(self, document: Document, engine: EngineClient) -> None:
        super().__init__(document)
        self._document = document
        self._engine = engine
        # When it was last seen working, and the processor time it had used by then.
        self._since = time.monotonic()
        self._used = 0.0
        self._pid: int | None = None
        self._is_said = False
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)
        engine.state_changed.connect(self._follow)

    def _follow(self, state: str) -> None:
        if state == "busy":
            self._pid = None  # processor time is read only once the request takes long
            self._timer.start()
        else:
            self._timer.stop()

    def _look(self) -> None:
        used, now = self._processor_time(), time.monotonic()
        seconds = now - self._since
        if self._pid != self._engine.pid or used - self._used > LEAST * seconds:
            self._note_work(used)
        elif seconds * 1000 >= HANGS_MS and not self._is_said:
            self._is_said = True
            text = _(
                "The engine has made no progress for {seconds} s: it is waiting or hangs. Tools "
                "→ Restart engine and worker restarts it; nothing is lost.",
                seconds=round(seconds),
            )
            self._document.notify(text, "wrong")

    def _note_work(self, used: float) -> None:
        self._since, self._used, self._is_said = time.monotonic(), used, False
        self._pid = self._engine.pid

    def _processor_time(self) -> float:
        """Return the processor time of the engine and its subprocesses, in seconds."""
        import psutil  # imported here to keep the window's start fast

        pid = self._engine.pid
        if pid is None:
            return 0.0
        try:
            process = psutil.Process(pid)
            times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        except psutil.Error:
            return 0.0
        return float(sum(each.user + each.system for each in times))


# Notification and cancellation of long requests that have no progress display of their own.
#
# Changes, runs and exports report their progress, and can be cancelled, themselves. All other
# requests of the window (a text, a graph, a difference, the schedule that a rule writes) are
# handled here: one that takes longer than a second is shown in the status bar, with a cancel
# button.

SAY_MS = 800
"""Delay before a request is shown."""


class AtWork(QObject):
    """Shows the children's long requests, and cancels them."""

    def __init__(self, document: Document, children: Children) -> None:
        super().__init__(document)
        self._document = document
        self._clients = children.engine, children.worker
        self._timer = QTimer(self, singleShot=True, interval=SAY_MS)
        self._timer.timeout.connect(self._say)
        self.said = ""  # The text shown; empty for none.
        for client in self._clients:
            client.state_changed.connect(self._follow)
        document.on(("jobs",), self._follow)

    def cancel(self) -> None:
        """Cancel all these requests; the problem of each is delivered."""
        for client in self._clients:
            for request, query in client.under_way().items():
                if not query.has_own_job:
                    client.cancel(request)

    def _follow(self) -> None:
        if not self._doing():
            self._timer.stop()
            said, self.said = self.said, ""
            if said:
                self._document.say("", of="asked")
        elif not self._document.job.text and not self._timer.isActive():
            self._timer.start()

    def _say(self) -> None:
        doing = self._doing()
        if doing and not self._document.job.text:
            self.said = capitalized(doing)
            self._document.say(self.said, of="asked")

    def _doing(self) -> str:
        for client in self._clients:
            for query in client.under_way().values():
                if not query.has_own_job:
                    return query.doing
        return ""

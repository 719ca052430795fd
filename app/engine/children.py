"""The engine and the worker: their start and end, and what they print."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, Signal

from lowerscope.app.engine.client import EngineClient
from lowerscope.app.engine.whole_log import WholeLog
from lowerscope.core.sandbox import temporary_files


class Children(QObject):
    """Both children of the window."""

    changed = Signal()  # The state of the engine or of the worker changed.
    # Text printed by torch, TVM or the user's file; `whole_log` has all of it.
    logged = Signal(str)
    # The `Problem` of a file that was not run for lack of the user's approval.
    unseen = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.engine = EngineClient("engine", parent=self)
        self.worker = EngineClient("worker", parent=self)
        self.whole_log = WholeLog()
        for client in (self.engine, self.worker):
            client.state_changed.connect(self._note_state)
            self.hear(client)

    @property
    def engine_is_busy(self) -> bool:
        """Return whether the engine starts, or works."""
        return self.engine.state in ("starting", "busy")

    def hear(self, client: EngineClient) -> None:
        """Log the output of a client's children, and pass on their `unseen` signals."""
        client.log.connect(self.logged)
        client.unseen.connect(self.unseen)
        client.printed.connect(self.whole_log.add)

    def start(self) -> None:
        """Start the engine; the worker is started when the engine is ready."""
        threading.Thread(target=temporary_files.sweep, name="sweep", daemon=True).start()
        self.engine.start()

    def stop(self) -> None:
        """Stop both."""
        self.engine.stop()
        self.worker.stop()

    def restart(self) -> None:
        """Restart both, whatever they are doing."""
        for client in (self.engine, self.worker):
            client.restart()

    def _note_state(self, _state: str) -> None:
        if self.engine.state == "ready" and self.worker.state == "stopped":
            self.worker.start()
        self.changed.emit()

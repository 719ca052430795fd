"""Detection of engine activity while the worker measures."""

from __future__ import annotations

import time

import msgspec
from PySide6.QtCore import QObject

from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model.measuring import MEASURING
from lowerscope.core.model.run_records import RunRecord


class Quiet(QObject):
    """Adds up how long a run measures, and how long the engine is busy meanwhile.

    Args:
        engine: The other child, which shares the processors.
    """

    def __init__(self, engine: EngineClient, parent: QObject) -> None:
        super().__init__(parent)
        self._engine = engine
        self._measuring = self._busy = False
        self._since = 0.0
        self._measured = self._worked = 0.0
        engine.state_changed.connect(self._add)

    def begin(self) -> None:
        """Start with another run."""
        self._measuring = False
        self._measured = self._worked = 0.0

    def follow(self, text: str) -> None:
        """Update the phase of the run from its progress message."""
        self._add()
        self._measuring = text.startswith(MEASURING)

    def end(self, record: RunRecord) -> RunRecord:
        """Return the record of the finished run, with the extent of the disturbance."""
        self.follow("")
        if record.times is None or not self._measured:
            return record
        times = msgspec.structs.replace(record.times, disturbed=self._worked / self._measured)
        return msgspec.structs.replace(record, times=times)

    def _add(self) -> None:
        now = time.monotonic()
        if self._measuring:
            self._measured += now - self._since
            self._worked += now - self._since if self._busy else 0.0
        self._since, self._busy = now, self._engine.state in ("starting", "busy")

"""The engine and the worker: their start and end, and their complete output."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QObject, Signal

from lowerscope.app.engine.client import EngineClient
from lowerscope.core.sandbox import temporary_files

# --- The complete output of the children, in temporary files: the window shows a part of it ---

PART_LIMIT = 2**25
"""Bytes of each of the two files; when the second is full, the first is dropped."""

_COPIED = 2**20


class _Part:
    """An anonymous temporary file, deleted with this object."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append bytes: all of them, or none with an `OSError`."""
        written = os.pwrite(self.descriptor, data, self.size)
        if written < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += written

    def read(self, start: int, size: int) -> bytes:
        """Return some of its bytes; callable from any thread."""
        return os.pread(self.descriptor, size, start)


class WholeLog:
    """The last bytes printed: everything, or from `PART_LIMIT` to twice as many.

    The files are anonymous, so that nothing is left of them however the window ends.
    """

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self.dropped = 0  # Number of bytes that were dropped as old, or could not be written.

    @property
    def held(self) -> int:
        """Number of bytes stored."""
        return sum(part.size for part in self._parts)

    def add(self, data: bytes) -> None:
        """Append output."""
        try:
            if not self._parts or self._parts[-1].size + len(data) > PART_LIMIT:
                self._begin_part()
            self._parts[-1].add(data)
        except OSError:
            # The disk is full. The window continues, and a later part may fit again.
            self.dropped += len(data)

    def text(self) -> Iterator[bytes]:
        """Return a function that yields the bytes stored by now; callable from any thread."""
        return _text([(part, part.size) for part in self._parts], self.dropped)

    def _begin_part(self) -> None:
        if len(self._parts) == 2:
            self.dropped += self._parts.pop(0).size
        self._parts.append(_Part())


def _text(parts: Sequence[tuple[_Part, int]], dropped: int) -> Iterator[bytes]:
    if dropped:
        yield f"[{dropped:,} bytes are not in this file]\n".encode()
    for part, size in parts:
        for start in range(0, size, _COPIED):
            yield part.read(start, min(_COPIED, size - start))


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

"""Children that outlive a window, for the next test of the file to open its source in."""

from __future__ import annotations

from functools import partial
from itertools import count

import psutil
from PySide6.QtCore import QObject, QTimer

from lowerscope.app.children.child_process import QUEUED, ChildProcess
from lowerscope.app.engine_client import EngineClient
from lowerscope.core.engine.protocol import Ready, Role, ToWindow


def hold(pid: int) -> None:
    """Stop a child where it is, with the sandbox that it is in."""
    leader = psutil.Process(pid)
    for each in (*leader.children(recursive=True), leader):
        each.suspend()


class Children(QObject):
    """The engine and the worker that closed windows have left.

    A child takes seconds to import torch and TVM. The next window gets it as it is, as if the
    source had been opened in the window before; whatever it was asked for is cancelled.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count(1)
        self.windows = count(1)
        self._left: dict[str, tuple[int, ChildProcess]] = {}
        self._ready: set[int] = set()

    def watch(self, child: ChildProcess) -> None:
        """Hear of it when a new child is ready, whoever has it by then."""
        child.received.connect(self._note)

    def _note(self, number: int, message: ToWindow) -> None:
        if isinstance(message, Ready):
            self._ready.add(number)

    def is_ready(self, number: int) -> bool:
        """Return whether a child has said that it is ready."""
        return number in self._ready

    def leave(self, role: Role, number: int, child: ChildProcess) -> None:
        """Take over what a window leaves."""
        if role in self._left:  # there were two windows
            child.close()
            return
        child.setParent(self)
        self._left[role] = (number, child)

    def take(self, role: Role) -> tuple[int, ChildProcess] | None:
        """Return the child that was left, with its number, if there is one that lives."""
        number, child = self._left.pop(role, (0, None))
        if child is None or child.pid is None:
            return None
        return number, child

    def close(self) -> None:
        """End those that nobody has taken."""
        for _, child in self._left.values():
            child.close()
        self._left.clear()


class LastingClient(EngineClient):
    """A client that starts with the child of the window before, and leaves its own to the next."""

    def __init__(self, children: Children, role: Role, parent: QObject | None = None) -> None:
        super().__init__(role, parent=parent)
        self._lasting = children

    def start(self) -> None:
        left = self._lasting.take(self.role) if self._child is None else None
        if left is not None and left[1].enclosed != self.hands_over:
            left[1].close()
            left = None
        if left is None:
            super().start()
            return
        number, child = left
        child.setParent(self)
        child.log.connect(self.log)
        child.received.connect(self._receive, QUEUED)
        child.ended.connect(self._account_for_end, QUEUED)
        self._children, self._child = number, child
        # No answer to the window before may be taken for one to this.
        self._last_id = next(self._lasting.windows) * 1_000_000
        self._set_state("starting")
        if self._lasting.is_ready(number):
            QTimer.singleShot(0, self, partial(self._receive, number, Ready(0.0)))

    def stop(self) -> None:
        child = self._child
        if child is not None and child.pid is not None:
            for each in list(self._outstanding):
                self.drop(each)
            child.log.disconnect(self.log)
            child.received.disconnect(self._receive)
            child.ended.disconnect(self._account_for_end)
            self._lasting.leave(self.role, self._children, child)
            self._child = None
        super().stop()

    def _start_child(self) -> None:
        self._children = next(self._lasting.numbers) - 1
        super()._start_child()
        assert self._child is not None
        self._lasting.watch(self._child)

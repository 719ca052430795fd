"""Children that outlive a window, for the next test of the process to open its source in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from itertools import count

import psutil
from PySide6.QtCore import QObject, QTimer

from lowerscope.app.engine.child_process import QUEUED, ChildProcess
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.engine.protocol import Failure, Ready, Reply, ToWindow
from lowerscope.core.model.queries import Role
from tests.end_to_end.driving import wait_until

WINDOWS = 60
"""After so many windows a child is ended: what it keeps has grown by then."""


def hold(pid: int) -> None:
    """Stop a child where it is, with the sandbox that it is in."""
    leader = psutil.Process(pid)
    for each in (*leader.children(recursive=True), leader):
        each.suspend()


@dataclass(frozen=True)
class Start:
    """Settings that a child has from its start: a window that wants others needs another child."""

    enclosed: bool
    has_network: bool
    memory_limit: int | None
    folder: str
    environment: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Left:
    """A child that a window has left."""

    number: int
    child: ChildProcess
    start: Start


class Children(QObject):
    """The engine and the worker that closed windows have left.

    A child takes seconds to import torch and TVM. The next window gets it as it is, as if the
    source had been opened in the window before; whatever it was asked for is cancelled.
    """

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count(1)
        self.windows = count(1)
        self._left: dict[str, Left] = {}
        self._ready: set[int] = set()
        self._served: dict[int, int] = {}
        # By the child's number, the requests that it has not answered.
        self._owed: dict[int, set[int]] = {}

    def watch(self, child: ChildProcess) -> None:
        """Hear of it when a new child is ready or answers, whoever has it by then."""
        child.received.connect(self._note)

    def _note(self, number: int, message: ToWindow) -> None:
        if isinstance(message, Ready):
            self._ready.add(number)
        elif isinstance(message, Reply | Failure):
            self._owed.get(number, set()).discard(message.id)

    def is_ready(self, number: int) -> bool:
        """Return whether a child has said that it is ready."""
        return number in self._ready

    def leave(self, role: Role, left: Left, owed: set[int]) -> None:
        """Take over what a window leaves, with the requests that it is still at."""
        self._served[left.number] = self._served.get(left.number, 0) + 1
        self._owed[left.number] = owed
        if role in self._left or self._served[left.number] >= WINDOWS:
            left.child.close()  # there were two windows, or it has served long enough
            return
        left.child.setParent(self)
        self._left[role] = left

    def take(self, role: Role, start: Start) -> Left | None:
        """Return the child that was left, if one lives that was started as it has to be."""
        left = self._left.pop(role, None)
        if left is None or left.child.pid is None:
            return None
        if left.start != start:
            left.child.close()
            return None
        return left

    def settle(self) -> None:
        """End those that are still at what a test has asked them for."""
        for role, left in list(self._left.items()):
            if not wait_until(lambda owed=self._owed[left.number]: not owed, 1000):
                left.child.close()
                del self._left[role]

    def close(self) -> None:
        """End those that nobody has taken."""
        for left in self._left.values():
            left.child.close()
        self._left.clear()


class LastingClient(EngineClient):
    """A client that starts with the child of the window before, and leaves its own to the next."""

    def __init__(self, children: Children, role: Role, parent: QObject | None = None) -> None:
        super().__init__(role, parent=parent)
        self._lasting = children
        self._begun: Start | None = None

    def start(self) -> None:
        left = None
        if self._child is None:
            left = self._lasting.take(self.role, self._start())
        if left is None:
            super().start()
            return
        child = left.child
        child.setParent(self)
        child.log.connect(self.log)
        child.printed.connect(self.printed)
        child.received.connect(self._receive, QUEUED)
        child.ended.connect(self._account_for_end, QUEUED)
        self._children, self._child, self._begun = left.number, child, left.start
        # Another window has told it what may run.
        self._told = {}
        # No answer to the window before may be taken for one to this.
        self._outstanding.count_from(next(self._lasting.windows) * 1_000_000)
        self._set_state("starting")
        if self._lasting.is_ready(left.number):
            QTimer.singleShot(0, self, partial(self._receive, left.number, Ready(0.0)))

    def stop(self) -> None:
        child = self._child
        if child is not None and child.pid is not None:
            assert self._begun is not None
            owed = {each.id for each in self._outstanding.sent()}
            for each in self._outstanding.all():
                self.drop(each.id)
            child.log.disconnect(self.log)
            child.printed.disconnect(self.printed)
            child.received.disconnect(self._receive)
            child.ended.disconnect(self._account_for_end)
            self._lasting.leave(self.role, Left(self._children, child, self._begun), owed)
            self._child = None
        super().stop()

    def _start(self) -> Start:
        """Return what a child that is started now has."""
        sandbox = self.sandbox
        return Start(
            enclosed=self.hands_over,
            has_network=self.role == "worker" and sandbox is not None and sandbox.has_network,
            memory_limit=self.memory_limit,
            folder=os.getcwd(),
            environment=frozenset(
                each for each in os.environ.items() if each[0] != "PYTEST_CURRENT_TEST"
            ),
        )

    def _start_child(self) -> None:
        self._children = next(self._lasting.numbers) - 1
        super()._start_child()
        if self._child is not None:  # it is not held for want of a sandbox
            self._begun = self._start()
            self._lasting.watch(self._child)

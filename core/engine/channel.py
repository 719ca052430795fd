"""Pipes of a child process, and its exit.

The descriptors are taken before anything that might print is imported: any later output goes to
stderr, which is the window's log.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

from lowerscope.core.engine.protocol import TO_CHILD, FrameReader, ToChild, ToWindow, encode_frame
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.memory_limit import taken_by_group, task_limit
from lowerscope.core.sandbox.running_call import CallWriter
from lowerscope.core.sandbox.temporary_files import remove_own

_READ_SIZE = 2**20
_GUARD_PERIOD_MS = 250


class Channel:
    """The pipes to and from the window. Messages may be sent from any thread."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._sending = threading.Lock()

    @classmethod
    def claim(cls) -> Channel:
        """Take descriptors 0 and 1; leave the null device and stderr in their place."""
        source, sink = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)
        return cls(source, sink)

    def send(self, message: ToWindow) -> None:
        """Write `message`; without a window to read it, end the process group.

        Raises
        ------
        ProtocolError
            If the message is too long or has no encoding. Nothing has been written then.
        """
        frame = memoryview(encode_frame(message))
        with self._sending:
            try:
                while frame:
                    frame = frame[os.write(self._sink, frame) :]
            except BrokenPipeError:
                end_group(0)

    def messages(self) -> Iterator[ToChild]:
        """Yield the messages of the window, until it closes the pipe.

        Raises
        ------
        ProtocolError
            If it sends something that is not a message.
        """
        reader = FrameReader(TO_CHILD)
        while data := os.read(self._source, _READ_SIZE):
            yield from reader.feed(data)

    def start_guard(self, limit: int | None = None, calls: CallWriter | None = None) -> None:
        """Fork a process that kills the group when the window or this process has gone.

        It also does so when the group holds too much memory, since each process that this one
        starts has a limit of its own, or has too many processes and threads. In a sandbox, whose
        supervisor counts all of its processes, it does not.

        A thread of this process can do so only while it gets the interpreter lock, which foreign
        code may hold forever, and not at all after a crash. The process must not have threads yet.
        Does nothing where this process does not lead its group, such as in a shell's pipeline.

        Parameters
        ----------
        limit
            Bytes that the processes of the group may hold together; ``None`` for any number.
        calls
            Records when they hold more.
        """
        if sys.platform == "win32" or not _leads_group():
            return
        leader = os.getpid()
        if os.fork() != 0:
            return
        # A copy of the writing end would keep the window from seeing the end of the stream.
        for descriptor in (0, 1, 2, self._sink):
            os.close(descriptor)
        window = select.poll()
        window.register(self._source, 0)  # 0: only that the other end is closed, no data
        gone = False
        while not gone and os.getppid() == leader:
            gone = bool(window.poll(_GUARD_PERIOD_MS))
            if bubblewrap.is_inside():
                continue
            held, tasks = taken_by_group(leader)
            if limit is not None and held > limit:
                if calls is not None:
                    calls.say_too_much(held)
                break
            if tasks > task_limit():
                if calls is not None:
                    calls.say_too_many(tasks)
                break
        # A window that still runs closes the pipe as well, and then reads the work of this process
        # at its end.
        if gone and os.getppid() == leader:
            remove_own()
        os.killpg(leader, signal.SIGKILL)


def lead_group() -> None:
    """Lead a process group: in a sandbox, the program that made it leads the first one."""
    if bubblewrap.is_inside() and not _leads_group():
        os.setsid()


def end_group(code: int) -> NoReturn:
    """Exit this process, and kill its process group if it leads one."""
    if sys.platform != "win32" and _leads_group():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(code)


def _leads_group() -> bool:
    return sys.platform != "win32" and os.getpgrp() == os.getpid()

"""A session on a server: each call has a time limit, and its failures are told in one line."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psutil
import tvm
from tvm import rpc

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.progress import Progress
from lowerscope.core.records.remote import Remote
from lowerscope.core.records.schedule import CHECK_THREAD
from lowerscope.core.remote.tracker import WAIT, Tracker

_ANSWERS = 20
"""A server ends a session after so many times the time limit of one answer."""

_POLL = 0.05
"""Seconds until it is looked again whether the answer is still wanted."""

_END = 1.0
"""Seconds that a call may take to end whose connection has been cut."""

LOST = "lost-server"
"""The code of the problem that a server was lost."""

FAILED = "failed-there"
"""The code of the problem that a server has answered with an error."""

T = TypeVar("T")


class Session:
    """A session on one server, which serves nobody else meanwhile; see `session`.

    Attributes
    ----------
    remote
        What was asked for.
    address
        ``host:port`` of the server.
    is_over
        Whether the server was lost, or its connection cut.
    """

    def __init__(self, remote: Remote, progress: Progress, wait: float) -> None:
        self.remote = remote
        self.is_over = False
        self._files = 0
        self._progress = progress
        self._others = {each.fd for each in _connections()}
        with Tracker(remote) as tracker:
            host, port, match = tracker.server(progress, wait)
            self.address = f"{host}:{port}"
            seconds = round(_ANSWERS * remote.timeout)
            self.rpc: Any = self.call(
                "connecting", lambda: rpc.connect(host, port, match, max(1, seconds))
            )

    @property
    def where(self) -> str:
        """What the server is called where something has failed."""
        return f"{self.remote.title}, server {self.address}"

    def new_file(self, suffix: str) -> str:
        """Return the name of a file that was not sent yet.

        A library that is loaded from the file of another one would be that one.
        """
        self._files += 1
        return f"lowerscope{self._files}{suffix}"

    def device(self) -> Any:
        """Return the server's processor."""
        return self.rpc.cpu()

    def function(self, name: str) -> Any | None:
        """Return a function that is registered on the server; ``None`` for none of this name."""

        def find() -> Any | None:
            try:
                return self.rpc.get_function(name)
            except AttributeError:
                return None

        return self.call(f"asking for {name}", find)

    def call(self, doing: str, work: Callable[[], T], seconds: float | None = None) -> T:
        """Return what `work` returns, which talks to the server.

        Parameters
        ----------
        doing
            What it does, for where it fails.
        seconds
            The time that it may take; that of one answer for ``None``.

        Raises
        ------
        LowerscopeError
            If it failed on the server, took too long, or the server was lost: that with the code
            `LOST`.
        Cancelled
            If the user has stopped it.
        """
        limit = self.remote.timeout if seconds is None else seconds
        until = time.monotonic() + limit
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put((work(), None))
            except BaseException as error:  # it is raised where it was asked for
                done.put((None, error))

        # Nothing interrupts a call of TVM's that waits for an answer, but the end of its
        # connection. A thread that outlives even that must not outlive the process.
        thread = threading.Thread(target=run, name=CHECK_THREAD, daemon=True)
        thread.start()
        while True:
            try:
                value, error = done.get(timeout=_POLL)
                break
            except queue.Empty:
                pass
            try:
                self._progress.check()
            except BaseException:
                self.cut()
                thread.join(_END)
                raise
            if time.monotonic() > until:
                self.cut()
                thread.join(_END)
                raise LowerscopeError(
                    f"it took longer than {limit:g} s, while {doing}",
                    where=self.where,
                    todo="Give it more time with --remote-timeout SECONDS, or make the model "
                    "faster with a schedule",
                )
        if error is not None:
            raise self._told(doing, error)
        result: T = value
        return result

    def cut(self) -> None:
        """End the connection at once; what waits for an answer gets none."""
        self.is_over = True
        for each in _connections():
            here = each.raddr and f"{each.raddr.ip}:{each.raddr.port}" == self._peer
            if each.fd in self._others or not here:
                continue
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(each.fd)) as connection:
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def _peer(self) -> str:
        host, _, port = self.address.rpartition(":")
        try:
            return f"{socket.gethostbyname(host)}:{port}"
        except OSError:
            return self.address

    def _told(self, doing: str, error: BaseException) -> BaseException:
        """Return what to raise for what TVM's client has raised."""
        if not isinstance(error, (*TVM_ERRORS, OSError, MemoryError)):
            return error
        if isinstance(error, LowerscopeError):
            return error
        text = str(error)
        if "protocol version mismatch" in text:
            return LowerscopeError(
                f"the server has another version of TVM: {last_line(error)}",
                where=self.where,
                todo=f"Install apache-tvm {tvm.__version__} there, and start it again",
                details=text,
            )
        if "RPCSessionTimeoutError" in text:
            return LowerscopeError(
                f"the server has ended the session, which took too long, while {doing}",
                where=self.where,
                todo="Give it more time with --remote-timeout SECONDS",
                details=text,
            )
        if _ON_THE_SERVER in text or isinstance(error, AttributeError):
            return LowerscopeError(
                f"it failed there while {doing}: {last_line(error)}",
                where=self.where,
                todo="Its own log may say more",
                code=FAILED,
                details=text,
            )
        self.is_over = True
        return LowerscopeError(
            f"the server was lost while {doing}",
            where=self.where,
            todo="Look at its log, start it again, and try again",
            code=LOST,
            details=text,
        )


_ON_THE_SERVER = "Error caught from RPC call"
"""What TVM's client says where the server has answered with an error."""


@contextlib.contextmanager
def session(remote: Remote, progress: Progress, wait: float = WAIT) -> Iterator[Session]:
    """Connect to a server of a key; at the end it is free for others.

    Parameters
    ----------
    wait
        Seconds to wait for one that is at work for others.

    Raises
    ------
    LowerscopeError
        If there is no tracker, no server, or the server speaks another version.
    Cancelled
        If the user has stopped it.
    """
    progress.report(f"Connecting to {remote.title}")
    opened = Session(remote, progress, wait)
    try:
        yield opened
    finally:
        # What is still held of the server's would be given back over a connection that is gone.
        opened.cut()


def _connections() -> list[Any]:
    return list(psutil.Process().net_connections("tcp"))

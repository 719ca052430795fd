"""Session on a server: each call has a time limit, and errors are reported in one line."""

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
"""Time after which a server ends a session, in time limits of one answer."""

_POLL = 0.05
"""Interval of checks for cancellation, in seconds."""

_END = 1.0
"""Time limit for a call to end after its connection was cut, in seconds."""

LOST = "lost-server"
"""Problem code of a lost server."""

FAILED = "failed-there"
"""Problem code of an error answered by the server."""

T = TypeVar("T")


class Session:
    """Exclusive session on one server; see `session`.

    Attributes
    ----------
    remote
        The requested remote.
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
        """Label of the server in error messages."""
        return f"{self.remote.title}, server {self.address}"

    def new_file(self, suffix: str) -> str:
        """Return a file name that was not used in this session.

        The server would return the library already loaded from a file of the same name.
        """
        self._files += 1
        return f"lowerscope{self._files}{suffix}"

    def device(self) -> Any:
        """Return the server's CPU device."""
        return self.rpc.cpu()

    def function(self, name: str) -> Any | None:
        """Return a function registered on the server; ``None`` if there is none of this name."""

        def find() -> Any | None:
            try:
                return self.rpc.get_function(name)
            except AttributeError:
                return None

        return self.call(f"asking for {name}", find)

    def call(self, doing: str, work: Callable[[], T], seconds: float | None = None) -> T:
        """Run `work`, which calls the server, with a time limit, and return its result.

        Parameters
        ----------
        doing
            Description of the work, for error messages.
        seconds
            Time limit; that of one answer for ``None``.

        Raises
        ------
        LowerscopeError
            If it failed on the server, took too long, or the server was lost: that with the code
            `LOST`.
        Cancelled
            If the user has cancelled it.
        """
        limit = self.remote.timeout if seconds is None else seconds
        until = time.monotonic() + limit
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                done.put((work(), None))
            except BaseException as error:  # raised again in the calling thread
                done.put((None, error))

        # A TVM call that waits for an answer can be interrupted only by closing its connection. A
        # thread that outlives even that must not outlive the process.
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
        """Close the connection at once; pending calls get no answer."""
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
        """Return the exception to raise for one raised by TVM's client."""
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
"""Text in errors of TVM's client if the server has answered with an error."""


@contextlib.contextmanager
def session(remote: Remote, progress: Progress, wait: float = WAIT) -> Iterator[Session]:
    """Connect to a server of a key; it is released at the end.

    Parameters
    ----------
    wait
        Seconds to wait for a busy one.

    Raises
    ------
    LowerscopeError
        If there is no tracker, no server, or the server has another version.
    Cancelled
        If the user has cancelled it.
    """
    progress.report(f"Connecting to {remote.title}")
    opened = Session(remote, progress, wait)
    try:
        yield opened
    finally:
        # Remaining references to the server's objects would be released over a closed connection.
        opened.cut()


def _connections() -> list[Any]:
    return list(psutil.Process().net_connections("tcp"))

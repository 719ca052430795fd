"""Client of TVM's RPC tracker with time limits; TVM's own waits for minutes, or for ever."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import Counter
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from tvm.rpc import base

from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.machines import SERVER_HELP, Remote, ServerKey, tracker_address
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress

CONNECT = 5.0
"""Time limit of a tracker's answer, in seconds."""

WAIT = 15.0
"""Time limit for a busy server to become free, in seconds."""

BUSY = "busy-servers"
"""Problem code of a key whose servers all stayed busy."""

_POLL = 0.1
"""Interval of checks for cancellation, in seconds."""

_NAMED = 10
"""Most keys named in a message."""

_MOST = 4 << 20
"""Largest answer, in bytes."""

SOON = 2.5
"""Time limit for an absent server to appear, in seconds.

A server reappears with this delay after its last client.
"""


T = TypeVar("T")


class _Server(msgspec.Struct, frozen=True):
    key: str


class _Queue(msgspec.Struct, frozen=True):
    free: int
    pending: int


class _Summary(msgspec.Struct, frozen=True):
    """A tracker's summary of its servers."""

    server_info: tuple[_Server, ...]
    queue_info: dict[str, _Queue]


class Tracker:
    """A connection to a tracker.

    Raises a `LowerscopeError` if there is none, or the other end is not a tracker.
    """

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        try:
            self._socket = socket.create_connection(tracker_address(remote.tracker), CONNECT)
        except OSError as error:
            raise LowerscopeError(
                f"no tracker answers: {_reason(error)}",
                where=f"tracker {remote.tracker}",
                todo="Start one there with python -m tvm.exec.rpc_tracker, or give another "
                "--tracker",
            ) from error
        try:
            self._socket.settimeout(CONNECT)
            self._socket.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
            (magic,) = struct.unpack("<i", base.recvall(self._socket, 4))
        except OSError as error:
            self.close()
            raise self._not_a_tracker() from error
        if magic != base.RPC_TRACKER_MAGIC:
            self.close()
            raise self._not_a_tracker()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, which releases a requested server."""
        self._socket.close()

    def keys(self) -> tuple[ServerKey, ...]:
        """Return the keys of the tracker, with their servers."""
        self._send([base.TrackerCode.SUMMARY])
        _, summary = self._receive(tuple[int, _Summary])
        # Each is ``server:KEY``, and KEY may contain a colon.
        servers = Counter(each.key.partition(":")[2] for each in summary.server_info)
        queues = summary.queue_info
        names = dict.fromkeys((*sorted(servers), *sorted(queues)))
        empty = _Queue(free=0, pending=0)
        found = (
            ServerKey(
                key=name,
                servers=servers[name],
                free=queues.get(name, empty).free,
                waiting=queues.get(name, empty).pending,
            )
            for name in names
        )
        return tuple(each for each in found if each.servers or each.waiting)

    def server(self, progress: Progress, wait: float) -> tuple[str, int, str]:
        """Return host, port and match key of a server reserved for this client.

        Raises a `LowerscopeError` if there is none with the key, or none was free in time.
        """
        key = self._remote.key
        until = time.monotonic() + wait
        self.check_known(progress)
        self._send([base.TrackerCode.REQUEST, key, "", 1])
        told = False
        while not select.select([self._socket], [], [], _POLL)[0]:
            progress.check()
            if time.monotonic() > until:
                raise LowerscopeError(
                    f"all servers with the key {key} were at work for others for {wait:g} s",
                    where=f"tracker {self._remote.tracker}",
                    todo="Try again later, or start one more: "
                    + SERVER_HELP.format(tracker=self._remote.tracker, key=key),
                    code=BUSY,
                )
            if not told:
                progress.report(f"Waiting for a server with the key {key}")
                told = True
        code, value = self._receive(tuple[int, msgspec.Raw])
        if code != base.TrackerCode.SUCCESS:
            raise self._not_a_tracker()
        try:
            return msgspec.json.decode(value, type=tuple[str, int, str])
        except UNREADABLE as error:
            raise self._not_a_tracker() from error

    def check_known(self, progress: Progress) -> None:
        """Raise unless there is a server with the key, waiting for one that is between two clients.

        Raises a `LowerscopeError` with the available keys.
        """
        until = time.monotonic() + SOON
        while True:
            known = self.keys()
            if any(each.key == self._remote.key and each.servers for each in known):
                return
            if time.monotonic() > until:
                break
            progress.check()
            time.sleep(_POLL)
        names = ", ".join(each.key for each in known[:_NAMED] if each.servers)
        raise LowerscopeError(
            f"no server has the key {self._remote.key}"
            + (f"; there are servers with the keys {names}" if names else "; it has no server"),
            where=f"tracker {self._remote.tracker}",
            todo="Start one: "
            + SERVER_HELP.format(tracker=self._remote.tracker, key=self._remote.key),
        )

    def _send(self, question: list[Any]) -> None:
        try:
            base.sendjson(self._socket, question)
        except OSError as error:
            raise self._lost(error) from error

    def _receive(self, kind: type[T]) -> T:
        """Receive a message of bounded size: its length as four bytes, and JSON."""
        until = time.monotonic() + CONNECT
        (size,) = struct.unpack("<i", self._bytes(4, until))
        if not 0 < size <= _MOST:
            raise self._not_a_tracker()
        try:
            return msgspec.json.decode(self._bytes(size, until), type=kind)
        except UNREADABLE as error:
            raise self._not_a_tracker() from error

    def _bytes(self, count: int, until: float) -> bytes:
        data = bytearray()
        try:
            while len(data) < count:
                self._socket.settimeout(max(until - time.monotonic(), 0.001))
                part = self._socket.recv(min(count - len(data), 1 << 16))
                if not part:
                    raise ConnectionResetError("the connection was closed")
                data += part
        except OSError as error:
            raise self._lost(error) from error
        return bytes(data)

    def _lost(self, error: Exception) -> LowerscopeError:
        return LowerscopeError(
            f"the tracker was lost: {_reason(error)}",
            where=f"tracker {self._remote.tracker}",
            todo="Look whether it still runs, and try again",
        )

    def _not_a_tracker(self) -> LowerscopeError:
        return LowerscopeError(
            "what answers there is no tracker of TVM's",
            where=f"tracker {self._remote.tracker}",
            todo="Give the address of a tracker, not of a server: --tracker HOST:PORT",
        )


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"it took longer than {CONNECT:g} s"
    return str(getattr(error, "strerror", None) or error)

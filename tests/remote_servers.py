"""A real tracker and real servers of TVM's on this machine, in process groups of their own."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tvm.rpc import base

from tests.warm_processes import WarmProcess

KEY = "bench"


class Farm:
    """A tracker, and the servers that it knows by `KEY`, by their ports."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trackers: list[WarmProcess] = []
        self.servers: dict[int, WarmProcess] = {}
        port = free_port()
        self.tracker = f"127.0.0.1:{port}"
        self._trackers.append(self._start("rpc_tracker", port, []))
        try:
            self._wait(lambda: self.known() is not None)
        except AssertionError:
            self.close()
            raise

    @property
    def words(self) -> list[str]:
        """The options of the command line."""
        return ["--tracker", self.tracker, "--key", KEY]

    def add(self, *options: str, key: str = KEY, environment: dict[str, str] | None = None) -> int:
        """Start a server and wait until the tracker has it; return its port."""
        before = self.known() or 0
        port = free_port()
        words = ["--tracker", self.tracker, "--key", key, *options]
        self.servers[port] = self._start("rpc_server", port, words, environment)
        self._wait(lambda: (self.known() or 0) > before)
        return port

    def kill(self, port: int) -> None:
        """Kill a server, with whoever it serves."""
        self.servers.pop(port).end()

    def serving(self) -> list[int]:
        """Return the ports of servers that serve somebody: a session has a process of its own."""
        return [port for port, each in self.servers.items() if len(members(each.pid)) > 2]

    def known(self) -> int | None:
        """Return the number of servers that the tracker knows; ``None`` without a tracker."""
        host, _, port = self.tracker.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), 5) as connection:
                connection.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
                base.recvall(connection, 4)
                base.sendjson(connection, [base.TrackerCode.SUMMARY])
                return len(base.recvjson(connection)[1]["server_info"])
        except OSError:
            return None

    def close(self) -> None:
        """End all of them."""
        for each in (*self.servers.values(), *self._trackers):
            each.end()

    def _start(
        self, module: str, port: int, words: list[str], environment: dict[str, str] | None = None
    ) -> WarmProcess:
        place = ["--host", "127.0.0.1", "--port", str(port), "--port-end", str(port + 1)]
        log = (self._folder / f"{module}-{port}.log").open("wb")
        path = os.pathsep.join(filter(None, (self._without_torch(), os.environ.get("PYTHONPATH"))))
        with log:
            return WarmProcess(
                *("-m", f"tvm.exec.{module}", *place, *words),
                environment={**os.environ, "PYTHONPATH": path, **(environment or {})},
                output=log,
                errors=log,
            )

    def _without_torch(self) -> str:
        """Return a folder that hides torch, which TVM imports where it is there.

        A board has none, and what serves is a process of its own that the server starts.
        """
        folder = self._folder / "without-torch"
        folder.mkdir(exist_ok=True)
        (folder / "torch.py").write_text("raise ImportError('there is none')\n")
        return str(folder)

    def _wait(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < until, "the tracker or a server did not start"
            time.sleep(0.05)


def farm_in(folder: Path) -> Iterator[Farm]:
    """Yield a tracker with one server, and end them."""
    farm = Farm(folder)
    try:
        farm.add()
        yield farm
    finally:
        farm.close()


def members(group: int) -> list[int]:
    """Return the processes of a group."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            state, _, of = (each / "stat").read_text().rpartition(")")[2].split()[:3]
            if each.name.isdigit() and int(of) == group and state != "Z":
                found.append(int(each.name))
    return found


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def relay(host: str, port: int, change: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Stand between clients at ``host:port`` and the server at the same port of 127.0.0.1.

    `change` is given what a client sends; what it returns goes on, and nothing more after ``None``.
    """
    listening = socket.create_server((host, port))

    def pump(source: socket.socket, sink: socket.socket, changed: bool) -> None:
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                passed = change(data) if changed else data
                if passed is None:
                    return
                sink.sendall(passed)
            sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", port))
                for pair in ((client, server, True), (server, client, False)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()

"""Trackers, and sessions on their servers: code is sent and run there, each call with a limit."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import socket
import struct
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil
import torch
import tvm
from tvm import relax, rpc
from tvm.rpc import base

from lowerscope.core.build.build import llvm_modules
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.machines import Remote, ServerKey, server_command, tracker_address
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.run_records import BUDGET, LEAST, REPEATS, Measuring
from lowerscope.core.model.schedule_records import CHECK_THREAD
from lowerscope.core.model.texts import _
from lowerscope.core.run.execution import to_torch, to_tvm

CONNECT = 5.0
"""Time limit of a tracker's answer, in seconds."""

WAIT = 15.0
"""Time limit for a busy server to become free, in seconds."""

BUSY = "busy-servers"
"""Problem code of a key whose servers all stayed busy."""

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
            raise self._error(
                _("no tracker answers: {reason}", reason=_reason(error)),
                _("Start one there with python -m tvm.exec.rpc_tracker, or give another address"),
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

    def close(self) -> None:
        """Close the connection, which releases a requested server."""
        self._socket.close()

    def keys(self) -> tuple[ServerKey, ...]:
        """Return the keys of the tracker, with their servers."""
        self._send([base.TrackerCode.SUMMARY])
        _other, summary = self._receive(tuple[int, _Summary])
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
                raise self._error(
                    _(
                        "all servers with the key {key} have been in use by others for {wait:g} s",
                        key=key,
                        wait=wait,
                    ),
                    _(
                        "Try again later, or start one more: {command}",
                        command=server_command(self._remote),
                    ),
                    code=BUSY,
                )
            if not told:
                progress.report(_("Waiting for a server with the key {key}", key=key))
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
        names = _(", ").join(each.key for each in known[:_NAMED] if each.servers)
        raise self._error(
            _(
                "no server has the key {key}; there are servers with the keys {names}",
                key=self._remote.key,
                names=names,
            )
            if names
            else _("no server has the key {key}; the tracker has no server", key=self._remote.key),
            _("Start one: {command}", command=server_command(self._remote)),
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
                    raise ConnectionResetError(_("the connection was closed"))
                data += part
        except OSError as error:
            raise self._lost(error) from error
        return bytes(data)

    def _lost(self, error: Exception) -> LowerscopeError:
        return self._error(
            _("the connection to the tracker was lost: {reason}", reason=_reason(error)),
            _("Check that it still runs, and try again"),
        )

    def _not_a_tracker(self) -> LowerscopeError:
        return self._error(
            _("the program that answers there is not a TVM tracker"),
            _("Give the address of a tracker, not of a server"),
        )

    def _error(self, what: str, todo: str, code: str = "") -> LowerscopeError:
        where = _("tracker {address}", address=self._remote.tracker)
        return LowerscopeError(what, where=where, todo=todo, code=code)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return _("it took longer than {seconds:g} s", seconds=CONNECT)
    return str(getattr(error, "strerror", None) or error)


class Session:
    """Exclusive session on one server; see `session`."""

    def __init__(self, remote: Remote, progress: Progress, wait: float) -> None:
        self.remote = remote
        self.is_over = False  # Whether the server was lost, or its connection cut.
        self._files = 0
        self._progress = progress
        self._others = {each.fd for each in _connections()}
        with contextlib.closing(Tracker(remote)) as tracker:
            host, port, match = tracker.server(progress, wait)
            self.address = f"{host}:{port}"
            seconds = round(_ANSWERS * remote.timeout)
            self.rpc: Any = self.call(
                _("connecting"), lambda: rpc.connect(host, port, match, max(1, seconds))
            )

    @property
    def where(self) -> str:
        """Label of the server in error messages."""
        return _("{title}, server {address}", title=self.remote.title, address=self.address)

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

        return self.call(_("querying {name}", name=name), find)

    def call(self, doing: str, work: Callable[[], T], seconds: float | None = None) -> T:
        """Run `work`, which calls the server, with a time limit, and return its result.

        Raises a `LowerscopeError` if it failed on the server, took too long, or the server was
        lost: that with the code `LOST`.

        Args:
            seconds: Time limit; that of one answer for ``None``.
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
                    _("it took longer than {limit:g} s while {doing}", limit=limit, doing=doing),
                    where=self.where,
                    todo=_(
                        "Give it more time: --remote-timeout SECONDS; or make the model faster "
                        "with a schedule"
                    ),
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
        host, _sep, port = self.address.rpartition(":")
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
        told = partial(LowerscopeError, where=self.where, details=text)
        if "protocol version mismatch" in text:
            return told(
                _("the server has another version of TVM: {last_line}", last_line=last_line(error)),
                todo=_(
                    "Install apache-tvm {version} there, and start it again",
                    version=tvm.__version__,
                ),
            )
        if "RPCSessionTimeoutError" in text:
            return told(
                _("the server ended the session, which took too long, while {doing}", doing=doing),
                todo=_("Give it more time: --remote-timeout SECONDS"),
            )
        if _ON_THE_SERVER in text or isinstance(error, AttributeError):
            what = _(
                "it failed there while {doing}: {last_line}",
                doing=doing,
                last_line=last_line(error),
            )
            return told(what, todo=_("Its own log may say more"), code=FAILED)
        self.is_over = True
        return told(
            _("the connection to the server was lost while {doing}", doing=doing),
            todo=_("Read its log, start it again, and try again"),
            code=LOST,
        )


_ON_THE_SERVER = "Error caught from RPC call"
"""Text in errors of TVM's client if the server has answered with an error."""


@contextlib.contextmanager
def session(remote: Remote, progress: Progress, wait: float = WAIT) -> Iterator[Session]:
    """Connect to a server of a key; it is released at the end.

    Raises a `LowerscopeError` if there is no tracker, no server, or the server has another version.
    """
    progress.report(_("Connecting to {title}", title=remote.title))
    opened = Session(remote, progress, wait)
    try:
        yield opened
    finally:
        # Remaining references to the server's objects would be released over a closed connection.
        opened.cut()


def _connections() -> list[Any]:
    return list(psutil.Process().net_connections("tcp"))


_EXECUTABLE = "ffi.Module.load_from_file.relax.VMExecutable"
_LLVM = "ffi.Module.load_from_file.ll"


def ship(session: Session, executable: relax.VMExecutable) -> Any:
    """Upload an executable, and return the server's module for a virtual machine.

    A library needs a linker on one of the machines. If the server has none, but has LLVM as a full
    TVM does, it is sent LLVM IR and the virtual machine's own file.

    Raises a `LowerscopeError` if the server can neither link nor compile it.
    """
    return _shipped(session, executable.export_library, lambda: _as_llvm(session, executable))


def ship_function(session: Session, built: tvm.runtime.Executable) -> Any:
    """Upload a single compiled function, and return the server's module.

    Raises a `LowerscopeError` if the server can neither link nor compile it.
    """
    return _shipped(session, built.export_library, lambda: _upload_llvm(session, built.mod))


def _shipped(session: Session, export: Callable[[str], object], as_llvm: Callable[[], Any]) -> Any:
    try:
        return _as_library(session, export)
    except LowerscopeError as error:
        if error.problem.code != FAILED:
            raise
        # It has no linker; its own error says so.
        if session.function(_LLVM) is None:
            raise LowerscopeError(
                _("the server cannot link the built code: {what}", what=error.problem.what),
                where=session.where,
                todo=_("Install g++ and tar there, or the whole of apache-tvm"),
                details=error.problem.details,
            ) from error
    return as_llvm()


def _as_library(session: Session, export: Callable[[str], object]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".tar")
        try:
            export(str(file))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                _(
                    "the built code cannot be written as objects: {last_line}",
                    last_line=last_line(error),
                ),
                where="build",
                todo=_("Choose another target; the log has TVM's whole message"),
                details=str(error),
            ) from error
        _upload(session, file)
    return session.call(_("linking the model"), lambda: session.rpc.load_module(file.name))


def _as_llvm(session: Session, executable: relax.VMExecutable) -> Any:
    load = session.function(_EXECUTABLE)
    assert load is not None, "a TVM with LLVM has the virtual machine"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".vm")
        executable.mod.write_to_file(str(file), "relax.VMExecutable")
        _upload(session, file)

    def loaded() -> Any:
        path = session.rpc.get_function("tvm.rpc.server.workpath")(file.name)
        return load(path)

    module = session.call(_("loading the model"), loaded)
    for imported in llvm_modules(executable.mod):
        library = _upload_llvm(session, imported)
        session.call(_("loading the model"), partial(module.import_module, library))
    return module


def _upload_llvm(session: Session, module: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / session.new_file(".ll")
        module.write_to_file(str(file), "ll")
        _upload(session, file)
    return session.call(_("compiling the model there"), lambda: session.rpc.load_module(file.name))


def _upload(session: Session, file: Path) -> None:
    data = bytearray(file.read_bytes())
    session.call(_("sending the model"), lambda: session.rpc.upload(data, file.name))


_ENTRY = "main"

_NOTHING = 1e-6
"""Lower bound on the time of a call, in seconds."""


class RemoteExecution:
    """An executable on a server, with its inputs set."""

    def __init__(self, session: Session, module: Any) -> None:
        self._session = session
        self._device = session.device()
        self._machine: Any = session.call(
            _("starting the virtual machine"), lambda: relax.VirtualMachine(module, self._device)
        )

    def take(self, inputs: Sequence[torch.Tensor | tvm.runtime.Tensor]) -> None:
        """Send new inputs."""

        def send() -> None:
            sent = [sent_to(self._device, value) for value in inputs]
            self._machine.set_input(_ENTRY, *sent)

        self._session.call(_("sending the inputs"), send)

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Run once and fetch the outputs, with tuples flattened."""
        self._session.call(_("running"), lambda: self._machine.invoke_stateful(_ENTRY))

        def fetch() -> tuple[torch.Tensor, ...]:
            found = self._machine.get_outputs(_ENTRY)
            return tuple(fetched(each) for each in _leaves(found))

        return self._session.call(_("fetching the outputs"), fetch)

    def seconds(self, measuring: Measuring, share: float, *, again: bool) -> list[float]:
        """Return the times of some calls, each measured by the server's clock.

        Args:
            again: Whether it may be called often: side effects of a function occur once a call.
        """
        for _turn in range(measuring.warm_up - 1):
            self._session.call(_("warming up"), lambda: self._machine.invoke_stateful(_ENTRY))
        # The evaluator makes a warm-up call before.
        once = max(self._timed(1)[0], _NOTHING)
        most = REPEATS if again else 0
        repeats = measuring.repeats or max(LEAST, min(most, int(BUDGET * share / once)))
        return self._timed(repeats, once * repeats)

    def _timed(self, repeats: int, expected: float = 0.0) -> list[float]:
        def measure() -> list[float]:
            evaluator = self._machine.time_evaluator(
                "invoke_stateful", self._device, number=1, repeat=repeats
            )
            return [float(each) for each in evaluator(_ENTRY).results]

        limit = self._session.remote.timeout + 2 * expected
        return self._session.call(_("measuring"), measure, limit)


def sent_to(device: Any, value: torch.Tensor | tvm.runtime.Tensor) -> Any:
    """Return a copy of a tensor on a remote device."""
    ours = to_tvm(value) if isinstance(value, torch.Tensor) else value
    theirs = tvm.runtime.empty(ours.shape, ours.dtype, device)
    return theirs.copyfrom(ours) if all(ours.shape) else theirs


def fetched(value: Any) -> torch.Tensor:
    """Return a local copy of a remote tensor or number."""
    if not isinstance(value, tvm.runtime.Tensor):
        return to_torch(value)
    ours = tvm.runtime.empty(value.shape, value.dtype)
    if all(value.shape):
        value.copyto(ours)
    return to_torch(ours)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value

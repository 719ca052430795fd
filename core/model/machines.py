"""Machines: processors, memory, targets with their features, and trackers of other machines.

A tracker of TVM's (``python -m tvm.exec.rpc_tracker``) knows servers (``python -m
tvm.exec.rpc_server``) by a key.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from pathlib import Path

import msgspec

from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _, _n, joined, labelled

_LONGEST = 24
"""Maximum characters of a target that has no shorter name."""


class TargetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A target and its effect."""

    text: str  # as a recipe names it
    title: str = ""  # in words; empty for one that was typed
    # architecture, cpu: as LLVM calls them
    architecture: str
    cpu: str
    # vector_bits, lanes, registers: width of a vector register, how many float32 that is, and how
    # many registers there are
    vector_bits: int
    lanes: int
    registers: int
    threads: int  # number of cores that rules distribute work to
    # Features of the processor beyond the baseline of its architecture, by their usual names.
    features: tuple[str, ...] = ()
    hindrance: str = ""  # reason why code for it cannot run on this machine; empty where it can


def vector_text(record: TargetRecord) -> str:
    """Return the width of vectors in words: ``512 bits, 16 float32, 32 registers``."""
    return _(
        "{vector_bits} bits, {lanes} float32, {registers} registers",
        vector_bits=record.vector_bits,
        lanes=record.lanes,
        registers=record.registers,
    )


def target_line(record: TargetRecord) -> str:
    """Return a description of a target on one line."""
    parts = [
        f"{record.architecture} {record.cpu}",
        _("vectors of {record}", record=vector_text(record)),
        _n("{count} thread", "{count} threads", record.threads),
        _(", ").join(record.features) or _("no more features"),
        record.hindrance or _("runs here"),
    ]
    return _("; ").join(parts)


def short_target(text: str) -> str:
    """Return a short name of a target: its processor, where it has one."""
    if text.startswith("llvm "):
        named = dict(each.lstrip("-").partition("=")[::2] for each in text.split()[1:])
        return _named(named.get("mcpu"), named.get("mtriple")) or text
    try:
        named = msgspec.json.decode(text, type=dict[str, object])
    except UNREADABLE:
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return _named(named.get("mcpu"), named.get("mtriple")) or str(named.get("kind", text))


def _named(cpu: object, triple: object) -> str:
    architecture = str(triple or "").partition("-")[0]
    if not cpu:
        return architecture
    return f"{cpu} ({architecture})" if architecture else str(cpu)


TRACKER_PORT = 9190
"""Default port of a tracker."""

TIMEOUT = 60.0
"""Default timeout of one answer of another machine, in seconds."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """Machines of a kind: the servers that a tracker knows by a key."""

    tracker: str  # ``host:port``
    key: str  # as the servers were given it
    timeout: float = TIMEOUT  # seconds that one answer may take

    @property
    def where(self) -> str:
        """The key of results of these machines: ``host:port key``."""
        return f"{self.tracker} {self.key}"

    @property
    def title(self) -> str:
        """The title beside a target: ``remote: rasp4``."""
        return f"remote: {self.key}"


class ServerKey(msgspec.Struct, frozen=True, kw_only=True):
    """Number of servers of a key that a tracker knows, those that are free, and waiting clients."""

    key: str
    servers: int
    free: int
    waiting: int


class RemoteMachine(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a server's machine."""

    address: str  # ``host:port`` of the server
    # Number of threads that TVM uses there; ``None`` where it does not say.
    threads: int | None = None
    # triple, cpu: as LLVM calls them; empty where the server is a runtime without a compiler
    triple: str = ""
    cpu: str = ""
    target: str = ""  # a target for it, as JSON; empty where it does not say what it is


class RemoteState(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of a tracker, and the machine of the requested key."""

    tracker: str
    keys: tuple[ServerKey, ...]  # all of the tracker's
    machine: RemoteMachine | None = None  # ``None`` where all servers of the key are busy


def remote_of(tracker: str, key: str, timeout: float = TIMEOUT) -> Remote | None:
    """Return the remote of a tracker and a key; ``None`` for neither.

    Raises a `LowerscopeError` if there is one without the other, or the tracker is not
    ``host:port``.
    """
    tracker, key = tracker.strip(), key.strip()
    if not tracker and not key:
        return None
    if not tracker or not key:
        raise LowerscopeError(
            _("a key needs a tracker") if key else _("a tracker needs the key of its servers"),
            where="--key" if key else "--tracker",
            todo=_("Give both the address of the tracker and the key"),
        )
    host, port = tracker_address(tracker)
    if not 0 < timeout < float("inf"):
        raise LowerscopeError(
            _("{timeout:g} is not a valid number of seconds", timeout=timeout),
            where="--remote-timeout",
            todo=_("Give the time limit of one answer, such as {timeout:g}", timeout=TIMEOUT),
        )
    return Remote(tracker=f"{host}:{port}", key=key, timeout=timeout)


def server_command(remote: Remote) -> str:
    """Return the command that starts a server for the tracker and key of `remote`."""
    return f"python -m tvm.exec.rpc_server --tracker {remote.tracker} --key {remote.key}"


def tracker_address(text: str) -> tuple[str, int]:
    """Return host and port of ``host:port``; the port may be left out.

    Raises a `LowerscopeError` if the text has another form.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host, port = port, str(TRACKER_PORT)
    number = int(port[:9]) if port.isascii() and port.isdigit() else 0
    if not host or any(each.isspace() for each in host) or not 0 < number < 2**16:
        raise LowerscopeError(
            _("{text!r} is not the address of a tracker", text=text),
            where="--tracker",
            todo=_("Give HOST:PORT, such as 192.168.1.5:{tracker_port}", tracker_port=TRACKER_PORT),
        )
    return host, number


def key_text(known: ServerKey) -> str:
    """Return a key of a tracker in words: ``rasp4: 2 servers, 1 free``."""
    parts = [
        _n("{count} server", "{count} servers", known.servers),
        _("{count} free", count=known.free),
    ]
    if known.waiting:
        parts.append(_("{count} waiting for one", count=known.waiting))
    return labelled(known.key, _(", ").join(parts))


def machine_text(state: RemoteState) -> str:
    """Return the known properties of the machine of a key in words."""
    machine = state.machine
    if machine is None:
        return _("all of its servers are in use by others")
    count = machine.threads
    threads = "" if count is None else _n("{count} thread", "{count} threads", count)
    if not machine.target:
        about = joined(_(", "), filter(None, (machine.address, threads)))
        return _("{machine}; it does not report its processor", machine=about)
    processor = f"{machine.triple} {machine.cpu}"
    about = joined(_(", "), filter(None, (machine.address, processor, threads)))
    return _("{machine}; target {target}", machine=about, target=machine.target)


def processor_name() -> str:
    """Return the name of the processor, as far as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # no Linux: what Python knows has to do
    return platform.processor() or platform.machine()


SHARE = 0.75
"""Default share of the machine's memory that a worker may use."""


LEAST = 1_000_000_000
"""Memory that torch and TVM need to start, in bytes."""


_MOST = 10**15


_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[kmgt]?)(?P<kind>i?b)?", re.IGNORECASE)


def usual_limit() -> int:
    """Return the default memory limit of a worker, in bytes.

    Windows has no such limit.
    """
    if sys.platform == "win32":
        return LEAST
    return max(LEAST, int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE))


def parse_bytes(text: str) -> int:
    """Return the bytes of a text such as ``3GB``, ``800 MB``, ``4 GiB`` or ``4000000000``.

    Raises:
        ValueError: If it stands for none.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ValueError(_("{text!r} is not an amount of memory, such as 3GB", text=text))
    step = 1024 if (found["kind"] or "").lower() == "ib" else 1000
    number = float(found["number"]) * step ** " kmgt".index(found["unit"].lower() or " ")
    if number > _MOST:
        raise ValueError(_("{text} is more than any machine has", text=text.strip()[:40]))
    return int(number)


def parse_limit(text: str) -> int:
    """Return the bytes that a text stands for, as a limit of the worker.

    Raises:
        ValueError: If it stands for none, or for less than torch and TVM need to start.
    """
    number = parse_bytes(text)
    if number < LEAST:
        raise ValueError(_("torch and TVM need {least} at least", least=bytes_text(LEAST)))
    return number

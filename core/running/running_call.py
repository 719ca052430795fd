"""Which call of a run is under way, in memory that outlives the process that runs it.

A worker that crashes, hangs or is killed for its memory tells no more. It inherits the descriptor
of a file from the window, maps the file, and writes the index of each call into it before the call:
the window can read it at once, however the worker ends. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Annotated

import msgspec

from lowerscope.core.encoding import UNREADABLE

if sys.platform != "win32":
    import fcntl

_PART_BYTES = 96

HEAD = struct.Struct(f"=iiqqq{_PART_BYTES}s{_PART_BYTES}s")
"""Index of the call, whether it has begun, bytes of the names, bytes of memory that were too
many, processes that were too many, the parts of the recipe that the main thread and another one
apply."""

_PLACE = struct.Struct("=ii")
_NUMBER = struct.Struct("=q")
MEMORY_AT = 16
TASKS_AT = 24
"""Where in the file the bytes and the processes are that were too many: 64-bit integers."""
_PART = struct.Struct(f"{_PART_BYTES}s")
_PARTS_AT = 32

NO_CALL = -1

_SIZE = 1 << 24
"""Bytes of a file; those that are not written take no memory."""

_MOST_READ = 1 << 21
"""Bytes of the names that are read, whatever the process has written."""

_NAMES = msgspec.msgpack.Decoder(Annotated[list[str], msgspec.Meta(max_length=50_000)])
_SHOWN = 300
"""Characters of the name of a call in a sentence."""


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run was.

    Attributes
    ----------
    index
        Of the call, among those of `RunRecord.calls`; ``None`` where no run was in its calls, and
        `count` where they were over.
    count
        How many calls the run has; 0 outside of runs.
    names
        What was called so far, with the FX nodes that it computes; the last is the call. Empty
        where it was in none.
    inside
        Whether the call was under way, and not what comes before it, such as its memory.
    too_much
        Bytes that the process and those that it started held when they were killed for it; 0 where
        they were not.
    too_many
        Processes and threads that there were when they were killed for it; 0 where they were not.
    part
        The part of the recipe that was being applied, as `recipe_parts` writes it; empty for none.
    """

    index: int | None = None
    count: int = 0
    names: tuple[str, ...] = ()
    inside: bool = False
    too_much: int = 0
    too_many: int = 0
    part: str = ""

    @property
    def text(self) -> str:
        """The place in words that follow what was done; empty where no run was in its calls."""
        if self.index is None:
            return ""
        if self.index == self.count:
            return f"after the last of {self.count} calls"
        where = "in" if self.inside else "before"
        return f"{where} call {self.index + 1} of {self.count}, {self.names[-1][:_SHOWN]}"


def call_name(callee: str, nodes: Sequence[str]) -> str:
    """Return what a call is called: ``fused_conv2d_relu (conv, relu)``."""
    computed = ", ".join(each.removeprefix("fx:") for each in nodes)
    return f"{callee} ({computed})" if computed else callee


def parts_of_name(name: str) -> tuple[str, tuple[str, ...]]:
    """Return what is called, and the ids of the nodes, from what `call_name` has returned."""
    callee, _, computed = name.removesuffix(")").partition(" (")
    return callee, tuple(f"fx:{each}" for each in computed.split(", ")) if computed else ()


def place_of(index: int, inside: bool, names: Sequence[str]) -> RunningCall:
    """Return the place in a run of these calls; see `CallWriter.at`."""
    if not 0 <= index <= len(names):
        return RunningCall(count=len(names))
    return RunningCall(
        index=index,
        count=len(names),
        names=tuple(names[: index + 1]) if index < len(names) else (),
        inside=inside,
    )


def new_file() -> int:
    """Return the descriptor of a new file for a `CallWriter`, which has no name anywhere.

    It is in memory where the system has such files. Nobody else can open it, or has to remove it;
    processes that are to write to it inherit the descriptor. Its size is fixed: a writer can
    neither cut it nor make it grow.
    """
    descriptor = _in_memory()
    if descriptor is None:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _SIZE)
    os.pwrite(descriptor, HEAD.pack(NO_CALL, 0, 0, 0, 0, b"", b""), 0)
    if sys.platform == "win32":
        return descriptor
    # Shells use the lower ones themselves.
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def _in_memory() -> int | None:
    """Return the descriptor of a file of a fixed size; ``None`` where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.memfd_create("lowerscope-calls", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:
        return None  # as in the sandbox, where temporary files are in memory
    os.ftruncate(descriptor, _SIZE)
    seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def read(descriptor: int) -> RunningCall:
    """Return where the process was last that writes to a file of `new_file`.

    Nothing is returned for what a crash has left half written.
    """
    head = os.pread(descriptor, HEAD.size, 0)
    if len(head) < HEAD.size:
        return RunningCall()
    length = HEAD.unpack(head)[2]
    names = os.pread(descriptor, min(max(length, 0), _MOST_READ), HEAD.size)
    return _parsed(head, names)


def _parsed(head: bytes, encoded: bytes) -> RunningCall:
    index, inside, _, too_much, too_many, *parts = HEAD.unpack(head)
    names: list[str] = []
    with contextlib.suppress(*UNREADABLE):
        names = _NAMES.decode(encoded)
    place = place_of(index if names else NO_CALL, bool(inside), names)
    texts = (each.rstrip(b"\0").decode(errors="replace") for each in parts)
    part = next(filter(None, texts), "")
    return msgspec.structs.replace(place, too_much=too_much, too_many=too_many, part=part)


class CallWriter:
    """Writes into the file of a `RunningCall`.

    Parameters
    ----------
    descriptor
        What `new_file` has returned, in this process or in the one that has started it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map = mmap.mmap(self._descriptor, HEAD.size)

    def begin(self, names: Sequence[str]) -> None:
        """Say that a run with these calls begins, or with none, that it is over."""
        _PLACE.pack_into(self._map, 0, NO_CALL, 0)
        encoded = msgspec.msgpack.encode(list(names))
        if len(encoded) > _SIZE - HEAD.size:
            encoded = b""
        os.pwrite(self._descriptor, encoded, HEAD.size)
        _NUMBER.pack_into(self._map, _PLACE.size, len(encoded))

    def at(self, index: int, inside: bool) -> None:
        """Say that a call is under way, or, not `inside`, that it comes next.

        With the number of calls as index they are over, and with `NO_CALL` none is about to come.
        """
        _PLACE.pack_into(self._map, 0, index, inside)

    def at_part(self, part: str) -> None:
        """Say which part of the recipe this thread applies; ``""`` when it is over."""
        # Small requests are answered beside a long one, by another thread.
        place = 0 if threading.current_thread() is threading.main_thread() else 1
        text = part.encode()[:_PART_BYTES]
        _PART.pack_into(self._map, _PARTS_AT + place * _PART_BYTES, text)

    def say_too_much(self, held: int) -> None:
        """Say that the process is going to be killed for the bytes that it holds."""
        _NUMBER.pack_into(self._map, MEMORY_AT, held)

    def say_too_many(self, tasks: int) -> None:
        """Say that the process is going to be killed for those that it has started."""
        _NUMBER.pack_into(self._map, TASKS_AT, tasks)

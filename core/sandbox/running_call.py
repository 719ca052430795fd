"""The current call of a run, in memory that outlives the process that runs it.

A worker that crashes, hangs or is killed for its memory sends no more messages. It inherits the
descriptor of a file from the window, maps the file, and writes the index of each call into it
before the call: the window can read it at any time. This module imports neither torch nor TVM.
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

from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.texts import _, _n

if sys.platform != "win32":
    import fcntl

_PART_BYTES = 96

HEAD = struct.Struct(f"=iiqqq{_PART_BYTES}s{_PART_BYTES}s")
"""Header of the file.

Index of the call, whether it has begun, bytes of the names, memory and number of processes when a
limit was exceeded, and the parts of the recipe that the main thread and another one apply.
"""

_PLACE = struct.Struct("=ii")
_NUMBER = struct.Struct("=q")
MEMORY_AT = 16
TASKS_AT = 24
"""Offsets in the file of the memory and the number of processes: 64-bit integers."""
_PART = struct.Struct(f"{_PART_BYTES}s")
_PARTS_AT = 32

NO_CALL = -1

_SIZE = 1 << 24
"""Size of the file, in bytes; unwritten ones take no memory."""

_MOST_READ = 1 << 21
"""Limit on the names that are read, in bytes, whatever the process has written."""

_NAMES = msgspec.msgpack.Decoder(Annotated[list[str], msgspec.Meta(max_length=50_000)])
_SHOWN = 300
"""Length limit of the name of a call in a sentence, in characters."""


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """Position of a run."""

    # Of the call, in `RunRecord.calls`; ``None`` if no run was in its calls, and `count` if they
    # were over.
    index: int | None = None
    count: int = 0  # Number of calls of the run; 0 outside of runs.
    # Labels of the calls so far, with the FX nodes that each computes; the last is the current
    # call. Empty outside of calls.
    names: tuple[str, ...] = ()
    # Whether the call was running, rather than the steps before it, such as its allocations.
    inside: bool = False
    # Bytes that the process and its children held when they were killed for it; 0 if they were not.
    too_much: int = 0
    # Processes and threads that existed when they were killed for it; 0 if they were not.
    too_many: int = 0
    # The part of the recipe that was being applied, as `recipe_parts` writes it; empty for none.
    part: str = ""

    @property
    def text(self) -> str:
        """The position in words for the end of a sentence; empty if no run was in its calls."""
        if self.index is None:
            return ""
        if self.index == self.count:
            return _n("after the only call", "after the last of {count} calls", self.count)
        number, name = self.index + 1, self.names[-1][:_SHOWN]
        if self.inside:
            return _(
                "in call {number} of {count}, {name}", number=number, count=self.count, name=name
            )
        return _(
            "before call {number} of {count}, {name}", number=number, count=self.count, name=name
        )


def place_of(index: int, inside: bool, names: Sequence[str]) -> RunningCall:
    """Return the position in a run of these calls; see `CallWriter.at`."""
    if not 0 <= index <= len(names):
        return RunningCall(count=len(names))
    return RunningCall(
        index=index,
        count=len(names),
        names=tuple(names[: index + 1]) if index < len(names) else (),
        inside=inside,
    )


def new_file() -> int:
    """Return the descriptor of a new anonymous file for a `CallWriter`.

    It is in memory if the system supports that. Nobody else can open it, or has to remove it;
    processes that are to write to it inherit the descriptor. Its size is fixed: a writer can
    neither truncate nor extend it.
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
    """Return the descriptor of a memory file of a fixed size; ``None`` if unsupported."""
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
    """Return the last position of the process that writes to a file of `new_file`.

    Data that a crash has left half written is ignored.
    """
    head = os.pread(descriptor, HEAD.size, 0)
    if len(head) < HEAD.size:
        return RunningCall()
    length = HEAD.unpack(head)[2]
    names = os.pread(descriptor, min(max(length, 0), _MOST_READ), HEAD.size)
    return _parsed(head, names)


def _parsed(head: bytes, encoded: bytes) -> RunningCall:
    index, inside, _other, too_much, too_many, *parts = HEAD.unpack(head)
    names: list[str] = []
    with contextlib.suppress(*UNREADABLE):
        names = _NAMES.decode(encoded)
    place = place_of(index if names else NO_CALL, bool(inside), names)
    texts = (each.rstrip(b"\0").decode(errors="replace") for each in parts)
    part = next(filter(None, texts), "")
    return msgspec.structs.replace(place, too_much=too_much, too_many=too_many, part=part)


class CallWriter:
    """Writer of the file of a `RunningCall`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map = mmap.mmap(self._descriptor, HEAD.size)

    def begin(self, names: Sequence[str]) -> None:
        """Record that a run with these calls begins, or, for none, that it is over."""
        _PLACE.pack_into(self._map, 0, NO_CALL, 0)
        encoded = msgspec.msgpack.encode(list(names))
        if len(encoded) > _SIZE - HEAD.size:
            encoded = b""
        os.pwrite(self._descriptor, encoded, HEAD.size)
        _NUMBER.pack_into(self._map, _PLACE.size, len(encoded))

    def at(self, index: int, inside: bool) -> None:
        """Record that a call is running, or, not `inside`, that it is next.

        The number of calls as index means that they are over, and `NO_CALL` that none is next.
        """
        _PLACE.pack_into(self._map, 0, index, inside)

    def at_part(self, part: str) -> None:
        """Record the part of the recipe that this thread applies; ``""`` when it is over."""
        # Small requests are answered beside a long one, by another thread.
        place = 0 if threading.current_thread() is threading.main_thread() else 1
        text = part.encode()[:_PART_BYTES]
        _PART.pack_into(self._map, _PARTS_AT + place * _PART_BYTES, text)

    def say_too_much(self, held: int) -> None:
        """Record that the process is going to be killed for the bytes that it holds."""
        _NUMBER.pack_into(self._map, MEMORY_AT, held)

    def say_too_many(self, tasks: int) -> None:
        """Record that the process is going to be killed for the processes that it has started."""
        _NUMBER.pack_into(self._map, TASKS_AT, tasks)

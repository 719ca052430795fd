"""Which call of a run is under way, in memory that outlives the process that runs it.

A worker that crashes, hangs or is killed for its memory tells no more. The window gives it a file;
the worker maps it, and writes the index of each call into it before the call: what is written is
there for the window at once, however the worker ends. This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import mmap
import os
import stat
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from lowerscope.core.encoding import UNREADABLE

_PART_BYTES = 96

HEAD = struct.Struct(f"=iiqq{_PART_BYTES}s{_PART_BYTES}s")
"""Index of the call, whether it has begun, bytes of the names, bytes of memory that were too
many, the parts of the recipe that the main thread and another one apply."""

_PLACE = struct.Struct("=ii")
_MEMORY = struct.Struct("=q")
_MEMORY_AT = 16
_PART = struct.Struct(f"{_PART_BYTES}s")
_PARTS_AT = 24

NO_CALL = -1

_MOST = 1 << 24
"""Bytes of a file that are read, whatever its process has made of it."""

_SHARED_MEMORY = Path("/dev/shm")
_PREFIX = "lowerscope-call-"


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
    part
        The part of the recipe that was being applied, as `recipe_parts` writes it; empty for none.
    """

    index: int | None = None
    count: int = 0
    names: tuple[str, ...] = ()
    inside: bool = False
    too_much: int = 0
    part: str = ""

    @property
    def text(self) -> str:
        """The place in words that follow what was done; empty where no run was in its calls."""
        if self.index is None:
            return ""
        if self.index == self.count:
            return f"after the last of {self.count} calls"
        where = "in" if self.inside else "before"
        return f"{where} call {self.index + 1} of {self.count}, {self.names[-1]}"


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


def call_files() -> Iterator[Path]:
    """Yield the files that `new_file` has made here, in this process or in another one."""
    with contextlib.suppress(OSError):
        yield from _folder().glob(f"{_PREFIX}*")


def new_file() -> str:
    """Make a file for a `CallWriter`, in memory where the system has a place for that.

    It is in a folder that such files alone are in: a process that may write nowhere else can be let
    write there.
    """
    prefix = f"{_PREFIX}{os.getpid()}-"
    try:
        descriptor, path = tempfile.mkstemp(prefix=prefix, dir=_folder())
    except FileNotFoundError:
        # Another window has removed its last file, and the folder with it, in between.
        descriptor, path = tempfile.mkstemp(prefix=prefix, dir=_folder())
    with os.fdopen(descriptor, "wb") as file:
        file.write(HEAD.pack(NO_CALL, 0, 0, 0, b"", b""))
    return path


def _folder() -> Path:
    shared = os.access(_SHARED_MEMORY, os.W_OK)
    place = _SHARED_MEMORY if shared else Path(tempfile.gettempdir())
    user = getpass.getuser() if sys.platform == "win32" else str(os.getuid())
    folder = place / f"lowerscope-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if sys.platform != "win32" and (found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode)):
        raise PermissionError(errno.EPERM, "somebody else has taken the name", str(folder))
    return folder


def read(path: str) -> RunningCall:
    """Return where the process that wrote into a file was last.

    Nothing is said where the file is gone, or is not whole: another process may have been killed
    while it wrote the names.
    """
    try:
        with open(path, "rb") as file:
            return _parsed(file.read(_MOST))
    except OSError:
        return RunningCall()


def _parsed(data: bytes) -> RunningCall:
    if len(data) < HEAD.size:
        return RunningCall()
    index, inside, length, too_much, *parts = HEAD.unpack_from(data)
    names: list[str] = []
    with contextlib.suppress(*UNREADABLE):
        names = msgspec.msgpack.decode(data[HEAD.size : HEAD.size + length], type=list[str])
    place = place_of(index if names else NO_CALL, bool(inside), names)
    texts = (each.rstrip(b"\0").decode(errors="replace") for each in parts)
    return msgspec.structs.replace(place, too_much=too_much, part=next(filter(None, texts), ""))


class CallReader:
    """Reads the file of a `RunningCall`, which need not be seen any more once both have it.

    Parameters
    ----------
    path
        What `new_file` has returned.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = os.open(path, os.O_RDONLY)

    def read(self) -> RunningCall:
        """Return where the process was last; nothing is known after `close`."""
        if self._descriptor is None:
            return RunningCall()
        size = min(os.fstat(self._descriptor).st_size, _MOST)
        return _parsed(os.pread(self._descriptor, size, 0))

    def hide(self) -> None:
        """Remove the file: the process has it open, and whoever is killed leaves nothing."""
        if sys.platform != "win32":
            remove(self._path)

    def close(self) -> None:
        """Read no more, and leave nothing behind."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            remove(self._path)


def remove(path: str) -> None:
    """Remove a file that was made by `new_file`, and its folder after the last one."""
    Path(path).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # there are others, or it cannot be removed from in here
        Path(path).parent.rmdir()


class CallWriter:
    """Writes into the file of a `RunningCall`.

    Parameters
    ----------
    path
        What `new_file` has returned, in this process or in another one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        # It may be out of sight when it is written to.
        self._descriptor = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(self._descriptor, HEAD.size)

    def begin(self, names: Sequence[str]) -> None:
        """Say that a run with these calls begins, or with none, that it is over."""
        _PLACE.pack_into(self._map, 0, NO_CALL, 0)
        encoded = msgspec.msgpack.encode(list(names))
        os.pwrite(self._descriptor, encoded, HEAD.size)
        os.ftruncate(self._descriptor, HEAD.size + len(encoded))
        _MEMORY.pack_into(self._map, _PLACE.size, len(encoded))

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
        _MEMORY.pack_into(self._map, _MEMORY_AT, held)

    def remove(self) -> None:
        """Remove the file: whoever made it has gone."""
        remove(self._path)

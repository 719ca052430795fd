"""Models from the memory of a Python process: handed over to the window that it opens.

The process writes model and inputs into a private file, and tells the window that it starts, and
nobody else, where it is. The window takes the file's descriptor and removes the file at once; the
engine and the worker, and those that are started in the place of one that died, read the model
from that descriptor, which ends with the window. Nothing is left of it anywhere. In the process
itself, the same content is read from memory.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import linecache
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

import msgspec

from lowerscope.core.encoding import UNREADABLE
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.spec import MEMORY, not_in_a_file

VARIABLE = "LOWERSCOPE_HANDED_OVER"
"""Of the window's environment: the descriptor and what a recipe names it by."""

FOLDER = "lowerscope-model-"
"""How the folder of a model that waits for its window begins; the next is the process."""

_TOKEN_BYTES = 32
_HEADER_MOST = 64 << 20


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known before a model is read.

    Attributes
    ----------
    title
        What it is called.
    path
        Where modules are looked for that it names.
    lines
        Texts of its code that are in no file, such as cells of a notebook, by their file names.
    """

    title: str
    path: tuple[str, ...] = ()
    lines: dict[str, str] = {}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the process tells the window: the file, what it begins with, and how it is lowered."""

    file: str
    token: str
    recipe: Recipe


@dataclass(frozen=True, eq=False)
class Parcel:
    """A model with its inputs, to be read again.

    Attributes
    ----------
    spec
        What a recipe names it by: it says what is in it.
    content
        The header, a line of JSON, and the pickle of model and inputs.
    """

    spec: str
    content: bytes


_here: WeakValueDictionary[str, Parcel] = WeakValueDictionary()
"""The parcels of this process."""


def pack(model: object, inputs: object, title: str) -> Parcel:
    """Return a model with its inputs as they are now.

    Raises
    ------
    LowerscopeError
        If they cannot be handed over.
    """
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps((model, inputs))
    except Exception as error:
        # Anything may be in a model, and fail in its own way.
        raise LowerscopeError(
            f"it cannot be handed over: {type(error).__name__}: {error}",
            where=title,
            todo="Write it as a Python file, and open that",
        ) from None
    folders = tuple(os.path.abspath(each) for each in sys.path)
    header = Header(title=title, path=folders, lines=dict(_texts(model)))
    content = msgspec.json.encode(header) + b"\n" + pickled
    digest = hashlib.sha256(content).hexdigest()[:16]
    parcel = Parcel(f"{MEMORY}{title}-{digest}", content)
    return _here.setdefault(parcel.spec, parcel)


def _texts(model: object) -> Iterator[tuple[str, str]]:
    """Yield the texts of a model's classes that are in no file."""
    modules = getattr(model, "modules", None)
    kinds = {type(each) for each in modules()} if callable(modules) else set()
    for kind in kinds:
        for value in vars(kind).values():
            code = getattr(value, "__code__", None)
            if code is not None and not os.path.exists(code.co_filename):
                lines = linecache.getlines(code.co_filename)
                if lines:
                    yield code.co_filename, "".join(lines)


# The process that has the model


@contextlib.contextmanager
def private_file(parcel: Parcel) -> Iterator[tuple[str, str]]:
    """Write a parcel to a file that this user alone may read; yield its path and its token.

    When the body ends the file is gone, whether the window has taken it or never came.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    _remove_left_over()
    folder = tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")
    try:
        token = secrets.token_hex(_TOKEN_BYTES)
        path = os.path.join(folder, "model")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(token.encode())
            file.write(parcel.content)
        yield path, token
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_over() -> None:
    """Remove what processes that were killed in the middle of it have left."""
    import psutil

    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        number = folder.name.removeprefix(FOLDER).partition("-")[0]
        gone = number.isdecimal() and not psutil.pid_exists(int(number))
        if gone and folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)


# The window


def take(order: Order) -> None:
    """Take the file of an order: its descriptor stays with this process, the file goes.

    Raises
    ------
    LowerscopeError
        If it is not the file that this window was started for.
    """
    try:
        descriptor = os.open(order.file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise _not_the_one(f"it cannot be read ({error.strerror})") from None
    status = os.fstat(descriptor)
    token = os.pread(descriptor, 2 * _TOKEN_BYTES, 0)
    if (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.getuid()
        or status.st_mode & 0o077
        or not hmac.compare_digest(token, order.token.encode())
    ):
        os.close(descriptor)
        raise _not_the_one("it is not the one that was written for this window")
    os.unlink(order.file)
    with contextlib.suppress(OSError):  # the process that made it removes it as well
        os.rmdir(os.path.dirname(order.file))
    descriptor = _out_of_the_way(descriptor)
    os.set_inheritable(descriptor, True)
    os.environ[VARIABLE] = f"{descriptor}:{order.recipe.source.spec}"


def _out_of_the_way(descriptor: int) -> int:
    """Return a descriptor that a shell does not use for itself, in place of another one."""
    if sys.platform == "win32":
        return descriptor
    import fcntl

    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
    os.close(descriptor)
    return moved


def _not_the_one(reason: str) -> LowerscopeError:
    return LowerscopeError(
        f"the model is not taken: {reason}",
        where="--handed-over",
        todo="Call explore(model, inputs) in Python: it opens the window by itself",
    )


def first_other_descriptor() -> int:
    """Return the number from which on descriptors are not for the window's children; 0 for all."""
    number = os.environ.get(VARIABLE, "").partition(":")[0]
    return int(number) + 1 if number.isdecimal() else 0


def handed_descriptors() -> tuple[int, ...]:
    """Return the descriptor that the window's children need, if there is one."""
    other = first_other_descriptor()
    return (other - 1,) if other else ()


# The engine, the worker, and the process itself


def read_handed(spec: str) -> tuple[Header, Any, Any]:
    """Return what was handed over: its header, the model and the inputs.

    Raises
    ------
    LowerscopeError
        If it is not there: another process had it in its memory.
    """
    with _opened(spec) as stream:
        try:
            header = msgspec.json.decode(stream.readline(_HEADER_MOST), type=Header)
        except UNREADABLE as error:
            raise _not_the_one(f"it does not begin as one does ({error})") from None
        sys.path.extend(each for each in header.path if each not in sys.path)
        for name, text in header.lines.items():
            # Without a time the entry is never refreshed.
            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        try:
            model, inputs = pickle.load(stream)
        except Exception as error:
            raise LowerscopeError(
                f"the model cannot be read: {type(error).__name__}: {error}",
                where=header.title,
                todo="What it imports has to be found from here as well; or write it as a file",
            ) from error
    return header, model, inputs


@contextlib.contextmanager
def _opened(spec: str) -> Iterator[BinaryIO]:
    parcel = _here.get(spec)
    number, _, name = os.environ.get(VARIABLE, "").partition(":")
    if parcel is not None:
        yield io.BytesIO(parcel.content)
    elif name == spec and number.isdecimal():
        with io.BufferedReader(_Descriptor(int(number))) as stream:
            stream.seek(2 * _TOKEN_BYTES)
            yield stream
    else:
        raise not_in_a_file(spec)


class _Descriptor(io.RawIOBase):
    """Reads a descriptor that others read too: it has a place of its own in it."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        match whence:
            case os.SEEK_CUR:
                place += self._place
            case os.SEEK_END:
                place += os.fstat(self._number).st_size
        self._place = place
        return place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found = os.pread(self._number, len(view), self._place)
        view[: len(found)] = found
        self._place += len(found)
        return len(found)
